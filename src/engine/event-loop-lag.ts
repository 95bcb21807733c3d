import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { LagMeter } from './sampler.ts';

const resolutionMs = 10;
const nsPerUs = 1000;

/** How late this process' event loop is, as Node measures it with a timer of its own. */
export class EventLoopLag implements LagMeter {
  readonly #delay = monitorEventLoopDelay({ resolution: resolutionMs });

  constructor() {
    this.#delay.enable();
  }

  takeMaxUs(): number {
    const maxUs = this.#delay.max / nsPerUs - resolutionMs * 1000;
    // Before its timer has fired for the first time there is nothing to tell.
    const known = this.#delay.count > 0;
    this.#delay.reset();
    return known ? Math.max(0, maxUs) : Number.NaN;
  }

  close(): void {
    this.#delay.disable();
  }
}

/** In simulated time nothing is ever late. */
export const noLag: LagMeter = {
  takeMaxUs() {
    return Number.NaN;
  },
};
