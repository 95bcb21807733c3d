import { probeColumns, sampleColumns } from '../contract/telemetry.ts';

/** `PRAGMA application_id` of a recording: "QSCP". */
export const applicationId = 0x51534350;

/**
 * `PRAGMA user_version`: goes up with every change that an older Queuescope would misread. New tables, and new columns
 * of `samples` and `probes`, are no such change: a reader takes the columns that it knows and a missing one is NULL.
 */
export const schemaVersion = 1;

/** File name extension of recordings, with its dot. */
export const recordingExtension = '.qscope';

/** A time that is the key may not be NULL; everything else that is measured may. */
function telemetryTable(name: string, columns: readonly string[], key: readonly string[]): string {
  const definitions = columns.map((column) => `${column} REAL${key.includes(column) ? ' NOT NULL' : ''}`);
  return `CREATE TABLE recording.${name} (\n  ${definitions.join(',\n  ')},\n  PRIMARY KEY (${key.join(', ')})\n) WITHOUT ROWID;`;
}

/** The tables of a recording (docs/session-format.md says what they mean). */
export const createTablesSql: string = [
  `CREATE TABLE recording.meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;`,
  telemetryTable('samples', sampleColumns, ['timeUs']),
  telemetryTable('probes', probeColumns, ['timeUs', 'sequence']),
  `CREATE TABLE recording.events (
  id INTEGER PRIMARY KEY,
  timeUs REAL NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL
);`,
  `CREATE TABLE recording.phases (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  bqlEnabled INTEGER NOT NULL,
  loadEnabled INTEGER NOT NULL,
  loadRateBitsPerSecond REAL,
  startUs REAL NOT NULL,
  endUs REAL,
  settleUs REAL
);`,
  `CREATE TABLE recording.program_lines (
  id INTEGER PRIMARY KEY,
  timeUs REAL NOT NULL,
  program TEXT NOT NULL,
  phase TEXT NOT NULL,
  line TEXT NOT NULL
);`,
  `CREATE TABLE recording.settings_changes (
  id INTEGER PRIMARY KEY,
  timeUs REAL NOT NULL,
  settings TEXT NOT NULL
);`,
  `CREATE TABLE recording.facts (
  id INTEGER PRIMARY KEY,
  category TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL
);`,
  `CREATE TABLE recording.problems (
  id TEXT NOT NULL,
  severity TEXT NOT NULL,
  message TEXT NOT NULL,
  remedy TEXT,
  raisedUs REAL NOT NULL,
  withdrawnUs REAL,
  PRIMARY KEY (id, raisedUs)
) WITHOUT ROWID;`,
].join('\n');

/** The names of those tables. */
export const tableNames: ReadonlySet<string> = new Set(
  [...createTablesSql.matchAll(/CREATE TABLE recording\.(\w+)/g)].flatMap(([, name]) => name ?? []),
);
