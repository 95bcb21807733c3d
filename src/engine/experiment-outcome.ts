import type { Scenario } from '../probes/scenario.ts';
import {
  armsOf,
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
}

/** Reduces what was measured. Final once the last probes were answered or given up. */
export function outcomeOf(
  scenario: Pick<Scenario, 'pass'>,
  runs: readonly SegmentRun[],
  collector: PhaseCollector,
): ExperimentOutcome {
  const segments = runs.map((run) => segmentOf(run, collector));
  const unpaired = segments.filter(({ pair }) => pair === 0);
  return {
    idle: unpaired.find(({ name }) => name === 'idle') ?? null,
    idleAfter: unpaired.find(({ name }) => name !== 'idle') ?? null,
    segments: segments.filter(({ pair }) => pair > 0),
    arms: armsOf(runs, collector),
    criteria: judgeCriteria(scenario.pass, runs, collector),
  };
}
