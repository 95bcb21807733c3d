import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ColumnRing } from '../../../renderer/store/column-ring.ts';

const unlimited = { maxRows: 1_000_000, maxSpanUs: Number.POSITIVE_INFINITY };

function ringOf(
  rows: readonly (readonly [number, number])[],
  limits = unlimited,
): ColumnRing<'timeUs' | 'value'> {
  const ring = new ColumnRing(['timeUs', 'value'], limits);
  // The columns stand in another order on the wire, behind one that is not kept.
  for (const [time, value] of rows) ring.append(Float64Array.of(-1, value, time), 0, [2, 1]);
  return ring;
}

function rowsOf(ring: ColumnRing<'timeUs' | 'value'>): [number, number][] {
  const rows: [number, number][] = [];
  for (let i = 0; i < ring.length; i++) rows.push([ring.times[i] ?? 0, ring.column('value')[i] ?? 0]);
  return rows;
}

test('rows come out in the order of their time, equal times in the order they came', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 200 }), (times) => {
      const rows = times.map((time, index) => [time, index] as const);
      const sorted = [...rows].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      expect(rowsOf(ringOf(rows))).toEqual(sorted);
    }),
  );
});

test('finds the first row at or after a time', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 60 }),
      fc.integer({ min: -1, max: 31 }),
      fc.boolean(),
      (times, wanted, strictly) => {
        const sorted = [...times].sort((a, b) => a - b);
        const ring = ringOf(sorted.map((time) => [time, 0]));
        const found = sorted.findIndex((time) => (strictly ? time > wanted : time >= wanted));
        expect(ring.indexAtOrAfter(wanted, strictly)).toBe(found < 0 ? sorted.length : found);
      },
    ),
  );
});

describe('when it is full', () => {
  test('by rows, the oldest quarter goes and the newest stay', () => {
    const rows = Array.from({ length: 1001 }, (_, i) => [i, i * 10] as const);
    const ring = ringOf(rows, { maxRows: 1000, maxSpanUs: Number.POSITIVE_INFINITY });
    expect(ring.length).toBe(751);
    expect(rowsOf(ring)).toEqual(rows.slice(250));
  });

  test('by time, what is older than the span goes', () => {
    const rows = Array.from({ length: 500 }, (_, i) => [i, i] as const);
    const ring = ringOf(rows, { maxRows: 1_000_000, maxSpanUs: 100 });
    expect(ring.lastUs).toBe(499);
    expect(ring.lastUs - ring.firstUs).toBeLessThanOrEqual(125);
    expect(ring.length).toBeGreaterThanOrEqual(100);
  });

  test('it never holds more than it may, and always the newest row', () => {
    fc.assert(
      fc.property(fc.integer({ min: 4, max: 40 }), fc.integer({ min: 1, max: 400 }), (maxRows, count) => {
        const ring = ringOf(
          Array.from({ length: count }, (_, i) => [i, i]),
          { maxRows, maxSpanUs: 1e9 },
        );
        expect(ring.length).toBeLessThanOrEqual(maxRows);
        expect(rowsOf(ring).at(-1)).toEqual([count - 1, count - 1]);
      }),
    );
  });
});

test('a row without a time is left out, an empty ring has no times', () => {
  const ring = ringOf([[Number.NaN, 1]]);
  expect(ring.length).toBe(0);
  expect(ring.firstUs).toBeNaN();
  expect(ring.lastUs).toBeNaN();
});
