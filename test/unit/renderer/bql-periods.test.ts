import { expect, test } from 'vitest';
import { BqlPeriods } from '../../../renderer/store/bql-periods.ts';

test('samples become stretches that follow one another without a hole', () => {
  const periods = new BqlPeriods();
  const samples = [
    [10, 1],
    [20, 1],
    [30, 0],
    [40, Number.NaN],
    [50, 0],
    [60, 1],
  ] as const;
  for (const [time, enabled] of samples) periods.add(time, enabled);
  expect(periods.all).toEqual([
    { enabled: true, fromUs: 10, toUs: 20 },
    { enabled: false, fromUs: 20, toUs: 50 },
    { enabled: true, fromUs: 50, toUs: 60 },
  ]);
});

test('endless switching does not grow without end', () => {
  const periods = new BqlPeriods();
  for (let i = 0; i < 20_000; i++) periods.add(i, i % 2);
  expect(periods.all.length).toBeLessThanOrEqual(4096);
  expect(periods.all.at(-1)?.toUs).toBe(19_999);
});
