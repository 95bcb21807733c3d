/**
 * The p-th percentile (0 … 1) of the first `count` values, which are sorted upwards: the smallest value that at least
 * that share of all values does not exceed (nearest rank). NaN if there are none. Always a value that was measured.
 */
export function percentileOfSorted(sorted: ArrayLike<number>, count: number, p: number): number {
  if (count === 0) return Number.NaN;
  const rank = Math.max(1, Math.ceil(p * count));
  return sorted[Math.min(rank, count) - 1] ?? Number.NaN;
}
