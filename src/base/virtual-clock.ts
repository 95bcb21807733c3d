import { type Clock, neverUs, type Polled } from './clock.ts';
import { InvariantError } from './errors.ts';

/**
 * Simulated time. It stands still until {@link runUntil} moves it from one due time of its parts to the next, so a
 * run takes as long as its events need and always gives the same result.
 */
export class VirtualClock implements Clock {
  #nowUs: number;
  readonly #parts: Polled[] = [];

  constructor(startUs = 0) {
    this.#nowUs = startUs;
  }

  nowUs(): number {
    return this.#nowUs;
  }

  /** Adds a part. Parts that are due at the same time are polled in the order they were added. */
  add(part: Polled): void {
    this.#parts.push(part);
  }

  remove(part: Polled): void {
    const index = this.#parts.indexOf(part);
    if (index >= 0) this.#parts.splice(index, 1);
  }

  /** The due time of the part that is due first. */
  nextUs(): number {
    let next = neverUs;
    for (const part of this.#parts) {
      const atUs = part.pollAtUs();
      if (atUs < next) next = atUs;
    }
    return next;
  }

  /**
   * Does everything that is due up to and including `endUs`, then lets the clock stand at `endUs`.
   * @throws InvariantError if the parts keep one another busy without time moving on (more than `maxRounds` rounds).
   */
  runUntil(endUs: number, maxRounds = 100_000): void {
    let roundsAtThisTime = 0;
    for (;;) {
      const next = this.nextUs();
      if (next > endUs) break;
      if (next > this.#nowUs) {
        this.#nowUs = next;
        roundsAtThisTime = 0;
      } else if (++roundsAtThisTime > maxRounds) {
        throw new InvariantError(`the simulation does not get past ${this.#nowUs} us`);
      }
      const nowUs = this.#nowUs;
      for (const part of this.#parts) {
        if (part.pollAtUs() <= nowUs) part.poll(nowUs);
      }
    }
    if (endUs > this.#nowUs) this.#nowUs = endUs;
  }
}
