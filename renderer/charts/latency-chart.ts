import { formatDuration } from '../../src/base/units.ts';
import type { SessionData } from '../store/session-data.ts';
import { millisecondsLabel } from './axis-labels.ts';
import { SteppedRange, tickStep } from './axis-range.ts';
import {
  type ChartModel,
  type ChartView,
  larger,
  type LegendEntry,
  rowAt,
  shownRows,
} from './chart-model.ts';
import type { LineChart, LineSpec, PlotGeometry } from './line-chart.ts';
import { paintArea, paintBackground, paintDots, paintLost } from './painters.ts';
import { PointBuffer } from './point-buffer.ts';
import { ProbeBands, stretchLengthUs } from './probe-bands.ts';
import { bucketLengthUs, reduce } from './reduce.ts';

/**
 * The round trip of the prioritised ping, and which part of it the ping spent in the driver's queue and in the qdisc
 * above. Milliseconds.
 */
export class LatencyChart implements ChartModel {
  readonly title = 'Latency';
  readonly hint = 'Round trip of the prioritised ping, in milliseconds.';
  readonly legend: readonly LegendEntry[] = [
    {
      name: 'round trip',
      colour: 'roundTrip',
      shape: 'dots',
      hint: 'Each ping, from the moment it was due to its answer. A cross at the upper border is one that was lost.',
    },
    {
      name: 'p50',
      colour: 'roundTrip',
      shape: 'line',
      hint: 'Half of the pings came back faster than this.',
    },
    {
      name: 'p95',
      colour: 'roundTripBand',
      shape: 'band',
      spare: true,
      hint: '95 of 100 pings came back faster than this.',
    },
    {
      name: 'driver queue',
      colour: 'driverQueue',
      shape: 'area',
      hint: 'The part of the round trip in which the ping lay in the driver and the device. This is what BQL shortens.',
    },
    {
      name: 'qdisc wait',
      colour: 'qdiscWait',
      shape: 'area',
      hint: 'The part of the round trip in which the ping waited above the driver, stacked on the driver queue.',
    },
  ];
  readonly lines: readonly LineSpec[] = [
    { colour: 'roundTrip', width: 2 },
    { colour: 'driverQueue', width: 1 },
    { colour: 'qdiscWait', width: 1 },
  ];
  largest = Number.NaN;
  readonly #range = new SteppedRange(1);
  readonly #bands = new ProbeBands();
  readonly #dots = new PointBuffer();
  readonly #lost = new PointBuffer();
  readonly #high = new PointBuffer();
  #driver = new PointBuffer();
  #stacked = new PointBuffer();
  #median = new PointBuffer();
  #view: ChartView | undefined;
  /** The rows of the view in milliseconds: round trip, driver queue, driver queue and qdisc together. */
  #scratch = [new Float64Array(0), new Float64Array(0), new Float64Array(0)] as const;

