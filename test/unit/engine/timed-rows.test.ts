import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { TimedRows } from '../../../src/engine/timed-rows.ts';

function rowsOf(...timesUs: readonly number[]): TimedRows {
  const rows = new TimedRows();
  for (const timeUs of timesUs) rows.add(Float64Array.of(timeUs, 0));
  return rows;
}

const timesOf = (rows: readonly Float64Array[]): number[] => rows.map((row) => row[0] ?? Number.NaN);

describe('a stretch', () => {
  test('from a time on, up to before another; or after it, up to and with the other', () => {
    const rows = rowsOf(10, 20, 30, 40);
    expect(timesOf(rows.from(20, 40))).toEqual([20, 30]);
    expect(timesOf(rows.after(20, 40))).toEqual([30, 40]);
  });

  test('is empty where there is nothing, or where it ends before it begins', () => {
    const rows = rowsOf(10, 20);
    expect([rows.from(11, 20), rows.from(30, 40), rows.after(20, 10)]).toEqual([[], [], []]);
    expect(new TimedRows().from(0, 100)).toEqual([]);
  });
});

test('rows that come late stand at their time, behind those of the same time', () => {
  const rows = new TimedRows();
  for (const [timeUs, value] of [
    [10, 1],
    [30, 2],
    [20, 3],
    [30, 4],
    [10, 5],
  ] as const) {
    rows.add(Float64Array.of(timeUs, value));
  }
  expect(rows.from(0, 100).map((row) => row[1])).toEqual([1, 5, 3, 2, 4]);
});

test('a row is kept as it was when it was added', () => {
  const rows = new TimedRows();
  const row = Float64Array.of(1, 2);
  rows.add(row);
  row.fill(9);
  expect(rows.from(0, 2)[0]).toEqual(Float64Array.of(1, 2));
});

test('whatever the order, a stretch is what a look at every row would find', () => {
  const random = new Random(3);
  const times = Array.from({ length: 300 }, () => random.integer(0, 100));
  const rows = rowsOf(...times);
  const sorted = times.toSorted((a, b) => a - b);
  for (let i = 0; i < 200; i++) {
    const [from, to] = [random.integer(-5, 105), random.integer(-5, 105)];
    expect(timesOf(rows.from(from, to))).toEqual(sorted.filter((time) => time >= from && time < to));
    expect(timesOf(rows.after(from, to))).toEqual(sorted.filter((time) => time > from && time <= to));
  }
});

test('hours of rows stand in a few pieces of memory, and are found in each of them', () => {
  const rows = new TimedRows();
  const count = 20_000;
  for (let i = 0; i < count; i++) rows.add(Float64Array.of(i, -i));
  const pieces = new Set(rows.from(0, count).map((row) => row.buffer));
  expect(pieces.size).toBeLessThanOrEqual(20);
  expect(rows.from(1023, 1026).map((row) => [...row])).toEqual([
    [1023, -1023],
    [1024, -1024],
    [1025, -1025],
  ]);
  rows.add(Float64Array.of(1023.5, 7));
  expect(rows.from(1023, 1025).map((row) => row[1])).toEqual([-1023, 7, -1024]);
  expect(timesOf(rows.after(count - 3, count))).toEqual([count - 2, count - 1]);
});
