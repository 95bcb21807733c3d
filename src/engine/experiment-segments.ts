import type { Direction } from '../probes/scenario.ts';
import type { ExperimentPhase } from '../probes/experiment.ts';
import type { PhaseCollector, PhaseStatistics, Stretch } from './phase-statistics.ts';
import type { SegmentLoad } from './segment-settings.ts';

/** A segment as it was carried out, at times of the telemetry. */
export interface SegmentRun {
  readonly phase: ExperimentPhase;
  readonly startUs: number;
  readonly endUs: number;
  /** Who loaded it. */
  readonly load: SegmentLoad;
  /** What became of it that its numbers do not tell: a server that vanished, an end before its time. */
  readonly notes: readonly string[];
  /** False: it says nothing about its arm, and no comparison takes it in. */
  readonly counts: boolean;
}

/** What one segment measured. */
export interface ExperimentSegment extends PhaseStatistics {
  readonly name: string;
  readonly kind: ExperimentPhase['kind'];
  readonly bql: 'on' | 'off';
  readonly arm: string;
  readonly pair: number;
  readonly direction: Direction;
  readonly load: SegmentLoad;
  /** The counted part: from after settling to the end. */
  readonly fromUs: number;
  readonly toUs: number;
  /** There was always something to send; it says little of a queue if not. */
  readonly loadReachedLimit: boolean;
  readonly counts: boolean;
  readonly notes: readonly string[];
}

/** The segments with the same arm and direction, together. */
export interface ExperimentArm extends PhaseStatistics {
  readonly arm: string;
  readonly bql: 'on' | 'off';
  readonly direction: Direction;
  readonly segments: number;
}

/** The part of a segment that counts. */
export function countedOf({ phase, startUs, endUs }: SegmentRun): Stretch {
  return { fromUs: Math.min(startUs + phase.settleUs, endUs), toUs: endUs };
}

export function segmentOf(run: SegmentRun, collector: PhaseCollector): ExperimentSegment {
  const counted = countedOf(run);
  const { name, kind, bql, arm, pair, direction } = run.phase;
  return {
    name,
    kind,
    bql,
    arm,
    pair,
    direction,
    load: run.load,
    ...counted,
    loadReachedLimit: reachedLimit(run, collector, counted),
    counts: run.counts,
    notes: run.notes,
    ...collector.statistics(counted),
  };
}

/**
 * Upwards our own queue tells. Downwards the queue is at the other end: there a load that has no rate of its own is taken
 * to find the limit, and one that has reached it if less came than was asked for.
 */
function reachedLimit(run: SegmentRun, collector: PhaseCollector, counted: Stretch): boolean {
  const { direction, settings } = run.phase;
  switch (direction) {
    case 'idle':
      return false;
    case 'up':
    case 'both':
      return collector.wasBusy(counted);
    case 'down': {
      const received = collector.statistics(counted).receivedBitsPerSecond ?? 0;
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
