import { neverUs } from '../base/clock.ts';
import { invariant } from '../base/errors.ts';

/** From `fromUs` on (of simulated time, or of the period) the link runs at this rate; 0: it stands still. */
export interface RateStep {
  readonly fromUs: number;
  readonly rateBitsPerSecond: number;
}

/**
 * A link rate over time: constant, or steps, which may repeat. It answers when bits that start at a time have all been
 * sent, with every change of the rate on the way taken into account.
 */
export class RateSchedule {
  readonly #steps: readonly RateStep[];
  readonly #periodUs: number;

  /**
   * @param steps in order of time, the first one from 0 on
   * @param repeatUs length of the period; without one the last step goes on for ever
   */
  constructor(steps: readonly RateStep[], repeatUs = neverUs) {
    invariant(steps[0]?.fromUs === 0, 'a rate schedule does not start at 0');
    for (const [i, step] of steps.entries()) {
      invariant(step.rateBitsPerSecond >= 0, 'a rate schedule has a negative rate');
      invariant(
        step.fromUs < (steps[i + 1]?.fromUs ?? repeatUs),
        'the steps of a rate schedule are not in order',
      );
    }
    this.#steps = steps;
    this.#periodUs = repeatUs;
  }

  static constant(rateBitsPerSecond: number): RateSchedule {
    return new RateSchedule([{ fromUs: 0, rateBitsPerSecond }]);
  }

  /** Bits per second at a time. */
  rateAt(timeUs: number): number {
    return this.#steps[this.#indexAt(this.#inPeriod(timeUs))]?.rateBitsPerSecond ?? 0;
  }

  /** When the last of `bits` has been sent if the first one starts at `startUs`; never, if the rate stays 0. */
  finishUs(startUs: number, bits: number): number {
    const steps = this.#steps;
    if (steps.length === 1 && this.#periodUs === neverUs) {
      const rate = steps[0]?.rateBitsPerSecond ?? 0;
      return rate === 0 ? neverUs : startUs + (bits * 1e6) / rate;
    }
    let timeUs = startUs;
    let left = bits;
    let position = this.#inPeriod(startUs);
    let index = this.#indexAt(position);
    // A whole period without a bit sent will never be followed by another.
    for (let idleSteps = 0; idleSteps <= steps.length;) {
      const rate = steps[index]?.rateBitsPerSecond ?? 0;
      const endsAt = steps[index + 1]?.fromUs ?? this.#periodUs;
      const neededUs = rate === 0 ? neverUs : (left * 1e6) / rate;
      if (position + neededUs <= endsAt) return timeUs + neededUs;
      const lastsUs = endsAt - position;
      timeUs += lastsUs;
      left -= (rate * lastsUs) / 1e6;
      idleSteps = rate === 0 ? idleSteps + 1 : 0;
      index = index + 1 === steps.length ? 0 : index + 1;
      position = steps[index]?.fromUs ?? 0;
    }
    return neverUs;
  }

  #inPeriod(timeUs: number): number {
    return this.#periodUs === neverUs ? timeUs : timeUs % this.#periodUs;
  }

  #indexAt(position: number): number {
    const steps = this.#steps;
    let index = steps.length - 1;
    while (index > 0 && (steps[index]?.fromUs ?? 0) > position) index--;
    return index;
  }
}
