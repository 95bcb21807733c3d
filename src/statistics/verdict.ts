import { durationQuantity, formatBitRate, formatCount } from '../base/units.ts';
import { type ArmComparison, type ComparedMetric, fewestRoundTrips } from './compare-arms.ts';
import type { Interval } from './paired-interval.ts';

export const verdictKinds = ['improved', 'worsened', 'no difference', 'not enough data'] as const;
export type VerdictKind = (typeof verdictKinds)[number];

/** What an experiment would need to see a difference of the stated size four times in five. */
export interface EnoughData {
  readonly differenceShare: number;
  readonly pairs: number;
  /** In each segment. */
  readonly roundTrips: number;
  /** All pairs together; null if it is not known how long one takes. */
  readonly seconds: number | null;
}

export interface Verdict {
  readonly kind: VerdictKind;
  /** What there is to say, with numbers. */
  readonly sentence: string;
  /** Present with `not enough data`. */
  readonly enough: EnoughData | null;
}

/** Smaller differences than this are not looked for: an interval within them says that there is no difference. */
const lookedForShare = 0.1;
/** What is smaller is below what histogram and clocks resolve, however steadily it is found on a link that stands still. */
const resolvedShare = 0.005;
/** With fewer pairs only the t distribution is left, which has to take the noise to be normal. */
const fewestPairs = 6;
/** A difference in throughput decides only from this size on, and at 99 percent: it is the second that is looked at. */
const throughputShare = 0.01;
/** The deciding metric: what waits longest but for one in twenty. */
const deciding: ComparedMetric = 'rttP95Us';

export interface VerdictWords {
  /** What was sent to measure, such as "priority ping". */
  readonly probe: string;
}

/**
 * What a comparison comes to, in one sentence. The p95 of the round trip decides, at 95 percent; if it does not differ,
 * throughput does, at 99 percent, so that two looks do not find twice as many differences that are none.
 */
export function judgeComparison(comparison: ArmComparison, words: VerdictWords): Verdict {
  const { relative, blocks } = comparison.metrics[deciding];
  if (relative === null) return notEnough(comparison, null);
  if ((relative.high < 0 || relative.low > 0) && Math.abs(relative.estimate) >= resolvedShare) {
    const kind = relative.high < 0 ? 'improved' : 'worsened';
    return { kind, sentence: latencySentence(comparison, words), enough: null };
  }
  const changes = throughputMetrics(comparison).map((metric) => changeOfThroughput(comparison, metric));
  const kind = changes.includes('fell')
    ? 'worsened'
    : changes.includes('rose')
      ? 'improved'
      : 'no difference';
  const hidden = Math.max(Math.log1p(relative.high), -Math.log1p(relative.low));
  if (kind === 'no difference' && hidden > Math.log1p(lookedForShare)) {
    return notEnough(comparison, { relative, blocks });
  }
  return { kind, sentence: alikeSentence(comparison, words), enough: null };
}

/** "BQL" where the arms are "BQL off" and "BQL on"; else the second arm's name. */
function subjectOf({ first, second }: ArmComparison): string {
  const stem = second.name.replace(/ on$/, '');
  return stem !== second.name && first.name === `${stem} off` ? stem : second.name;
}

function latencySentence(comparison: ArmComparison, { probe }: VerdictWords): string {
  const { first, second, relative } = comparison.metrics[deciding];
  const subject = subjectOf(comparison);
  if (first === null || second === null || relative === null) return '';
  const verb = relative.estimate < 0 ? 'cut' : 'raised';
  const against = subject === comparison.second.name ? ` against ${comparison.first.name}` : '';
  const interval = durationRange(first * (1 + relative.low), first * (1 + relative.high));
  return (
    `${subject} ${verb} the loaded p95 of a ${probe} from ${durationPair(first, second)} ` +
    `(95 percent CI ${interval})${against}${throughputWords(comparison)}.`
  );
}

function alikeSentence(comparison: ArmComparison, { probe }: VerdictWords): string {
  const { first, second, relative } = comparison.metrics[deciding];
  if (first === null || second === null || relative === null) return '';
  const idle = comparison.first.segmentsAtLimit + comparison.second.segmentsAtLimit === 0;
  return (
    `The loaded p95 of a ${probe} was the same with ${comparison.first.name} and ${comparison.second.name}: ` +
    `${durationPair(first, second, 'and')} (95 percent CI of the difference ${percentRange(relative)})` +
    `${throughputWords(comparison)}${idle ? '; the load never filled the queue, so there was nothing to shorten' : ''}.`
  );
}

type ThroughputMetric = 'upBitsPerSecond' | 'downBitsPerSecond';

/** Those that the load was meant to fill, as far as they were measured. */
function throughputMetrics({ direction, metrics }: ArmComparison): ThroughputMetric[] {
  const wanted: readonly ThroughputMetric[] =
    direction === 'up'
      ? ['upBitsPerSecond']
      : direction === 'down'
        ? ['downBitsPerSecond']
        : ['upBitsPerSecond', 'downBitsPerSecond'];
  return wanted.filter((metric) => metrics[metric].relative !== null);
}

