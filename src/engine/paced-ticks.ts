import { neverUs } from '../base/clock.ts';

/** Decides when simulated time catches up with real time. */
export interface PacedTicks {
  /** From now on `tick` is called again and again. */
  start(tick: () => void): void;
  /** Simulated time has caught up; the next thing is due so many microseconds from now, if nothing comes before it. */
  caughtUp(dueInUs: number): void;
  stop(): void;
}

const steadyTickMs = 5;

/** At a steady pace: enough where everything is simulated, driver and device, since then nobody waits for a tick. */
export class SteadyTicks implements PacedTicks {
  #timer: NodeJS.Timeout | undefined;

  start(tick: () => void): void {
    this.#timer = setInterval(tick, steadyTickMs);
  }

  caughtUp(): void {}

  stop(): void {
    clearInterval(this.#timer);
  }
}

const usPerMs = 1000;
/** What Node's timers are late by at least. */
const timerFloorUs = 1100;

/**
 * Whenever something is due: for a device in simulated time whose driver is outside and lives in real time. Node's timers
 * know nothing below a millisecond; what is left of a wait is slept away in naps between two looks at the sockets, which
 * costs little, where waiting by turning in circles would take a whole processor for as long as something is due soon.
 */
export class PromptTicks implements PacedTicks {
  readonly #napUs: number;
  readonly #cell = new Int32Array(new SharedArrayBuffer(4));
  #tick: () => void = () => {};
  #immediate: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #dueInUs = neverUs;

  /** @param napUs the longest that what comes in has to wait for the end of a nap */
  constructor(napUs: number) {
    this.#napUs = napUs;
  }

  start(tick: () => void): void {
    this.#tick = tick;
  }

  caughtUp(dueInUs: number): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#dueInUs = dueInUs;
    if (this.#stopped || dueInUs === neverUs) return;
    if (dueInUs > timerFloorUs) {
      const waitMs = Math.max(1, Math.floor((dueInUs - timerFloorUs) / usPerMs));
      this.#timer = setTimeout(this.#tick, waitMs);
    } else {
      this.#immediate ??= setImmediate(() => this.#nap());
    }
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    if (this.#immediate !== undefined) clearImmediate(this.#immediate);
    this.#immediate = undefined;
  }

  #nap(): void {
    this.#immediate = undefined;
    const napUs = Math.min(this.#napUs, this.#dueInUs);
    if (napUs > 0) Atomics.wait(this.#cell, 0, 0, napUs / usPerMs);
    this.#tick();
  }
}
