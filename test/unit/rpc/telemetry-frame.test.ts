import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sampleColumns } from '../../../src/contract/telemetry.ts';
import { decodeTelemetryFrame, encodeTelemetryFrame } from '../../../src/rpc/telemetry-frame.ts';

const columns = sampleColumns.length;

describe('a telemetry frame', () => {
  test('has the layout that is documented', () => {
    const rows = Float64Array.from({ length: columns }, (_, index) => index + 0.5);
    const view = new DataView(encodeTelemetryFrame(0x0102_0304, 'samples', 7, [rows]));
    expect(view.getUint32(0, true)).toBe(0x0102_0304);
    expect(view.getUint16(4, true)).toBe(0);
    expect(view.getUint16(6, true)).toBe(columns);
    expect(view.getFloat64(8, true)).toBe(7);
    expect(view.getFloat64(16, true)).toBe(0.5);
    expect(view.byteLength).toBe(16 + columns * 8);
  });

  test('brings every value back, gaps and infinities included', () => {
    const anyRows = fc
      .integer({ min: 0, max: 20 })
      .chain((rows) => fc.array(fc.double(), { minLength: rows * columns, maxLength: rows * columns }));
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 0xffff_ffff }),
        fc.integer({ min: 0, max: 2 ** 40 }),
        fc.array(anyRows, { maxLength: 4 }),
        (id, skippedRows, parts) => {
          const arrays = parts.map((part) => Float64Array.from(part));
          const frame = decodeTelemetryFrame(encodeTelemetryFrame(id, 'samples', skippedRows, arrays));
          expect(frame?.subscriptionId).toBe(id);
          expect(frame?.batch.table).toBe('samples');
          expect(frame?.batch.skippedRows).toBe(skippedRows);
          expect([...(frame?.batch.values ?? [])]).toEqual(parts.flat());
        },
      ),
      { numRuns: 50 },
    );
  });

  test('any bytes are a frame or nothing, never an exception', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        const frame = decodeTelemetryFrame(bytes.slice().buffer);
        if (frame === undefined) return;
        expect(frame.batch.values.length % columns).toBeLessThan(columns);
        expect(frame.batch.skippedRows).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 500 },
    );
  });

  const valid = encodeTelemetryFrame(1, 'samples', 0, [new Float64Array(columns)]);
  const changed = (change: (view: DataView) => void): ArrayBuffer => {
    const copy = valid.slice(0);
    change(new DataView(copy));
    return copy;
  };
  test.each([
    ['shorter than its header', valid.slice(0, 8)],
    ['not a whole number of values', valid.slice(0, 20)],
    ['not a whole number of rows', valid.slice(0, 16 + 8)],
    ['of an unknown table', changed((view) => view.setUint16(4, 9, true))],
    ['of rows with other columns', changed((view) => view.setUint16(6, columns - 1, true))],
    ['with fewer than no skipped rows', changed((view) => view.setFloat64(8, -1, true))],
    ['with skipped rows that are no number', changed((view) => view.setFloat64(8, Number.NaN, true))],
  ])('%s: is none', (_name, buffer) => {
    expect(decodeTelemetryFrame(valid)).toBeDefined();
    expect(decodeTelemetryFrame(buffer)).toBeUndefined();
  });
});
