import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { probeColumns } from '../../../src/contract/telemetry.ts';
import { TelemetryQueue } from '../../../src/rpc/outgoing-queue.ts';
import { decodeTelemetryFrame } from '../../../src/rpc/telemetry-frame.ts';

const columns = probeColumns.length;

/** Rows `from` … `from + count - 1`, the row's number in every column. */
function rows(from: number, count: number): Float64Array {
  return Float64Array.from({ length: count * columns }, (_, index) => from + Math.floor(index / columns));
}

describe('telemetry that waits', () => {
  test('every row is either sent, in order and once, or counted as skipped just before the next one', () => {
    const step = fc.oneof(
      fc.record({ push: fc.integer({ min: 0, max: 12 }), skippedByEngine: fc.integer({ min: 0, max: 3 }) }),
      fc.constant('take' as const),
    );
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60 }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 9 }),
        (steps, maxRows, maxRowsPerMessage) => {
          const queue = new TelemetryQueue(5, 'probes', maxRows, maxRowsPerMessage);
          let produced = 0;
          let expected = 0;
          const take = (): void => {
            const frame = decodeTelemetryFrame(queue.take());
            expect(frame).toBeDefined();
            if (frame === undefined) return;
            expected += frame.batch.skippedRows;
            const { values } = frame.batch;
            expect(values.length / columns).toBeLessThanOrEqual(maxRowsPerMessage);
            for (let offset = 0; offset < values.length; offset += columns) {
              expect(values[offset]).toBe(expected);
              expect(values[offset + columns - 1]).toBe(expected);
              expected++;
            }
          };
          for (const action of steps) {
            if (action === 'take') {
              if (queue.waiting) take();
              continue;
            }
            produced += action.skippedByEngine;
            queue.push({
              table: 'probes',
              values: rows(produced, action.push),
              skippedRows: action.skippedByEngine,
            });
            produced += action.push;
            expect(queue.heldRows).toBeLessThanOrEqual(maxRows);
          }
          while (queue.waiting) take();
          expect(queue.heldRows).toBe(0);
          expect(expected).toBe(produced);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('does not look at an array again that the engine has handed over', () => {
    const queue = new TelemetryQueue(5, 'probes', 10, 10);
    const values = rows(0, 1);
    queue.push({ table: 'probes', values, skippedRows: 0 });
    values.fill(99);
    expect(decodeTelemetryFrame(queue.take())?.batch.values[0]).toBe(0);
  });
});
