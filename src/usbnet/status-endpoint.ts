import type { UsbnetState } from './state.ts';
import type { Transfer } from './transfer.ts';

/** Failures in a row after which the endpoint is left alone: a device that only errs there must not keep us busy. */
const failuresAllowed = 8;

/** The interrupt endpoint: one transfer that is always out while someone wants it (spec 2.7). */
export class StatusEndpoint {
  readonly #state: UsbnetState;
  readonly #transfer: Transfer | undefined;
  #users = 0;
  #stopped = true;
  #failures = 0;

  constructor(state: UsbnetState, maxPacketBytes: number) {
    this.#state = state;
    const address = state.binding.statusEndpoint;
    if (address === undefined || maxPacketBytes === 0) return;
    this.#transfer = state.transport.makeTransfer(address, maxPacketBytes, 0);
  }

  /** The transfer is out on the bus. */
  get submitted(): boolean {
    return this.#transfer !== undefined && this.#transfer.state !== 'idle';
  }

  owns(transfer: Transfer): boolean {
    return transfer === this.#transfer;
  }

  /** Counted: the endpoint is read from the first start to the last stop (`usbnet_status_start`). */
  start(nowUs: number): void {
    if (this.#users++ === 0) this.resume(nowUs);
  }

  stop(nowUs: number): void {
    if (this.#users > 0 && --this.#users === 0) this.suspend(nowUs);
  }

  /** Reads again without touching the count (`__usbnet_status_start_force`). */
  resume(nowUs: number): void {
    if (this.#users === 0) return;
    this.#stopped = false;
    this.#failures = 0;
    if (!this.submitted) this.#submit(nowUs);
  }

  /** Stops reading without touching the count. */
  suspend(nowUs: number): void {
    this.#stopped = true;
    if (this.#transfer?.state !== 'submitted') return;
    this.#transfer.state = 'unlinking';
    this.#state.transport.cancel(this.#transfer, nowUs);
  }

  #submit(nowUs: number): void {
    const transfer = this.#transfer;
    if (transfer === undefined || this.#stopped || this.#state.unplugged) return;
    transfer.clear();
    transfer.length = transfer.buffer.length;
    if (this.#state.transport.submit(transfer, nowUs) === 'ok') transfer.state = 'submitted';
  }

  handleDone(transfer: Transfer, nowUs: number): void {
    transfer.state = 'idle';
    switch (transfer.status) {
      case 'completed':
        this.#failures = 0;
        this.#state.driver.status?.(transfer.buffer, transfer.actualLength, nowUs);
        break;
      case 'cancelled':
      case 'gone':
        if (!this.#stopped && transfer.status === 'cancelled') break;
        return;
      default:
        this.#failures++;
        this.#state.log.log('debug', 'status endpoint failed', { status: transfer.status });
        if (this.#failures > failuresAllowed) return;
        break;
    }
    this.#submit(nowUs);
  }
}
