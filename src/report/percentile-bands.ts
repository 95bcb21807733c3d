import type { TimeRange } from '../recording/recording-reader.ts';
import type { Scale } from './chart-scale.ts';
import { distribution } from './statistics.ts';
import { firstAfter, type Telemetry } from './telemetry.ts';

/** Percentiles of the round trips that were due in a window. */
export interface PercentileWindow extends TimeRange {
  readonly p50Us: number;
  readonly p95Us: number;
}

/** A percentile over fewer round trips than this would be noise. */
const fewestRoundTrips = 10;
const shortestPixels = 12;

/**
 * p50 and p95 of the round trip over time, window by window. Windows of one list follow one another without a break;
 * a new list begins with each stretch, because conditions changed there, and after a gap.
 */
export function percentileBands(
  telemetry: Telemetry,
  stretches: readonly TimeRange[],
  x: Scale,
): PercentileWindow[][] {
  const { timeUs, rttUs } = telemetry.probes.values;
  const { probeIntervalUs } = telemetry;
  const bands: PercentileWindow[][] = [];
  for (const stretch of stretches) {
    const lengthUs = stretch.toUs - stretch.fromUs;
    const pixels = x.at(stretch.toUs) - x.at(stretch.fromUs);
    const count = Math.floor(
      Math.min(pixels / shortestPixels, lengthUs / probeIntervalUs / fewestRoundTrips),
    );
    let band: PercentileWindow[] = [];
    for (let i = 0; i < count; i++) {
      const fromUs = stretch.fromUs + (i * lengthUs) / count;
      const toUs = stretch.fromUs + ((i + 1) * lengthUs) / count;
      const from = firstAfter(timeUs, fromUs, true);
      const to = firstAfter(timeUs, toUs, true);
      const { n, p50, p95 } = distribution(rttUs.subarray(from, to));
      if (n >= fewestRoundTrips / 2) {
        // Not beyond the last answer: a gap may begin there.
        const lastUs = timeUs[lastAnswered(rttUs, from, to)] ?? toUs;
        band.push({ fromUs, toUs: Math.min(toUs, lastUs + probeIntervalUs), p50Us: p50, p95Us: p95 });
      } else if (band.length > 0) {
        bands.push(band);
        band = [];
      }
    }
    if (band.length > 0) bands.push(band);
  }
  return bands;
}

function lastAnswered(rttUs: Float64Array, from: number, to: number): number {
  for (let i = to - 1; i >= from; i--) if (!Number.isNaN(rttUs[i] ?? Number.NaN)) return i;
  return -1;
}
