import { formatCount, formatDuration } from '../base/units.ts';
import type { TimeRange } from '../recording/recording-reader.ts';
import { chartHead, frame, framePixels, tenth, valueAxis } from './chart-frame.ts';
import {
  areaPath,
  dotsPath,
  linePath,
  PathText,
  type PixelSeries,
  type Plot,
  stepPath,
  toPixels,
} from './chart-path.ts';
import { linearScale, logarithmicScale, type Scale, timeScale, type ValueAxis } from './chart-scale.ts';
import { type Markup, markup } from './markup.ts';
import { percentileBands, type PercentileWindow } from './percentile-bands.ts';
import { countedStretches } from './phases.ts';
import type { ReportModel } from './report-model.ts';
import { distribution } from './statistics.ts';
import { gapIntervals, type Telemetry } from './telemetry.ts';

const { width, left, right } = frame;
const plotTop = 6;
const plotHeights = { bytes: 150, latency: 200, throughput: 90 } as const;
const stripHeight = 20;
/** Latencies that differ by more than this factor are drawn on a logarithmic axis. */
const logarithmicFrom = 40;
/** What lies this far above the 99th percentile does not set the axis. */
const outlierFactor = 4;
/** This many probes without a value leave a gap; a single one that was lost does not. */
const probeGapIntervals = 3.5;

/**
 * The charts of a report on one axis of time: bytes, latency, throughput, and a lane of events. Colours come from
 * classes, which the page's style gives for light, dark and print.
 */
export function renderTimeCharts(measured: ReportModel): Markup {
  const range = fromRoundTime(measured.range);
  const model = { ...measured, range };
  const x = timeScale(range.fromUs, range.toUs, left, right, 12);
  return markup`${phaseStrip(model, x)}${bytesChart(model, x)}${latencyChart(model, x)}${throughputChart(model, x)}`;
}

/** The axis begins at a whole second, unless that would waste room. */
function fromRoundTime({ fromUs, toUs }: TimeRange): TimeRange {
  const roundUs = Math.floor(fromUs / 1e6) * 1e6;
  return { fromUs: fromUs - roundUs < 0.05 * (toUs - fromUs) ? roundUs : fromUs, toUs };
}

/** Names of the phases, and the pattern that marks those with BQL off. */
function phaseStrip(model: ReportModel, x: Scale): Markup {
  const strip = model.phaseSource === 'whole' ? [] : model.phases;
  const height = strip.length === 0 ? 0 : stripHeight + 4;
  return markup`<svg class="charts" viewBox="0 0 ${width} ${height}" aria-hidden="true">
<defs><pattern id="off-hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch" d="M0 0V7"/></pattern></defs>
${strip.map((phase) => {
  const from = tenth(x.at(phase.startUs));
  const length = tenth(x.at(phase.endUs) - from);
  const box = (paint: Markup): Markup =>
    markup`<rect ${paint} x="${from}" y="2" width="${length}" height="${stripHeight}"/>`;
  return markup`${box(markup`class="phase"`)}${phase.bql === 'off' ? box(markup`fill="url(#off-hatch)"`) : undefined}<text x="${tenth(from + length / 2)}" y="16" text-anchor="middle">${fit([phase.name, phase.bql], length - 6)}</text>`;
})}
</svg>`;
}