  draw(chart: LineChart, view: ChartView, sharedMax = Number.NaN): void {
    const [median, driver, stacked] = chart.lines;
    if (driver === undefined || stacked === undefined || median === undefined) return;
    this.#view = view;
    this.#driver = driver;
    this.#stacked = stacked;
    this.#median = median;
    const { probes } = view.data;
    const rows = shownRows(probes, view);
    const [rttMs, driverMs, stackedMs] = this.#fillScratch(view.data, rows);
    const reduction = {
      ...rows,
      edgeUs: view.edgeUs,
      bucketUs: bucketLengthUs(view.windowUs, chart.plotWidth),
      gapUs: Math.max(1_000_000, view.probeEveryUs * 3.5),
    };
    reduce(probes.times, rttMs, reduction, this.#dots);
    reduce(probes.times, driverMs, reduction, driver);
    reduce(probes.times, stackedMs, reduction, stacked);
    this.#bands.compute(
      probes,
      rows,
      view.data.periods.all,
      view.edgeUs,
      stretchLengthUs(view.windowUs, view.probeEveryUs),
      median,
      this.#high,
    );
    this.#findLost(view, rows);
    this.largest = larger(this.#dots.largest(), stacked.largest());
    const max = this.#range.update(larger(this.largest, sharedMax), view.nowMs, view.jumped);
    chart.draw({
      windowSeconds: view.windowUs / 1e6,
      ticks: view.ticks,
      left: { max, step: tickStep(max, chart.height), label: millisecondsLabel(max) },
    });
  }

  paintBelow(context: CanvasRenderingContext2D, plot: PlotGeometry): void {
    const view = this.#view;
    if (view === undefined) return;
    const { colours } = view;
    // The lower area covers the one that it is stacked under.
    paintArea(context, plot, this.#stacked, colours.qdiscWaitFill);
    paintArea(context, plot, this.#driver, colours.driverQueueFill);
    paintArea(context, plot, this.#high, colours.roundTripBand, this.#median);
    paintBackground(context, plot, view);
  }

  paintAbove(context: CanvasRenderingContext2D, plot: PlotGeometry): void {
    const view = this.#view;
    if (view === undefined) return;
    paintDots(context, plot, this.#dots, view.colours.roundTrip, 2.5);
    paintLost(context, plot, this.#lost, view.colours.error);
  }

  readout(data: SessionData, timeUs: number): readonly string[] {
    const { probes } = data;
    const row = rowAt(probes, timeUs, Math.max(2_000_000, (this.#view?.probeEveryUs ?? 0) * 3.5));
    const at = (column: Float64Array): number => (row < 0 ? Number.NaN : (column[row] ?? Number.NaN));
    const lost = row >= 0 && Number.isNaN(at(probes.column('rttUs')));
    const x = this.#view === undefined ? 0 : (timeUs - this.#view.edgeUs) / 1e6;
    return [
      lost ? 'lost' : formatDuration(at(probes.column('rttUs'))),
      formatDuration(nearest(this.#median, x) * 1000),
      formatDuration(nearest(this.#high, x) * 1000),
      formatDuration(at(probes.column('driverQueueUs'))),
      formatDuration(at(probes.column('qdiscWaitUs'))),
    ];
  }

  #fillScratch(
    data: SessionData,
    rows: { from: number; to: number },
  ): readonly [Float64Array, Float64Array, Float64Array] {
    const { probes } = data;
    const size = probes.times.length;
    if (this.#scratch[0].length < size) {
      this.#scratch = [new Float64Array(size), new Float64Array(size), new Float64Array(size)];
    }
    const [rttMs, driverMs, stackedMs] = this.#scratch;
    const rtt = probes.column('rttUs');
    const driver = probes.column('driverQueueUs');
    const qdisc = probes.column('qdiscWaitUs');
    for (let i = rows.from; i < rows.to; i++) {
      rttMs[i] = (rtt[i] ?? Number.NaN) / 1000;
      driverMs[i] = (driver[i] ?? Number.NaN) / 1000;
      stackedMs[i] = ((driver[i] ?? Number.NaN) + (qdisc[i] ?? Number.NaN)) / 1000;
    }
    return this.#scratch;
  }

  #findLost(view: ChartView, rows: { from: number; to: number }): void {
    this.#lost.clear();
    const { times } = view.data.probes;
    const rtt = view.data.probes.column('rttUs');
    for (let i = rows.from; i < rows.to; i++) {
      if (Number.isNaN(rtt[i] ?? 0)) this.#lost.push(((times[i] ?? 0) - view.edgeUs) / 1e6, 0);
    }
    this.#lost.finish();
  }
}

/** The value of the point that is nearest in time, if there is one near. */
function nearest(points: PointBuffer, x: number): number {
  let best = Number.NaN;
  let distance = 2.5;
  for (let i = 0; i < points.length; i++) {
    const point = points.at(i);
    if (point === undefined || Number.isNaN(point.y)) continue;
    const away = Math.abs(point.x - x);
    if (away < distance) {
      distance = away;
      best = point.y;
    }
  }
  return best;
}
