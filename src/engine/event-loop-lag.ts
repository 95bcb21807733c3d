import { monotonicClock } from './monotonic-clock.ts';
import type { LagMeter } from './sampler.ts';

/** How often it looks: what holds the loop up for longer than this is seen for certain. */
const resolutionMs = 10;
const usPerMs = 1000;

/**
 * How late this process' event loop is: by how much a timer of its own fires late. (Node's `monitorEventLoopDelay` measures
 * the same, but clearing its histogram for every sample of the telemetry takes a fifth of that sample's time.)
 */
export class EventLoopLag implements LagMeter {
  readonly #timer: NodeJS.Timeout;
  #dueAtUs = monotonicClock.nowUs() + resolutionMs * usPerMs;
  /** NaN: it has not fired yet. */
  #maxUs = Number.NaN;

  constructor() {
    this.#timer = setInterval(() => this.#tick(monotonicClock.nowUs()), resolutionMs);
    this.#timer.unref();
  }

  #tick(nowUs: number): void {
    const lateUs = Math.max(0, nowUs - this.#dueAtUs);
    if (!(lateUs <= this.#maxUs)) this.#maxUs = lateUs;
    // An interval of Node's begins anew when the one before has fired.
    this.#dueAtUs = nowUs + resolutionMs * usPerMs;
  }

  takeMaxUs(): number {
    const maxUs = this.#maxUs;
    this.#maxUs = Number.NaN;
    return maxUs;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** In simulated time nothing is ever late. */
export const noLag: LagMeter = {
  takeMaxUs() {
    return Number.NaN;
  },
};
