import type { AppError } from '../base/errors.ts';
import type { Problem } from '../contract/problem.ts';
import { problemSchema } from '../contract/problem.ts';
import {
  type Fact,
  factSchema,
  type Session,
  type SessionEvent,
  sessionEventSchema,
  sessionSchema,
} from '../contract/session.ts';
import { type SessionSettings, sessionSettingsSchema } from '../contract/settings.ts';
import {
  type ProbeColumn,
  type SampleColumn,
  telemetryTables,
  type TelemetryTable,
} from '../contract/telemetry.ts';
import { type Decimated, Decimator } from './decimate.ts';
import { contentFailure } from './file-failure.ts';
import { noCounts, type RecordingCounts, type RecordingHost } from './recording-batch.ts';
import { checkIdentity } from './recording-identity.ts';
import { recordingSizeBytes, type StoredState } from './session-store.ts';
import { SqliteFile, type SqliteValue } from './sqlite-file.ts';

export type ColumnOf<T extends TelemetryTable> = T extends 'samples' ? SampleColumn : ProbeColumn;

/** Times from and to, both included, microseconds since the start of the session. */
export interface TimeRange {
  readonly fromUs: number;
  readonly toUs: number;
}

/** Some columns of a table, each as an array of the same length; NaN where there is no value. */
export interface Columns<C extends string> {
  readonly rowCount: number;
  readonly values: Readonly<Record<C, Float64Array>>;
}

/** A stretch of time under one set of conditions, as it was recorded. */
export interface RecordedPhase {
  readonly name: string;
  readonly bqlEnabled: boolean;
  readonly loadEnabled: boolean;
  /** 0: as fast as the queue takes it; absent without load. */
  readonly loadRateBitsPerSecond?: number;
  readonly startUs: number;
  /** Absent while it lasts. */
  readonly endUs?: number;
  /** What statistics leave out at its start; absent if nobody said. */
  readonly settleUs?: number;
}

/** A fault, and how long there was one. */
export interface RecordedProblem extends Problem {
  readonly raisedUs: number;
  /** Absent if it was not cured. */
  readonly withdrawnUs?: number;
}

export interface SettingsChange {
  readonly timeUs: number;
  readonly settings: SessionSettings;
}

/** What a recording says of itself. */
export interface RecordingMeta {
  readonly appVersion: string;
  readonly schemaVersion: number;
  readonly state: StoredState;
  /** Wall clock at time 0 and at the end, ISO 8601; without an end the writer has not got there. */
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly host: RecordingHost;
  /** What is missing because the disk did not keep up. */
  readonly dropped: Readonly<RecordingCounts>;
  /** Why it failed, if it did. */
  readonly reason?: string;
}

/**
 * Reads a recording, also one that is still being written: each call sees what is stored at that moment.
 * Every method throws AppError `file-failed` if the file is damaged.
 */
export class RecordingReader {
  readonly #file: SqliteFile;
  readonly #columns: Readonly<Record<TelemetryTable, ReadonlySet<string>>>;

  private constructor(file: SqliteFile) {
    this.#file = file;
    this.#columns = { samples: this.#storedColumns('samples'), probes: this.#storedColumns('probes') };
  }

  /** @throws AppError `file-failed`: no such file, not a recording, damaged, or written by a newer Queuescope */
  static open(path: string): RecordingReader {
    const file = SqliteFile.open(path, 'read');
    try {
      checkIdentity(file);
      return new RecordingReader(file);
    } catch (error) {
      file.close();
      throw error;
    }
  }

  get path(): string {
    return this.#file.path;
  }

