/** Where round trips stand on the axis of a distribution. */
export interface DistributionScale {
  at(us: number): number;
  readonly ticks: readonly { readonly us: number; readonly label: string }[];
  readonly logarithmic: boolean;
}

/** Round trips that differ by more than this factor are drawn on a logarithmic axis. */
const logarithmicFrom = 10;
const mostTicks = 10;

/** An axis from the shortest to the longest round trip, in microseconds, with marks at 1, 2 and 5 times powers of ten. */
export function distributionScale(
  shortestUs: number,
  longestUs: number,
  left: number,
  right: number,
): DistributionScale {
  const steps: number[] = [];
  for (let power = -3; power <= 5; power++) {
    for (const factor of [1, 2, 5]) steps.push(factor * 10 ** power * 1000);
  }
  const logarithmic = longestUs > logarithmicFrom * Math.max(shortestUs, 1);
  // A logarithmic axis goes from mark to mark, so that no curve runs along its edge.
  const longest = Math.max(1, logarithmic ? (steps.find((us) => us >= longestUs) ?? longestUs) : longestUs);
  const low = logarithmic ? (steps.findLast((us) => us <= shortestUs) ?? 1) : 0;
  const share = logarithmic
    ? (us: number): number => Math.log(Math.max(us, low) / low) / Math.log(longest / low)
    : (us: number): number => us / longest;
  const marks = logarithmic
    ? thinned(steps.filter((us) => us >= low && us <= longest))
    : multiples(steps.find((us) => longest / us <= mostTicks) ?? longest, longest);
  return {
    at: (us) => left + Math.min(1, Math.max(0, share(us))) * (right - left),
    ticks: marks.map((us) => ({ us, label: Number((us / 1000).toPrecision(3)).toString() })),
    logarithmic,
  };
}

/** Over many decades the marks between would touch one another. */
function thinned(marks: readonly number[]): readonly number[] {
  return marks.length <= mostTicks ? marks : marks.filter((us) => Number.isInteger(Math.log10(us)));
}

function multiples(step: number, longest: number): number[] {
  return Array.from({ length: Math.floor(longest / step) + 1 }, (_, index) => index * step);
}
