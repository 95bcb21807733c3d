import fc from 'fast-check';
import { expect, test } from 'vitest';
import { percentileOfSorted } from '../../../src/base/percentile.ts';
import { Quantiles } from '../../../renderer/store/quantile.ts';

test('a quantile is the same number that a report gives', () => {
  const quantiles = new Quantiles();
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.integer({ min: -50, max: 50 }), fc.constant(Number.NaN)), { maxLength: 700 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (values, q) => {
        const numbers = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
        expect(quantiles.load(Float64Array.from(values), 0, values.length)).toBe(numbers.length);
        const sorted = Float64Array.from(numbers);
        expect(quantiles.at(q)).toBe(percentileOfSorted(sorted, sorted.length, q));
      },
    ),
  );
});

test('only the rows that were named count, and several can be asked of one load', () => {
  const quantiles = new Quantiles();
  quantiles.load(Float64Array.of(900, 3, 1, 2, 900), 1, 4);
  expect([quantiles.at(0.95), quantiles.at(0.5), quantiles.at(0)]).toEqual([3, 2, 1]);
});
