/** From best to worst; there is no E. */
export type Grade = 'A+' | 'A' | 'B' | 'C' | 'D' | 'F';

/** A grade goes to increases below its bound, in milliseconds (https://www.dslreports.com/faq/17930). */
export const gradeBounds: readonly (readonly [Grade, number])[] = [
  ['A+', 5],
  ['A', 30],
  ['B', 60],
  ['C', 200],
  ['D', 400],
];

export const gradeMethod =
  'Mean round trip under load less the mean round trip without load, averaged over the directions that were loaded; ' +
  'below 5 ms A+, below 30 A, below 60 B, below 200 C, below 400 D, else F (thresholds of DSLReports, ' +
  'www.dslreports.com/faq/17930; other sites draw the lines elsewhere). The means are graded because the ' +
  'published thresholds are for means; the percentiles stand beside them.';

export interface BufferbloatGrade {
  readonly grade: Grade;
  /** What was graded. */
  readonly meanIncreaseUs: number;
  readonly method: string;
}

/**
 * The letter for what load adds to the round trip.
 * @param loadedMeansUs one for each direction that was loaded
 * @returns null if one of them is missing
 */
export function gradeBufferbloat(
  idleMeanUs: number | null,
  loadedMeansUs: readonly (number | null)[],
): BufferbloatGrade | null {
  if (idleMeanUs === null || loadedMeansUs.length === 0) return null;
  let sum = 0;
  for (const mean of loadedMeansUs) {
    if (mean === null) return null;
    sum += mean;
  }
  const meanIncreaseUs = Math.max(0, sum / loadedMeansUs.length - idleMeanUs);
  const found = gradeBounds.find(([, belowMs]) => meanIncreaseUs < belowMs * 1000);
  return { grade: found?.[0] ?? 'F', meanIncreaseUs, method: gradeMethod };
}
