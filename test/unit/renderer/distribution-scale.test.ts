import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { distributionScale } from '../../../renderer/charts/distribution-scale.ts';

describe('the axis of a distribution', () => {
  test('round trips alike stand on a linear axis from zero', () => {
    const scale = distributionScale(20_000, 48_000, 0, 100);
    expect(scale.logarithmic).toBe(false);
    expect(scale.at(0)).toBe(0);
    expect(scale.at(24_000)).toBeCloseTo(50, 6);
    expect(scale.ticks.map(({ label }) => label)).toEqual([
      '0',
      '5',
      '10',
      '15',
      '20',
      '25',
      '30',
      '35',
      '40',
      '45',
    ]);
  });

  test('round trips far apart stand on a logarithmic one, from mark to mark', () => {
    const scale = distributionScale(24_000, 382_000, 0, 100);
    expect(scale.logarithmic).toBe(true);
    expect(scale.ticks.map(({ label }) => label)).toEqual(['20', '50', '100', '200', '500']);
    expect(scale.at(20_000)).toBe(0);
    expect(scale.at(500_000)).toBe(100);
  });

  test('longer is never further to the left, and nothing leaves the plot', () => {
    const us = fc.integer({ min: 0, max: 100_000_000 });
    fc.assert(
      fc.property(us, us, us, us, (a, b, c, d) => {
        const scale = distributionScale(Math.min(a, b), Math.max(a, b), 40, 712);
        expect(scale.at(Math.min(c, d))).toBeLessThanOrEqual(scale.at(Math.max(c, d)));
        for (const value of [a, b, c, d]) {
          expect(scale.at(value)).toBeGreaterThanOrEqual(40);
          expect(scale.at(value)).toBeLessThanOrEqual(712);
        }
        expect(scale.ticks.length).toBeLessThanOrEqual(12);
      }),
    );
  });
});
