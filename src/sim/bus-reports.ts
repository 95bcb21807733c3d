import { neverUs } from '../base/clock.ts';
import type { BusTiming } from './bus-timing.ts';
import type { SimTransfer } from './sim-transfer.ts';

/**
 * Between the end of a transfer and its driver: an interrupt, which comes at once if the last one was at least the
 * moderation time ago, otherwise when that has passed; and the softirq delay after it. Whatever has ended by then is
 * reported with it.
 */
export class BusReports {
  readonly #moderationUs: number;
  readonly #softirqUs: number;
  #head: SimTransfer | undefined;
  #tail: SimTransfer | undefined;
  #dueAtUs = neverUs;
  #interruptAtUs = Number.NEGATIVE_INFINITY;

  constructor(timing: BusTiming) {
    this.#moderationUs = timing.moderationUs;
    this.#softirqUs = timing.softirqUs;
  }

  /** When the driver is to be told. */
  get dueAtUs(): number {
    return this.#dueAtUs;
  }

  push(transfer: SimTransfer, atUs: number): void {
    if (this.#tail === undefined) this.#head = transfer;
    else this.#tail.nextQueued = transfer;
    this.#tail = transfer;
    this.raise(atUs);
  }

  /** Something has ended that the driver is to be told of. */
  raise(atUs: number): void {
    if (this.#dueAtUs !== neverUs) return;
    this.#dueAtUs = Math.max(atUs, this.#interruptAtUs + this.#moderationUs) + this.#softirqUs;
  }

  /** Nothing is held back any longer. */
  raiseAtOnce(nowUs: number): void {
    this.#dueAtUs = nowUs;
  }

  /** All that has ended, in order, linked by `nextQueued`. What ends from now on waits for its own report. */
  take(): SimTransfer | undefined {
    this.#interruptAtUs = this.#dueAtUs - this.#softirqUs;
    this.#dueAtUs = neverUs;
    const head = this.#head;
    this.#head = undefined;
    this.#tail = undefined;
    return head;
  }
}
