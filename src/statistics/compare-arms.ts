import { type DistributionStep, LatencyHistogram } from './latency-histogram.ts';
import type { LoadedDirection, MeasuredSegment } from './measured-segment.ts';
import { type Interval, type IntervalMethod, mostDifferences, pairedInterval } from './paired-interval.ts';

export const comparedMetrics = [
  'rttP50Us',
  'rttP95Us',
  'rttP99Us',
  'upBitsPerSecond',
  'downBitsPerSecond',
] as const;
export type ComparedMetric = (typeof comparedMetrics)[number];

/** How one quantity differs between two arms. */
export interface MetricComparison {
  readonly metric: ComparedMetric;
  /** What it was with the first arm, typically: the centre of the blocks on a logarithmic scale. Null: not measured. */
  readonly first: number | null;
  /** With the second arm on the link as the first one found it: `first` times the ratio found within pairs. */
  readonly second: number | null;
  /** Second less first, in the unit of the metric, and as a share of the first (−0.1: a tenth less); 95 percent. */
  readonly absolute: Interval | null;
  readonly relative: Interval | null;
  /** The same at 99 percent, for what is looked at beside the deciding metric. */
  readonly relative99: Interval | null;
  /** Stretches of neighbouring pairs that were compared: one pair each if its segments hold enough round trips. */
  readonly blocks: number;
  readonly method: IntervalMethod | null;
}

/** What one arm showed, all of its segments taken together. */
export interface ArmSummary {
  readonly name: string;
  readonly segments: number;
  readonly probesSent: number;
  readonly probesLost: number;
  readonly roundTrips: number;
  /** Null without round trips. */
  readonly rttP50Us: number | null;
  readonly rttP95Us: number | null;
  readonly rttP99Us: number | null;
  readonly rttMaxUs: number | null;
  readonly rttMeanUs: number | null;
  /** Means over the segments. */
  readonly upBitsPerSecond: number | null;
  readonly downBitsPerSecond: number | null;
  /** Segments in which the load filled the queue. */
  readonly segmentsAtLimit: number;
  /** The distribution of the round trip, in a hundred steps. */
  readonly distribution: readonly DistributionStep[];
}

/** Two arms under load of one direction, compared pair by pair. */
export interface ArmComparison {
  readonly direction: LoadedDirection;
  readonly first: ArmSummary;
  readonly second: ArmSummary;
  /** Pairs that both arms were measured in. */
  readonly pairs: number;
  /** How long one pair took on average; null if the segments do not say. */
  readonly pairSeconds: number | null;
  readonly metrics: Readonly<Record<ComparedMetric, MetricComparison>>;
}

/** A percentile of fewer round trips than these is no more than the longest of them (the median: than a guess). */
export const fewestRoundTrips = { rttP50Us: 5, rttP95Us: 20, rttP99Us: 100 } as const;

const percentiles = { rttP50Us: 0.5, rttP95Us: 0.95, rttP99Us: 0.99 } as const;
const distributionSteps = 100;

/** The segments of both arms that are neighbours in time. */
interface Pair {
  readonly first: readonly MeasuredSegment[];
  readonly second: readonly MeasuredSegment[];
}

/**
 * Compares two arms of an experiment, pair by pair: what the link did to both segments of a pair cancels out, and each
 * pair counts once, however many round trips are in it, for those of one segment are alike. Where the segments hold too
 * few round trips for a percentile, neighbouring pairs are put together until they hold enough.
 * @param first the arm that the other is measured against
 */
export function compareArms(
  segments: readonly MeasuredSegment[],
  direction: LoadedDirection,
  first: string,
  second: string,
): ArmComparison {
  const loaded = segments.filter((segment) => segment.direction === direction);
  const firstSegments = loaded.filter(({ arm }) => arm === first);
  const secondSegments = loaded.filter(({ arm }) => arm === second);
  const allPairs = pairUp(firstSegments, secondSegments);
  const pairs = inGroups(allPairs, Math.ceil(allPairs.length / mostDifferences));
  const histogram = new LatencyHistogram();
  const latency = (metric: keyof typeof percentiles): MetricComparison =>
    compareBlocks(
      metric,
      blocksWithEnough(pairs, fewestRoundTrips[metric]).map((block) =>
        sidesOf(block, (side) => percentileOf(histogram, side, percentiles[metric])),
      ),
    );
  const rate = (metric: 'upBitsPerSecond' | 'downBitsPerSecond'): MetricComparison =>
    compareBlocks(
      metric,
      pairs.map((pair) => sidesOf(pair, (side) => meanOf(side, metric))),
    );
  return {
    direction,
    first: summarise(histogram, first, firstSegments),
    second: summarise(histogram, second, secondSegments),
    pairs: allPairs.length,
    pairSeconds: secondsOfPair(allPairs),
    metrics: {
      rttP50Us: latency('rttP50Us'),
      rttP95Us: latency('rttP95Us'),
      rttP99Us: latency('rttP99Us'),
      upBitsPerSecond: rate('upBitsPerSecond'),
      downBitsPerSecond: rate('downBitsPerSecond'),
    },
  };
}

function pairUp(first: readonly MeasuredSegment[], second: readonly MeasuredSegment[]): Pair[] {
  const sides = new Map<number, { first: MeasuredSegment[]; second: MeasuredSegment[] }>();
  const sidesOfPair = (pair: number): { first: MeasuredSegment[]; second: MeasuredSegment[] } => {
    const found = sides.get(pair) ?? { first: [], second: [] };
    sides.set(pair, found);
    return found;
  };
  for (const segment of first) sidesOfPair(segment.pair).first.push(segment);
  for (const segment of second) sidesOfPair(segment.pair).second.push(segment);
  return [...sides.entries()]
    .filter(([, pair]) => pair.first.length > 0 && pair.second.length > 0)
    .sort(([a], [b]) => a - b)
    .map(([, pair]) => pair);
}

