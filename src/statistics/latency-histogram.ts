// Not the package's own entrance: that brings along its compressed format, which evaluates text as code.
import { build } from 'hdr-histogram-js/dist/HistogramBuilder.js';
import type { Histogram } from 'hdr-histogram-js';

/** What is longer than this is counted as this long: far beyond the time after which a probe counts as lost. */
const longestUs = 120_000_000;

/** A step of a distribution: this share of the values (0 … 1) is at most this long. */
export interface DistributionStep {
  readonly us: number;
  readonly share: number;
}

/**
 * Latencies in microseconds as an HDR histogram: three significant digits from 1 us to two minutes in constant memory, however
 * many values there are. A percentile is by nearest rank, and at most 0.1 percent above the value that was measured.
 */
export class LatencyHistogram {
  readonly #histogram: Histogram = build({
    bitBucketSize: 32,
    autoResize: false,
    lowestDiscernibleValue: 1,
    highestTrackableValue: longestUs,
    numberOfSignificantValueDigits: 3,
    useWebAssembly: false,
  });

  get count(): number {
    return this.#histogram.totalCount;
  }

  /** NaN is no value and is passed over; below zero there is none. */
  add(us: number): void {
    if (Number.isNaN(us)) return;
    this.#histogram.recordValue(Math.min(longestUs, Math.max(0, Math.round(us))));
  }

  addAll(values: ArrayLike<number>): void {
    for (let i = 0; i < values.length; i++) this.add(values[i] ?? Number.NaN);
  }

  /** The smallest value that at least the share `p` (0 … 1) of all values does not exceed; NaN without values. */
  percentile(p: number): number {
    return this.count === 0 ? Number.NaN : this.#histogram.getValueAtPercentile(p * 100);
  }

  get maxUs(): number {
    return this.count === 0 ? Number.NaN : this.#histogram.maxValue;
  }

  /** For display beside percentiles, never instead of them. NaN without values. */
  get meanUs(): number {
    return this.count === 0 ? Number.NaN : this.#histogram.mean;
  }

  /** The distribution in `count` steps of equal share, from the shortest value to the longest: enough to draw it. */
  steps(count: number): DistributionStep[] {
    const steps: DistributionStep[] = [];
    if (this.count === 0) return steps;
    for (let i = 1; i <= count; i++) {
      const step = { us: this.percentile(i / count), share: i / count };
      // Of several steps at one value only the last is one.
      if (steps.at(-1)?.us === step.us) steps.pop();
      steps.push(step);
    }
    return steps;
  }

  clear(): void {
    this.#histogram.reset();
  }
}
