import { telemetryTables, type TelemetryTable } from '../contract/telemetry.ts';
import type { ColumnOf, RecordingReader } from '../recording/recording-reader.ts';

/** Text is built in pieces of this many rows: one string each row would be slow, one piece for all heavy. */
const rowsAtOnce = 1000;

/**
 * One table of a recording as CSV (RFC 4180: CRLF, a header line, commas). The header has the contract's column names,
 * which end in their unit (`timeUs` microseconds, `limitBytes`, `txBitsPerSecond`); a missing value is an empty field.
 */
export function exportCsv<T extends TelemetryTable>(reader: RecordingReader, table: T): string {
  const names = telemetryTables[table] as readonly ColumnOf<T>[];
  const { rowCount, values } = reader.columns(table, names);
  const columns = names.map((name) => values[name]);
  const pieces = [`${names.join(',')}\r\n`];
  for (let from = 0; from < rowCount; from += rowsAtOnce) {
    let piece = '';
    for (let row = from; row < Math.min(rowCount, from + rowsAtOnce); row++) {
      piece += `${columns.map((column) => field(column[row])).join(',')}\r\n`;
    }
    pieces.push(piece);
  }
  return pieces.join('');
}

/** The shortest decimal that reads back as the same number. */
function field(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '' : String(value);
}