function bytesChart(model: ReportModel, x: Scale): Markup {
  const { telemetry } = model;
  const { values } = telemetry.samples;
  const height = plotHeights.bytes;
  const inflightMax = distribution(values.inflightMaxBytes).max;
  const limit = distribution(values.limitBytes);
  const backlogMax = distribution(values.backlogBytes).max;
  // A limit far above what is ever in flight says nothing by its height.
  const largest = greatest(inflightMax, Math.min(greatest(limit.p99), 3 * greatest(inflightMax, 1)), 1);
  const [unit, unitBytes] = bytesUnit(largest);
  const y = linearScale(largest, valueAxisOf(height, unitBytes), 4);
  const plot = plotOf(x, y, height);
  // A backlog that would press everything else to the ground gets an axis of its own.
  const apart = backlogMax > 2 * y.max;
  const [backlogUnit, backlogUnitBytes] = bytesUnit(backlogMax);
  const backlogY = apart ? linearScale(backlogMax, valueAxisOf(height, backlogUnitBytes), 4) : y;
  const gapUs = sampleGapUs(telemetry);
  const series = (column: Float64Array): PixelSeries =>
    toPixels(values.timeUs, column, model.range, framePixels, gapUs);
  const inflight = series(values.inflightBytes);
  const head = chartHead('Bytes', apart ? `${unit}; backlog: ${backlogUnit}, right axis` : unit, [
    { name: 'in flight', sample: 'area', quantity: 'inflight' },
    { name: 'limit', sample: 'step', quantity: 'limit' },
    { name: 'backlog above the driver', sample: 'line', quantity: 'backlog' },
  ]);
  const label =
    `Bytes in flight over time, at most ${formatCount(greatest(inflightMax))} bytes; ` +
    `limit at most ${formatCount(greatest(limit.max))} bytes`;
  return chart(
    head,
    height,
    label,
    markup`${ground(model, x, height)}${valueAxis(y, 'left')}${apart ? valueAxis(backlogY, 'right') : undefined}
<path class="fill-inflight-peak" d="${areaPath(series(values.inflightMaxBytes), plot, 'max')}"/><path class="fill-inflight" d="${areaPath(inflight, plot, 'min')}"/><path class="line-inflight" d="${linePath(inflight, plot)}"/>
<path class="line-backlog" d="${linePath(series(values.backlogBytes), { ...plot, y: backlogY })}"/><path class="line-limit" d="${stepPath(series(values.limitBytes), plot)}"/>`,
  );
}

function latencyChart(model: ReportModel, x: Scale): Markup {
  const { telemetry, range, phases } = model;
  const { values } = telemetry.probes;
  const height = plotHeights.latency;
  const rtt = distribution(values.rttUs);
  const stackedUs = values.driverQueueUs.map((us, index) => us + (values.qdiscWaitUs[index] ?? Number.NaN));
  const y = latencyScale(rtt, distribution(stackedUs), height);
  const plot = plotOf(x, y, height);
  const gapUs = probeGapUs(telemetry);
  const series = (column: Float64Array): PixelSeries =>
    toPixels(values.timeUs, column, range, framePixels, gapUs);
  const stacked = series(stackedUs);
  const driver = series(values.driverQueueUs);
  const bands = percentileBands(telemetry, phases.length > 0 ? countedStretches(phases) : [range], x);
  const above = values.rttUs.filter((us) => us > y.max).length;
  const unit = [
    y.logarithmic ? 'ms, logarithmic' : 'ms',
    above > 0 ? `${formatCount(above)} above the axis, up to ${formatDuration(rtt.max)}` : '',
  ];
  const head = chartHead('Latency', unit.filter(Boolean).join('; '), [
    { name: 'round trip', sample: 'dots', quantity: 'round-trip' },
    { name: 'p50', sample: 'line', quantity: 'round-trip' },
    { name: 'p50 to p95', sample: 'band', quantity: 'round-trip-band' },
    { name: 'in the driver', sample: 'area', quantity: 'driver-queue' },
    { name: 'in the qdisc', sample: 'area', quantity: 'qdisc-wait' },
    { name: 'lost', sample: 'cross', quantity: 'lost' },
  ]);
  const label = `Round trip over time, p50 ${formatDuration(rtt.p50)}, p95 ${formatDuration(rtt.p95)}`;
  // The lower area covers the one that it is stacked under.
  return chart(
    head,
    height,
    label,
    markup`${ground(model, x, height)}${valueAxis(y, 'left')}
<path class="fill-qdisc-wait" d="${areaPath(stacked, plot, 'max')}"/><path class="line-qdisc-wait" d="${linePath(stacked, plot)}"/>
<path class="fill-driver-queue" d="${areaPath(driver, plot, 'max')}"/><path class="line-driver-queue" d="${linePath(driver, plot)}"/>
<path class="fill-round-trip-band" d="${bandPath(bands, plot)}"/><path class="dots-round-trip" d="${dotsPath(series(values.rttUs), plot)}"/>
<path class="line-round-trip" d="${medianPath(bands, plot)}"/><path class="line-lost" d="${lostPath(telemetry, x)}"/>`,
  );
}

