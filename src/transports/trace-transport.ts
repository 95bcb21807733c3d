import { toHex } from '../base/bytes.ts';
import type { Transfer, TransferStatus } from '../usbnet/transfer.ts';
import type {
  DeviceRequest,
  RequestResult,
  SubmitResult,
  Transport,
  TransportHandler,
  UsbDevice,
} from '../usbnet/transport.ts';

const events = ['submit', 'end', 'cancel', 'request', 'result', 'gone'] as const;
type TraceEvent = (typeof events)[number];

const submitResults: readonly SubmitResult[] = ['ok', 'stall', 'gone', 'no-memory', 'failed'];
const statuses: readonly TransferStatus[] = [
  'completed',
  'stall',
  'cancelled',
  'protocol-error',
  'overflow',
  'gone',
  'timed-out',
  'failed',
];

export interface TraceOptions {
  /** How many events are kept; the oldest make room. */
  readonly capacity: number;
  /** How many of a transfer's first bytes are kept. 0: none, which costs least and shows nobody's data. */
  readonly bytesKept?: number;
}

/** One event, as it is dumped. */
export interface TraceRecord {
  readonly atUs: number;
  readonly event: TraceEvent;
  readonly endpoint: number;
  /** `submit`: what was asked for; `end`, `result`: what went over. */
  readonly lengthBytes: number;
  /** `submit`: what the bus did with it; `end`, `result`: how it ended. */
  readonly status?: SubmitResult | TransferStatus;
  readonly request?: DeviceRequest['kind'];
  /** First bytes, hexadecimal. */
  readonly bytes?: string;
}

/**
 * Notes what passes through a transport, in a ring: cheap enough to be left in (some array stores an event, and
 * nothing is allocated, as long as no bytes are kept).
 */
export class TraceTransport implements Transport, TransportHandler {
  readonly device: UsbDevice;
  readonly #inner: Transport;
  #handler: TransportHandler | undefined;
  readonly #capacity: number;
  readonly #bytesKept: number;
  readonly #atUs: Float64Array;
  readonly #events: Uint8Array;
  readonly #endpoints: Uint8Array;
  readonly #lengths: Uint32Array;
  readonly #statuses: Uint8Array;
  readonly #requests: (DeviceRequest['kind'] | undefined)[];
  readonly #bytes: Uint8Array;
  readonly #byteCounts: Uint8Array;
  /** Events ever noted. */
  #count = 0;

  constructor(inner: Transport, options: TraceOptions) {
    this.#inner = inner;
    this.device = inner.device;
    const { capacity } = options;
    this.#capacity = capacity;
    this.#bytesKept = Math.min(options.bytesKept ?? 0, 255);
    this.#atUs = new Float64Array(capacity);
    this.#events = new Uint8Array(capacity);
    this.#endpoints = new Uint8Array(capacity);
    this.#lengths = new Uint32Array(capacity);
    this.#statuses = new Uint8Array(capacity);
    this.#requests = Array.from({ length: capacity }, () => undefined);
    this.#bytes = new Uint8Array(capacity * this.#bytesKept);
    this.#byteCounts = new Uint8Array(capacity);
    inner.setHandler(this);
  }

  /** Events that had to make room. */
  get lost(): number {
    return Math.max(0, this.#count - this.#capacity);
  }

  /** What is kept, oldest first. */
  *records(): Generator<TraceRecord> {
    for (let number = this.lost; number < this.#count; number++) yield this.#record(number % this.#capacity);
  }

  /** What is kept, as JSON lines; the first line says what is missing. */
  *dump(): Generator<string> {
    yield JSON.stringify({ eventsKept: this.#count - this.lost, eventsLost: this.lost });
    for (const record of this.records()) yield JSON.stringify(record);
  }

  setHandler(handler: TransportHandler): void {
    this.#handler = handler;
  }

  makeTransfer(endpointAddress: number, capacity: number, maxPackets: number): Transfer {
    return this.#inner.makeTransfer(endpointAddress, capacity, maxPackets);
  }

  submit(transfer: Transfer, nowUs: number): SubmitResult {
    const result = this.#inner.submit(transfer, nowUs);
    const slot = this.#note(
      0,
      transfer.endpointAddress,
      transfer.length,
      submitResults.indexOf(result),
      nowUs,
    );
    if (!transfer.isIn) this.#keepBytes(slot, transfer.buffer, transfer.length);
    return result;
  }

  cancel(transfer: Transfer, nowUs: number): void {
    this.#note(2, transfer.endpointAddress, transfer.length, 0, nowUs);
    this.#inner.cancel(transfer, nowUs);
  }

  request(request: DeviceRequest, nowUs: number): void {
    const length =
      request.kind === 'control-in'
        ? request.length
        : request.kind === 'control-out'
          ? request.data.length
          : 0;
    const slot = this.#note(3, 0, length, 0, nowUs);
    this.#requests[slot] = request.kind;
    if (request.kind === 'control-out') this.#keepBytes(slot, request.data, length);
    this.#inner.request(request, nowUs);
  }

  handleTransferDone(transfer: Transfer, nowUs: number): void {
    const { actualLength, status } = transfer;
    const slot = this.#note(1, transfer.endpointAddress, actualLength, statuses.indexOf(status), nowUs);
    if (transfer.isIn) this.#keepBytes(slot, transfer.buffer, actualLength);
    this.#handler?.handleTransferDone(transfer, nowUs);
  }

  handleRequestDone(result: RequestResult, nowUs: number): void {
    const slot = this.#note(4, 0, result.data.length, statuses.indexOf(result.status), nowUs);
    this.#keepBytes(slot, result.data, result.data.length);
    this.#handler?.handleRequestDone(result, nowUs);
  }

  handleGone(nowUs: number): void {
    this.#note(5, 0, 0, 0, nowUs);
    this.#handler?.handleGone(nowUs);
  }

  #note(event: number, endpoint: number, length: number, status: number, nowUs: number): number {
    const slot = this.#count % this.#capacity;
    this.#count++;
    this.#atUs[slot] = nowUs;
    this.#events[slot] = event;
    this.#endpoints[slot] = endpoint;
    this.#lengths[slot] = length;
    this.#statuses[slot] = status;
    this.#requests[slot] = undefined;
    this.#byteCounts[slot] = 0;
    return slot;
  }

  #keepBytes(slot: number, bytes: Uint8Array, length: number): void {
    if (this.#bytesKept === 0) return;
    const count = Math.min(length, this.#bytesKept);
    this.#bytes.set(bytes.subarray(0, count), slot * this.#bytesKept);
    this.#byteCounts[slot] = count;
  }

  #record(slot: number): TraceRecord {
    const event = events[this.#events[slot] ?? 0] ?? 'submit';
    const status = this.#statuses[slot] ?? 0;
    const request = this.#requests[slot];
    const byteCount = this.#byteCounts[slot] ?? 0;
    const start = slot * this.#bytesKept;
    const named = event === 'submit' ? submitResults[status] : statuses[status];
    return {
      atUs: this.#atUs[slot] ?? 0,
      event,
      endpoint: this.#endpoints[slot] ?? 0,
      lengthBytes: this.#lengths[slot] ?? 0,
      ...(named === undefined || (event !== 'submit' && event !== 'end' && event !== 'result')
        ? {}
        : { status: named }),
      ...(request === undefined ? {} : { request }),
      ...(byteCount === 0 ? {} : { bytes: toHex(this.#bytes.subarray(start, start + byteCount)) }),
    };
  }
}
