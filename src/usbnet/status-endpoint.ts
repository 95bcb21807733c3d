import { neverUs } from '../base/clock.ts';
import type { Kevent, UsbnetState } from './state.ts';
import type { Transfer } from './transfer.ts';

/** Failures in a row after which the endpoint is left alone for a while: a device that only errs there must not keep us busy. */
const failuresAllowed = 8;
/** For so long. Linux gives up here, and with it on every later change of the link. */
const retryUs = 1_000_000;

/** The interrupt endpoint: one transfer that is always out while someone wants it (spec 2.7). */
export class StatusEndpoint {
  readonly #state: UsbnetState;
  readonly #defer: (kevent: Kevent, nowUs: number) => void;
  readonly #transfer: Transfer | undefined;
  #users = 0;
  #stopped = true;
  #failures = 0;
  /** The last failure was a halt, which does not go by itself. */
  #halted = false;
  #retryAtUs = neverUs;

  constructor(
    state: UsbnetState,
    maxPacketBytes: number,
    deferKevent: (kevent: Kevent, nowUs: number) => void,
  ) {
    this.#state = state;
    this.#defer = deferKevent;
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
    this.retry(nowUs);
  }

  /** Reads again after failures, whatever they were. */
  retry(nowUs: number): void {
    this.#failures = 0;
    this.#halted = false;
    this.#retryAtUs = neverUs;
    if (!this.submitted) this.#submit(nowUs);
  }

  pollAtUs(): number {
    return this.#retryAtUs;
  }

  poll(nowUs: number): void {
    if (nowUs < this.#retryAtUs) return;
    this.#retryAtUs = neverUs;
    if (this.#halted) this.#defer('status-halt', nowUs);
    else this.retry(nowUs);
  }

  /** Stops reading without touching the count. */
  suspend(nowUs: number): void {
    this.#stopped = true;
    this.#retryAtUs = neverUs;
    if (this.#transfer?.state !== 'submitted') return;
    this.#transfer.state = 'unlinking';
    this.#state.transport.cancel(this.#transfer, nowUs);
  }

  #submit(nowUs: number): void {
    const transfer = this.#transfer;
    if (transfer === undefined || this.#stopped || this.#state.unplugged) return;
    transfer.clear();
    transfer.length = transfer.buffer.length;
    const result = this.#state.transport.submit(transfer, nowUs);
    if (result === 'ok') transfer.state = 'submitted';
    else if (result !== 'gone') this.#retryLater(result === 'stall', nowUs);
  }

  #retryLater(halted: boolean, nowUs: number): void {
    this.#halted = halted;
    this.#retryAtUs = nowUs + retryUs;
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
        if (this.#failures <= failuresAllowed) break;
        if (!this.#stopped) this.#retryLater(transfer.status === 'stall', nowUs);
        return;
    }
    this.#submit(nowUs);
  }
}