function latencyScale(
  rtt: ReturnType<typeof distribution>,
  stacked: ReturnType<typeof distribution>,
  height: number,
): Scale {
  const axis = valueAxisOf(height, 1000);
  const capped = rtt.max > outlierFactor * rtt.p99 ? 1.3 * rtt.p99 : rtt.max;
  const largest = greatest(capped, stacked.p99, 500);
  const logarithmic = rtt.min > 0 && rtt.p99 > logarithmicFrom * rtt.min;
  return logarithmic ? logarithmicScale(rtt.min, largest, axis) : linearScale(largest, axis, 5);
}

function throughputChart(model: ReportModel, x: Scale): Markup {
  const { telemetry, events } = model;
  const { values } = telemetry.samples;
  const height = plotHeights.throughput;
  const largest = greatest(
    distribution(values.txBitsPerSecond).max,
    distribution(values.rxBitsPerSecond).max,
    1000,
  );
  const [unit, unitBits] =
    largest >= 2e9
      ? (['Gbit/s', 1e9] as const)
      : largest >= 2e6
        ? (['Mbit/s', 1e6] as const)
        : (['kbit/s', 1e3] as const);
  const y = linearScale(largest, valueAxisOf(height, unitBits), 3);
  const plot = plotOf(x, y, height);
  const gapUs = sampleGapUs(telemetry);
  const line = (column: Float64Array): string =>
    linePath(toPixels(values.timeUs, column, model.range, framePixels, gapUs), plot);
  const head = chartHead('Throughput', unit, [
    { name: 'up', sample: 'line', quantity: 'up' },
    { name: 'down', sample: 'line', quantity: 'down' },
  ]);
  const laneTop = plotTop + height + 5;
  const lane = events.length > 0 ? 20 : 0;
  const timeTop = laneTop + lane;
  const label = 'Throughput up and down over time';
  return chart(
    head,
    height,
    label,
    markup`${ground(model, x, height)}${valueAxis(y, 'left')}
<path class="line-down" d="${line(values.rxBitsPerSecond)}"/><path class="line-up" d="${line(values.txBitsPerSecond)}"/>
${eventLane(model, x, laneTop)}
${x.ticks.map(({ value, label: text }) => markup`<text class="tick" x="${tenth(x.at(value))}" y="${timeTop + 11}" text-anchor="middle">${text}</text>`)}
<text class="tick" x="${right}" y="${timeTop + 26}" text-anchor="end">time since the start, min:s</text>`,
    lane + 36,
  );
}

/** A mark for each event, with its number in the table where there is room for it. */
function eventLane({ events }: ReportModel, x: Scale, top: number): Markup {
  if (events.length === 0) return markup``;
  const marks = new PathText();
  const numbers: Markup[] = [];
  let freeFrom = Number.NEGATIVE_INFINITY;
  for (const [index, event] of events.entries()) {
    const at = x.at(event.timeUs);
    marks.move(at, top);
    marks.line(at, top + 5);
    if (at < freeFrom) continue;
    numbers.push(
      markup`<text class="event" x="${tenth(at)}" y="${top + 15}" text-anchor="middle">${index + 1}</text>`,
    );
    freeFrom = at + 18;
  }
  return markup`<path class="event-mark" d="${marks.toString()}"/>${numbers}<text class="tick" x="${left - 8}" y="${top + 13}" text-anchor="end">events</text>`;
}

function chart(head: Markup, plotHeight: number, label: string, content: Markup, below = 0): Markup {
  const height = plotTop + plotHeight + 6 + below;
  return markup`${head}<svg class="charts" viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">${content}</svg>`;
}

/** What lies under the curves: the plot itself, the hatching where BQL was off, lines at the marks of time. */
function ground(model: ReportModel, x: Scale, height: number): Markup {
  const upright = (times: readonly number[]): string =>
    times.map((timeUs) => `M${tenth(x.at(timeUs))} ${plotTop}v${height}`).join('');
  const hatched = offStretches(model).map(({ fromUs, toUs }) => {
    const from = tenth(x.at(fromUs));
    return markup`<rect fill="url(#off-hatch)" x="${from}" y="${plotTop}" width="${tenth(x.at(toUs) - from)}" height="${height}"/>`;
  });
  return markup`<rect class="plot" x="${left}" y="${plotTop}" width="${framePixels}" height="${height}"/>${hatched}
<path class="grid" d="${upright(x.ticks.map(({ value }) => value))}"/><path class="edge" d="${upright(model.phases.slice(1).map(({ startUs }) => startUs))}"/>`;
}

