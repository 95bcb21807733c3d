import type { BqlPeriod } from './bql-periods.ts';
import { Quantiles } from './quantile.ts';
import type { SessionData } from './session-data.ts';

/** Statistics of one stretch of a session in which BQL did not change. NaN: not measured. */
export interface ArmReadings {
  readonly bqlEnabled: boolean;
  readonly fromUs: number;
  readonly toUs: number;
  readonly inflightP50Bytes: number;
  readonly inflightMaxBytes: number;
  readonly limitP50Bytes: number;
  readonly rttP50Us: number;
  readonly rttP95Us: number;
  /** The part of the round trip that probes spent in the driver's queue. */
  readonly driverQueueP50Us: number;
  readonly txBitsPerSecond: number;
  readonly rxBitsPerSecond: number;
  readonly probeCount: number;
  readonly lostProbes: number;
  /** The longest that the engine's own event loop was late; what is measured is no better than this. */
  readonly eventLoopLagMaxUs: number;
  /** Packets that the driver or the qdisc dropped. */
  readonly droppedPackets: number;
  /** Packets that the qdisc marked (ECN) in place of dropping them. */
  readonly markedPackets: number;
}

/** What the five large figures show. */
export interface Readings {
  /** Since BQL was last switched, at most as far back as the time window. */
  readonly now: ArmReadings;
  /** The newest stretch of the other arm, as long as the time window at most. */
  readonly other: ArmReadings | undefined;
  /** Both stretches were loaded for a like share of their time: what they differ in may be put down to BQL. */
  readonly isComparable: boolean;
  /** Of the newest sample; NaN if it is not new. */
  readonly lastTxTransfers: number;
  readonly lastInflightBytes: number;
  readonly lastLimitBytes: number;
}

/** After a start or a switch the queue first has to fill or drain; that belongs to neither arm. */
export const settleUs = 1_000_000;

/** Computes readings; keeps its scratch memory and what it found for periods that have ended. */
export class ReadingsCalculator {
  readonly #quantiles = new Quantiles();
  #cacheKey = '';
  #cached: ArmReadings | undefined;

  /**
   * @param endUs right edge of the view
   * @param windowUs length of the view; infinite for all
   * @returns undefined before the first sample
   */
  compute(data: SessionData, endUs: number, windowUs: number): Readings | undefined {
    const { samples } = data;
    if (samples.length === 0) return undefined;
    const periods = data.periods.all;
    let index = periods.length - 1;
    while (index > 0 && (periods[index]?.fromUs ?? 0) >= endUs) index--;
    const period = periods[index] ?? { enabled: true, fromUs: 0, toUs: endUs };
    const settledUs = period.fromUs + settleUs;
    // Right after a switch there is nothing settled yet: show what there is rather than nothing.
    const armFromUs = settledUs + settleUs < endUs ? settledUs : period.fromUs;
    const now = this.#arm(data, period.enabled, Math.max(armFromUs, endUs - windowUs), endUs);
    const before = index > 0 ? periods[index - 1] : undefined;
    const last = Math.min(samples.length - 1, Math.max(0, samples.indexAtOrAfter(endUs, true) - 1));
    // What is older than this says nothing about now.
    const isFresh = endUs - (samples.times[last] ?? 0) < settleUs;
    const newest = (name: 'txTransfers' | 'inflightBytes' | 'limitBytes'): number =>
      isFresh ? (samples.column(name)[last] ?? Number.NaN) : Number.NaN;
    const other = before === undefined ? undefined : this.#otherArm(data, before, windowUs);
    return {
      now,
      other,
      isComparable: other !== undefined && isLikeLoaded(data, now, other),
      lastTxTransfers: newest('txTransfers'),
      lastInflightBytes: newest('inflightBytes'),
      lastLimitBytes: newest('limitBytes'),
    };
  }

