import { formatCount } from '../base/units.ts';
import { chartHead, frame, tenth, valueAxis } from './chart-frame.ts';
import { PathText } from './chart-path.ts';
import { linearScale, logarithmicScale, type Scale } from './chart-scale.ts';
import { type Markup, markup } from './markup.ts';
import { countedStretches } from './phases.ts';
import type { MeasuredSegment } from '../statistics/measured-segment.ts';
import type { ReportExperiment } from './experiment.ts';
import type { PhaseResult, ReportModel } from './report-model.ts';
import { firstAfter } from './telemetry.ts';

const { width, left, right } = frame;
const top = 6;
const bottom = 186;
const height = bottom + 34;
/** Round trips that differ by more than this factor are drawn on a logarithmic axis. */
const logarithmicFrom = 10;
/** Fewer round trips than this make no distribution. */
const fewest = 20;

interface Curve {
  readonly name: string;
  readonly quantity: string;
  readonly sorted: Float64Array;
}

/**
 * Which share of the round trips took at most how long, a curve for each condition; undefined if there are not enough
 * round trips for any.
 */
export function renderDistributionChart(model: ReportModel): Markup | undefined {
  return renderCurves([
    curve(model, 'idle', 'cdf-idle', (phase) => !phase.load),
    curve(model, 'load, BQL on', 'cdf-on', (phase) => phase.load && phase.bql === 'on'),
    curve(model, 'load, BQL off', 'cdf-off', (phase) => phase.load && phase.bql === 'off'),
  ]);
}

/** The same for the arms that the verdict of an experiment is about, under the load that it is about, and without load. */
export function renderArmDistributions({ segments, result }: ReportExperiment): Markup | undefined {
  const [decided] = result.comparisons;
  if (decided === undefined) return undefined;
  const { direction, first, second } = decided;
  const armCurve = (name: string, quantity: string, direct: MeasuredSegment['direction']): Curve => {
    const own = segments.filter(
      (segment) => segment.direction === direct && (direct === 'idle' || segment.arm === name),
    );
    const values = own.flatMap(({ rttUs }) => [...rttUs]);
    return { name, quantity, sorted: Float64Array.from(values).sort() };
  };
  return renderCurves([
    armCurve('idle', 'cdf-idle', 'idle'),
    armCurve(second.name, 'cdf-on', direction),
    armCurve(first.name, 'cdf-off', direction),
  ]);
}

function renderCurves(all: readonly Curve[]): Markup | undefined {
  const curves = all.filter((candidate) => candidate.sorted.length >= fewest);
  if (curves.length === 0) return undefined;
  const smallest = Math.max(1, Math.min(...curves.map(({ sorted }) => sorted[0] ?? 1)));
  const largest = Math.max(...curves.map(({ sorted }) => sorted.at(-1) ?? 1));
  const axis = { from: left, to: right, unit: 1000 };
  const logarithmic = largest > logarithmicFrom * smallest;
  const x = logarithmic ? logarithmicScale(smallest, largest, axis) : linearScale(largest, axis, 8);
  const y = linearScale(1, { from: bottom, to: top, unit: 0.01 }, 5);
  const upright = x.ticks.map(({ value }) => `M${tenth(x.at(value))} ${top}V${bottom}`).join('');
  const head = chartHead(
    'Distribution of the round trip',
    '% of the answered pings that came back within a time',
    curves.map(({ name, quantity, sorted }) => ({
      name: `${name}: ${formatCount(sorted.length)} pings`,
      sample: 'line',
      quantity,
    })),
  );
  return markup`${head}<svg class="charts" viewBox="0 0 ${width} ${height}" role="img" aria-label="Distribution of the round trip">
<rect class="plot" x="${left}" y="${top}" width="${right - left}" height="${bottom - top}"/><path class="grid" d="${upright}"/>
${valueAxis(y, 'left')}
${x.ticks.map(({ value, label }) => markup`<text class="tick" x="${tenth(x.at(value))}" y="${bottom + 14}" text-anchor="middle">${label}</text>`)}
<text class="tick" x="${right}" y="${bottom + 29}" text-anchor="end">round trip, ms${logarithmic ? ', logarithmic' : ''}</text>
${curves.map(({ quantity, sorted }) => markup`<path class="line-${quantity}" d="${curvePath(sorted, x, y)}"/>`)}
</svg>`;
}

function curve(
  { phases, telemetry }: ReportModel,
  name: string,
  quantity: string,
  belongs: (phase: PhaseResult) => boolean,
): Curve {
  const { timeUs, rttUs } = telemetry.probes.values;
  const values: number[] = [];
  for (const { fromUs, toUs } of countedStretches(phases.filter(belongs))) {
    const from = firstAfter(timeUs, fromUs, true);
    const to = firstAfter(timeUs, toUs, true);
    for (const value of rttUs.subarray(from, to)) if (!Number.isNaN(value)) values.push(value);
  }
  return { name, quantity, sorted: Float64Array.from(values).sort() };
}

/** A staircase: at each value the share rises. Steps below half a pixel are left out. */
function curvePath(sorted: Float64Array, x: Scale, y: Scale): string {
  const path = new PathText();
  const n = sorted.length;
  path.move(x.at(sorted[0] ?? 0), y.at(0));
  let drawn = y.at(0);
  for (const [index, value] of sorted.entries()) {
    const at = y.at((index + 1) / n);
    if (drawn - at < 0.5 && index < n - 1) continue;
    path.acrossThenTo(x.at(value), at);
    drawn = at;
  }
  return path.toString();
}
