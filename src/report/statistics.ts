import { percentileOfSorted } from '../base/percentile.ts';
import type { TimeRange } from '../recording/recording-reader.ts';
import { gapIntervals, type IndexRange, probeRows, sampleRows, type Telemetry } from './telemetry.ts';

/**
 * The spread of a quantity. A percentile p is the smallest measured value that at least p percent of the values do not
 * exceed (RFC 2330 section 11.3), so it is always a value that was measured. NaN where there are no values.
 */
export interface Distribution {
  readonly n: number;
  readonly min: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  readonly mean: number;
}

/** The spread of the values that are not NaN. Leaves the array alone. */
export function distribution(values: Float64Array): Distribution {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort();
  const n = sorted.length;
  let sum = 0;
  for (const value of sorted) sum += value;
  return {
    n,
    min: sorted[0] ?? Number.NaN,
    p50: percentileOfSorted(sorted, n, 0.5),
    p95: percentileOfSorted(sorted, n, 0.95),
    p99: percentileOfSorted(sorted, n, 0.99),
    max: sorted[n - 1] ?? Number.NaN,
    mean: n === 0 ? Number.NaN : sum / n,
  };
}

/** What was measured over one or several stretches of time. */
export interface StretchStatistics {
  /** Probes that were due, and those of them that no answer came to. */
  readonly probes: number;
  readonly lost: number;
  /** Of the answered probes. */
  readonly rttUs: Distribution;
  /** The probes' own waits above the driver, and in it. */
  readonly probeQdiscWaitUs: Distribution;
  readonly probeDriverQueueUs: Distribution;
  /** How much later than due the probes were sent. */
  readonly probeLateUs: Distribution;
  /** Frames handed over and received, averaged over the time that samples cover. */
  readonly throughputBitsPerSecond: number;
  readonly receivedBitsPerSecond: number;
  /** Taken at the end of each sample's interval; the peak is the most there was in between. */
  readonly inflightBytes: Distribution;
  readonly inflightPeakBytes: number;
  readonly limitBytes: Distribution;
  readonly backlogBytes: Distribution;
  /** The longest that any packet waited, probe or not. */
  readonly driverQueueMaxUs: number;
  readonly qdiscWaitMaxUs: number;
  /** The share of the time in which the driver's queue length, and in which BQL, held packets back (0 … 1). */
  readonly driverXoffShare: number;
  readonly stackXoffShare: number;
  readonly eventLoopLagUs: Distribution;
  /** Packets dropped above the driver and in it, and transfers that failed in either direction. */
  readonly droppedPackets: number;
  readonly errors: number;
  readonly samples: number;
  /** Stretches without samples that should have been there, and how long they were together. */
  readonly gaps: number;
  readonly gapUs: number;
}

/** The statistics of what was measured in the given stretches, taken together. */
export function stretchStatistics(telemetry: Telemetry, stretches: readonly TimeRange[]): StretchStatistics {
  const samples = telemetry.samples.values;
  const probes = telemetry.probes.values;
  const sampled = sampleRows(telemetry, stretches);
  const probed = probeRows(telemetry, stretches);
  const spread = (column: Float64Array, rows: readonly IndexRange[]): Distribution =>
    distribution(gather(column, rows));
  const largest = (column: Float64Array): number => spread(column, sampled).max;
  const growth = (column: Float64Array): number =>
    sampled.reduce((sum, rows) => sum + counterGrowth(column, rows), 0);

  const rttUs = spread(probes.rttUs, probed);
  const sent = probed.reduce((sum, { from, to }) => sum + to - from, 0);
  const time = coverage(telemetry, stretches, sampled);
  const mean = (column: Float64Array): number => weightedMean(column, sampled, time.weightsUs);
  return {
    probes: sent,
    lost: sent - rttUs.n,
    rttUs,
    probeQdiscWaitUs: spread(probes.qdiscWaitUs, probed),
    probeDriverQueueUs: spread(probes.driverQueueUs, probed),
    probeLateUs: spread(probes.lateUs, probed),
    throughputBitsPerSecond: mean(samples.txBitsPerSecond),
    receivedBitsPerSecond: mean(samples.rxBitsPerSecond),
    inflightBytes: spread(samples.inflightBytes, sampled),
    inflightPeakBytes: largest(samples.inflightMaxBytes),
    limitBytes: spread(samples.limitBytes, sampled),
    backlogBytes: spread(samples.backlogBytes, sampled),
    driverQueueMaxUs: largest(samples.driverQueueMaxUs),
    qdiscWaitMaxUs: largest(samples.qdiscWaitMaxUs),
    driverXoffShare: mean(samples.driverXoff),
    stackXoffShare: mean(samples.stackXoff),
    eventLoopLagUs: spread(samples.eventLoopLagUs, sampled),
    droppedPackets: growth(samples.txDroppedPackets) + growth(samples.qdiscDroppedPackets),
    errors: growth(samples.txErrors) + growth(samples.rxErrors),
    samples: sampled.reduce((sum, { from, to }) => sum + to - from, 0),
    gaps: time.gaps,
    gapUs: time.gapUs,
  };
}

