import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rowLines } from '../../../../src/hosts/cli/row-line.ts';

const columns = ['timeUs', 'limitBytes', 'with "quotes"'];
const line = rowLines('sample', columns);

test('what does not exist is null, and decimals end at the third', () => {
  expect(line(Float64Array.of(1.23456, Number.NaN, -0))).toBe(
    '{"type":"sample","timeUs":1.235,"limitBytes":null,"with \\"quotes\\"":0}',
  );
});

test('is what JSON makes of the same members', () => {
  fc.assert(
    fc.property(fc.float64Array({ minLength: 0, maxLength: 4 }), (row) => {
      const members = columns.map((column, index) => {
        const value = row[index] ?? Number.NaN;
        const rounded = Number.isInteger(value) ? value : Math.round(value * 1000) / 1000;
        return [column, rounded] as const;
      });
      expect(line(row)).toBe(JSON.stringify({ type: 'sample', ...Object.fromEntries(members) }));
    }),
  );
});
