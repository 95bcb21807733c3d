import type { ColumnRing } from '../store/column-ring.ts';
import type { SessionData } from '../store/session-data.ts';
import type { ChartColours, ColourName } from './colours.ts';
import type { LineChart, LineSpec, PlotPainter } from './line-chart.ts';
import type { TimeTick } from './time-axis.ts';

/** What a frame shows: which part of which session. */
export interface ChartView {
  readonly data: SessionData;
  /** Right edge and length, microseconds of the session. */
  readonly edgeUs: number;
  readonly windowUs: number;
  /** Samples further apart than this have a gap between them. */
  readonly sampleGapUs: number;
  /** Distance of two probes. */
  readonly probeEveryUs: number;
  readonly ticks: readonly TimeTick[];
  readonly colours: ChartColours;
  readonly nowMs: number;
  /** Another session, window or place in time than in the frame before. */
  readonly jumped: boolean;
}

export type SwatchShape = 'area' | 'line' | 'step' | 'dashed' | 'dots' | 'band';

export interface LegendEntry {
  readonly name: string;
  readonly colour: ColourName;
  readonly shape: SwatchShape;
  /** The first to go where there is no room for all. */
  readonly spare?: boolean;
  /** What it is, one sentence. */
  readonly hint: string;
}

/** One chart of the stack: what its lines are and how a view fills them. */
export interface ChartModel extends PlotPainter {
  readonly title: string;
  /** Of what unit the axis is, in words. */
  readonly hint: string;
  readonly legend: readonly LegendEntry[];
  readonly lines: readonly LineSpec[];
  /** Fills the lines and draws. @param sharedMax the least that the value axis must reach; to compare several charts */
  draw(chart: LineChart, view: ChartView, sharedMax?: number): void;
  /** The largest value on the left axis in the frame drawn last. */
  readonly largest: number;
  /** The text of each legend entry at a time. */
  readout(data: SessionData, timeUs: number): readonly string[];
}

/** Rows of a view, and one more at either side so that lines reach the borders. */
export function shownRows<Name extends string>(
  ring: ColumnRing<Name>,
  view: ChartView,
): { from: number; to: number } {
  const from = ring.indexAtOrAfter(view.edgeUs - view.windowUs);
  const to = ring.indexAtOrAfter(view.edgeUs, true);
  return { from: Math.max(0, from - 1), to: Math.min(ring.length, to + 1) };
}

/** The row that was the newest at a time; -1 if there was none, or none for longer than `maxAgeUs`. */
export function rowAt<Name extends string>(
  ring: ColumnRing<Name>,
  timeUs: number,
  maxAgeUs = Number.POSITIVE_INFINITY,
): number {
  const row = ring.indexAtOrAfter(timeUs, true) - 1;
  return timeUs - (ring.times[row] ?? 0) > maxAgeUs ? -1 : row;
}

/** The larger of two values of which either may not exist. */
export function larger(a: number, b: number): number {
  return a > b || Number.isNaN(b) ? a : b;
}