function gather(column: Float64Array, ranges: readonly IndexRange[]): Float64Array {
  const [only] = ranges;
  if (only !== undefined && ranges.length === 1) return column.subarray(only.from, only.to);
  const gathered = new Float64Array(ranges.reduce((sum, { from, to }) => sum + to - from, 0));
  let length = 0;
  for (const { from, to } of ranges) {
    gathered.set(column.subarray(from, to), length);
    length += to - from;
  }
  return gathered;
}

/** How much a counter grew over the rows, the interval of the first one included where there is a row before it. */
function counterGrowth(column: Float64Array, { from, to }: IndexRange): number {
  if (to <= from) return 0;
  const before = from > 0 ? column[from - 1] : column[from];
  const growth = (column[to - 1] ?? Number.NaN) - (before ?? Number.NaN);
  return Number.isNaN(growth) ? 0 : Math.max(0, growth);
}

interface Coverage {
  /** The time that each row of the ranges stands for, in their order. */
  readonly weightsUs: Float64Array;
  readonly gaps: number;
  readonly gapUs: number;
}

/** Which time the samples stand for, and where there should be some and are none. */
function coverage(
  telemetry: Telemetry,
  stretches: readonly TimeRange[],
  ranges: readonly IndexRange[],
): Coverage {
  const times = telemetry.samples.values.timeUs;
  const intervalUs = telemetry.sampleIntervalUs;
  const weightsUs = new Float64Array(ranges.reduce((sum, { from, to }) => sum + to - from, 0));
  let row = 0;
  let gaps = 0;
  let gapUs = 0;
  for (const [index, { fromUs, toUs }] of stretches.entries()) {
    const { from, to } = ranges[index] ?? { from: 0, to: 0 };
    let lastUs = fromUs;
    for (let i = from; i < to; i++) {
      const timeUs = times[i] ?? Number.NaN;
      const stepUs = timeUs - (times[i - 1] ?? timeUs - intervalUs);
      // A row after a gap speaks of its own interval, not of the gap; with a single row nothing is known of that.
      weightsUs[row++] = stepUs > gapIntervals * intervalUs ? intervalUs : Number.isNaN(stepUs) ? 1 : stepUs;
      if (timeUs - lastUs > gapIntervals * intervalUs) {
        gaps++;
        gapUs += timeUs - lastUs - intervalUs;
      }
      lastUs = timeUs;
    }
    if (toUs - lastUs > gapIntervals * intervalUs) {
      gaps++;
      gapUs += toUs - lastUs;
    }
  }
  return { weightsUs, gaps, gapUs };
}

/** NaN without values. */
function weightedMean(column: Float64Array, ranges: readonly IndexRange[], weights: Float64Array): number {
  const values = gather(column, ranges);
  let sum = 0;
  let weight = 0;
  for (const [index, value] of values.entries()) {
    if (Number.isNaN(value)) continue;
    sum += value * (weights[index] ?? 0);
    weight += weights[index] ?? 0;
  }
  return weight === 0 ? Number.NaN : sum / weight;
}
