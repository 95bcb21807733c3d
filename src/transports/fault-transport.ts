import { neverUs } from '../base/clock.ts';
import { invariant } from '../base/errors.ts';
import { Random } from '../base/random.ts';
import type { Transfer, TransferStatus } from '../usbnet/transfer.ts';
import type {
  DeviceRequest,
  RequestResult,
  SubmitResult,
  Transport,
  TransportHandler,
  UsbDevice,
} from '../usbnet/transport.ts';
import { type FaultRule, type StickEnd, stickEnds, type TransportFault } from './transport-fault.ts';

const noData = new Uint8Array(0);

/** A rule with what it has seen. */
interface ArmedRule {
  readonly rule: FaultRule;
  seen: number;
  struck: number;
}

/** What is known of a transfer that was taken and not reported. */
interface Flight {
  readonly fault: TransportFault | undefined;
  /** It never reached the inner transport: its endpoint was halted, or the device had gone. */
  readonly swallowed: boolean;
  /** Cancelled on the inner transport by a fault: what that cancel stands for. */
  cutOffAs: 'stall' | 'gone' | undefined;
}

/** An end that waits to be reported. */
interface PendingEnd {
  readonly transfer: Transfer;
  readonly status: TransferStatus;
  readonly actualLength: number;
  dueAtUs: number;
}

interface PendingResult {
  readonly result: RequestResult;
  readonly dueAtUs: number;
}

export interface FaultCounters {
  /** Faults that struck, by kind. */
  readonly struck: Readonly<Record<TransportFault['kind'], number>>;
  /** Ends of transfers that were not out (ended twice, never submitted): not passed on. */
  readonly strayEnds: number;
}

/**
 * A transport with faults: wraps another one and lets go wrong what its rules say. Same seed, same calls: same faults.
 * For each transfer the first rule that strikes counts. Synchronous; ends that are late come out of {@link poll}.
 */
