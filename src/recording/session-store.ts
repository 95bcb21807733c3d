import { rmSync, statSync } from 'node:fs';
import type { Problem } from '../contract/problem.ts';
import type { Fact, Session, SessionEvent } from '../contract/session.ts';
import type { SessionSettings } from '../contract/settings.ts';
import { telemetryTables, type TelemetryTable } from '../contract/telemetry.ts';
import { contractVersion } from '../contract/version.ts';
import { fileFailure } from './file-failure.ts';
import type { PhaseStart, ProgramLine } from '../engine/session-recorder.ts';
import type { RecordingBatch, RecordingCounts, RecordingHeader } from './recording-batch.ts';
import { applicationId, createTablesSql, schemaVersion } from './session-schema.ts';
import { codeOfFailure, SqliteFile } from './sqlite-file.ts';

/**
 * - `recording`: being written, or its writer was killed and nobody has repaired it yet
 * - `closed`: ended in an orderly way; `failed`: ended because of an error that is told in `meta`
 * - `recovered`: its writer was killed; the end was found from the last row
 */
export type StoredState = 'recording' | 'closed' | 'failed' | 'recovered';

/** How a recording ended, for its `meta` table. */
export interface RecordingEnd {
  readonly state: Exclude<StoredState, 'recording'>;
  /** What could not be recorded because the disk did not keep up. */
  readonly dropped: RecordingCounts;
  /** Why it failed. */
  readonly reason?: string;
}

/**
 * The write side of a recording: a `.qscope` file, which is an SQLite database with the schema of
 * docs/session-format.md. While it is open it is in WAL mode, so any program may read along; once it is closed it is
 * one plain file. What a method has written when it returns survives the death of the process.
 *
 * Synchronous; every method throws an AppError `file-failed` when the disk does not do its part.
 */
export class SessionStore {
  readonly #file: SqliteFile;
  readonly #insertRow: Readonly<Record<TelemetryTable, string>>;
  /** One array for all rows: a statement takes its values before it returns. */
  readonly #row: Record<TelemetryTable, number[]>;
  /** Problems that are not cured, by id: since when. */
  readonly #raisedUs = new Map<string, number>();
  #lastTimeUs = 0;
  #refusedRows = 0;

