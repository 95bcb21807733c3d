import type { PointBuffer } from './point-buffer.ts';

/** How a part of a column becomes the points of a line. */
export interface Reduction {
  /** Rows `from … to - 1`. */
  readonly from: number;
  readonly to: number;
  /** The time that becomes x = 0. */
  readonly edgeUs: number;
  /**
   * Rows within one bucket of this length become four points at most: the first, the lowest, the highest and the last,
   * in their order, so no peak is lost. Buckets stand on multiples of their length, not on the edge of the view: a line
   * that moves keeps its shape.
   */
  readonly bucketUs: number;
  /** Rows further apart than this have a gap between them. */
  readonly gapUs: number;
  /** Draws a value that holds until the next one: level, then straight up or down. */
  readonly step?: boolean;
}

/** Fills `out` with the reduced points of `values` over `times`; see {@link Reduction}. NaN is a gap. */
export function reduce(
  times: Float64Array,
  values: Float64Array,
  reduction: Reduction,
  out: PointBuffer,
): void {
  const { from, to, edgeUs, bucketUs, gapUs } = reduction;
  const step = reduction.step === true;
  out.clear();
  let bucket = Number.NaN;
  let first = -1;
  let low = -1;
  let high = -1;
  let last = -1;
  let lowValue = 0;
  let highValue = 0;
  let previousUs = Number.NaN;

  for (let i = from; i < to; i++) {
    const timeUs = times[i] ?? 0;
    const value = values[i] ?? Number.NaN;
    const isNumber = !Number.isNaN(value);
    if (!isNumber || timeUs - previousUs > gapUs) {
      flush();
      out.gap((previousUs - edgeUs) / 1e6);
    }
    previousUs = timeUs;
    if (!isNumber) continue;
    const itsBucket = Math.floor(timeUs / bucketUs);
    if (itsBucket !== bucket || first < 0) {
      flush();
      bucket = itsBucket;
      first = low = high = last = i;
      lowValue = highValue = value;
      continue;
    }
    last = i;
    if (value < lowValue) {
      low = i;
      lowValue = value;
    } else if (value > highValue) {
      high = i;
      highValue = value;
    }
  }
  flush();
  out.finish();

  function flush(): void {
    if (first < 0) return;
    add(first);
    const early = low < high ? low : high;
    const late = low < high ? high : low;
    if (early > first) add(early);
    if (late > first && late !== early) add(late);
    if (last > late) add(last);
    first = -1;
  }

  function add(index: number): void {
    const x = ((times[index] ?? 0) - edgeUs) / 1e6;
    const y = values[index] ?? 0;
    if (step) {
      const before = out.at(out.length - 1);
      if (before !== undefined && !Number.isNaN(before.y) && before.y !== y) out.push(x, before.y);
    }
    out.push(x, y);
  }
}

/**
 * Fills `out` with the mean of each bucket, at the time of its last row: for a line whose place is in the background, and
 * which its own noise would turn into a carpet.
 */
export function reduceToMeans(
  times: Float64Array,
  values: Float64Array,
  reduction: Omit<Reduction, 'step'>,
  out: PointBuffer,
): void {
  const { from, to, edgeUs, bucketUs, gapUs } = reduction;
  out.clear();
  let sum = 0;
  let count = 0;
  for (let i = from; i < to; i++) {
    const timeUs = times[i] ?? 0;
    const value = values[i] ?? Number.NaN;
    if (!Number.isNaN(value)) {
      sum += value;
      count++;
    }
    const nextUs = i + 1 < to ? (times[i + 1] ?? 0) : Number.POSITIVE_INFINITY;
    const isApart = Number.isNaN(value) || nextUs - timeUs > gapUs;
    if (!isApart && Math.floor(nextUs / bucketUs) === Math.floor(timeUs / bucketUs)) continue;
    const x = (timeUs - edgeUs) / 1e6;
    if (count > 0) out.push(x, sum / count);
    if (isApart && i + 1 < to) out.gap(x);
    sum = 0;
    count = 0;
  }
  out.finish();
}

/**
 * The length of a bucket for a view: one for every two pixels, a round number so that resizing by a pixel does not
 * redraw every peak differently.
 */
export function bucketLengthUs(windowUs: number, widthPixels: number): number {
  const wanted = windowUs / Math.max(50, Math.floor(widthPixels / 2));
  const power = 2 ** Math.ceil(Math.log2(wanted));
  return power * 0.75 >= wanted ? power * 0.75 : power;
}
