import { probeIndex } from '../contract/telemetry.ts';
import { isOwnProbe, type Scenario } from '../probes/scenario.ts';
import { analyseExperiment, type ExperimentResult } from '../statistics/experiment-result.ts';
import type { MeasuredSegment } from '../statistics/measured-segment.ts';
import { longLateUs, type MeasurementQuality } from '../statistics/validity.ts';
import {
  armsOf,
  countedOf,
  type ExperimentArm,
  type ExperimentSegment,
  segmentOf,
  type SegmentRun,
} from './experiment-segments.ts';
import { type CriterionResult, judgeCriteria } from './pass-criteria.ts';
import type { PhaseCollector, PhaseStatistics } from './phase-statistics.ts';

/** What a plan gave that was carried out, in real or in virtual time. */
export interface ExperimentOutcome {
  /** Without load, before and after; null if the scenario has no such part. */
  readonly idle: PhaseStatistics | null;
  readonly idleAfter: PhaseStatistics | null;
  readonly segments: readonly ExperimentSegment[];
  /** Segments of the same arm and direction together. */
  readonly arms: readonly ExperimentArm[];
  /** The scenario's own criteria. */
  readonly criteria: readonly CriterionResult[];
  /** What the comparison of its arms comes to. */
  readonly analysis: ExperimentResult;
}

/** What a scenario has to say on what becomes of its measurements. */
export type ScenarioJudgement = Pick<Scenario, 'pass' | 'probes' | 'calibration'> & {
  readonly arms: readonly { readonly name: string }[];
};

/**
 * Reduces what was measured. Final once the last probes were answered or given up.
 * @param quality what else is known of the measuring
 */
export function outcomeOf(
  scenario: ScenarioJudgement,
  runs: readonly SegmentRun[],
  collector: PhaseCollector,
  quality: MeasurementQuality = {},
): ExperimentOutcome {
  const segments = runs.map((run) => segmentOf(run, collector));
  const unpaired = segments.filter(({ pair }) => pair === 0);
  return {
    idle: unpaired.find(({ name }) => name === 'idle') ?? null,
    idleAfter: unpaired.find(({ name }) => name !== 'idle') ?? null,
    segments: segments.filter(({ pair }) => pair > 0),
    arms: armsOf(runs, collector),
    criteria: judgeCriteria(scenario.pass, runs, collector),
    analysis: analyseExperiment(measuredSegments(segments, runs, collector), {
      arms: scenario.arms.map(({ name }) => name),
      probe: scenario.probes.find(isOwnProbe)?.priority === false ? 'ping' : 'priority ping',
      calibration: scenario.calibration,
      quality: { ...qualityOf(runs, collector), ...quality },
    }),
  };
}

/** Segments as the statistics take them; those that say nothing about their arm are left out. */
function measuredSegments(
  segments: readonly ExperimentSegment[],
  runs: readonly SegmentRun[],
  collector: PhaseCollector,
): readonly MeasuredSegment[] {
  return runs.flatMap((run, index) => {
    const segment = segments[index];
    if (segment === undefined || !run.counts) return [];
    const { arm, pair, direction, probes, lost, loadReachedLimit } = segment;
    const stretch = countedOf(run);
    const up = direction === 'up' || direction === 'both';
    const down = direction === 'down' || direction === 'both';
    return [
      {
        arm,
        pair,
        direction,
        loadReachedLimit,
        rttUs: collector.roundTripsUs(stretch),
        probesSent: probes,
        probesLost: lost,
        probesLate: collector.lateProbes(stretch, longLateUs),
        upBitsPerSecond: up ? segment.throughputBitsPerSecond : null,
        downBitsPerSecond: down ? segment.receivedBitsPerSecond : null,
        seconds: (run.endUs - run.startUs) / 1e6,
      },
    ];
  });
}

/** How late our own event loop was; in virtual time there is none. */
function qualityOf(runs: readonly SegmentRun[], collector: PhaseCollector): MeasurementQuality {
  const stretches = runs.filter(({ counts }) => counts).map((run) => countedOf(run));
  const lag = collector.spreadOf('eventLoopLagUs', ...stretches);
  if (lag.p95 === null || lag.max === null) return {};
  // What a ping is late by is what its timer was.
  const late = collector.probeSpreadOf(probeIndex.lateUs, ...stretches).p95;
  const loaded = runs.filter(({ phase, counts }) => counts && phase.kind === 'load');
  const rtt = collector.probeSpreadOf(probeIndex.rttUs, ...loaded.map((run) => countedOf(run))).p50;
  return {
    eventLoopLagUs: { p95: lag.p95, max: lag.max },
    ...(rtt === null ? {} : { rttP50Us: rtt }),
    ...(late === null ? {} : { timerErrorUs: late }),
  };
}