/** Where BQL was off, as the samples tell it: also where a recording has no phases. */
function offStretches({ telemetry, range }: ReportModel): { fromUs: number; toUs: number }[] {
  const { timeUs, bqlEnabled } = telemetry.samples.values;
  const stretches: { fromUs: number; toUs: number }[] = [];
  let open: { fromUs: number; toUs: number } | undefined;
  for (const [index, enabled] of bqlEnabled.entries()) {
    const atUs = timeUs[index] ?? 0;
    if (enabled === 0) {
      open ??= { fromUs: index === 0 ? range.fromUs : (timeUs[index - 1] ?? atUs), toUs: atUs };
      open.toUs = atUs;
    } else if (enabled === 1 && open !== undefined) {
      stretches.push(open);
      open = undefined;
    }
  }
  if (open !== undefined) stretches.push(open);
  return stretches;
}

function medianPath(bands: readonly PercentileWindow[][], plot: Plot): string {
  const path = new PathText();
  for (const band of bands) {
    for (const [index, { fromUs, toUs, p50Us }] of band.entries()) {
      if (index === 0) path.move(plot.x.at(fromUs), plot.y.at(p50Us));
      path.line(plot.x.at(fromUs), plot.y.at(p50Us));
      path.line(plot.x.at(toUs), plot.y.at(p50Us));
    }
  }
  return path.toString();
}

function bandPath(bands: readonly PercentileWindow[][], plot: Plot): string {
  const path = new PathText();
  for (const { fromUs, toUs, p50Us, p95Us } of bands.flat()) {
    path.move(plot.x.at(fromUs), plot.y.at(p50Us));
    path.line(plot.x.at(toUs), plot.y.at(p50Us));
    path.line(plot.x.at(toUs), plot.y.at(p95Us));
    path.line(plot.x.at(fromUs), plot.y.at(p95Us));
    path.close();
  }
  return path.toString();
}

/** Crosses where pings were lost, as many as there is room for. */
function lostPath({ probes }: Telemetry, x: Scale): string {
  const { timeUs, rttUs } = probes.values;
  const y = plotTop + 6;
  const crosses: string[] = [];
  let freeFrom = Number.NEGATIVE_INFINITY;
  for (const [index, us] of rttUs.entries()) {
    const at = x.at(timeUs[index] ?? 0);
    if (!Number.isNaN(us) || at < freeFrom) continue;
    crosses.push(`M${tenth(at - 3)} ${y - 3}l6 6m0 -6l-6 6`);
    freeFrom = at + 4;
  }
  return crosses.join('');
}

function plotOf(x: Scale, y: Scale, height: number): Plot {
  return { x, y, left, right, ground: plotTop + height };
}

function valueAxisOf(height: number, unit: number): ValueAxis {
  return { from: plotTop + height, to: plotTop, unit };
}

function bytesUnit(largest: number): readonly [name: string, bytes: number] {
  return largest >= 2e6 ? ['MB', 1e6] : largest >= 2e3 ? ['KB', 1e3] : ['B', 1];
}

function sampleGapUs({ sampleIntervalUs }: Telemetry): number {
  return gapIntervals * (Number.isNaN(sampleIntervalUs) ? 1e6 : sampleIntervalUs);
}

function probeGapUs({ probeIntervalUs }: Telemetry): number {
  return Math.max(1e6, probeGapIntervals * (Number.isNaN(probeIntervalUs) ? 1e6 : probeIntervalUs));
}

/** The greatest that is a number; 0 without any. */
function greatest(...values: readonly number[]): number {
  return values.reduce((most, value) => (value > most ? value : most), 0);
}

/** The first of several texts that fits into a length, by the width that characters have at most as a rule. */
function fit(texts: readonly string[], length: number): string {
  return texts.find((text) => text.length * 6.4 <= length) ?? '';
}
