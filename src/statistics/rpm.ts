/** How good a responsiveness is, in the words of the draft. */
export type ResponsivenessRating = 'poor' | 'fair' | 'good' | 'excellent';

/** How far it had settled, in the words of the draft. */
export type ResponsivenessConfidence = 'low' | 'medium' | 'high';

export interface Responsiveness {
  readonly roundTripsPerMinute: number;
  readonly rating: ResponsivenessRating;
  readonly confidence: ResponsivenessConfidence;
  readonly method: string;
}

/** The longest twentieth is left out. */
const keptShare = 0.95;
/** So many intervals make the moving average; its spread over as many may be this share. */
const averagedIntervals = 4;
const steadyShare = 0.05;

export const rpmMethod =
  'Round trips per minute after draft-ietf-ippm-responsiveness-09: 60,000 / the mean round trip in ms of the shortest 95 ' +
  'percent, under load. Poor below 300, fair below 1,000, good below 6,000, else excellent. Confidence: low with fewer ' +
  'than 4 loaded segments, high if the moving average over 4 of them varied by less than 5 percent, else medium. The ' +
  'draft times TCP, TLS and HTTP on loaded connections; this times echo probes, which can overtake the load, so compare it ' +
  'with values of this program alone. It falls with distance as well as with queues: read it beside the idle round trip.';

/**
 * Round trips per minute under load.
 * @param segments the round trips of each loaded segment in order of time, microseconds
 * @returns null without round trips
 */
export function responsiveness(segments: readonly Readonly<Float64Array>[]): Responsiveness | null {
  const measured = segments.filter(({ length }) => length > 0);
  const all = new Float64Array(measured.reduce((sum, { length }) => sum + length, 0));
  let filled = 0;
  for (const roundTrips of measured) {
    all.set(roundTrips, filled);
    filled += roundTrips.length;
  }
  if (filled === 0) return null;
  const roundTripsPerMinute = 60e6 / trimmedMean(all);
  return {
    roundTripsPerMinute,
    rating: ratingOf(roundTripsPerMinute),
    confidence: confidenceOf(measured.map((roundTrips) => 60e6 / trimmedMean(Float64Array.from(roundTrips)))),
    method: rpmMethod,
  };
}

function trimmedMean(values: Float64Array): number {
  const sorted = values.toSorted();
  const kept = Math.max(1, Math.floor(sorted.length * keptShare));
  let sum = 0;
  for (let i = 0; i < kept; i++) sum += sorted[i] ?? 0;
  return Math.max(1, sum / kept);
}

function ratingOf(roundTripsPerMinute: number): ResponsivenessRating {
  if (roundTripsPerMinute < 300) return 'poor';
  if (roundTripsPerMinute < 1000) return 'fair';
  return roundTripsPerMinute < 6000 ? 'good' : 'excellent';
}

function confidenceOf(intervals: readonly number[]): ResponsivenessConfidence {
  if (intervals.length < averagedIntervals) return 'low';
  const averages: number[] = [];
  for (let end = 1; end <= intervals.length; end++) {
    averages.push(mean(intervals.slice(Math.max(0, end - averagedIntervals), end)));
  }
  const last = averages.slice(-averagedIntervals);
  const current = last.at(-1) ?? Number.NaN;
  const centre = mean(last);
  const deviation = Math.sqrt(mean(last.map((average) => (average - centre) ** 2)));
  return deviation < steadyShare * current ? 'high' : 'medium';
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
