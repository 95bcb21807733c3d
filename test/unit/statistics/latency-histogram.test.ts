import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { percentileOfSorted } from '../../../src/base/percentile.ts';
import { LatencyHistogram } from '../../../src/statistics/latency-histogram.ts';

describe('LatencyHistogram', () => {
  test('a percentile is that of the sorted values, or at most 0.1 percent above', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 60_000_000 }), { minLength: 1, maxLength: 300 }),
        fc.constantFrom(0.01, 0.5, 0.9, 0.95, 0.99, 1),
        (values, p) => {
          const histogram = new LatencyHistogram();
          histogram.addAll(values);
          const exact = percentileOfSorted(
            values.toSorted((a, b) => a - b),
            values.length,
            p,
          );
          expect(histogram.percentile(p)).toBeGreaterThanOrEqual(exact);
          expect(histogram.percentile(p)).toBeLessThanOrEqual(exact * 1.001 + 1);
        },
      ),
    );
  });

  test('without values there are none; NaN is none; what is too long is cut', () => {
    const histogram = new LatencyHistogram();
    histogram.add(Number.NaN);
    expect(histogram.count).toBe(0);
    expect(histogram.percentile(0.5)).toBeNaN();
    expect(histogram.meanUs).toBeNaN();
    expect(histogram.steps(10)).toEqual([]);
    histogram.add(-5);
    histogram.add(1e15);
    expect(histogram.percentile(0.5)).toBe(0);
    expect(histogram.maxUs).toBeGreaterThanOrEqual(120_000_000 * 0.999);
    histogram.clear();
    expect(histogram.count).toBe(0);
  });

  test('steps rise in time and share and end at the longest', () => {
    const histogram = new LatencyHistogram();
    histogram.addAll([10, 10, 10, 20, 30]);
    expect(histogram.steps(5)).toEqual([
      { us: 10, share: 0.6 },
      { us: 20, share: 0.8 },
      { us: 30, share: 1 },
    ]);
  });
});
