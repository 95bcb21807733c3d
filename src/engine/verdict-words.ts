import type { ArmResult, ExperimentVerdict } from '../contract/experiment.ts';
import { percentileOfSorted } from '../base/percentile.ts';
import { gradeMethod } from '../statistics/bufferbloat-grade.ts';
import { rpmMethod } from '../statistics/rpm.ts';
import type { ExperimentOutcome } from './experiment-outcome.ts';
import { countedOf, type SegmentRun } from './experiment-segments.ts';
import type { PhaseCollector } from './phase-statistics.ts';

/** What an experiment came to, as the contract shows it. */
export function verdictOf(
  outcome: ExperimentOutcome,
  runs: readonly SegmentRun[],
  collector: PhaseCollector,
): ExperimentVerdict {
  const { verdict, notes, scores, calibration } = outcome.analysis;
  return {
    kind: verdict.kind,
    sentence: verdict.sentence,
    warnings: notes.map(({ text }) => text),
    ...(calibration === null ? {} : { calibration }),
    scores: scores.map(({ arm, grade, responsiveness }) => ({
      arm,
      grade: grade?.grade ?? null,
      gradeMethod,
      meanIncreaseUs: grade?.meanIncreaseUs ?? null,
      roundTripsPerMinute: responsiveness?.roundTripsPerMinute ?? null,
      rating: responsiveness?.rating ?? null,
      confidence: responsiveness?.confidence ?? null,
      roundTripsPerMinuteMethod: rpmMethod,
    })),
    criteria: outcome.criteria.map(({ text, passed }) => ({ text, passed })),
    arms: armResults(outcome, runs, collector),
  };
}

function armResults(
  { arms }: ExperimentOutcome,
  runs: readonly SegmentRun[],
  collector: PhaseCollector,
): ArmResult[] {
  const results: ArmResult[] = [];
  const idle = runs.filter(({ phase, counts }) => counts && phase.pair === 0);
  if (idle.length > 0) {
    const stretches = idle.map((run) => countedOf(run));
    const { probes, lost } = collector.statistics(...stretches);
    results.push({
      arm: 'idle',
      direction: 'idle',
      segments: idle.length,
      probes,
      lost,
      rttPercentilesUs: percentiles(collector.roundTripsUs(...stretches)),
      upBitsPerSecond: null,
      downBitsPerSecond: null,
    });
  }
  for (const { arm, direction, segments, probes, lost, ...rates } of arms) {
    const own = runs.filter(
      ({ phase, counts }) => counts && phase.arm === arm && phase.direction === direction && phase.pair > 0,
    );
    results.push({
      arm,
      direction,
      segments,
      probes,
      lost,
      rttPercentilesUs: percentiles(collector.roundTripsUs(...own.map((run) => countedOf(run)))),
      upBitsPerSecond: rates.throughputBitsPerSecond,
      downBitsPerSecond: rates.receivedBitsPerSecond,
    });
  }
  return results;
}

/** Percentiles 0 to 100 of values; empty without any. */
function percentiles(values: Float64Array): number[] {
  if (values.length === 0) return [];
  const sorted = values.toSorted();
  return Array.from({ length: 101 }, (_, p) => percentileOfSorted(sorted, sorted.length, p / 100));
}