/** Neighbouring pairs put together, `size` at a time. */
function inGroups(pairs: readonly Pair[], size: number): Pair[] {
  if (size <= 1) return [...pairs];
  const groups: Pair[] = [];
  for (let from = 0; from < pairs.length; from += size) groups.push(together(pairs.slice(from, from + size)));
  return groups;
}

function together(pairs: readonly Pair[]): Pair {
  return {
    first: pairs.flatMap(({ first }) => first),
    second: pairs.flatMap(({ second }) => second),
  };
}

/** Neighbouring pairs put together until both arms have enough round trips; what is left over goes to the last block. */
function blocksWithEnough(pairs: readonly Pair[], enough: number): Pair[] {
  const blocks: Pair[] = [];
  let open: Pair[] = [];
  for (const pair of pairs) {
    open.push(pair);
    const block = together(open);
    if (roundTripsOf(block.first) < enough || roundTripsOf(block.second) < enough) continue;
    blocks.push(block);
    open = [];
  }
  const last = blocks.at(-1);
  if (last !== undefined && open.length > 0) blocks[blocks.length - 1] = together([last, ...open]);
  return blocks;
}

function roundTripsOf(segments: readonly MeasuredSegment[]): number {
  return segments.reduce((sum, { rttUs }) => sum + rttUs.length, 0);
}

interface Sides {
  readonly first: number;
  readonly second: number;
}

function sidesOf(pair: Pair, of: (side: readonly MeasuredSegment[]) => number): Sides {
  return { first: of(pair.first), second: of(pair.second) };
}

function percentileOf(histogram: LatencyHistogram, segments: readonly MeasuredSegment[], p: number): number {
  histogram.clear();
  for (const { rttUs } of segments) histogram.addAll(rttUs);
  return histogram.percentile(p);
}

/** NaN where nothing was measured. */
function meanOf(
  segments: readonly MeasuredSegment[],
  metric: 'upBitsPerSecond' | 'downBitsPerSecond',
): number {
  let sum = 0;
  let count = 0;
  for (const segment of segments) {
    const value = segment[metric];
    if (value === null) continue;
    sum += value;
    count++;
  }
  return count === 0 ? Number.NaN : sum / count;
}

/** On a logarithmic scale: a link at half its rate doubles a queue's delay, and both arms' alike. */
function compareBlocks(metric: ComparedMetric, all: readonly Sides[]): MetricComparison {
  // What stood still has no ratio; that it did is told by the summaries of the arms.
  const blocks = all.filter(({ first, second }) => first > 0 && second > 0);
  const logarithms = blocks.map(({ first }) => Math.log(first));
  const ratios = blocks.map(({ first, second }) => Math.log(second / first));
  const [only] = blocks;
  const level =
    blocks.length === 1 && only !== undefined
      ? only.first
      : exponential(pairedInterval(logarithms, 0.95)?.estimate);
  const ratio = pairedInterval(ratios, 0.95);
  const relative = ratio === null ? null : relativeOf(ratio);
  const wide = pairedInterval(ratios, 0.99);
  return {
    metric,
    first: level,
    second:
      level === null ? null : relative === null ? (only?.second ?? null) : level * (1 + relative.estimate),
    absolute: level === null || relative === null ? null : scaled(relative, level),
    relative,
    relative99: wide === null ? null : relativeOf(wide),
    blocks: blocks.length,
    method: ratio?.method ?? null,
  };
}

function exponential(logarithm: number | undefined): number | null {
  return logarithm === undefined ? null : Math.exp(logarithm);
}

function relativeOf({ estimate, low, high }: Interval): Interval {
  return { estimate: Math.expm1(estimate), low: Math.expm1(low), high: Math.expm1(high) };
}

function scaled({ estimate, low, high }: Interval, factor: number): Interval {
  return { estimate: estimate * factor, low: low * factor, high: high * factor };
}

function summarise(
  histogram: LatencyHistogram,
  name: string,
  segments: readonly MeasuredSegment[],
): ArmSummary {
  histogram.clear();
  for (const { rttUs } of segments) histogram.addAll(rttUs);
  const known = (value: number): number | null => (Number.isNaN(value) ? null : value);
  return {
    name,
    segments: segments.length,
    probesSent: segments.reduce((sum, { probesSent }) => sum + probesSent, 0),
    probesLost: segments.reduce((sum, { probesLost }) => sum + probesLost, 0),
    roundTrips: histogram.count,
    rttP50Us: known(histogram.percentile(0.5)),
    rttP95Us: known(histogram.percentile(0.95)),
    rttP99Us: known(histogram.percentile(0.99)),
    rttMaxUs: known(histogram.maxUs),
    rttMeanUs: known(histogram.meanUs),
    upBitsPerSecond: known(meanOf(segments, 'upBitsPerSecond')),
    downBitsPerSecond: known(meanOf(segments, 'downBitsPerSecond')),
    segmentsAtLimit: segments.filter(({ loadReachedLimit }) => loadReachedLimit).length,
    distribution: histogram.steps(distributionSteps),
  };
}

function secondsOfPair(pairs: readonly Pair[]): number | null {
  const segments = pairs.flatMap(({ first, second }) => [...first, ...second]);
  if (segments.length === 0) return null;
  let sum = 0;
  for (const { seconds } of segments) {
    if (seconds === undefined) return null;
    sum += seconds;
  }
  return sum / pairs.length;
}
