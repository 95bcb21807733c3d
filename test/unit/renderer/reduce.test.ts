import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PointBuffer } from '../../../renderer/charts/point-buffer.ts';
import { bucketLengthUs, reduce, reduceToMeans, type Reduction } from '../../../renderer/charts/reduce.ts';

/** Reduces with the right edge at 0 s, and answers points as [seconds, value]. */
function reduced(
  rows: readonly (readonly [number, number])[],
  options: Partial<Reduction> = {},
): [number, number][] {
  const out = new PointBuffer();
  reduce(
    Float64Array.from(rows, ([time]) => time),
    Float64Array.from(rows, ([, value]) => value),
    { from: 0, to: rows.length, edgeUs: 0, bucketUs: 1e6, gapUs: Number.POSITIVE_INFINITY, ...options },
    out,
  );
  return out.points.map(({ x, y }) => [x, y]);
}

describe('a bucket', () => {
  test('becomes its first, lowest, highest and last value, in their order', () => {
    const values = [5, 6, 9, 4, 1, 3, 7];
    const rows = values.map((value, i) => [i * 100_000, value] as const);
    expect(reduced(rows).map(([, value]) => value)).toEqual([5, 9, 1, 7]);
  });

  test('of a few values keeps each of them once', () => {
    const rows = [
      [0, 2],
      [1, 5],
    ] as const;
    expect(reduced(rows).map(([, value]) => value)).toEqual([2, 5]);
    expect(reduced([[0, 2]])).toEqual([[0, 2]]);
  });
});

const series = fc.array(fc.tuple(fc.integer({ min: 1, max: 300_000 }), fc.integer({ min: -99, max: 99 })), {
  maxLength: 300,
});

function rowsOf(steps: readonly (readonly [number, number])[]): [number, number][] {
  let time = 0;
  return steps.map(([step, value]) => [(time += step), value]);
}

test('no peak is lost, nothing is invented, at most four points a bucket', () => {
  fc.assert(
    fc.property(series, fc.integer({ min: 1, max: 3_000_000 }), (steps, bucketUs) => {
      const rows = rowsOf(steps);
      const points = reduced(rows, { bucketUs });
      const known = new Set(rows.map(([time, value]) => `${time / 1e6} ${value}`));
      expect(points.every(([x, y]) => known.has(`${x} ${y}`))).toBe(true);
      expect(points.map(([x]) => x)).toEqual(points.map(([x]) => x).sort((a, b) => a - b));
      const bucketOf = (us: number): number => Math.floor(us / bucketUs);
      for (const bucket of new Set(rows.map(([time]) => bucketOf(time)))) {
        const inRows = rows.filter(([time]) => bucketOf(time) === bucket).map(([, value]) => value);
        const inPoints = points.filter(([x]) => bucketOf(Math.round(x * 1e6)) === bucket).map(([, y]) => y);
        expect(inPoints.length).toBeLessThanOrEqual(4);
        expect(Math.max(...inPoints)).toBe(Math.max(...inRows));
        expect(Math.min(...inPoints)).toBe(Math.min(...inRows));
        expect(inPoints[0]).toBe(inRows[0]);
        expect(inPoints.at(-1)).toBe(inRows.at(-1));
      }
    }),
  );
});

test('moving the edge moves the line and leaves its shape', () => {
  fc.assert(
    fc.property(series, fc.integer({ min: 0, max: 1e8 }), (steps, edgeUs) => {
      const rows = rowsOf(steps);
      const still = reduced(rows).map(([, y]) => y);
      expect(reduced(rows, { edgeUs }).map(([, y]) => y)).toEqual(still);
    }),
  );
});

describe('gaps', () => {
  const nan = Number.NaN;

  test('a value that does not exist ends the line, several are one gap', () => {
    const rows = [
      [0, 1],
      [1e6, nan],
      [2e6, nan],
      [3e6, 4],
    ] as const;
    expect(reduced(rows)).toEqual([
      [0, 1],
      [0, nan],
      [3, 4],
    ]);
  });

  test('rows that are too far apart are not connected', () => {
    const rows = [
      [0, 1],
      [1e6, 2],
      [9e6, 3],
    ] as const;
    expect(reduced(rows, { gapUs: 2e6 })).toEqual([
      [0, 1],
      [1, 2],
      [1, nan],
      [9, 3],
    ]);
  });

  test('nothing before the first value', () => {
    expect(
      reduced([
        [0, nan],
        [1, 2],
      ]),
    ).toEqual([[1 / 1e6, 2]]);
    expect(reduced([[0, nan]])).toEqual([]);
  });
});

test('a stepped line goes level, then straight up', () => {
  const rows = [
    [0, 1],
    [1e6, 1],
    [2e6, 5],
  ] as const;
  expect(reduced(rows, { step: true })).toEqual([
    [0, 1],
    [1, 1],
    [2, 1],
    [2, 5],
  ]);
});

test('a buffer that is used again has nothing left of before', () => {
  const out = new PointBuffer();
  const times = Float64Array.of(0, 1e6, 2e6);
  const rest = { edgeUs: 0, bucketUs: 1, gapUs: Number.POSITIVE_INFINITY };
  reduce(times, Float64Array.of(1, 2, 3), { from: 0, to: 3, ...rest }, out);
  const { points } = out;
  reduce(times, Float64Array.of(7, 8, 9), { from: 1, to: 2, ...rest }, out);
  expect(out.points).toBe(points);
  expect(points).toEqual([{ x: 1, y: 8 }]);
});

test('buckets are about two pixels wide', () => {
  for (const width of [320, 641, 1000, 2560]) {
    for (const seconds of [10, 30, 60, 300, 900]) {
      const pixels = (bucketLengthUs(seconds * 1e6, width) / (seconds * 1e6)) * width;
      expect(pixels).toBeGreaterThanOrEqual(2);
      expect(pixels).toBeLessThan(4.1);
    }
  }
});

describe('means', () => {
  function means(
    rows: readonly (readonly [number, number])[],
    gapUs = Number.POSITIVE_INFINITY,
  ): [number, number][] {
    const out = new PointBuffer();
    reduceToMeans(
      Float64Array.from(rows, ([time]) => time),
      Float64Array.from(rows, ([, value]) => value),
      { from: 0, to: rows.length, edgeUs: 0, bucketUs: 1e6, gapUs },
      out,
    );
    return out.points.map(({ x, y }) => [x, y]);
  }

  test('of each bucket stand where its last row is', () => {
    const rows = [
      [100_000, 1],
      [500_000, 3],
      [1_200_000, 10],
      [3_900_000, 5],
      [3_950_000, 7],
    ] as const;
    expect(means(rows)).toEqual([
      [0.5, 2],
      [1.2, 10],
      [3.95, 6],
    ]);
  });

  test('are not carried over a gap', () => {
    const rows = [
      [100_000, 1],
      [200_000, Number.NaN],
      [300_000, 4],
      [900_000, 6],
    ] as const;
    expect(means(rows, 500_000)).toEqual([
      [0.2, 1],
      [0.2, Number.NaN],
      [0.3, 4],
      [0.3, Number.NaN],
      [0.9, 6],
    ]);
  });
});
