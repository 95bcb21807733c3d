import { percentileOfSorted } from '../base/percentile.ts';

/** More values than this in one interval are thinned out: every other one is kept, then every fourth, … */
const capacity = 4096;

/**
 * The values of one sampling interval, for its percentiles. Allocates nothing after it is made; the maximum is always
 * exact, the percentiles are as long as there are not more than 4,096 values.
 */
export class IntervalValues {
  readonly #values = new Float64Array(capacity);
  #length = 0;
  /** One in so many is kept. */
  #stride = 1;
  #skipped = 0;
  #max = Number.NaN;

  p50 = Number.NaN;
  p95 = Number.NaN;
  max = Number.NaN;

  add(value: number): void {
    if (!(value <= this.#max)) this.#max = value;
    if (++this.#skipped < this.#stride) return;
    this.#skipped = 0;
    if (this.#length === capacity) this.#thin();
    this.#values[this.#length++] = value;
  }

  #thin(): void {
    for (let i = 0; i < capacity / 2; i++) this.#values[i] = this.#values[2 * i] ?? 0;
    this.#length = capacity / 2;
    this.#stride *= 2;
  }

  /** Puts the percentiles of what was added into `p50`, `p95` and `max` (NaN if nothing was), and starts over. */
  take(): void {
    const sorted = this.#values.subarray(0, this.#length).sort();
    this.p50 = percentileOfSorted(sorted, this.#length, 0.5);
    this.p95 = percentileOfSorted(sorted, this.#length, 0.95);
    this.max = this.#max;
    this.#length = 0;
    this.#stride = 1;
    this.#skipped = 0;
    this.#max = Number.NaN;
  }
}
