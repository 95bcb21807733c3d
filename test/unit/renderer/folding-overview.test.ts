import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FoldingOverview } from '../../../renderer/store/folding-overview.ts';

test('however long a session is, each cell has the largest value of its time', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: -9, max: 9 })), {
        minLength: 1,
      }),
      (points) => {
        const overview = new FoldingOverview(16, 10);
        for (const [time, value] of points) overview.add(time, value);
        const newest = Math.max(...points.map(([time]) => time));
        expect(overview.used).toBe(Math.floor(newest / overview.cellUs) + 1);
        expect(overview.used).toBeLessThanOrEqual(16);
        for (let cell = 0; cell < 16; cell++) {
          const inside = points
            .filter(([time]) => Math.floor(time / overview.cellUs) === cell)
            .map(([, v]) => v);
          expect(overview.maxAt(cell)).toBe(inside.length === 0 ? Number.NaN : Math.max(...inside));
        }
      },
    ),
  );
});

test('a value that does not exist only says how long the session was', () => {
  const overview = new FoldingOverview(16, 10);
  overview.add(55, Number.NaN);
  overview.add(-5, 3);
  expect(overview.used).toBe(6);
  expect(overview.maxAt(5)).toBeNaN();
  expect(overview.maxAt(0)).toBeNaN();
});
