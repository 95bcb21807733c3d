import { formatBitRate, formatCount, formatDuration, formatShare, noValue } from '../base/units.ts';
import type { ArmComparison, ComparedMetric, MetricComparison } from '../statistics/compare-arms.ts';
import type { ArmScores } from '../statistics/experiment-result.ts';
import { percentRange } from '../statistics/verdict.ts';
import { renderArmDistributions } from './distribution-chart.ts';
import type { ReportExperiment } from './experiment.ts';
import { type Markup, markup } from './markup.ts';

const directionWords = { up: 'upload', down: 'download', both: 'both directions' } as const;

const metricNames: Readonly<Record<ComparedMetric, string>> = {
  rttP50Us: 'Round trip, p50',
  rttP95Us: 'Round trip, p95',
  rttP99Us: 'Round trip, p99',
  upBitsPerSecond: 'Throughput up',
  downBitsPerSecond: 'Throughput down',
};

/** The verdict of an experiment, and what it rests on. */
export function experimentSection(experiment: ReportExperiment): Markup {
  const { result, scenario, description, state, remarks, criteria, source } = experiment;
  const { verdict, comparisons, calibration } = result;
  const title = source === 'scenario' ? `Experiment: ${scenario}` : 'Experiment: BQL off against on';
  const { kind } = verdict;
  return markup`<section class="experiment"><h2>${title}</h2>
<p class="verdict ${kind === 'not enough data' ? 'open' : ''}"><b>${kind}</b> ${verdict.sentence}</p>
${description === '' ? undefined : markup`<p class="note">${description}</p>`}
${calibration === null ? undefined : markup`<p class="calibration"><b>Fitted.</b> ${calibration}</p>`}
${comparisons.filter(hasBoth).map(differences)}
${criteriaList(criteria)}
${source === 'scenario' ? markup`<figure>${renderArmDistributions(experiment)}</figure>` : undefined}
${scores(experiment)}
${remarks.length + (state === 'done' ? 0 : 1) === 0 ? undefined : markup`<ul class="notes">${state === 'done' ? undefined : markup`<li class="warning">It did not come to its end (${state === '' ? 'unknown' : state}): this is what was measured up to then.</li>`}${remarks.map((remark) => markup`<li class="info">${remark}</li>`)}</ul>`}
<p class="note">${comparisonMethod}</p></section>`;
}

const comparisonMethod =
  'Segments of the two arms that stand beside each other in time are pairs; each pair gives one ratio, whatever the number of its round trips. ' +
  'Neighbouring pairs are put together where they hold too few round trips for a percentile (5 for p50, 20 for p95, 100 for p99). ' +
  'The estimate is the median of all averages of two ratios, on a logarithmic scale; the interval is exact over all swaps of the arms within pairs ' +
  '(signed-rank); with fewer than 6 pairs it is Student’s. Each interval is for itself: of twenty, one misses. The p95 decides the verdict at 95 percent; ' +
  'throughput does, at 99 percent, where the p95 does not. “With” the second arm means: the first arm’s value times the ratio.';

function hasBoth({ first, second }: ArmComparison): boolean {
  return first.segments > 0 && second.segments > 0;
}

function differences({ direction, first, second, pairs, metrics }: ArmComparison): Markup {
  const rows = Object.values(metrics).filter((metric) => metric.first !== null);
  return markup`<div class="scroll"><table class="differences">
<thead><tr><th>${directionWords[direction]}, ${formatCount(pairs)} ${pairs === 1 ? 'pair' : 'pairs'}</th><th class="number">${first.name}</th><th class="number">${second.name}</th><th class="number">difference</th><th class="number">95 % interval</th><th class="number">in percent</th><th class="number">blocks</th></tr></thead>
<tbody>${rows.map(differenceRow)}
<tr><td>Probes lost</td><td class="number">${lossOf(first)}</td><td class="number">${lossOf(second)}</td><td></td><td></td><td></td><td></td></tr>
</tbody></table></div>`;
}

function differenceRow(metric: MetricComparison): Markup {
  const { absolute, relative } = metric;
  const value = metric.metric.endsWith('Us') ? formatDuration : formatBitRate;
  const shown = (number: number | null): string => (number === null ? noValue : value(number));
  const interval = absolute === null ? noValue : `${value(absolute.low)} to ${value(absolute.high)}`;
  return markup`<tr><td>${metricNames[metric.metric]}</td><td class="number">${shown(metric.first)}</td><td class="number">${shown(metric.second)}</td><td class="number">${shown(absolute?.estimate ?? null)}</td><td class="number">${interval}</td><td class="number">${relative === null ? noValue : percentRange(relative).replace(' percent', '').replaceAll('-', '−')}</td><td class="number">${formatCount(metric.blocks)}${metric.method === 'student-t' ? ' (t)' : ''}</td></tr>`;
}

function lossOf({ probesSent, probesLost }: ArmComparison['first']): string {
  return probesSent === 0 ? noValue : formatShare(probesLost / probesSent);
}

function criteriaList(criteria: ReportExperiment['criteria']): Markup | undefined {
  if (criteria.length === 0) return undefined;
  return markup`<h3>Its own criteria</h3><ul class="notes">${criteria.map(
    ({ text, passed }) =>
      markup`<li class="${passed ? 'info' : 'error'}">${passed ? 'met' : 'not met'}: ${text}</li>`,
  )}</ul>`;
}

function scores({ result }: ReportExperiment): Markup | undefined {
  const rows = result.scores.filter(({ grade, responsiveness }) => grade !== null || responsiveness !== null);
  if (rows.length === 0) return undefined;
  const gradeMethod = rows.find(({ grade }) => grade !== null)?.grade?.method;
  const rpmMethod = rows.find(({ responsiveness }) => responsiveness !== null)?.responsiveness?.method;
  const { idle } = result;
  return markup`<h3>Grade and responsiveness</h3>
<div class="scroll"><table class="scores">
<thead><tr><th></th><th class="number">bufferbloat grade</th><th class="number">mean increase</th><th class="number">round trips per minute</th><th class="number">rating</th><th class="number">confidence</th></tr></thead>
<tbody>${rows.map(scoreRow)}</tbody></table></div>
<p class="note">${idle.rttP50Us === null ? 'Nothing was measured without load, so there is no grade.' : `Without load: p50 ${formatDuration(idle.rttP50Us)}, p95 ${formatDuration(idle.rttP95Us ?? Number.NaN)} of ${formatCount(idle.roundTrips)} round trips.`} ${gradeMethod === undefined ? '' : `Grade: ${gradeMethod}`}</p>
${rpmMethod === undefined ? undefined : markup`<p class="note">${rpmMethod}</p>`}`;
}

function scoreRow({ arm, grade, responsiveness }: ArmScores): Markup {
  return markup`<tr><td>${arm}</td><td class="number"><b>${grade?.grade ?? noValue}</b></td><td class="number">${grade === null ? noValue : formatDuration(grade.meanIncreaseUs)}</td><td class="number">${responsiveness === null ? noValue : formatCount(responsiveness.roundTripsPerMinute)}</td><td class="number">${responsiveness?.rating ?? noValue}</td><td class="number">${responsiveness?.confidence ?? noValue}</td></tr>`;
}
