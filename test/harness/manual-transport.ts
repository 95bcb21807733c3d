import { invariant } from '../../src/base/errors.ts';
import { findEndpoint } from '../../src/usbnet/endpoints.ts';
import { Transfer, type TransferStatus } from '../../src/usbnet/transfer.ts';
import type {
  DeviceRequest,
  RequestResult,
  SubmitResult,
  Transport,
  TransportHandler,
  UsbDevice,
} from '../../src/usbnet/transport.ts';

/** The driver, or the test, broke a promise of the {@link Transport} port. */
export class TransportContractError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TransportContractError';
  }
}

function promise(kept: boolean, message: string): asserts kept {
  if (!kept) throw new TransportContractError(message);
}

export interface SubmitCall {
  readonly kind: 'submit';
  readonly transfer: Transfer;
  readonly endpointAddress: number;
  /** OUT: a copy of what was sent; IN: empty. */
  readonly bytes: Uint8Array;
  readonly length: number;
  readonly zeroPacket: boolean;
  readonly result: SubmitResult;
  readonly nowUs: number;
}

/** What the driver asked for, in order. */
export type TransportCall =
  | SubmitCall
  | { readonly kind: 'cancel'; readonly transfer: Transfer; readonly wasOut: boolean; readonly nowUs: number }
  | { readonly kind: 'request'; readonly request: DeviceRequest; readonly nowUs: number };

const noData = new Uint8Array(0);
/** Calls that are kept; a soak would fill the memory otherwise. */
const callLimit = 20_000;

/**
 * A device whose transfers and requests the test ends by hand: one by one, in any order, with any status. It records
 * every call, and throws a {@link TransportContractError} where the port's contract is broken: a transfer of another
 * transport or one that is out already, a buffer that is touched while it is out, two requests at once, a halt cleared
 * under transfers of its endpoint, and ends that are reported twice or from inside a call.
 */
export class ManualTransport implements Transport {
  readonly device: UsbDevice;
  readonly calls: TransportCall[] = [];
  /** What the next submits answer. */
  submitResult: (transfer: Transfer) => SubmitResult = () => 'ok';
  readonly #made = new Set<Transfer>();
  /** In the order in which they were submitted; OUT with the bytes as they were then. */
  readonly #out = new Map<Transfer, Uint8Array>();
  readonly #cancelled = new Set<Transfer>();
  #handler: TransportHandler | undefined;
  #request: DeviceRequest | undefined;
  #submits = 0;
  #ends = 0;
  #gone = false;
  #inCall = false;

  constructor(device: UsbDevice) {
    this.device = device;
  }

  // ---- what the driver calls ----

