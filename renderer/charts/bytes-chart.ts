import { formatBytes } from '../../src/base/units.ts';
import type { SessionData } from '../store/session-data.ts';
import { bytesLabel } from './axis-labels.ts';
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
import { paintArea, paintBackground } from './painters.ts';
import { PointBuffer } from './point-buffer.ts';
import { bucketLengthUs, reduce, reduceToMeans } from './reduce.ts';

/** Bytes in flight and BQL's limit; on an axis of its own, what waits above in the qdisc. */
export class BytesChart implements ChartModel {
  readonly title = 'Bytes';
  readonly hint = 'Bytes that the device has been given and not yet completed, in KB or MB of 1,000.';
  readonly legend: readonly LegendEntry[] = [
    {
      name: 'in flight',
      colour: 'inflight',
      shape: 'area',
      hint: 'Bytes handed to the device and not yet completed; the pale part is the most there was in each interval.',
    },
    {
      name: 'limit',
      colour: 'limit',
      shape: 'step',
      hint: 'How many bytes BQL allows in flight. No line while BQL is off.',
    },
    {
      name: 'backlog (right)',
      colour: 'backlog',
      shape: 'dashed',
      hint: 'Mean of the bytes that wait above the driver, in the qdisc, where a prioritised packet can overtake them.',
    },
  ];
  readonly lines: readonly LineSpec[] = [
    // The first is drawn last, over the others.
    { colour: 'limit', width: 2 },
    { colour: 'inflight', width: 1 },
    { colour: 'backlog', width: 1.25, dash: [4, 3], right: true },
  ];
  largest = Number.NaN;
  readonly #peak = new PointBuffer();
  readonly #leftRange = new SteppedRange(1000);
  readonly #rightRange = new SteppedRange(10_000);
  #view: ChartView | undefined;
  #inflight = new PointBuffer();

  draw(chart: LineChart, view: ChartView, sharedMax = Number.NaN): void {
    const [limit, inflight, backlog] = chart.lines;
    if (inflight === undefined || limit === undefined || backlog === undefined) return;
    this.#view = view;
    this.#inflight = inflight;
    const { samples } = view.data;
    const { times } = samples;
    const reduction = {
      ...shownRows(samples, view),
      edgeUs: view.edgeUs,
      bucketUs: bucketLengthUs(view.windowUs, chart.plotWidth),
      gapUs: view.sampleGapUs,
    };
    reduce(times, samples.column('inflightBytes'), reduction, inflight);
    reduce(times, samples.column('inflightMaxBytes'), reduction, this.#peak);
    reduce(times, samples.column('limitBytes'), { ...reduction, step: true }, limit);
    const coarse = { ...reduction, bucketUs: Math.max(400_000, reduction.bucketUs * 4) };
    reduceToMeans(times, samples.column('backlogBytes'), coarse, backlog);

    this.largest = larger(larger(this.#peak.largest(), inflight.largest()), limit.largest());
    const leftMax = this.#leftRange.update(larger(this.largest, sharedMax), view.nowMs, view.jumped);
    const rightMax = this.#rightRange.update(backlog.largest(), view.nowMs, view.jumped);
    chart.draw({
      windowSeconds: view.windowUs / 1e6,
      ticks: view.ticks,
      left: { max: leftMax, step: tickStep(leftMax, chart.height), label: bytesLabel(leftMax) },
      right: { max: rightMax, step: rightMax / 2, label: bytesLabel(rightMax) },
    });
  }

  paintBelow(context: CanvasRenderingContext2D, plot: PlotGeometry): void {
    const view = this.#view;
    if (view === undefined) return;
    paintArea(context, plot, this.#peak, view.colours.inflightPeakFill);
    paintArea(context, plot, this.#inflight, view.colours.inflightFill);
    paintBackground(context, plot, view);
  }

  readout(data: SessionData, timeUs: number): readonly string[] {
    const row = rowAt(data.samples, timeUs, this.#view?.sampleGapUs);
    const value = (name: 'inflightBytes' | 'limitBytes' | 'backlogBytes'): string =>
      formatBytes(data.samples.column(name)[row] ?? Number.NaN);
    return [value('inflightBytes'), value('limitBytes'), value('backlogBytes')];
  }
}
