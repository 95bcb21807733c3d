import type { Decimated } from '../recording/decimate.ts';
import { Decimator } from '../recording/decimate.ts';
import type { TimeRange } from '../recording/recording-reader.ts';
import type { Scale } from './chart-scale.ts';

/** Where a series is drawn: both axes, and the height of the ground that areas stand on. */
export interface Plot {
  readonly x: Scale;
  readonly y: Scale;
  readonly left: number;
  readonly right: number;
  readonly ground: number;
}

/** A series reduced to the pixels of a plot, with what is needed to draw its gaps. */
export interface PixelSeries {
  readonly decimated: Decimated;
  /** Values that are further apart than this many buckets have a gap between them. */
  readonly gapBuckets: number;
}

/**
 * Reduces a series to one bucket a pixel, keeping the extremes.
 * @param gapUs a distance between values that is a gap
 */
export function toPixels(
  times: Float64Array,
  values: Float64Array,
  range: TimeRange,
  pixels: number,
  gapUs: number,
): PixelSeries {
  const decimator = new Decimator(range.fromUs, Math.max(range.toUs, range.fromUs + 1), pixels);
  for (const [index, timeUs] of times.entries()) decimator.add(timeUs, values[index] ?? Number.NaN);
  const decimated = decimator.result;
  const bucketUs = (decimated.toUs - decimated.fromUs) / pixels;
  return {
    decimated,
    gapBuckets: Math.max(1, gapUs / bucketUs),
  };
}

/** Stretches of buckets with values, no two of them further apart than a gap. */
function* runs({ decimated, gapBuckets }: PixelSeries): Generator<number[]> {
  let run: number[] = [];
  for (const [bucket, count] of decimated.count.entries()) {
    if (count === 0) continue;
    const last = run.at(-1);
    if (last !== undefined && bucket - last > gapBuckets) {
      yield run;
      run = [];
    }
    run.push(bucket);
  }
  if (run.length > 0) yield run;
}

function xOf(plot: Plot, decimated: Decimated, bucket: number): number {
  return plot.left + ((bucket + 0.5) * (plot.right - plot.left)) / decimated.buckets;
}

/** A line through a series: where several values share a pixel, from the first over both extremes to the last. */
export function linePath(series: PixelSeries, plot: Plot): string {
  const { decimated } = series;
  const path = new PathText();
  for (const run of runs(series)) {
    for (const [index, bucket] of run.entries()) {
      const x = xOf(plot, decimated, bucket);
      const first = plot.y.at(decimated.first[bucket] ?? 0);
      if (index === 0) path.move(x, first);
      else path.line(x, first);
      if ((decimated.count[bucket] ?? 0) > 1) {
        path.line(x, plot.y.at(decimated.min[bucket] ?? 0));
        path.line(x, plot.y.at(decimated.max[bucket] ?? 0));
        path.line(x, plot.y.at(decimated.last[bucket] ?? 0));
      } else if (run.length === 1) {
        path.line(x + 1, first);
      }
    }
  }
  return path.toString();
}

/** A line that keeps a value until the next one: for what is set rather than measured. */
export function stepPath(series: PixelSeries, plot: Plot): string {
  const { decimated } = series;
  const path = new PathText();
  for (const run of runs(series)) {
    for (const [index, bucket] of run.entries()) {
      const x = xOf(plot, decimated, bucket);
      const first = plot.y.at(decimated.first[bucket] ?? 0);
      if (index === 0) path.move(x, first);
      else path.acrossThenTo(x, first);
      if ((decimated.count[bucket] ?? 0) > 1) {
        path.line(x, plot.y.at(decimated.min[bucket] ?? 0));
        path.line(x, plot.y.at(decimated.max[bucket] ?? 0));
        path.line(x, plot.y.at(decimated.last[bucket] ?? 0));
      } else if (run.length === 1) {
        path.line(x + 1, first);
      }
    }
  }
  return path.toString();
}

/** The area under a series, up to the lowest or the highest value of each pixel. */
export function areaPath(series: PixelSeries, plot: Plot, extreme: 'min' | 'max'): string {
  const { decimated } = series;
  const values = decimated[extreme];
  const path = new PathText();
  for (const run of runs(series)) {
    const first = run[0] ?? 0;
    const last = run.at(-1) ?? first;
    path.move(xOf(plot, decimated, first), plot.ground);
    for (const bucket of run) path.line(xOf(plot, decimated, bucket), plot.y.at(values[bucket] ?? 0));
    // A single value still shows.
    const end = xOf(plot, decimated, last) + (first === last ? 1 : 0);
    path.line(end, plot.y.at(values[last] ?? 0));
    path.line(end, plot.ground);
    path.close();
  }
  return path.toString();
}

/** Dots at the extremes of each pixel; with one value a pixel these are all of them. */
export function dotsPath({ decimated }: PixelSeries, plot: Plot): string {
  const path = new PathText();
  for (const [bucket, count] of decimated.count.entries()) {
    if (count === 0) continue;
    const x = xOf(plot, decimated, bucket);
    const low = plot.y.at(decimated.min[bucket] ?? 0);
    const high = plot.y.at(decimated.max[bucket] ?? 0);
    path.dot(x, low);
    if (Math.abs(high - low) >= 1) path.dot(x, high);
  }
  return path.toString();
}

/** A path's `d`, in tenths of a pixel. */
export class PathText {
  #text = '';
  #x = Number.NaN;
  #y = Number.NaN;

  move(x: number, y: number): void {
    this.#x = tenths(x);
    this.#y = tenths(y);
    this.#text += `M${this.#x} ${this.#y}`;
  }

  line(x: number, y: number): void {
    const nextX = tenths(x);
    const nextY = tenths(y);
    if (nextX === this.#x && nextY === this.#y) return;
    if (nextY === this.#y) this.#text += `H${nextX}`;
    else if (nextX === this.#x) this.#text += `V${nextY}`;
    else this.#text += `L${nextX} ${nextY}`;
    this.#x = nextX;
    this.#y = nextY;
  }

  /** To the right at the height it has, then up or down. */
  acrossThenTo(x: number, y: number): void {
    this.line(x, this.#y);
    this.line(x, y);
  }

  /** With round line ends, a dot as wide as the line. */
  dot(x: number, y: number): void {
    this.#text += `M${tenths(x)} ${tenths(y)}h0`;
  }

  close(): void {
    this.#text += 'Z';
  }

  toString(): string {
    return this.#text;
  }
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}