  setHandler(handler: TransportHandler): void {
    promise(this.#handler === undefined, 'a second handler');
    promise(this.#submits === 0, 'a handler after the first submit');
    this.#handler = handler;
  }

  makeTransfer(endpointAddress: number, capacity: number, maxPackets: number): Transfer {
    promise(
      findEndpoint(this.device, endpointAddress) !== undefined,
      `a transfer for endpoint ${endpointAddress}, which there is not`,
    );
    promise(Number.isInteger(capacity) && capacity > 0, `a transfer with a buffer of ${capacity} bytes`);
    const transfer = new Transfer(endpointAddress, new Uint8Array(capacity), maxPackets);
    this.#made.add(transfer);
    return transfer;
  }

  submit(transfer: Transfer, nowUs: number): SubmitResult {
    promise(this.#handler !== undefined, 'a submit before there is a handler');
    promise(this.#made.has(transfer), 'a transfer of another transport');
    promise(!this.#out.has(transfer), 'a transfer is submitted a second time');
    const { length, buffer } = transfer;
    promise(Number.isInteger(length) && length >= 0, `a transfer of ${length} bytes`);
    promise(length <= buffer.length, `${length} bytes of a buffer of ${buffer.length}`);
    promise(!transfer.isIn || length > 0, 'a transfer that asks for nothing');
    promise(!transfer.isIn || !transfer.zeroPacket, 'a zero-length packet after a transfer IN');
    const bytes = transfer.isIn ? noData : buffer.slice(0, length);
    this.#inCall = true;
    const result = this.#gone ? 'gone' : this.submitResult(transfer);
    this.#inCall = false;
    const { endpointAddress, zeroPacket } = transfer;
    this.#record({ kind: 'submit', transfer, endpointAddress, bytes, length, zeroPacket, result, nowUs });
    if (result === 'ok') {
      this.#submits++;
      this.#out.set(transfer, bytes);
    }
    return result;
  }

  cancel(transfer: Transfer, nowUs: number): void {
    promise(this.#made.has(transfer), 'a transfer of another transport is cancelled');
    const wasOut = this.#out.has(transfer);
    if (wasOut) this.#cancelled.add(transfer);
    this.#record({ kind: 'cancel', transfer, wasOut, nowUs });
  }

  request(request: DeviceRequest, nowUs: number): void {
    invariant(this.#request === undefined, 'a second request');
    promise(request.timeoutMs > 0, 'a request without a time limit');
    if (request.kind === 'clear-halt') {
      promise(
        this.outstandingOn(request.endpointAddress).length === 0,
        'a halt is cleared under transfers of its endpoint',
      );
    }
    this.#request = request;
    this.#record({ kind: 'request', request, nowUs });
  }

  #record(call: TransportCall): void {
    if (this.calls.length === callLimit) this.calls.shift();
    this.calls.push(call);
  }

  // ---- what the test sees ----

  /** Submitted and not ended, the oldest first. */
  get outstanding(): readonly Transfer[] {
    return [...this.#out.keys()];
  }
  outstandingOn(endpointAddress: number): readonly Transfer[] {
    return this.outstanding.filter((transfer) => transfer.endpointAddress === endpointAddress);
  }
  /** Of those, the ones that were asked to end. */
  get cancelled(): readonly Transfer[] {
    return this.outstanding.filter((transfer) => this.#cancelled.has(transfer));
  }
  get pendingRequest(): DeviceRequest | undefined {
    return this.#request;
  }
  /** Transfers that were taken, and those whose end was reported. */
  get submits(): number {
    return this.#submits;
  }
  get ends(): number {
    return this.#ends;
  }

  get requests(): readonly DeviceRequest[] {
    return this.calls.flatMap((call) => (call.kind === 'request' ? [call.request] : []));
  }
  /** The submits of an endpoint, refused ones included. */
  submitsOn(endpointAddress: number): readonly SubmitCall[] {
    return this.calls.flatMap((call) =>
      call.kind === 'submit' && call.endpointAddress === endpointAddress ? [call] : [],
    );
  }

  // ---- what the test does ----

  /**
   * Ends a transfer.
   * @param actualLength OUT: all of it if it completes, else nothing; IN: what is given
   */
  end(transfer: Transfer, status: TransferStatus, nowUs: number, actualLength?: number): void {
    const handler = this.#requireHandler();
    const sent = this.#out.get(transfer);
    promise(sent !== undefined, 'the end of a transfer that is not out');
    if (!transfer.isIn) {
      const unchanged =
        transfer.length === sent.length && sent.every((byte, i) => transfer.buffer[i] === byte);
      promise(unchanged, 'the driver changed a transfer while it was out');
    }
    this.#out.delete(transfer);
    this.#cancelled.delete(transfer);
    this.#ends++;
    transfer.status = status;
    const all = transfer.isIn ? 0 : transfer.length;
    transfer.actualLength = actualLength ?? (status === 'completed' ? all : 0);
    handler.handleTransferDone(transfer, nowUs);
  }

  /** Ends the oldest transfer IN of an endpoint with these bytes. */
  receive(endpointAddress: number, bytes: Uint8Array, nowUs: number): void {
    const [transfer] = this.outstandingOn(endpointAddress);
    promise(transfer !== undefined, `nothing is asked for on endpoint ${endpointAddress}`);
    promise(bytes.length <= transfer.length, `${bytes.length} bytes where ${transfer.length} were asked for`);
    transfer.buffer.set(bytes);
    this.end(transfer, 'completed', nowUs, bytes.length);
  }

  /** Reports the end of every cancelled transfer. */
  endCancelled(nowUs: number): void {
    for (const transfer of this.cancelled) this.end(transfer, 'cancelled', nowUs);
  }

  /** Answers the request that is out. */
  answer(result: RequestResult | TransferStatus, nowUs: number): void {
    const handler = this.#requireHandler();
    promise(this.#request !== undefined, 'an answer without a request');
    this.#request = undefined;
    handler.handleRequestDone(typeof result === 'string' ? { status: result, data: noData } : result, nowUs);
  }

  /** The device is gone; what is out stays out until its end is reported. */
  unplug(nowUs: number): void {
    const handler = this.#requireHandler();
    promise(!this.#gone, 'a device is unplugged twice');
    this.#gone = true;
    handler.handleGone(nowUs);
  }

  #requireHandler(): TransportHandler {
    promise(!this.#inCall, 'a report from inside a call');
    promise(this.#handler !== undefined, 'a report before there is a handler');
    return this.#handler;
  }
}
