import type { Transfer } from '../../src/usbnet/transfer.ts';
import type {
  DeviceRequest,
  RequestResult,
  SubmitResult,
  Transport,
  TransportHandler,
  UsbDevice,
} from '../../src/usbnet/transport.ts';

/**
 * Stands between a driver and its transport and keeps the books: throws at a transfer that ends without being out, ends
 * twice, or is submitted while it is out, and at a result that nobody has asked for.
 */
export class TransferLedger implements Transport, TransportHandler {
  readonly device: UsbDevice;
  readonly #inner: Transport;
  readonly #out = new Set<Transfer>();
  #handler: TransportHandler | undefined;
  #requests = 0;
  submitted = 0;
  ended = 0;
  made = 0;

  constructor(inner: Transport) {
    this.#inner = inner;
    this.device = inner.device;
    inner.setHandler(this);
  }

  /** Transfers that were taken and have not ended. */
  get out(): number {
    return this.#out.size;
  }

  setHandler(handler: TransportHandler): void {
    this.#handler = handler;
  }

  makeTransfer(endpointAddress: number, capacity: number, maxPackets: number): Transfer {
    this.made++;
    return this.#inner.makeTransfer(endpointAddress, capacity, maxPackets);
  }

  submit(transfer: Transfer, nowUs: number): SubmitResult {
    if (this.#out.has(transfer)) throw new Error('a transfer is submitted that is out');
    const result = this.#inner.submit(transfer, nowUs);
    if (result === 'ok') {
      this.submitted++;
      this.#out.add(transfer);
    }
    return result;
  }

  cancel(transfer: Transfer, nowUs: number): void {
    this.#inner.cancel(transfer, nowUs);
  }

  request(request: DeviceRequest, nowUs: number): void {
    this.#requests++;
    this.#inner.request(request, nowUs);
  }

  handleTransferDone(transfer: Transfer, nowUs: number): void {
    if (!this.#out.delete(transfer)) throw new Error('a transfer ends that is not out');
    this.ended++;
    this.#handler?.handleTransferDone(transfer, nowUs);
  }

  handleRequestDone(result: RequestResult, nowUs: number): void {
    if (this.#requests-- === 0) throw new Error('a result comes that nobody has asked for');
    this.#handler?.handleRequestDone(result, nowUs);
  }

  handleGone(nowUs: number): void {
    this.#handler?.handleGone(nowUs);
  }
}
