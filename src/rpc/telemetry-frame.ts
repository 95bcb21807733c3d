import type { TelemetryBatch, TelemetryTable } from '../contract/telemetry.ts';
import { telemetryTables } from '../contract/telemetry.ts';

/**
 * A telemetry batch as one binary message. Little-endian, which every machine this runs on is, so that the rows are
 * read in place:
 *
 * | byte | type    | what                                            |
 * |------|---------|-------------------------------------------------|
 * | 0    | uint32  | subscription id                                 |
 * | 4    | uint16  | table: its position in {@link tableCodes}       |
 * | 6    | uint16  | columns of a row                                |
 * | 8    | float64 | rows that were skipped before these             |
 * | 16   | float64 | rows, one after the other (always 8-aligned)    |
 */
const headerBytes = 16;

const tableCodes: readonly TelemetryTable[] = ['samples', 'probes'];

/** The parts of a batch that one message can be put together from. */
export interface TelemetryFrame {
  readonly subscriptionId: number;
  readonly batch: TelemetryBatch;
}

/** @param parts their rows follow one another in the message */
export function encodeTelemetryFrame(
  subscriptionId: number,
  table: TelemetryTable,
  skippedRows: number,
  parts: readonly Float64Array[],
): ArrayBuffer {
  let length = 0;
  for (const part of parts) length += part.length;
  const buffer = new ArrayBuffer(headerBytes + length * 8);
  const header = new DataView(buffer);
  header.setUint32(0, subscriptionId, true);
  header.setUint16(4, tableCodes.indexOf(table), true);
  header.setUint16(6, telemetryTables[table].length, true);
  header.setFloat64(8, skippedRows, true);
  const values = new Float64Array(buffer, headerBytes);
  let offset = 0;
  for (const part of parts) {
    values.set(part, offset);
    offset += part.length;
  }
  return buffer;
}

/** Reads a message in place; undefined if it is none. Never throws. */
export function decodeTelemetryFrame(buffer: ArrayBuffer): TelemetryFrame | undefined {
  if (buffer.byteLength < headerBytes || buffer.byteLength % 8 !== 0) return undefined;
  const header = new DataView(buffer);
  const table = tableCodes[header.getUint16(4, true)];
  if (table === undefined) return undefined;
  const columns = header.getUint16(6, true);
  const values = new Float64Array(buffer, headerBytes);
  if (columns !== telemetryTables[table].length || values.length % columns !== 0) return undefined;
  const skippedRows = header.getFloat64(8, true);
  if (!Number.isSafeInteger(skippedRows) || skippedRows < 0) return undefined;
  return { subscriptionId: header.getUint32(0, true), batch: { table, values, skippedRows } };
}
