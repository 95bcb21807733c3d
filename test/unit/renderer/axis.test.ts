import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bitRateLabel, bytesLabel, millisecondsLabel } from '../../../renderer/charts/axis-labels.ts';
import { stepAtLeast, SteppedRange, tickStep } from '../../../renderer/charts/axis-range.ts';
import { timeTicks } from '../../../renderer/charts/time-axis.ts';
import { shownSeconds } from '../../../renderer/store/view-state.ts';

test('a step is the smallest of 1, 2, 5 times a power of ten that is enough', () => {
  expect([0.3, 1, 1.1, 2, 4.9, 5, 7, 454_200].map(stepAtLeast)).toEqual([0.5, 1, 2, 2, 5, 5, 10, 500_000]);
  fc.assert(
    fc.property(fc.double({ min: 1e-6, max: 1e12, noNaN: true }), (value) => {
      const step = stepAtLeast(value);
      expect(step).toBeGreaterThanOrEqual(value * (1 - 1e-9));
      expect(step).toBeLessThan(value * 2.5 * (1 + 1e-9));
      expect([1, 2, 5]).toContain(Number((step / 10 ** Math.floor(Math.log10(step) + 1e-9)).toFixed(6)));
    }),
  );
});

describe('the range of an axis', () => {
  test('grows at once and stands still while what it shows wavers', () => {
    const range = new SteppedRange(10);
    expect(range.update(95, 0, false)).toBe(100);
    expect([80, 60, 90, 55, 99].map((value, i) => range.update(value, i * 1000, false))).toEqual([
      100, 100, 100, 100, 200,
    ]);
  });

  test('shrinks only after a while in which less would have been enough all the time', () => {
    const range = new SteppedRange(10);
    range.update(400, 0, false);
    expect(range.update(40, 1000, false)).toBe(500);
    expect(range.update(400, 3000, false)).toBe(500);
    expect(range.update(40, 4000, false)).toBe(500);
    expect(range.update(40, 6000, false)).toBe(500);
    expect(range.update(40, 6600, false)).toBe(50);
  });

  test('follows at once when the view jumps, and never goes below the smallest', () => {
    const range = new SteppedRange(10);
    range.update(4000, 0, false);
    expect(range.update(3, 1, true)).toBe(10);
    expect(range.update(Number.NaN, 2, true)).toBe(10);
  });

  test('what it shows fits with room to spare', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1e9, noNaN: true })), (values) => {
        const range = new SteppedRange(1);
        for (const value of values) expect(range.update(value, 0, false)).toBeGreaterThanOrEqual(value);
      }),
    );
  });
});

test('marks divide an axis evenly and never crowd', () => {
  for (const max of [1, 2, 5, 10, 20, 50, 1000, 2e6]) {
    for (const height of [60, 200]) {
      const count = max / tickStep(max, height);
      expect(Number.isInteger(Number(count.toFixed(9)))).toBe(true);
      expect(count).toBeLessThanOrEqual(height < 110 ? 2 : 5);
    }
  }
});

test('labels carry the unit at the top', () => {
  const labels = (label: (value: number, isTop: boolean) => string, max: number): string[] =>
    [0, max / 2, max].map((value) => label(value, value === max));
  expect(labels(bytesLabel(500_000), 500_000)).toEqual(['0', '250', '500 KB']);
  expect(labels(bytesLabel(1e6), 1e6)).toEqual(['0', '0.5', '1 MB']);
  expect(labels(bytesLabel(1000), 1000)).toEqual(['0', '0.5', '1 KB']);
  expect(labels(bitRateLabel(20e6), 20e6)).toEqual(['0', '10', '20 Mb/s']);
  expect(labels(millisecondsLabel(500), 500)).toEqual(['0', '250', '500 ms']);
  expect(labels(millisecondsLabel(5000), 5000)).toEqual(['0', '2.5', '5 s']);
});

describe('time axis', () => {
  test('counts back from now on fixed places while it follows', () => {
    const ticks = timeTicks(30, 640, undefined);
    expect(ticks.at(0)).toEqual({ x: -30, label: '−30 s' });
    expect(ticks.at(-1)).toEqual({ x: -0, label: 'now' });
    expect(timeTicks(300, 640, undefined).map((tick) => tick.label)).toEqual([
      '−5 min',
      '−4 min',
      '−3 min',
      '−2 min',
      '−1 min',
      'now',
    ]);
  });

  test('stands on round times of the session when it is frozen', () => {
    const ticks = timeTicks(30, 640, 83_400_000);
    expect(ticks.map((tick) => tick.label)).toEqual(['0:55', '1:00', '1:05', '1:10', '1:15', '1:20']);
    expect(ticks.at(-1)?.x).toBeCloseTo(-3.4);
  });

  test('labels have room', () => {
    for (const width of [200, 400, 640, 1400]) {
      for (const seconds of [10, 20, 30, 60, 120, 300, 600, 900]) {
        const spaces = timeTicks(seconds, width, undefined).length - 1;
        expect(spaces).toBeGreaterThan(0);
        expect(width / spaces).toBeGreaterThan(50);
      }
    }
  });

  test('a view of everything has a round length that holds it', () => {
    expect([0, 9, 10.5, 61, 450, 2000].map((s) => shownSeconds(Number.POSITIVE_INFINITY, s))).toEqual([
      10, 10, 20, 120, 600, 900,
    ]);
    expect(shownSeconds(60, 5)).toBe(60);
  });
});
