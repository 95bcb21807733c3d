import { Emitter, type Event } from '../base/emitter.ts';

/** So often it is looked whether the host has slept. */
const lookMs = 1000;
/** Clocks are compared no more finely than this; a shorter sleep does no harm to a device either. */
const leastSleepMs = 1000;

/** Two clocks of the host, in milliseconds, of which the first goes on while the host sleeps. */
export interface SleepClocks {
  readonly sinceBootMs: () => number;
  readonly awakeMs: () => number;
}

/**
 * Notices that the host has slept: its time since boot (Linux' CLOCK_BOOTTIME) has gone on and its monotonic clock has not.
 * Setting the wall clock is no sleep. Where both clocks stop, or both go on (macOS, Windows), nothing is noticed and
 * somebody else has to tell.
 */
export class SleepWatch {
  readonly #clocks: SleepClocks;
  readonly #slept = new Emitter<number>();
  readonly #timer: NodeJS.Timeout;
  #asleepMs: number;

  constructor(clocks: SleepClocks) {
    this.#clocks = clocks;
    this.#asleepMs = this.#difference();
    this.#timer = setInterval(() => this.look(), lookMs).unref();
  }

  /** With the milliseconds for which it slept. */
  get onWake(): Event<number> {
    return this.#slept.event;
  }

  look(): void {
    const difference = this.#difference();
    const sleptMs = difference - this.#asleepMs;
    if (sleptMs >= leastSleepMs) this.#slept.emit(sleptMs);
    // Small differences of the clocks' pace do not add up.
    this.#asleepMs = difference;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #difference(): number {
    return this.#clocks.sinceBootMs() - this.#clocks.awakeMs();
  }
}
