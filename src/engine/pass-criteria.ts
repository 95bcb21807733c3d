import { formatBitRate, formatDuration, formatThreeDigits } from '../base/units.ts';
import type { Criterion, Metric } from '../probes/scenario.ts';
import { countedOf, type SegmentRun } from './experiment-segments.ts';
import type { PhaseCollector, PhaseStatistics } from './phase-statistics.ts';

/** How one of a scenario's own criteria was met. */
export interface CriterionResult {
  /** For people: "rttP95Us of BQL on: 21.3 ms, at most 50 ms". */
  readonly text: string;
  readonly passed: boolean;
  /** In the metric's unit, or percent; null: it was not measured, and so not met. */
  readonly value: number | null;
}

/** Holds the criteria against what was measured. */
export function judgeCriteria(
  criteria: readonly Criterion[],
  runs: readonly SegmentRun[],
  collector: PhaseCollector,
): readonly CriterionResult[] {
  const counting = runs.filter(({ counts }) => counts);
  const idle = collector.statistics(
    ...counting.filter(({ phase }) => phase.pair === 0).map((run) => countedOf(run)),
  );
  const measured = (criterion: Criterion, arm: string): number | null => {
    const own = counting.filter(
      ({ phase }) =>
        phase.arm === arm &&
        (criterion.direction === undefined
          ? phase.direction !== 'idle'
          : phase.direction === criterion.direction),
    );
    if (own.length === 0) return null;
    return valueOf(criterion.metric, collector.statistics(...own.map((run) => countedOf(run))));
  };
  return criteria.map((criterion) => {
    let value = measured(criterion, criterion.arm);
    if (criterion.minusIdle) value = minus(value, valueOf(criterion.metric, idle));
    if (criterion.percentOf !== undefined) value = percent(value, measured(criterion, criterion.percentOf));
    return judge(criterion, value);
  });
}

function minus(value: number | null, other: number | null): number | null {
  return value === null || other === null ? null : value - other;
}

function percent(value: number | null, of: number | null): number | null {
  return value === null || of === null || of === 0 ? null : (100 * value) / of;
}

function valueOf(metric: Metric, statistics: PhaseStatistics): number | null {
  switch (metric) {
    case 'rttP50Us':
      return statistics.rttUs.p50;
    case 'rttP95Us':
      return statistics.rttUs.p95;
    case 'rttP99Us':
      return statistics.rttUs.p99;
    case 'lostPercent':
      return statistics.probes === 0 ? null : (100 * statistics.lost) / statistics.probes;
    case 'upBitsPerSecond':
      return statistics.throughputBitsPerSecond;
    case 'downBitsPerSecond':
      return statistics.receivedBitsPerSecond;
  }
}

function judge(criterion: Criterion, value: number | null): CriterionResult {
  const { metric, arm, direction, minusIdle, percentOf, min, max } = criterion;
  const show = (number: number): string => {
    if (percentOf !== undefined || metric === 'lostPercent') return `${formatThreeDigits(number)} %`;
    return metric.endsWith('Us') ? formatDuration(number) : formatBitRate(number);
  };
  const passed = value !== null && (min === undefined || value >= min) && (max === undefined || value <= max);
  const what = [
    `${metric} of ${arm}`,
    direction === undefined ? '' : `, ${direction}`,
    minusIdle ? ' above idle' : '',
    percentOf === undefined ? '' : ` in percent of ${percentOf}`,
  ].join('');
  const bounds = [
    ...(min === undefined ? [] : [`at least ${show(min)}`]),
    ...(max === undefined ? [] : [`at most ${show(max)}`]),
  ].join(', ');
  return { text: `${what}: ${value === null ? 'not measured' : show(value)}; ${bounds}`, passed, value };
}
