import { formatBitRate, formatBytes, formatCount, formatDuration, formatElapsed } from '../../base/units.ts';
import type { ExperimentStatus, ExperimentVerdict } from '../../contract/experiment.ts';
import type { ExperimentOutcome } from '../../engine/experiment-outcome.ts';
import type { PhaseStatistics } from '../../engine/phase-statistics.ts';
import type { DataVolume } from '../../probes/data-volume.ts';
import { table } from './output.ts';

/** Segments side by side, for people; the arms together if there is more than one segment each. */
export function outcomeTable(outcome: ExperimentOutcome): string {
  const { idle, idleAfter, segments, arms } = outcome;
  const repeated = segments.length > arms.length;
  return phaseTable([
    ...(idle === null ? [] : [{ name: 'idle', ...idle }]),
    ...(repeated
      ? arms.map((arm) => ({
          ...arm,
          name: `${arm.arm}, ${arm.direction}, ${arm.segments} segments`,
        }))
      : segments),
    ...(idleAfter === null ? [] : [{ name: 'idle after', ...idleAfter }]),
  ]);
}

/** Phases side by side, for people. */
export function phaseTable(phases: readonly (PhaseStatistics & { readonly name: string })[]): string {
  const downloads = phases.some(({ receivedBitsPerSecond }) => (receivedBitsPerSecond ?? 0) > 100_000);
  const header = ['PHASE', 'PING P50', 'P95', 'P99', 'LOST', 'THROUGHPUT'];
  return table([
    [...header, ...(downloads ? ['RECEIVED'] : []), 'IN FLIGHT P50', 'LIMIT P50'],
    ...phases.map((phase) => [
      phase.name,
      formatDuration(phase.rttUs.p50 ?? Number.NaN),
      formatDuration(phase.rttUs.p95 ?? Number.NaN),
      formatDuration(phase.rttUs.p99 ?? Number.NaN),
      `${phase.lost} of ${phase.probes}`,
      formatBitRate(phase.throughputBitsPerSecond ?? Number.NaN),
      ...(downloads ? [formatBitRate(phase.receivedBitsPerSecond ?? Number.NaN)] : []),
      formatBytes(phase.inflightBytes.p50 ?? Number.NaN),
      formatBytes(phase.limitBytes.p50 ?? Number.NaN),
    ]),
  ]);
}

/** The verdict and what belongs to it, a line each. */
export function verdictLines(verdict: ExperimentVerdict): readonly string[] {
  return [
    verdict.sentence,
    ...scoreLines(verdict),
    ...verdict.criteria.map(({ text, passed }) => `${passed ? 'met' : 'NOT MET'}: ${text}`),
    ...verdict.warnings.map((warning) => `Note: ${warning}`),
    ...(verdict.calibration === undefined ? [] : [`Calibration: ${verdict.calibration}`]),
  ];
}

/** Grades and round trips per minute, and by which thresholds. */
function scoreLines({ scores }: ExperimentVerdict): readonly string[] {
  const graded = scores.filter(
    ({ grade, roundTripsPerMinute }) => grade !== null || roundTripsPerMinute !== null,
  );
  const [first] = graded;
  if (first === undefined) return [];
  return [
    ...graded.map(({ arm, grade, meanIncreaseUs, roundTripsPerMinute, rating, confidence }) => {
      const bloat =
        grade === null
          ? 'no grade'
          : `bufferbloat grade ${grade} (${formatDuration(meanIncreaseUs ?? Number.NaN)} more)`;
      return `${arm}: ${bloat}, ${formatCount(roundTripsPerMinute ?? Number.NaN)} round trips per minute (${rating ?? 'not rated'}, confidence ${confidence ?? 'none'})`;
    }),
    `Grade: ${first.gradeMethod}`,
    `Round trips per minute: ${first.roundTripsPerMinuteMethod}`,
  ];
}

/** Before a run: how long it takes, and what it moves. */
export function volumeWords({ upBytes, downBytes, unknownSeconds }: DataVolume): string {
  const known = `${formatBytes(upBytes)} up and ${formatBytes(downBytes)} down`;
  if (unknownSeconds === 0) return `about ${known}`;
  return `at least ${known}, and whatever the link carries in ${unknownSeconds.toFixed(0)} s of load without a rate`;
}

/** While it runs: where it is, and how long it still takes. */
export function progressWords(status: ExperimentStatus): string {
  const { segment, segments, segmentName, secondsLeft, dataBytes } = status;
  return `${segment} of ${segments}: ${segmentName}, ${formatElapsed(secondsLeft * 1e6)} left, ${formatBytes(dataBytes)} so far`;
}
