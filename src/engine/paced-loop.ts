import { type Clock, neverUs, type Polled } from '../base/clock.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import { type PacedTicks, SteadyTicks } from './paced-ticks.ts';
import type { LoopFailure, SessionLoop } from './session-loop.ts';

/** Late by more than this (a machine that slept, or is too slow), the rest is skipped: simulated time just stands still. */
const longestCatchUpUs = 250_000;

/**
 * Drives a simulation so that its time goes along with real time. Between two ticks everything happens at its exact
 * simulated time, so what is measured does not depend on how late the ticks are.
 */
export class PacedLoop implements SessionLoop {
  readonly #clock: Clock;
  readonly #fail: LoopFailure;
  readonly #virtual: VirtualClock;
  #ticks: PacedTicks;
  readonly #handleLate: (us: number) => void;
  /** Real time minus simulated time. */
  #offsetUs: number;
  #skippedUs = 0;
  #closed = false;

  /** @param handleLate told, of the first thing that was due at a tick, by how much it was late in real time */
  constructor(
    clock: Clock,
    fail: LoopFailure,
    ticks: PacedTicks = new SteadyTicks(),
    handleLate: (us: number) => void = () => {},
  ) {
    this.#clock = clock;
    this.#fail = fail;
    this.#ticks = ticks;
    this.#handleLate = handleLate;
    const nowUs = clock.nowUs();
    this.#virtual = new VirtualClock(nowUs);
    this.#offsetUs = 0;
    ticks.start(() => this.#tick());
  }

  /** Goes on at another pace: something from outside takes part now, for which the one so far is too slow. */
  setTicks(ticks: PacedTicks): void {
    if (this.#closed) return;
    this.#ticks.stop();
    this.#ticks = ticks;
    ticks.start(() => this.#tick());
    this.#scheduleTick();
  }

  /** Simulated time. */
  nowUs(): number {
    return this.#virtual.nowUs();
  }

  /** Real time that the simulation did not keep up with. */
  get skippedUs(): number {
    return this.#skippedUs;
  }

  get running(): boolean {
    return !this.#closed;
  }

  add(part: Polled): void {
    this.#virtual.add(part);
  }

  run(action: (nowUs: number) => void): void {
    if (this.#closed) return;
    this.#tick();
    if (this.#isClosed()) return;
    try {
      action(this.#virtual.nowUs());
    } catch (error) {
      this.#stopWith(error);
      return;
    }
    this.#scheduleTick();
  }

  close(): void {
    this.#closed = true;
    this.#ticks.stop();
  }

  #isClosed(): boolean {
    return this.#closed;
  }

  #stopWith(error: unknown): void {
    this.close();
    this.#fail(error);
  }

  #tick(): void {
    if (this.#closed) return;
    // A part that wants to be polled "now" may say so with a time that has long passed.
    const dueUs = Math.max(this.#virtual.nextUs(), this.#virtual.nowUs());
    const lateUs = this.#clock.nowUs() - this.#offsetUs - dueUs;
    if (lateUs >= 0) this.#handleLate(lateUs);
    if (lateUs > longestCatchUpUs) {
      this.#skippedUs += lateUs - longestCatchUpUs;
      this.#offsetUs += lateUs - longestCatchUpUs;
    }
    try {
      this.#virtual.runUntil(this.#clock.nowUs() - this.#offsetUs);
    } catch (error) {
      this.#stopWith(error);
      return;
    }
    this.#scheduleTick();
  }

  #scheduleTick(): void {
    if (this.#closed) return;
    const nextUs = this.#virtual.nextUs();
    const nowUs = this.#clock.nowUs() - this.#offsetUs;
    this.#ticks.caughtUp(nextUs === neverUs ? neverUs : Math.max(0, nextUs - nowUs));
  }
}
