/** An estimate and the interval that covers the truth with the stated confidence. */
export interface Interval {
  readonly estimate: number;
  readonly low: number;
  readonly high: number;
}

export type Confidence = 0.95 | 0.99;

/**
 * `signed-rank`: exact over all swaps of the arms within pairs, whatever the distribution. `student-t`: for so few pairs
 * that no swap is rare enough; takes the differences to be normally distributed.
 */
export type IntervalMethod = 'signed-rank' | 'student-t';

export interface PairedInterval extends Interval {
  readonly method: IntervalMethod;
}

/** More differences than this would take long (their averages two by two are sorted), and would change nothing. */
export const mostDifferences = 400;

/** Quantiles of Student's t, two-sided, by degrees of freedom from 1 on. */
const studentT: Readonly<Record<Confidence, readonly number[]>> = {
  0.95: [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469],
  0.99: [63.6567, 9.9248, 5.8409, 4.6041, 4.0321, 3.7074],
};

/** From here on the distribution of the rank sum is taken as normal; the error is below a thousandth. */
const normalFrom = 60;
const normalQuantile: Readonly<Record<Confidence, number>> = { 0.95: 1.959964, 0.99: 2.575829 };

/**
 * Where the centre of paired differences lies. If the arms of a pair are alike, each difference may as well have had the
 * other sign: the interval holds all centres that a test over all 2^n assignments of signs does not reject (Wilcoxon's
 * signed-rank test, inverted; the estimate is Hodges and Lehmann's median of all averages of two). One pair with an
 * accident in it, such as a handover, moves it little.
 * @param differences at most `mostDifferences`
 * @returns null for fewer than two
 */
export function pairedInterval(
  differences: readonly number[],
  confidence: Confidence,
): PairedInterval | null {
  const n = differences.length;
  if (n < 2) return null;
  const rank = largestRejected(n, confidence);
  if (rank === null) return studentInterval(differences, confidence);
  const averages = pairAverages(differences);
  const at = (index: number): number => averages[index] ?? Number.NaN;
  const middle = averages.length / 2;
  return {
    estimate: (at(Math.ceil(middle) - 1) + at(Math.floor(middle))) / 2,
    low: at(rank),
    high: at(averages.length - 1 - rank),
    method: 'signed-rank',
  };
}

/** All averages of two differences, each with itself too, sorted. */
function pairAverages(differences: readonly number[]): Float64Array {
  const n = differences.length;
  const averages = new Float64Array((n * (n + 1)) / 2);
  let length = 0;
  for (const [i, a] of differences.entries()) {
    for (let j = i; j < n; j++) averages[length++] = (a + (differences[j] ?? Number.NaN)) / 2;
  }
  return averages.sort();
}

/**
 * The largest rank sum that is so rare, if all signs are equally likely, that it and its mirror image together stay
 * within 1 − confidence; null if not even the sum 0 is. As many averages lie outside of the interval on either side.
 */
function largestRejected(n: number, confidence: Confidence): number | null {
  const tail = (1 - confidence) / 2;
  if (n >= normalFrom) {
    const mean = (n * (n + 1)) / 4;
    const deviation = Math.sqrt((n * (n + 1) * (2 * n + 1)) / 24);
    return Math.floor(mean - normalQuantile[confidence] * deviation - 0.5);
  }
  const shares = rankSumShares(n);
  let below = 0;
  for (let sum = 0; sum < shares.length; sum++) {
    below += shares[sum] ?? 0;
    // A hair of room for rounding: the shares are multiples of 2^-n.
    if (below > tail * (1 + 1e-9)) return sum === 0 ? null : sum - 1;
  }
  return null;
}

/** How likely each sum of the ranks with a positive sign is. */
function rankSumShares(n: number): Float64Array {
  const shares = new Float64Array((n * (n + 1)) / 2 + 1);
  shares[0] = 1;
  let reached = 0;
  for (let rank = 1; rank <= n; rank++) {
    reached += rank;
    for (let sum = reached; sum >= 0; sum--) {
      const without = shares[sum] ?? 0;
      const added = sum >= rank ? (shares[sum - rank] ?? 0) : 0;
      shares[sum] = (without + added) / 2;
    }
  }
  return shares;
}

function studentInterval(differences: readonly number[], confidence: Confidence): PairedInterval | null {
  const n = differences.length;
  const quantile = studentT[confidence][n - 2];
  if (quantile === undefined) return null;
  const mean = differences.reduce((sum, difference) => sum + difference, 0) / n;
  const squares = differences.reduce((sum, difference) => sum + (difference - mean) ** 2, 0);
  const half = quantile * Math.sqrt(squares / (n - 1) / n);
  return { estimate: mean, low: mean - half, high: mean + half, method: 'student-t' };
}
