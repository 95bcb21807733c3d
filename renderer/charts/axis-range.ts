/**
 * An axis that moves in steps of 1, 2 and 5 and does not breathe: it grows at once when something would not fit, and
 * shrinks only when what there is has stayed far below for a while.
 */
export class SteppedRange {
  readonly #smallest: number;
  #max: number;
  #fitsSmallerSinceMs = Number.NaN;

  /** @param smallest the end that the axis has at least */
  constructor(smallest: number) {
    this.#smallest = stepAtLeast(smallest);
    this.#max = this.#smallest;
  }

  get max(): number {
    return this.#max;
  }

  /**
   * @param largest of the values that must fit; NaN if there are none
   * @param atOnce the view jumped (another window, another device): nothing to be steady about
   */
  update(largest: number, nowMs: number, atOnce: boolean): number {
    const needed = Number.isNaN(largest)
      ? this.#smallest
      : Math.max(this.#smallest, stepAtLeast(largest * headroom));
    if (needed > this.#max || atOnce) {
      this.#max = needed;
      this.#fitsSmallerSinceMs = Number.NaN;
    } else if (needed === this.#max) {
      this.#fitsSmallerSinceMs = Number.NaN;
    } else if (Number.isNaN(this.#fitsSmallerSinceMs)) {
      this.#fitsSmallerSinceMs = nowMs;
    } else if (nowMs - this.#fitsSmallerSinceMs >= patienceMs) {
      this.#max = needed;
      this.#fitsSmallerSinceMs = Number.NaN;
    }
    return this.#max;
  }
}

/** A line that touches the upper border cannot be told from one that goes on above it. */
const headroom = 1.04;
const patienceMs = 2500;

/** The smallest of 1, 2, 5, 10, 20, 50 … that is at least `value`. */
export function stepAtLeast(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 2, 5, 10]) {
    // 2 * 10^k may come out a hair below a value that is meant to be equal to it.
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/** Distance of the marks on an axis that ends at a step of 1, 2 or 5, for the height that it has. */
export function tickStep(max: number, heightPixels: number): number {
  const leading = Math.round(max / 10 ** Math.floor(Math.log10(max) + 1e-9));
  const dense = heightPixels >= 110;
  if (leading === 1) return max / (dense ? 4 : 2);
  if (leading === 2) return max / (dense ? 4 : 2);
  return max / (dense ? 5 : 2);
}