function changeOfThroughput({ metrics }: ArmComparison, metric: ThroughputMetric): 'fell' | 'rose' | 'none' {
  const { relative99 } = metrics[metric];
  if (relative99 === null || Math.abs(relative99.estimate) < throughputShare) return 'none';
  return relative99.high < 0 ? 'fell' : relative99.low > 0 ? 'rose' : 'none';
}

function throughputWords(comparison: ArmComparison): string {
  const wanted = throughputMetrics(comparison);
  return wanted
    .map((metric) => {
      const { relative, first, second } = comparison.metrics[metric];
      if (relative === null || first === null || second === null) return '';
      const name =
        wanted.length === 1
          ? 'throughput'
          : metric === 'upBitsPerSecond'
            ? 'throughput up'
            : 'throughput down';
      const change = changeOfThroughput(comparison, metric);
      if (change !== 'none') {
        return `, ${name} ${change} from ${formatBitRate(first)} to ${formatBitRate(second)} (${percentRange(relative)})`;
      }
      const known = relative.low > -lookedForShare && relative.high < lookedForShare;
      return `, ${name} ${known ? 'unchanged' : 'not known well enough'} (${percentRange(relative)})`;
    })
    .join('');
}

function notEnough(
  comparison: ArmComparison,
  found: { readonly relative: Interval; readonly blocks: number } | null,
): Verdict {
  const { pairs, pairSeconds } = comparison;
  // Half of the interval's width falls with the root of the number of blocks; 80 percent power takes it down to 0.7.
  const half = found === null ? 0 : (Math.log1p(found.relative.high) - Math.log1p(found.relative.low)) / 2;
  const factor = found === null ? 1 : (half / (0.7 * Math.log1p(lookedForShare))) ** 2;
  const pairsPerBlock = found === null ? 1 : pairs / found.blocks;
  const needed = Math.max(fewestPairs, Math.ceil((found?.blocks ?? 0) * factor * pairsPerBlock));
  const enough: EnoughData = {
    differenceShare: lookedForShare,
    pairs: needed,
    roundTrips: fewestRoundTrips.rttP95Us,
    seconds: pairSeconds === null ? null : Math.ceil(needed * pairSeconds),
  };
  const would =
    `${formatCount(needed)} pairs of segments with ${enough.roundTrips} answered probes each ` +
    `${enough.seconds === null ? '' : `(${lengthWords(enough.seconds)}) `}would be enough`;
  const has =
    found === null
      ? whatIsMissing(comparison)
      : `after ${countOf(pairs, 'pair')} of segments the loaded p95 may differ by ${percentRange(found.relative)} ` +
        '(95 percent CI)';
  const goal = found === null ? '' : ` to see a difference of ${percent(lookedForShare)} percent`;
  return { kind: 'not enough data', sentence: `Not enough data: ${has}; ${would}${goal}.`, enough };
}

function whatIsMissing({ first, second, pairs }: ArmComparison): string {
  const silent = [first, second].find(({ segments, roundTrips }) => segments > 0 && roundTrips === 0);
  if (silent !== undefined) return `no probe was answered with ${silent.name}`;
  if (pairs === 0) return `no pair of segments has both ${first.name} and ${second.name}`;
  return (
    `${countOf(pairs, 'pair')} of segments with ${formatCount(first.roundTrips)} and ${formatCount(second.roundTrips)} ` +
    'answered probes'
  );
}

function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

function lengthWords(seconds: number): string {
  if (seconds < 120) return `${formatCount(seconds)} s`;
  return seconds < 7200 ? `${formatCount(seconds / 60)} min` : `${formatCount(seconds / 3600)} h`;
}

/** "352 to 21.0 ms"; both units where they differ. */
function durationPair(fromUs: number, toUs: number, word: 'to' | 'and' = 'to'): string {
  const from = durationQuantity(fromUs);
  const to = durationQuantity(toUs);
  const unit = from.unit === to.unit ? '' : ` ${from.unit}`;
  return `${from.value}${unit} ${word} ${to.value} ${to.unit}`;
}

function durationRange(lowUs: number, highUs: number): string {
  const low = durationQuantity(lowUs);
  const high = durationQuantity(highUs);
  return low.unit === high.unit
    ? `${low.value} to ${high.value}`
    : `${low.value} ${low.unit} to ${high.value} ${high.unit}`;
}

/** "-0.3 to +0.4 percent". */
export function percentRange({ low, high }: Interval): string {
  return `${signedPercent(low)} to ${signedPercent(high)} percent`;
}

/** "-0.3", "+12", "0.0": one decimal below ten. */
function signedPercent(share: number): string {
  const digits = percent(Math.abs(share));
  return Number(digits.replaceAll(',', '')) === 0 ? digits : `${share < 0 ? '-' : '+'}${digits}`;
}

function percent(share: number): string {
  const value = share * 100;
  return value < 9.95 ? value.toFixed(1) : formatCount(value);
}
