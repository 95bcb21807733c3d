/**
 * A column over a range of time, cut into buckets of equal length. A bucket without a value has count 0 and NaN in
 * the other arrays: a gap.
 */
export interface Decimated {
  readonly fromUs: number;
  readonly toUs: number;
  readonly buckets: number;
  /** Values in the bucket; missing ones do not count. */
  readonly count: Uint32Array;
  readonly min: Float64Array;
  readonly max: Float64Array;
  readonly first: Float64Array;
  readonly last: Float64Array;
}

/** Gathers values into {@link Decimated}, one after the other in the order of their times. */
export class Decimator {
  readonly result: Decimated;
  readonly #bucketsPerUs: number;

  /** @param buckets a whole number of at least 1; @param toUs later than `fromUs` */
  constructor(fromUs: number, toUs: number, buckets: number) {
    this.#bucketsPerUs = buckets / (toUs - fromUs);
    this.result = {
      fromUs,
      toUs,
      buckets,
      count: new Uint32Array(buckets),
      min: new Float64Array(buckets).fill(Number.NaN),
      max: new Float64Array(buckets).fill(Number.NaN),
      first: new Float64Array(buckets).fill(Number.NaN),
      last: new Float64Array(buckets).fill(Number.NaN),
    };
  }

  /** The end of the range belongs to the last bucket; what lies outside, and NaN, is passed over. */
  add(timeUs: number, value: number): void {
    const { fromUs, toUs, buckets, count, min, max, first, last } = this.result;
    if (Number.isNaN(value) || !(timeUs >= fromUs && timeUs <= toUs)) return;
    const bucket = Math.min(buckets - 1, Math.floor((timeUs - fromUs) * this.#bucketsPerUs));
    if (count[bucket] === 0) {
      first[bucket] = value;
      min[bucket] = value;
      max[bucket] = value;
    } else {
      if (value < (min[bucket] ?? Number.NaN)) min[bucket] = value;
      if (value > (max[bucket] ?? Number.NaN)) max[bucket] = value;
    }
    last[bucket] = value;
    count[bucket] = (count[bucket] ?? 0) + 1;
  }
}
