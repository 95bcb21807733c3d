import { type ExperimentPhase, loadNotes, type SegmentLoad } from '../probes/experiment.ts';
import type { Direction } from '../probes/scenario.ts';
import type {
  MoreProbeStatistics,
  PacketRates,
  PhaseCollector,
  PhaseStatistics,
  Stretch,
} from './phase-statistics.ts';

/** What a stock iperf3 said of a segment at its end; null where it did not. */
export interface IperfSummary {
  readonly upBitsPerSecond: number | null;
  readonly downBitsPerSecond: number | null;
  /** Of UDP, as the receiving end counted. */
  readonly lostPercent: number | null;
  /** Of TCP, as the sending end counted. */
  readonly retransmits: number | null;
}

/** What a stock irtt client said of a segment; one-way delays are no better than the two clocks agree. */
export interface IrttSummary {
  readonly sent: number;
  readonly received: number;
  readonly rttP50Us: number | null;
  readonly rttP95Us: number | null;
  readonly rttP99Us: number | null;
  readonly upDelayP50Us: number | null;
  readonly downDelayP50Us: number | null;
  readonly upLossPercent: number | null;
  readonly downLossPercent: number | null;
}

/** A segment as it was carried out, at times of the telemetry. */
export interface SegmentRun {
  readonly phase: ExperimentPhase;
  readonly startUs: number;
  readonly endUs: number;
  /** What became of it that its numbers do not tell: a server that vanished, an end before its time. */
  readonly notes: readonly string[];
  /** False: it says nothing about its arm, and no comparison takes it in. */
  readonly counts: boolean;
  readonly iperf3?: IperfSummary;
  readonly irtt?: IrttSummary;
}

/** What one segment measured. */
export interface ExperimentSegment extends PhaseStatistics {
  readonly name: string;
  readonly kind: ExperimentPhase['kind'];
  readonly bql: 'on' | 'off';
  readonly arm: string;
  readonly pair: number;
  readonly direction: Direction;
  /** Who loaded it. */
  readonly load: SegmentLoad;
  /** The counted part: after settling, before other programs tell what they know. */
  readonly fromUs: number;
  readonly toUs: number;
  /** There was always something to send; it says little of a queue if not. */
  readonly loadReachedLimit: boolean;
  /** What the load carried: the rates without the headers of Ethernet, IP, and UDP or TCP. */
  readonly payloadUpBitsPerSecond: number | null;
  readonly payloadDownBitsPerSecond: number | null;
  readonly counts: boolean;
  readonly notes: readonly string[];
  /** What the scenario's further own probes measured, in their order. */
  readonly moreProbes: readonly MoreProbeStatistics[];
  readonly iperf3?: IperfSummary;
  readonly irtt?: IrttSummary;
}

/** The segments with the same arm and direction, together. */
export interface ExperimentArm extends PhaseStatistics {
  readonly arm: string;
  readonly bql: 'on' | 'off';
  readonly direction: Direction;
  readonly segments: number;
}

/** Times are sums: that much less is no earlier end. */
const toleranceUs = 1000;

/** A segment as it ended, and whether that counts. @param more what is to be told of it beside */
export function segmentRun(
  run: Pick<SegmentRun, 'phase' | 'startUs' | 'endUs'>,
  more: readonly string[],
): SegmentRun {
  const { phase, startUs, endUs } = run;
  const isShort = endUs - startUs < phase.durationUs - phase.tailUs - toleranceUs;
  return {
    ...run,
    notes: [...loadNotes(phase), ...(isShort ? ['it ended before its time'] : []), ...more],
    counts: !isShort && (phase.kind === 'idle' || phase.by !== 'none'),
  };
}

/** The part of a segment that counts. */
export function countedOf({ phase, startUs, endUs }: SegmentRun): Stretch {
  const toUs = Math.min(endUs, startUs + phase.durationUs - phase.tailUs);
  return { fromUs: Math.min(startUs + phase.settleUs, toUs), toUs };
}

export function segmentOf(run: SegmentRun, collector: PhaseCollector): ExperimentSegment {
  const counted = countedOf(run);
  const rates = collector.packetRates(counted);
  const { name, kind, bql, arm, pair, direction, by } = run.phase;
  return {
    name,
    kind,
    bql,
    arm,
    pair,
    direction,
    load: by,
    ...counted,
    loadReachedLimit: reachedLimit(run, rates.rxBitsPerSecond ?? 0, () => collector.wasBusy(counted)),
    ...payloadRates(by, rates),
    counts: run.counts,
    notes: run.notes,
    moreProbes: collector.moreProbes(counted),
    ...collector.statistics(counted),
    ...(run.iperf3 === undefined ? {} : { iperf3: run.iperf3 }),
    ...(run.irtt === undefined ? {} : { irtt: run.irtt }),
  };
}

/** Ethernet and IPv4, with UDP or with TCP and its timestamps. */
const headerBytes = {
  none: 14 + 20 + 8,
  udp: 14 + 20 + 8,
  'iperf3-udp': 14 + 20 + 8,
  'iperf3-tcp': 14 + 20 + 32,
};

function payloadRates(
  by: SegmentLoad,
  rates: PacketRates,
): Pick<ExperimentSegment, 'payloadUpBitsPerSecond' | 'payloadDownBitsPerSecond'> {
  const payload = (bits: number | null, packets: number | null): number | null =>
    bits === null || packets === null ? null : Math.max(0, bits - packets * headerBytes[by] * 8);
  return {
    payloadUpBitsPerSecond: payload(rates.txBitsPerSecond, rates.txPacketsPerSecond),
    payloadDownBitsPerSecond: payload(rates.rxBitsPerSecond, rates.rxPacketsPerSecond),
  };
}

/**
 * Upwards our own queue tells. Downwards the queue is at the other end: there a load that has no rate of its own is taken
 * to find the limit, and one that has reached it if less came than was asked for.
 */
function reachedLimit(run: SegmentRun, received: number, wasBusy: () => boolean): boolean {
  const { direction, settings } = run.phase;
  switch (direction) {
    case 'idle':
      return false;
    case 'up':
    case 'both':
      return wasBusy();
    case 'down': {
      const asked = settings.load?.downRateBitsPerSecond ?? 0;
      return received > 0 && (asked === 0 || received < 0.98 * asked);
    }
  }
}

/** Arms in the order of their first segment, each direction for itself. */
export function armsOf(runs: readonly SegmentRun[], collector: PhaseCollector): readonly ExperimentArm[] {
  const groups = new Map<string, SegmentRun[]>();
  for (const run of runs) {
    if (!run.counts || run.phase.pair === 0) continue;
    const key = `${run.phase.direction} ${run.phase.arm}`;
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { arm, bql, direction } = first.phase;
    return [
      { arm, bql, direction, segments: group.length, ...collector.statistics(...group.map(countedOf)) },
    ];
  });
}
