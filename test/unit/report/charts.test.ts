import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  areaPath,
  dotsPath,
  linePath,
  type Plot,
  stepPath,
  toPixels,
} from '../../../src/report/chart-path.ts';
import { linearScale, logarithmicScale, stepAtLeast, timeScale } from '../../../src/report/chart-scale.ts';

const axis = { from: 100, to: 0, unit: 1 };

describe('an axis from zero', () => {
  test('ends at a round value that fits, with few marks at equal distances', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1e-3, max: 1e12, noNaN: true }),
        fc.integer({ min: 2, max: 8 }),
        (largest, count) => {
          const { ticks, max, at } = linearScale(largest, axis, count);
          expect(max).toBeGreaterThanOrEqual(largest * (1 - 1e-9));
          expect(ticks.length).toBeLessThanOrEqual(count + 2);
          expect(ticks[0]?.value).toBe(0);
          expect(at(0)).toBe(100);
          expect(at(max)).toBeCloseTo(0, 6);
          expect(at(2 * max)).toBeCloseTo(0, 6);
          expect(new Set(ticks.map(({ label }) => label)).size).toBe(ticks.length);
        },
      ),
    );
  });

  test.each([
    [454_200, 1000, 4, ['0', '200', '400', '600']],
    [10.2e6, 1e6, 3, ['0', '5', '10', '15']],
    [3.2e6, 1e6, 4, ['0', '1', '2', '3', '4']],
    [1_514_000, 1000, 4, ['0', '500', '1,000', '1,500', '2,000']],
    [640, 1000, 5, ['0', '0.2', '0.4', '0.6', '0.8']],
  ])('for %d in units of %d', (largest, unit, count, labels) => {
    expect(linearScale(largest, { ...axis, unit }, count).ticks.map(({ label }) => label)).toEqual(labels);
  });
});

test('a logarithmic axis covers its values and keeps their order', () => {
  const positive = fc.double({ min: 1, max: 1e7, noNaN: true });
  fc.assert(
    fc.property(positive, positive, (a, b) => {
      const [small, large] = a < b ? [a, b] : [b, a];
      if (large < small * 1.5) return;
      const scale = logarithmicScale(small, large, { ...axis, unit: 1000 });
      expect(scale.at(small)).toBeLessThanOrEqual(100 + 1e-6);
      expect(scale.at(large)).toBeGreaterThanOrEqual(-1e-6);
      expect(scale.at(small)).toBeGreaterThan(scale.at(large));
      expect(scale.ticks.length).toBeGreaterThan(0);
      expect(
        scale.ticks.every(({ value }, index) => index === 0 || value > (scale.ticks[index - 1]?.value ?? 0)),
      ).toBe(true);
    }),
  );
});

test('steps go 1, 2, 5', () => {
  expect([0.9, 1, 1.1, 2, 2.1, 5, 5.1, 99, 0].map(stepAtLeast)).toEqual([1, 1, 2, 2, 5, 5, 10, 100, 1]);
});

test.each([
  [60, ['0:00', '0:05', '0:10'], 13],
  [3600, ['0:00', '5:00', '10:00'], 13],
  [0.6, ['0:00.0', '0:00.1', '0:00.2'], 7],
])('the axis of %d s has round times', (seconds, first, count) => {
  const { ticks } = timeScale(0, seconds * 1e6, 0, 100, 12);
  expect(ticks.slice(0, 3).map(({ label }) => label)).toEqual(first);
  expect(ticks).toHaveLength(count);
});

describe('a path', () => {
  const plot: Plot = {
    x: timeScale(0, 1000, 0, 100, 10),
    y: linearScale(10, { from: 10, to: 0, unit: 1 }, 2),
    left: 0,
    right: 100,
    ground: 10,
  };
  const pixels = (times: number[], values: number[], gapUs = 25): ReturnType<typeof toPixels> =>
    toPixels(Float64Array.from(times), Float64Array.from(values), { fromUs: 0, toUs: 1000 }, 100, gapUs);

  test('has a gap where values are missing, in time or as such', () => {
    const line = linePath(pixels([0, 10, 20, 500, 510], [1, 2, 3, 4, 5]), plot);
    expect(line.match(/M/g)).toHaveLength(2);
    expect(line).toBe('M0.5 9L1.5 8L2.5 7M50.5 6L51.5 5');
    const missing = linePath(pixels([0, 10, 20, 30, 40, 50], [1, 1, Number.NaN, Number.NaN, 1, 1]), plot);
    expect(missing).toBe('M0.5 9H1.5M4.5 9H5.5');
    expect(areaPath(pixels([0, 10, 500, 510], [1, 2, 4, 5]), plot, 'max')).toBe(
      'M0.5 10V9L1.5 8V10ZM50.5 10V6L51.5 5V10Z',
    );
  });

  test('keeps the extremes of what shares a pixel', () => {
    expect(linePath(pixels([0, 1, 2, 3, 10], [5, 9, 1, 6, 6]), plot)).toBe('M0.5 5V9V1V4H1.5');
    expect(dotsPath(pixels([0, 1, 2], [5, 9, 1]), plot)).toBe('M0.5 9h0M0.5 1h0');
  });

  test('of a setting goes across before it goes up', () => {
    expect(stepPath(pixels([0, 10, 20], [2, 2, 6]), plot)).toBe('M0.5 8H1.5H2.5V4');
  });

  test('shows a value that stands alone', () => {
    expect(linePath(pixels([500], [5]), plot)).toBe('M50.5 5H51.5');
  });

  test('is bounded by the pixels, however many values there are', () => {
    const times = Array.from({ length: 200_000 }, (_value, index) => index / 200);
    const values = times.map((_time, index) => (index * 7919) % 11);
    const path = linePath(pixels(times, values), plot);
    expect(path.length).toBeLessThan(100 * 40);
  });
});