  private constructor(file: SqliteFile) {
    this.#file = file;
    this.#insertRow = { samples: insertSql('samples'), probes: insertSql('probes') };
    this.#row = {
      samples: telemetryTables.samples.map(() => 0),
      probes: telemetryTables.probes.map(() => 0),
    };
  }

  /** Makes a new recording. A file of that name must not exist; one that could not be set up is removed again. */
  static create(path: string, header: RecordingHeader): SessionStore {
    try {
      return SessionStore.#setUp(path, header, 'WAL');
    } catch (error) {
      // Some file systems (ntfs3, some network drives) cannot share memory between processes: SQLite finds that out
      // with the first write in WAL mode. A rollback journal needs none; readers then wait for the writer.
      if (!/^SQLITE_(?:IOERR(?!_WRITE)|CANTOPEN|READONLY)/.test(codeOfFailure(error))) throw error;
      return SessionStore.#setUp(path, header, 'TRUNCATE');
    }
  }

  static #setUp(path: string, header: RecordingHeader, journalMode: 'WAL' | 'TRUNCATE'): SessionStore {
    const file = SqliteFile.create(path);
    try {
      file.exec(
        `PRAGMA recording.application_id=${applicationId}; PRAGMA recording.user_version=${schemaVersion};`,
      );
      file.pragma(`journal_mode=${journalMode}`);
      file.exec('PRAGMA recording.synchronous=NORMAL;');
      const store = new SessionStore(file);
      file.transaction(() => {
        file.exec(createTablesSql);
        store.#writeHeader(header);
      });
      return store;
    } catch (error) {
      file.close();
      removeFiles(path);
      throw fileFailure('created', path, error);
    }
  }

  get path(): string {
    return this.#file.path;
  }

  /** The newest time of any row or entry written, microseconds since the start of the session. */
  get lastTimeUs(): number {
    return this.#lastTimeUs;
  }

  /** Rows that were not stored because their time was missing or taken already; a fault of who wrote them. */
  get refusedRows(): number {
    return this.#refusedRows;
  }

  /** Stores all of a batch or, if that fails, none of it. */
  writeBatch(batch: RecordingBatch): void {
    this.#file.transaction(() => {
      this.#writeRows('samples', batch.samples);
      this.#writeRows('probes', batch.probes);
      for (const entry of batch.entries) {
        switch (entry.type) {
          case 'event':
            this.#writeEvent(entry.event);
            break;
          case 'session':
            this.#writeSession(entry.session, entry.timeUs);
            break;
          case 'settings':
            this.#writeSettings(entry.timeUs, entry.settings);
            break;
          case 'phase-start':
            this.#startPhase(entry.phase);
            break;
          case 'phase-end':
            this.#endPhase(entry.timeUs);
            break;
          case 'program-line':
            this.#writeProgramLine(entry.line);
            break;
          case 'meta':
            this.#writeMeta(entry.key, entry.value);
            break;
        }
      }
    });
  }

  /** Forces what was written so far onto the disk itself, so that it survives a loss of power as well. */
  checkpoint(): void {
    this.#file.rows('PRAGMA recording.wal_checkpoint(PASSIVE)');
  }

  /** Bytes on disk, the WAL included. */
  sizeBytes(): number {
    return recordingSizeBytes(this.path);
  }

  /** Ends the recording. The file is closed in any case, also when writing its end fails. */
  close(end: RecordingEnd): void {
    try {
      this.#file.transaction(() => {
        this.#endPhase(this.#lastTimeUs);
        this.#writeMeta('state', end.state);
        this.#writeMeta('endedAt', new Date().toISOString());
        this.#writeMeta('durationUs', this.#lastTimeUs);
        this.#writeMeta('dropped', end.dropped);
        this.#writeMeta('refusedRows', this.#refusedRows);
        if (end.reason !== undefined) this.#writeMeta('reason', end.reason);
      });
      this.#file.toSingleFile();
    } finally {
      this.#file.close();
    }
  }

  /** Lets go of the file as it is, for when nothing more can be written to it. */
  abandon(): void {
    this.#file.close();
  }

  #writeHeader(header: RecordingHeader): void {
    this.#writeMeta('app', { name: 'Queuescope', version: header.appVersion });
    this.#writeMeta('schemaVersion', schemaVersion);
    this.#writeMeta('contractVersion', contractVersion);
    this.#writeMeta('host', header.host);
    this.#writeMeta('startedAt', header.session.startedAt);
    this.#writeMeta('state', 'recording');
    this.#writeMeta('sessionAtStart', header.session);
    this.#writeSession(header.session, 0);
    this.#writeSettings(0, header.session.settings);
  }

  #writeProgramLine({ timeUs, program, phase, line }: ProgramLine): void {
    this.#lastTimeUs = Math.max(this.#lastTimeUs, timeUs);
    this.#file.run('INSERT INTO program_lines (timeUs, program, phase, line) VALUES (?, ?, ?, ?)', [
      timeUs,
      program,
      phase,
      line,
    ]);
  }

  #writeMeta(key: string, value: unknown): void {
    this.#file.run('INSERT OR REPLACE INTO meta VALUES (?, ?)', [key, JSON.stringify(value) ?? 'null']);
  }

  /** A row whose time is missing, or taken already, is not stored: its key would not be one. */
  #writeRows(table: TelemetryTable, values: Float64Array): void {
    const row = this.#row[table];
    const sql = this.#insertRow[table];
    for (let offset = 0; offset + row.length <= values.length; offset += row.length) {
      // SQLite has no NaN: it stores NULL, which is what a missing value is to be.
      for (let column = 0; column < row.length; column++) row[column] = values[offset + column] ?? Number.NaN;
      if (this.#file.run(sql, row) === 1) this.#passTime(row[0] ?? 0);
      else this.#refusedRows++;
    }
  }

  #writeEvent(event: SessionEvent): void {
    this.#file.run('INSERT INTO events (timeUs, kind, text) VALUES (?, ?, ?)', [
      event.timeUs,
      event.kind,
      event.text,
    ]);
    this.#passTime(event.timeUs);
  }

  #writeSession(session: Session, timeUs: number): void {
    this.#writeMeta('sessionAtEnd', session);
    this.#writeFacts(session.facts);
    this.#writeProblems([...session.problems, ...session.device.problems], timeUs);
    this.#passTime(timeUs);
  }

  #writeFacts(facts: readonly Fact[]): void {
    this.#file.run('DELETE FROM facts');
    for (const fact of facts) {
      this.#file.run('INSERT INTO facts (category, name, value) VALUES (?, ?, ?)', [
        fact.group,
        fact.name,
        fact.value,
      ]);
    }
  }

  #writeProblems(problems: readonly Problem[], timeUs: number): void {
    const present = new Map(problems.map((problem) => [problem.id, problem]));
    for (const [id, raisedUs] of this.#raisedUs) {
      if (present.has(id)) continue;
      this.#file.run('UPDATE problems SET withdrawnUs = ? WHERE id = ? AND raisedUs = ?', [
        timeUs,
        id,
        raisedUs,
      ]);
      this.#raisedUs.delete(id);
    }
    for (const problem of present.values()) {
      const raisedUs = this.#raisedUs.get(problem.id) ?? timeUs;
      this.#raisedUs.set(problem.id, raisedUs);
      this.#file.run('INSERT OR REPLACE INTO problems VALUES (?, ?, ?, ?, ?, NULL)', [
        problem.id,
        problem.severity,
        problem.message,
        problem.remedy ?? null,
        raisedUs,
      ]);
    }
  }

  #writeSettings(timeUs: number, settings: SessionSettings): void {
    const text = JSON.stringify(settings);
    this.#file.run('INSERT INTO settings_changes (timeUs, settings) VALUES (?, ?)', [timeUs, text]);
    this.#passTime(timeUs);
  }

  #startPhase(phase: PhaseStart): void {
    this.#endPhase(phase.startUs);
    this.#file.run(
      'INSERT INTO phases (name, bqlEnabled, loadEnabled, loadRateBitsPerSecond, startUs, settleUs) VALUES (?, ?, ?, ?, ?, ?)',
      [
        phase.name,
        phase.bqlEnabled ? 1 : 0,
        phase.loadEnabled ? 1 : 0,
        phase.loadEnabled ? phase.loadRateBitsPerSecond : null,
        phase.startUs,
        phase.settleUs ?? null,
      ],
    );
    this.#passTime(phase.startUs);
  }

  #endPhase(timeUs: number): void {
    this.#file.run('UPDATE phases SET endUs = max(startUs, ?) WHERE endUs IS NULL', [timeUs]);
    this.#passTime(timeUs);
  }

  #passTime(timeUs: number): void {
    if (timeUs > this.#lastTimeUs) this.#lastTimeUs = timeUs;
  }
}

function insertSql(table: TelemetryTable): string {
  const columns = telemetryTables[table];
  return `INSERT OR IGNORE INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
}

/** Bytes of a recording on disk, the WAL included; 0 for what cannot be looked at. */
export function recordingSizeBytes(path: string): number {
  let bytes = 0;
  for (const suffix of ['', '-wal']) {
    bytes += statSync(`${path}${suffix}`, { throwIfNoEntry: false })?.size ?? 0;
  }
  return bytes;
}

/** Removes a recording and what SQLite put beside it, as far as that can be done. */
function removeFiles(path: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) {
    try {
      rmSync(`${path}${suffix}`, { force: true });
    } catch {
      // It stays. Why the recording could not be made is what the user needs to hear.
    }
  }
}
