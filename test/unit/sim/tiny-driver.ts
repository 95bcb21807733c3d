import type { Polled } from '../../../src/base/clock.ts';
import { VirtualClock } from '../../../src/base/virtual-clock.ts';
import type { Transfer, TransferStatus } from '../../../src/usbnet/transfer.ts';
import type {
  DeviceRequest,
  RequestResult,
  Transport,
  TransportHandler,
} from '../../../src/usbnet/transport.ts';

const timeoutMs = 1000;

/** A transfer's end, as it was reported. */
export interface Report {
  readonly transfer: Transfer;
  readonly status: TransferStatus;
  readonly bytes: Uint8Array;
  readonly atUs: number;
}

/** Just enough of a driver to see what a bus does. It keeps no queue and knows no network. */
export class TinyDriver implements TransportHandler {
  readonly clock = new VirtualClock();
  readonly transport: Transport;
  readonly reports: Report[] = [];
  readonly results: RequestResult[] = [];
  goneAtUs: number | undefined;
  /** Called after a report was noted; to resubmit, for instance. */
  onDone: ((transfer: Transfer, nowUs: number) => void) | undefined;
  /** Set while the driver calls the transport: nothing may be reported then. */
  #inside = false;

  constructor(transport: Transport, polled: readonly Polled[]) {
    this.transport = transport;
    transport.setHandler(this);
    for (const part of polled) this.clock.add(part);
  }

  get nowUs(): number {
    return this.clock.nowUs();
  }

  run(us: number): void {
    this.clock.runUntil(this.nowUs + us);
  }

  handleTransferDone(transfer: Transfer, nowUs: number): void {
    this.#checkOutside();
    const bytes = transfer.isIn ? transfer.buffer.slice(0, transfer.actualLength) : new Uint8Array(0);
    this.reports.push({ transfer, status: transfer.status, bytes, atUs: nowUs });
    this.onDone?.(transfer, nowUs);
  }

  handleRequestDone(result: RequestResult): void {
    this.#checkOutside();
    this.results.push(result);
  }

  handleGone(nowUs: number): void {
    this.#checkOutside();
    if (this.goneAtUs !== undefined) throw new Error('gone twice');
    this.goneAtUs = nowUs;
  }

  #checkOutside(): void {
    if (this.#inside) throw new Error('a report came from inside a call');
  }

  #call<T>(call: () => T): T {
    const before = this.#inside;
    this.#inside = true;
    try {
      return call();
    } finally {
      this.#inside = before;
    }
  }

  submit(transfer: Transfer): ReturnType<Transport['submit']> {
    return this.#call(() => this.transport.submit(transfer, this.nowUs));
  }

  cancel(transfer: Transfer): void {
    this.#call(() => this.transport.cancel(transfer, this.nowUs));
  }

  /** A transfer OUT with these bytes. */
  out(endpointAddress: number, bytes: Uint8Array, zeroPacket = false): Transfer {
    const transfer = this.transport.makeTransfer(endpointAddress, bytes.length, 1);
    transfer.buffer.set(bytes);
    transfer.length = bytes.length;
    transfer.zeroPacket = zeroPacket;
    return transfer;
  }

  /** A transfer IN for that many bytes. */
  in(endpointAddress: number, length: number): Transfer {
    const transfer = this.transport.makeTransfer(endpointAddress, length, 0);
    transfer.length = length;
    return transfer;
  }

  /** Makes a request and lets time pass until it is answered. */
  request(request: DeviceRequest): RequestResult {
    const before = this.results.length;
    this.#call(() => this.transport.request(request, this.nowUs));
    for (let i = 0; i < 1000 && this.results.length === before; i++) this.run(1000);
    const result = this.results[before];
    if (result === undefined) throw new Error('the request was not answered');
    return result;
  }

  controlIn(
    requestType: number,
    request: number,
    value: number,
    index: number,
    length: number,
  ): RequestResult {
    return this.request({ kind: 'control-in', requestType, request, value, index, length, timeoutMs });
  }

  controlOut(
    requestType: number,
    request: number,
    value: number,
    index: number,
    data = new Uint8Array(0),
  ): RequestResult {
    return this.request({ kind: 'control-out', requestType, request, value, index, data, timeoutMs });
  }

  setInterface(interfaceNumber: number, alternateSetting: number): RequestResult {
    return this.request({ kind: 'set-interface', interfaceNumber, alternateSetting, timeoutMs });
  }

  clearHalt(endpointAddress: number): RequestResult {
    return this.request({ kind: 'clear-halt', endpointAddress, timeoutMs });
  }

  reset(): RequestResult {
    return this.request({ kind: 'reset', timeoutMs });
  }
}
