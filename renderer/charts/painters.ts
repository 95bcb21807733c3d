import type { ChartView } from './chart-model.ts';
import { eventColour, isMarked } from './event-colour.ts';
import type { PlotGeometry } from './line-chart.ts';
import type { ChartPoint, PointBuffer } from './point-buffer.ts';

/** Fills between a line and the zero line, or between two lines that have the same points in time. */
export function paintArea(
  context: CanvasRenderingContext2D,
  plot: PlotGeometry,
  upper: PointBuffer,
  colour: string,
  lower?: PointBuffer,
): void {
  context.fillStyle = colour;
  const { points } = upper;
  let start = 0;
  while (start < points.length) {
    let end = start;
    while (end < points.length && !Number.isNaN(points[end]?.y ?? Number.NaN)) end++;
    if (end - start > 1) paintPiece(context, plot, points, start, end, lower?.points);
    start = end + 1;
  }
}

function paintPiece(
  context: CanvasRenderingContext2D,
  plot: PlotGeometry,
  upper: readonly ChartPoint[],
  start: number,
  end: number,
  lower: readonly ChartPoint[] | undefined,
): void {
  context.beginPath();
  for (let i = start; i < end; i++) {
    const point = upper[i];
    if (point === undefined) continue;
    if (i === start) context.moveTo(plot.xOf(point.x), plot.yOf(point.y));
    else context.lineTo(plot.xOf(point.x), plot.yOf(point.y));
  }
  if (lower === undefined) {
    context.lineTo(plot.xOf(upper[end - 1]?.x ?? 0), plot.bottom);
    context.lineTo(plot.xOf(upper[start]?.x ?? 0), plot.bottom);
  } else {
    for (let i = end - 1; i >= start; i--) {
      const point = lower[i];
      if (point !== undefined) context.lineTo(plot.xOf(point.x), plot.yOf(point.y));
    }
  }
  context.closePath();
  context.fill();
}

/** Small squares, one a point: cheaper than circles and the same to the eye at this size. */
export function paintDots(
  context: CanvasRenderingContext2D,
  plot: PlotGeometry,
  points: PointBuffer,
  colour: string,
  size: number,
): void {
  context.fillStyle = colour;
  for (const point of points.points) {
    if (Number.isNaN(point.y)) continue;
    context.fillRect(plot.xOf(point.x) - size / 2, plot.yOf(point.y) - size / 2, size, size);
  }
}

/** A cross at the upper border for each probe that was lost. */
export function paintLost(
  context: CanvasRenderingContext2D,
  plot: PlotGeometry,
  lost: PointBuffer,
  colour: string,
): void {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  const y = plot.top + 5;
  for (const point of lost.points) {
    const x = plot.xOf(point.x);
    context.moveTo(x - 3, y - 3);
    context.lineTo(x + 3, y + 3);
    context.moveTo(x + 3, y - 3);
    context.lineTo(x - 3, y + 3);
  }
  context.stroke();
}

/** What every chart has behind its lines: hatching while BQL was off, and thin lines where something happened. */
export function paintBackground(
  context: CanvasRenderingContext2D,
  plot: PlotGeometry,
  view: ChartView,
): void {
  const secondsOf = (timeUs: number): number => (timeUs - view.edgeUs) / 1e6;
  const oldest = -view.windowUs / 1e6;
  for (const period of view.data.periods.all) {
    const from = Math.max(oldest, secondsOf(period.fromUs));
    const to = Math.min(0, secondsOf(period.toUs));
    if (period.enabled || to <= from) continue;
    hatch(context, plot.xOf(from), plot.top, plot.xOf(to), plot.bottom, view.colours.hatch);
  }
  context.globalAlpha = 0.55;
  for (const event of view.data.events.peek()) {
    const seconds = secondsOf(event.timeUs);
    if (seconds < oldest || seconds > 0 || !isMarked(event)) continue;
    context.fillStyle = eventColour(event, view.colours);
    context.fillRect(Math.round(plot.xOf(seconds)), plot.top, 1, plot.bottom - plot.top);
  }
  context.globalAlpha = 1;
}

/** Lines of 45 degrees; they stand on the canvas, not on the time, so that moving data does not make them crawl. */
export function hatch(
  context: CanvasRenderingContext2D,
  left: number,
  top: number,
  right: number,
  bottom: number,
  colour: string,
): void {
  context.save();
  context.beginPath();
  context.rect(left, top, right - left, bottom - top);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  const height = bottom - top;
  const first = Math.floor((left - height) / hatchPixels) * hatchPixels;
  for (let x = first; x < right; x += hatchPixels) {
    context.moveTo(x, bottom);
    context.lineTo(x + height, top);
  }
  context.stroke();
  context.restore();
}

const hatchPixels = 8;