  get sizeBytes(): number {
    return recordingSizeBytes(this.#file.path);
  }

  meta(): RecordingMeta {
    const app = this.#metaObject('app');
    const host = this.#metaObject('host');
    const dropped = this.#metaObject('dropped');
    const endedAt = this.metaValue('endedAt');
    const reason = this.metaValue('reason');
    const counts = noCounts();
    for (const key of ['samples', 'probes', 'entries'] as const) counts[key] = Number(dropped[key] ?? 0) || 0;
    return {
      appVersion: textOf(app['version']),
      schemaVersion: Number(this.#file.pragma('user_version')),
      state: storedState(this.metaValue('state')),
      startedAt: textOf(this.metaValue('startedAt')),
      ...(typeof endedAt === 'string' && { endedAt }),
      host: {
        platform: textOf(host['platform']),
        architecture: textOf(host['architecture']),
        kernel: textOf(host['kernel']),
        cpu: textOf(host['cpu']),
        cpuCount: Number(host['cpuCount'] ?? 0) || 0,
        node: textOf(host['node']),
        ...(typeof host['electron'] === 'string' && { electron: host['electron'] }),
      },
      dropped: counts,
      ...(typeof reason === 'string' && { reason }),
    };
  }

  /** The value kept under a key of `meta`; undefined without one. */
  metaValue(key: string): unknown {
    const value = this.#file.rows('SELECT value FROM meta WHERE key = ?', [key])[0]?.[0];
    if (typeof value !== 'string') return undefined;
    return this.#parseJson(value);
  }

  /** The session as it was at the start, or at the end (if it has not ended: as it was last known). */
  session(moment: 'start' | 'end'): Session {
    const parsed = sessionSchema.safeParse(
      this.metaValue(moment === 'start' ? 'sessionAtStart' : 'sessionAtEnd'),
    );
    if (!parsed.success) throw this.#notUnderstood('its session');
    return parsed.data;
  }

  /** From the first to the last row of either table; undefined while there is none. */
  timeRange(): TimeRange | undefined {
    const [row] = this.#file.rows(
      `SELECT min(first), max(last) FROM (
        SELECT min(timeUs) AS first, max(timeUs) AS last FROM samples
        UNION ALL SELECT min(timeUs), max(timeUs) FROM probes
      )`,
    );
    const [fromUs, toUs] = row ?? [];
    return isMeasured(fromUs) && isMeasured(toUs) ? { fromUs, toUs } : undefined;
  }

  /** The last time that anything was recorded at, rows, events and phases alike; 0 if nothing was. */
  lastTimeUs(): number {
    const [row] = this.#file.rows(
      `SELECT max(last) FROM (
        SELECT max(timeUs) AS last FROM samples UNION ALL SELECT max(timeUs) FROM probes
        UNION ALL SELECT max(timeUs) FROM events UNION ALL SELECT max(startUs) FROM phases
        UNION ALL SELECT max(endUs) FROM phases
      )`,
    );
    return isMeasured(row?.[0]) ? row[0] : 0;
  }

