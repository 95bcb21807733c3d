import { formatBitRate } from '../../src/base/units.ts';
import { mean } from '../store/readings.ts';
import type { SessionData } from '../store/session-data.ts';
import { bitRateLabel } from './axis-labels.ts';
import { SteppedRange, tickStep } from './axis-range.ts';
import { type ChartModel, type ChartView, larger, type LegendEntry, shownRows } from './chart-model.ts';
import type { LineChart, LineSpec, PlotGeometry } from './line-chart.ts';
import { paintBackground } from './painters.ts';
import { bucketLengthUs, reduce } from './reduce.ts';

/** What goes over the link, up and down. */
export class ThroughputChart implements ChartModel {
  readonly title = 'Throughput';
  readonly hint = 'Frames sent and received, without framing, in bits a second.';
  readonly legend: readonly LegendEntry[] = [
    {
      name: 'up',
      colour: 'up',
      shape: 'line',
      hint: 'From this computer to the device, completed transfers only.',
    },
    { name: 'down', colour: 'down', shape: 'line', hint: 'From the device to this computer.' },
  ];
  readonly lines: readonly LineSpec[] = [
    { colour: 'up', width: 1.75 },
    { colour: 'down', width: 1.75 },
  ];
  largest = Number.NaN;
  readonly #range = new SteppedRange(100_000);
  #view: ChartView | undefined;

  draw(chart: LineChart, view: ChartView, sharedMax = Number.NaN): void {
    const [up, down] = chart.lines;
    if (up === undefined || down === undefined) return;
    this.#view = view;
    const { samples } = view.data;
    const reduction = {
      ...shownRows(samples, view),
      edgeUs: view.edgeUs,
      bucketUs: bucketLengthUs(view.windowUs, chart.plotWidth),
      gapUs: view.sampleGapUs,
    };
    reduce(samples.times, samples.column('txBitsPerSecond'), reduction, up);
    reduce(samples.times, samples.column('rxBitsPerSecond'), reduction, down);
    this.largest = larger(up.largest(), down.largest());
    const max = this.#range.update(larger(this.largest, sharedMax), view.nowMs, view.jumped);
    chart.draw({
      windowSeconds: view.windowUs / 1e6,
      ticks: view.ticks,
      left: { max, step: tickStep(max, chart.height), label: bitRateLabel(max) },
    });
  }

  paintBelow(context: CanvasRenderingContext2D, plot: PlotGeometry): void {
    const view = this.#view;
    if (view === undefined) return;
    paintBackground(context, plot, view);
  }

  readout(data: SessionData, timeUs: number): readonly string[] {
    // One sample holds a few frames or none; a second says what the rate is.
    const to = data.samples.indexAtOrAfter(timeUs, true);
    const from = data.samples.indexAtOrAfter(timeUs - 1_000_000);
    return [
      formatBitRate(mean(data.samples.column('txBitsPerSecond'), from, to)),
      formatBitRate(mean(data.samples.column('rxBitsPerSecond'), from, to)),
    ];
  }
}