  #otherArm(data: SessionData, period: BqlPeriod, windowUs: number): ArmReadings | undefined {
    const fromUs = Math.max(period.fromUs + settleUs, period.toUs - windowUs);
    if (fromUs >= period.toUs) return undefined;
    const key = `${period.fromUs} ${period.toUs} ${fromUs}`;
    if (key !== this.#cacheKey || this.#cached === undefined) {
      this.#cached = this.#arm(data, period.enabled, fromUs, period.toUs);
      this.#cacheKey = key;
    }
    return this.#cached;
  }

  #arm(data: SessionData, bqlEnabled: boolean, fromUs: number, toUs: number): ArmReadings {
    const { samples, probes } = data;
    const quantiles = this.#quantiles;
    const from = samples.indexAtOrAfter(fromUs);
    const to = samples.indexAtOrAfter(toUs, true);
    quantiles.load(samples.column('inflightBytes'), from, to);
    const inflightP50Bytes = quantiles.at(0.5);
    quantiles.load(samples.column('limitBytes'), from, to);
    const limitP50Bytes = quantiles.at(0.5);

    const firstProbe = probes.indexAtOrAfter(fromUs);
    const endProbe = probes.indexAtOrAfter(toUs, true);
    const probeCount = endProbe - firstProbe;
    quantiles.load(probes.column('driverQueueUs'), firstProbe, endProbe);
    const driverQueueP50Us = quantiles.at(0.5);
    const answered = quantiles.load(probes.column('rttUs'), firstProbe, endProbe);
    return {
      bqlEnabled,
      fromUs,
      toUs,
      inflightP50Bytes,
      inflightMaxBytes: largest(samples.column('inflightMaxBytes'), from, to),
      limitP50Bytes,
      rttP50Us: quantiles.at(0.5),
      rttP95Us: quantiles.at(0.95),
      driverQueueP50Us,
      txBitsPerSecond: mean(samples.column('txBitsPerSecond'), from, to),
      rxBitsPerSecond: mean(samples.column('rxBitsPerSecond'), from, to),
      probeCount,
      lostProbes: probeCount - answered,
      eventLoopLagMaxUs: largest(samples.column('eventLoopLagUs'), from, to),
      droppedPackets:
        growth(samples.column('txDroppedPackets'), from, to) +
        growth(samples.column('qdiscDroppedPackets'), from, to),
      markedPackets: growth(samples.column('qdiscMarkedPackets'), from, to),
    };
  }
}

/** Below this share of the highest rate of either stretch there is no load to speak of. */
const quietRateShare = 0.05;
/** So much more of one stretch than of the other may be without load. */
const quietTolerance = 0.2;

/** Whether a load that was switched, or ended, in one of two stretches cannot pass for a cost or a gain of BQL. */
function isLikeLoaded({ samples }: SessionData, a: ArmReadings, b: ArmReadings): boolean {
  const up = samples.column('txBitsPerSecond');
  const down = samples.column('rxBitsPerSecond');
  const stretches = [a, b].map(
    ({ fromUs, toUs }) => [samples.indexAtOrAfter(fromUs), samples.indexAtOrAfter(toUs, true)] as const,
  );
  let highest = 0;
  for (const [from, to] of stretches) {
    for (let i = from; i < to; i++) highest = Math.max(highest, rateAt(up, i) + rateAt(down, i));
  }
  const [quietA = 0, quietB = 0] = stretches.map(([from, to]) => {
    let quiet = 0;
    for (let i = from; i < to; i++) {
      if (rateAt(up, i) + rateAt(down, i) < quietRateShare * highest) quiet++;
    }
    return to > from ? quiet / (to - from) : 0;
  });
  return Math.abs(quietA - quietB) <= quietTolerance;
}

/** What is not known counts as nothing. */
function rateAt(values: Float64Array, index: number): number {
  const rate = values[index] ?? 0;
  return Number.isNaN(rate) ? 0 : rate;
}

function largest(values: Float64Array, from: number, to: number): number {
  let max = Number.NaN;
  for (let i = from; i < to; i++) {
    const value = values[i] ?? Number.NaN;
    if (!(max >= value) && !Number.isNaN(value)) max = value;
  }
  return max;
}

/** Mean of the numbers in a part of a column; NaN if there are none. */
export function mean(values: Float64Array, from: number, to: number): number {
  let sum = 0;
  let count = 0;
  for (let i = from; i < to; i++) {
    const value = values[i] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    sum += value;
    count++;
  }
  return count === 0 ? Number.NaN : sum / count;
}

/** How much a counter went up from the first to the last row. */
function growth(values: Float64Array, from: number, to: number): number {
  if (to - from < 2) return 0;
  const grown = (values[to - 1] ?? 0) - (values[from] ?? 0);
  return Number.isNaN(grown) ? 0 : Math.max(0, grown);
}
