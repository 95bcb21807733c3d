import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { pairedInterval } from '../../../src/statistics/paired-interval.ts';

/** By trying all assignments of signs: is 0 rejected by the signed-rank test? Differences without ties and zeros. */
function rejectsZero(differences: readonly number[], confidence: number): boolean {
  const n = differences.length;
  const ranks = differences.map(
    (difference) => differences.filter((other) => Math.abs(other) <= Math.abs(difference)).length,
  );
  const sumOf = (positive: (index: number) => boolean): number =>
    ranks.reduce((sum, rank, index) => sum + (positive(index) ? rank : 0), 0);
  const observed = sumOf((index) => (differences[index] ?? 0) > 0);
  const extreme = Math.min(observed, (n * (n + 1)) / 2 - observed);
  let asExtreme = 0;
  for (let signs = 0; signs < 2 ** n; signs++) {
    const sum = sumOf((index) => ((signs >> index) & 1) === 1);
    if (sum <= extreme || sum >= (n * (n + 1)) / 2 - extreme) asExtreme++;
  }
  return asExtreme / 2 ** n <= 1 - confidence + 1e-12;
}

const distinct = fc
  .uniqueArray(fc.integer({ min: 1, max: 100_000 }), { minLength: 6, maxLength: 10 })
  .chain((sizes) =>
    fc
      .array(fc.boolean(), { minLength: sizes.length, maxLength: sizes.length })
      .map((signs) => sizes.map((size, index) => (signs[index] === true ? size : -size) / 1000)),
  );

describe('pairedInterval', () => {
  test('excludes 0 exactly where trying all swaps of the arms rejects it', () => {
    fc.assert(
      fc.property(distinct, (differences) => {
        const interval = pairedInterval(differences, 0.95);
        expect(interval?.method).toBe('signed-rank');
        const excludes = interval !== null && (interval.low > 0 || interval.high < 0);
        expect(excludes).toBe(rejectsZero(differences, 0.95));
      }),
      { numRuns: 150 },
    );
  });

  test('moves along with the differences, turns with their sign, and holds its estimate', () => {
    fc.assert(
      fc.property(distinct, fc.integer({ min: -50, max: 50 }), (differences, shift) => {
        const plain = pairedInterval(differences, 0.95);
        const shifted = pairedInterval(
          differences.map((difference) => difference + shift),
          0.95,
        );
        const turned = pairedInterval(
          differences.map((difference) => -difference),
          0.95,
        );
        expect(shifted?.low).toBeCloseTo((plain?.low ?? 0) + shift, 9);
        expect(shifted?.high).toBeCloseTo((plain?.high ?? 0) + shift, 9);
        expect(turned?.low).toBeCloseTo(-(plain?.high ?? 0), 9);
        expect(plain?.low).toBeLessThanOrEqual(plain?.estimate ?? Number.NaN);
        expect(plain?.high).toBeGreaterThanOrEqual(plain?.estimate ?? Number.NaN);
      }),
    );
  });

  test('one accident does not move it', () => {
    const calm = Array.from({ length: 16 }, (_, index) => 0.0925 + ((index * 7) % 16) / 1000);
    const accident = [...calm.slice(1), -5];
    expect(pairedInterval(accident, 0.95)?.low).toBeGreaterThan(0);
    expect(pairedInterval(accident, 0.95)?.estimate).toBeCloseTo(0.1, 2);
  });

  // Of the published table for two sides and 0.05: T = 0, 2, 3, 5, 8 for n = 6 to 10.
  test.each([
    [6, 1, false],
    [7, 2, true],
    [7, 3, false],
    [8, 3, true],
    [8, 4, false],
    [9, 5, true],
    [9, 6, false],
    [10, 8, true],
    [10, 9, false],
  ])('%d differences, the negative one of rank %d: 0 is excluded: %s', (n, rank, excluded) => {
    const differences = Array.from({ length: n }, (_, i) => (i + 1 === rank ? -rank : i + 1));
    expect((pairedInterval(differences, 0.95)?.low ?? 0) > 0).toBe(excluded);
  });

  test('the normal approximation takes over without a step', () => {
    const differences = (n: number): number[] =>
      Array.from({ length: n }, (_, index) => Math.sin(index * 1.7) + 0.1);
    const exact = pairedInterval(differences(59), 0.95);
    const normal = pairedInterval(differences(60), 0.95);
    expect(Math.abs((exact?.low ?? 0) - (normal?.low ?? 0))).toBeLessThan(0.02);
    expect(Math.abs((exact?.high ?? 0) - (normal?.high ?? 0))).toBeLessThan(0.02);
  });

  test('a few differences: Student’s t, and none from a single one', () => {
    expect(pairedInterval([], 0.95)).toBeNull();
    expect(pairedInterval([1], 0.95)).toBeNull();
    const three = pairedInterval([1, 2, 3], 0.95);
    expect(three?.method).toBe('student-t');
    // mean 2, deviation 1, t(2) 4.3027: 2 ± 2.484
    expect(three?.low).toBeCloseTo(-0.484, 3);
    expect(three?.high).toBeCloseTo(4.484, 3);
    expect(pairedInterval([1, 2, 3, 4, 5, 6, 7], 0.99)?.method).toBe('student-t');
    expect(pairedInterval([1, 2, 3, 4, 5, 6, 7, 8], 0.99)?.method).toBe('signed-rank');
  });

  test('differences that are all nothing are no difference', () => {
    expect(
      pairedInterval(
        Array.from({ length: 8 }, () => 0),
        0.95,
      ),
    ).toMatchObject({
      estimate: 0,
      low: 0,
      high: 0,
    });
  });
});