  rowCount(table: TelemetryTable, range?: TimeRange): number {
    const [where, values] = inRange(range);
    return Number(this.#file.rows(`SELECT count(*) FROM ${table} ${where}`, values)[0]?.[0] ?? 0);
  }

  /** Columns of a table in the order of time. A column that the file does not have is NaN throughout. */
  columns<T extends TelemetryTable, C extends ColumnOf<T>>(
    table: T,
    names: readonly C[],
    range?: TimeRange,
  ): Columns<C> {
    const rowCount = this.rowCount(table, range);
    const arrays = names.map(() => new Float64Array(rowCount).fill(Number.NaN));
    let row = 0;
    this.#forEachRow(table, names, range, (fields) => {
      // Rows that were stored since they were counted come with the next call.
      if (row < rowCount) for (let i = 0; i < arrays.length; i++) store(arrays[i], row, fields[i + 1]);
      row++;
    });
    const values = Object.fromEntries(names.map((name, i) => [name, arrays[i]])) as Record<C, Float64Array>;
    return { rowCount, values };
  }

  /** Columns of a table, each reduced to buckets of equal length; needs memory for the buckets only. */
  decimate<T extends TelemetryTable, C extends ColumnOf<T>>(
    table: T,
    names: readonly C[],
    range: TimeRange,
    buckets: number,
  ): Readonly<Record<C, Decimated>> {
    const decimators = names.map(() => new Decimator(range.fromUs, range.toUs, buckets));
    this.#forEachRow(table, names, range, (fields) => {
      const timeUs = numberOf(fields[0]);
      for (let i = 0; i < decimators.length; i++) decimators[i]?.add(timeUs, numberOf(fields[i + 1]));
    });
    return Object.fromEntries(names.map((name, i) => [name, decimators[i]?.result])) as Record<C, Decimated>;
  }

  /** In the order of their times. */
  events(): SessionEvent[] {
    return this.#file
      .rows('SELECT timeUs, kind, text FROM events ORDER BY timeUs, id')
      .map(([timeUs, kind, text]) => {
        const parsed = sessionEventSchema.safeParse({ timeUs, kind, text });
        if (!parsed.success) throw this.#notUnderstood('one of its events');
        return parsed.data;
      });
  }

  phases(): RecordedPhase[] {
    return this.#file
      .rows(
        'SELECT name, bqlEnabled, loadEnabled, loadRateBitsPerSecond, startUs, endUs, settleUs FROM phases ORDER BY startUs, id',
      )
      .map(([name, bqlEnabled, loadEnabled, rate, startUs, endUs, settleUs]) => ({
        name: textOf(name),
        bqlEnabled: bqlEnabled === 1,
        loadEnabled: loadEnabled === 1,
        ...(isMeasured(rate) && { loadRateBitsPerSecond: rate }),
        startUs: numberOf(startUs),
        ...(isMeasured(endUs) && { endUs }),
        ...(isMeasured(settleUs) && { settleUs }),
      }));
  }

  /** The settings at the start, and after each change. */
  settingsChanges(): SettingsChange[] {
    return this.#file
      .rows('SELECT timeUs, settings FROM settings_changes ORDER BY timeUs, id')
      .map(([timeUs, settings]) => {
        const parsed = sessionSettingsSchema.safeParse(this.#parseJson(textOf(settings)));
        if (!parsed.success) throw this.#notUnderstood('its settings');
        return { timeUs: numberOf(timeUs), settings: parsed.data };
      });
  }

  facts(): Fact[] {
    return this.#file
      .rows('SELECT category, name, value FROM facts ORDER BY id')
      .map(([group, name, value]) => {
        const parsed = factSchema.safeParse({ group, name, value });
        if (!parsed.success) throw this.#notUnderstood('one of its facts');
        return parsed.data;
      });
  }

  /** All problems that there were, cured ones included. */
  problems(): RecordedProblem[] {
    return this.#file
      .rows('SELECT id, severity, message, remedy, raisedUs, withdrawnUs FROM problems ORDER BY raisedUs, id')
      .map(([id, severity, message, remedy, raisedUs, withdrawnUs]) => {
        const parsed = problemSchema.safeParse({ id, severity, message, ...(remedy !== null && { remedy }) });
        if (!parsed.success) throw this.#notUnderstood('one of its problems');
        return {
          ...parsed.data,
          raisedUs: numberOf(raisedUs),
          ...(isMeasured(withdrawnUs) && { withdrawnUs }),
        };
      });
  }

  /** Lets go of the file; calling it again does nothing. */
  close(): void {
    this.#file.close();
  }

  #forEachRow(
    table: TelemetryTable,
    names: readonly string[],
    range: TimeRange | undefined,
    take: (fields: readonly SqliteValue[]) => void,
  ): void {
    const stored = this.#columns[table];
    const list = ['timeUs', ...names.map((name) => (stored.has(name) ? name : 'NULL'))].join(', ');
    const [where, values] = inRange(range);
    // The time is the key, so this is the order the rows lie in.
    this.#file.forEachRow(`SELECT ${list} FROM ${table} ${where} ORDER BY timeUs`, values, take);
  }

  /** Of the contract's columns, those that the file has. */
  #storedColumns(table: TelemetryTable): ReadonlySet<string> {
    const stored = new Set(
      this.#file.rows(`SELECT name FROM pragma_table_info(?)`, [table]).map(([name]) => name),
    );
    if (!stored.has('timeUs')) throw this.#notUnderstood(`its table ${table}`);
    return new Set(telemetryTables[table].filter((column) => stored.has(column)));
  }

  #metaObject(key: string): Readonly<Record<string, unknown>> {
    const value = this.metaValue(key);
    return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
  }

  #parseJson(json: string): unknown {
    try {
      return JSON.parse(json);
    } catch {
      throw this.#notUnderstood('a value in it');
    }
  }

  #notUnderstood(what: string): AppError {
    return contentFailure(
      this.#file.path,
      `${what} cannot be understood`,
      'The numbers are still there for any SQLite tool; try the Queuescope that made the file.',
    );
  }
}

function storedState(value: unknown): StoredState {
  return value === 'closed' || value === 'failed' || value === 'recovered' ? value : 'recording';
}

function inRange(range: TimeRange | undefined): readonly [where: string, values: readonly number[]] {
  return range === undefined ? ['', []] : ['WHERE timeUs BETWEEN ? AND ?', [range.fromUs, range.toUs]];
}

/** Infinity is in no recording that we have written, and no axis could show it. */
function isMeasured(value: SqliteValue | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function numberOf(value: SqliteValue | undefined): number {
  return isMeasured(value) ? value : Number.NaN;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function store(array: Float64Array | undefined, row: number, value: SqliteValue | undefined): void {
  if (array !== undefined) array[row] = numberOf(value);
}