export class FaultTransport implements Transport, TransportHandler {
  readonly device: UsbDevice;
  readonly #inner: Transport;
  readonly #random: Random;
  #rules: ArmedRule[];
  #handler: TransportHandler | undefined;
  readonly #flights = new Map<Transfer, Flight>();
  /** Ends in the order in which they are to be reported, by endpoint. */
  readonly #pending = new Map<number, PendingEnd[]>();
  readonly #halted = new Set<number>();
  /** Endpoints that are stuck, and what gets them going again. */
  readonly #stuck = new Map<number, StickEnd>();
  /** Transfers that stick. */
  readonly #sticking = new Set<Transfer>();
  /** Second copies of transfers OUT, of which nobody knows. */
  readonly #copies = new Set<Transfer>();
  /** What the next transfer IN of an endpoint brings again. */
  readonly #again = new Map<number, Uint8Array>();
  #request: DeviceRequest | undefined;
  #requestFault: TransportFault | undefined;
  #pendingResult: PendingResult | undefined;
  #vanishAtUs = neverUs;
  #gone = false;
  #goneReported = false;
  #strayEnds = 0;
  readonly #struck: Record<TransportFault['kind'], number> = {
    refuse: 0,
    end: 0,
    delay: 0,
    truncate: 0,
    babble: 0,
    hold: 0,
    halt: 0,
    stick: 0,
    duplicate: 0,
    vanish: 0,
  };

  constructor(inner: Transport, rules: readonly FaultRule[], seed: number) {
    this.#inner = inner;
    this.device = inner.device;
    this.#random = new Random(seed);
    this.#rules = rules.map((rule) => ({ rule, seen: 0, struck: 0 }));
    inner.setHandler(this);
  }

  get counters(): FaultCounters {
    return { struck: this.#struck, strayEnds: this.#strayEnds };
  }

  /** Transfers that were taken and whose end has not been reported. */
  get outstanding(): number {
    return this.#flights.size;
  }

  setHandler(handler: TransportHandler): void {
    invariant(this.#handler === undefined, 'a transport has one handler');
    this.#handler = handler;
  }

  makeTransfer(endpointAddress: number, capacity: number, maxPackets: number): Transfer {
    return this.#inner.makeTransfer(endpointAddress, capacity, maxPackets);
  }

  submit(transfer: Transfer, nowUs: number): SubmitResult {
    invariant(!this.#flights.has(transfer), 'a transfer was submitted twice');
    if (this.#gone) return 'gone';
    const fault = this.#strike(transfer.endpointAddress);
    if (fault?.kind === 'refuse') return fault.result;
    if (fault?.kind === 'vanish') this.#vanish(nowUs);
    if (fault?.kind === 'halt') this.#halt(transfer.endpointAddress, nowUs);
    if (fault?.kind === 'stick') this.#stuck.set(transfer.endpointAddress, fault.until);

    if (this.#gone || this.#halted.has(transfer.endpointAddress)) {
      this.#flights.set(transfer, { fault: undefined, swallowed: true, cutOffAs: undefined });
      this.#queueEnd(transfer, this.#gone ? 'gone' : 'stall', 0, nowUs);
      return 'ok';
    }
    if (this.#stuck.has(transfer.endpointAddress)) {
      this.#flights.set(transfer, { fault: undefined, swallowed: true, cutOffAs: undefined });
      this.#sticking.add(transfer);
      return 'ok';
    }
    const result = this.#inner.submit(transfer, nowUs);
    if (result === 'ok' && fault?.kind === 'duplicate' && !transfer.isIn) this.#submitCopy(transfer, nowUs);
    if (result === 'ok') this.#flights.set(transfer, { fault, swallowed: false, cutOffAs: undefined });
    return result;
  }

  cancel(transfer: Transfer, nowUs: number): void {
    if (!this.#flights.has(transfer)) return;
    if (this.#sticking.has(transfer)) {
      this.#endSticking('cancelled', nowUs, (other) => other === transfer);
      if (this.#stuck.get(transfer.endpointAddress) === 'cancel') {
        this.#stuck.delete(transfer.endpointAddress);
      }
      return;
    }
    const pending = this.#pending.get(transfer.endpointAddress)?.find((end) => end.transfer === transfer);
    if (pending === undefined) this.#inner.cancel(transfer, nowUs);
    // It has ended on the bus: the news of that just comes sooner. What is held stays held.
    else if (pending.dueAtUs !== neverUs) pending.dueAtUs = nowUs;
  }

  request(request: DeviceRequest, nowUs: number): void {
    invariant(this.#request === undefined, 'one request at a time');
    this.#request = request;
    const fault = this.#strike(0);
    if (fault?.kind === 'vanish') this.#vanish(nowUs);
    this.#requestFault = fault;
    if (this.#gone) this.#pendingResult = { result: { status: 'gone', data: noData }, dueAtUs: nowUs };
    else if (fault?.kind === 'end') {
      this.#pendingResult = { result: { status: fault.status, data: noData }, dueAtUs: nowUs };
    } else this.#inner.request(request, nowUs);
  }

  /** Rules that may still strike. */
  get armed(): number {
    return this.#rules.length;
  }

  /** Adds a rule, behind those that there are. */
  arm(rule: FaultRule): void {
    this.#rules.push({ rule, seen: 0, struck: 0 });
  }

  /** Unplugs the device. */
  vanish(nowUs: number): void {
    this.#vanish(nowUs);
  }

  /** Reports, at the next poll, every end and result that is held. */
  release(nowUs: number): void {
    for (const ends of this.#pending.values()) {
      for (const end of ends) if (end.dueAtUs === neverUs) end.dueAtUs = nowUs;
    }
    if (this.#pendingResult?.dueAtUs === neverUs) {
      this.#pendingResult = { result: this.#pendingResult.result, dueAtUs: nowUs };
    }
  }

  poll(nowUs: number): void {
    for (const ends of this.#pending.values()) this.#report(ends, nowUs);
    const result = this.#pendingResult;
    if (result !== undefined && result.dueAtUs <= nowUs) {
      this.#pendingResult = undefined;
      this.#finishRequest(result.result, nowUs);
    }
    if (this.#vanishAtUs <= nowUs) {
      this.#vanishAtUs = neverUs;
      this.#reportGone(nowUs);
    }
  }

  /** The ends behind the first of an endpoint wait for it. */
  pollAtUs(): number {
    let atUs = Math.min(this.#vanishAtUs, this.#pendingResult?.dueAtUs ?? neverUs);
    for (const ends of this.#pending.values()) atUs = Math.min(atUs, ends[0]?.dueAtUs ?? neverUs);
    return atUs;
  }

  // ---- reports of the inner transport ----

  handleTransferDone(transfer: Transfer, nowUs: number): void {
    if (this.#copies.delete(transfer)) return;
    const flight = this.#flights.get(transfer);
    const { endpointAddress } = transfer;
    const known = this.#pending.get(endpointAddress)?.some((end) => end.transfer === transfer) === true;
    if (flight === undefined || flight.swallowed || known) {
      this.#strayEnds++;
      return;
    }
    let { status, actualLength } = transfer;
    let dueAtUs = nowUs;
    const { fault } = flight;
    if (status === 'cancelled' && flight.cutOffAs !== undefined) {
      status = flight.cutOffAs;
    } else if (status === 'completed') {
      if (transfer.isIn) actualLength = this.#bringAgain(transfer, fault);
      switch (fault?.kind) {
        case 'end':
          status = fault.status;
          actualLength = 0;
          break;
        case 'truncate':
          actualLength = Math.min(actualLength, fault.bytes);
          break;
        case 'babble':
          if (transfer.isIn) {
            status = 'overflow';
            actualLength = transfer.length;
          }
          break;
        default:
          break;
      }
    }
    if (fault?.kind === 'delay') dueAtUs = nowUs + fault.us;
    if (fault?.kind === 'hold') dueAtUs = neverUs;
    const ends = this.#queueEnd(transfer, status, actualLength, dueAtUs);
    this.#report(ends, nowUs);
  }

  handleRequestDone(result: RequestResult, nowUs: number): void {
    const fault = this.#requestFault;
    if (this.#gone) this.#finishRequest({ status: 'gone', data: noData }, nowUs);
    else if (fault?.kind === 'delay') this.#pendingResult = { result, dueAtUs: nowUs + fault.us };
    else if (fault?.kind === 'hold') this.#pendingResult = { result, dueAtUs: neverUs };
    else this.#finishRequest(result, nowUs);
  }

  handleGone(nowUs: number): void {
    this.#gone = true;
    this.#endSticking('gone', nowUs, () => true);
    this.#reportGone(nowUs);
  }

  // ---- inside ----

  /** The fault of the first rule that strikes. Every rule counts every transfer that it applies to. */
  #strike(endpointAddress: number): TransportFault | undefined {
    let fault: TransportFault | undefined;
    let spent = false;
    for (const armed of this.#rules) {
      const { endpoint, atTransfer, probability, times } = armed.rule;
      const applies =
        endpointAddress === 0 ? endpoint === 0 : endpoint === undefined || endpoint === endpointAddress;
      if (!applies) continue;
      armed.seen++;
      if (atTransfer !== undefined && armed.seen !== atTransfer) continue;
      if (probability !== undefined && !this.#random.chance(probability)) continue;
      if (fault !== undefined || (times !== undefined && armed.struck >= times)) continue;
      armed.struck++;
      fault = armed.rule.fault;
      if (times !== undefined && armed.struck >= times) spent = true;
      this.#struck[fault.kind]++;
    }
    if (spent) this.#rules = this.#rules.filter(({ rule, struck }) => struck < (rule.times ?? Infinity));
    return fault;
  }

  #queueEnd(transfer: Transfer, status: TransferStatus, actualLength: number, dueAtUs: number): PendingEnd[] {
    let ends = this.#pending.get(transfer.endpointAddress);
    if (ends === undefined) {
      ends = [];
      this.#pending.set(transfer.endpointAddress, ends);
    }
    ends.push({ transfer, status, actualLength, dueAtUs });
    return ends;
  }

  /** Reports what is due of one endpoint, in order. */
  #report(ends: PendingEnd[], nowUs: number): void {
    for (;;) {
      const end = ends[0];
      if (end === undefined || end.dueAtUs > nowUs) return;
      ends.shift();
      this.#flights.delete(end.transfer);
      end.transfer.status = end.status;
      end.transfer.actualLength = end.actualLength;
      this.#handler?.handleTransferDone(end.transfer, nowUs);
    }
  }

  /** Sends the bytes of a transfer OUT once more. */
  #submitCopy(transfer: Transfer, nowUs: number): void {
    const copy = this.#inner.makeTransfer(transfer.endpointAddress, transfer.buffer.length, 1);
    copy.clear();
    copy.buffer.set(transfer.buffer.subarray(0, transfer.length));
    copy.length = transfer.length;
    copy.zeroPacket = transfer.zeroPacket;
    if (this.#inner.submit(copy, nowUs) === 'ok') this.#copies.add(copy);
  }

  /** What a transfer IN has brought, after a look at what is to be brought twice. @returns its actual length */
  #bringAgain(transfer: Transfer, fault: TransportFault | undefined): number {
    const { endpointAddress, buffer, actualLength } = transfer;
    const again = this.#again.get(endpointAddress);
    this.#again.delete(endpointAddress);
    if (again !== undefined && again.length <= transfer.length) {
      buffer.set(again);
      return again.length;
    }
    if (fault?.kind === 'duplicate') this.#again.set(endpointAddress, buffer.slice(0, actualLength));
    return actualLength;
  }

  #endSticking(status: TransferStatus, nowUs: number, applies: (transfer: Transfer) => boolean): void {
    for (const transfer of this.#sticking) {
      if (!applies(transfer)) continue;
      this.#sticking.delete(transfer);
      this.#queueEnd(transfer, status, 0, nowUs);
    }
  }

  /** A request has gone through that gets some stuck endpoints going again. */
  #unstick(what: StickEnd, endpointAddress: number | undefined): void {
    for (const [address, until] of this.#stuck) {
      if (endpointAddress !== undefined && address !== endpointAddress) continue;
      if (stickEnds.indexOf(until) <= stickEnds.indexOf(what)) this.#stuck.delete(address);
    }
  }

  #halt(endpointAddress: number, nowUs: number): void {
    this.#halted.add(endpointAddress);
    this.#endSticking('stall', nowUs, (transfer) => transfer.endpointAddress === endpointAddress);
    this.#cutOff('stall', nowUs, (transfer) => transfer.endpointAddress === endpointAddress);
  }

  #vanish(nowUs: number): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#vanishAtUs = nowUs;
    this.#endSticking('gone', nowUs, () => true);
    this.#cutOff('gone', nowUs, () => true);
  }

  /** Ends what the inner transport still has. */
  #cutOff(cutOffAs: 'stall' | 'gone', nowUs: number, applies: (transfer: Transfer) => boolean): void {
    for (const [transfer, flight] of this.#flights) {
      if (flight.swallowed || !applies(transfer)) continue;
      flight.cutOffAs = cutOffAs;
      this.cancel(transfer, nowUs);
    }
  }

  #reportGone(nowUs: number): void {
    if (this.#goneReported) return;
    this.#goneReported = true;
    this.#handler?.handleGone(nowUs);
  }

  #finishRequest(result: RequestResult, nowUs: number): void {
    const request = this.#request;
    if (request === undefined) return;
    this.#request = undefined;
    this.#requestFault = undefined;
    if (result.status === 'completed') {
      if (request.kind === 'clear-halt') {
        this.#halted.delete(request.endpointAddress);
        this.#unstick('clear-halt', request.endpointAddress);
      } else if (request.kind === 'set-interface' || request.kind === 'reset') {
        this.#unstick(request.kind, undefined);
      }
    }
    this.#handler?.handleRequestDone(result, nowUs);
  }
}
