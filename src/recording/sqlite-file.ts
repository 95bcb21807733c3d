import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import Database from 'libsql';
import { invariant } from '../base/errors.ts';
import { codeOf, fileFailure } from './file-failure.ts';

/** What SQLite stores in a field, as far as recordings use it. */
export type SqliteValue = number | string | null;

/** How a file is opened: `read` never changes it, not even to roll back what a killed process left. */
export type SqliteAccess = 'read' | 'write';

interface Statement {
  run(values: readonly SqliteValue[]): { readonly changes: number };
  all(values: readonly SqliteValue[]): unknown[];
  iterate(values: readonly SqliteValue[]): Iterable<unknown>;
}

/**
 * One SQLite file, through libsql.
 *
 * The connection itself is to an empty database in memory, and the file is attached to it as `recording`: libsql keeps
 * a connection's files open until its prepared statements have been collected as garbage, whereas DETACH lets go of
 * them at once. It also reports why a file cannot be opened, which opening it directly does not.
 *
 * All methods are synchronous and throw {@link AppError} `file-failed`.
 */
export class SqliteFile {
  readonly path: string;
  readonly #database: Database.Database;
  readonly #statements = new Map<string, Statement>();
  #open = true;

  private constructor(path: string, parameters: string, busyTimeoutMs: number) {
    this.path = path;
    this.#database = new Database(':memory:', { timeout: busyTimeoutMs });
    try {
      // Files come from other people too: what their schema says is data, and not to be run.
      this.#database.exec('PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;');
      this.run('ATTACH ? AS recording', [`${pathToFileURL(path).href}?${parameters}`]);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** Makes a new, empty file. A file that exists is never touched: that is a failure. */
  static create(path: string, busyTimeoutMs = 2000): SqliteFile {
    try {
      // By hand and exclusively: SQLite would silently open a file that exists, and its errors say less.
      closeSync(openSync(path, 'wx'));
    } catch (error) {
      throw fileFailure('created', path, error);
    }
    try {
      return new SqliteFile(path, 'mode=rw', busyTimeoutMs);
    } catch (error) {
      rmSync(path, { force: true });
      throw fileFailure('created', path, error);
    }
  }

  /** Opens a file that exists, also while another process writes to it. */
  static open(path: string, access: SqliteAccess, busyTimeoutMs = 2000): SqliteFile {
    if (!existsSync(path)) throw fileFailure('opened', path, { code: 'ENOENT' });
    let file: SqliteFile | undefined;
    try {
      file = new SqliteFile(path, access === 'read' ? 'mode=ro' : 'mode=rw', busyTimeoutMs);
      file.rows('SELECT count(*) FROM recording.sqlite_schema');
      return file;
    } catch (error) {
      file?.close();
      // A WAL file in a folder that cannot be written has no place for its index. If no WAL lies beside it,
      // everything is in the file itself.
      if (access === 'read' && !existsSync(`${path}-wal`) && isAccessCode(codeOfFailure(error))) {
        return new SqliteFile(path, 'mode=ro&immutable=1', busyTimeoutMs);
      }
      throw error;
    }
  }

  /** Runs statements that need no values and give no rows. */
  exec(sql: string): void {
    try {
      this.#database.exec(sql);
    } catch (error) {
      throw fileFailure('written', this.path, error);
    }
  }

  /** Runs one statement; the answer is the number of rows that it changed. */
  run(sql: string, values: readonly SqliteValue[] = []): number {
    try {
      return this.#statement(sql).run(values).changes;
    } catch (error) {
      throw fileFailure(sql.startsWith('ATTACH') ? 'opened' : 'written', this.path, error);
    }
  }

  /** All rows of a query, each as an array of its fields. */
  rows(sql: string, values: readonly SqliteValue[] = []): SqliteValue[][] {
    try {
      return this.#statement(sql).all(values) as SqliteValue[][];
    } catch (error) {
      throw fileFailure('read', this.path, error);
    }
  }

  /** Calls `take` with each row of a query, without holding all of them. `take` must not throw. */
  forEachRow(sql: string, values: readonly SqliteValue[], take: (row: readonly SqliteValue[]) => void): void {
    try {
      // To the end in any case: a query that is left half-read would keep the file attached.
      for (const row of this.#statement(sql).iterate(values)) take(row as readonly SqliteValue[]);
    } catch (error) {
      throw fileFailure('read', this.path, error);
    }
  }

  /** The value of a pragma of the file: `pragma('user_version')`, `pragma('journal_mode=WAL')`. */
  pragma(text: string): SqliteValue {
    return this.rows(`PRAGMA recording.${text}`)[0]?.[0] ?? null;
  }

  /** Everything that `write` does is stored together, or none of it. */
  transaction(write: () => void): void {
    this.exec('BEGIN IMMEDIATE');
    try {
      write();
      this.exec('COMMIT');
    } catch (error) {
      // After a full disk SQLite has rolled back by itself already.
      if (this.#database.inTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }

  /**
   * Brings everything into the one file and removes the WAL beside it. Answers false if another connection has the
   * file open: then the WAL stays, empty, until that one closes.
   */
  toSingleFile(): boolean {
    this.rows('PRAGMA recording.wal_checkpoint(TRUNCATE)');
    try {
      return this.pragma('journal_mode=DELETE') === 'delete';
    } catch (error) {
      if (codeOfFailure(error).startsWith('SQLITE_BUSY')) return false;
      throw error;
    }
  }

  /** Lets go of the file; calling it again does nothing. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    try {
      this.#database.exec('DETACH recording');
    } catch {
      // Not attached: opening failed.
    }
    this.#database.close();
  }

  #statement(sql: string): Statement {
    invariant(this.#open, `${this.path} is closed`);
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    // Rows as arrays; only a statement that gives rows may be asked for that.
    const made = (statement.reader ? statement.raw() : statement) as unknown as Statement;
    this.#statements.set(sql, made);
    return made;
  }
}

/** The SQLite or Node code behind a failure that this file threw. */
export function codeOfFailure(thrown: unknown): string {
  const details =
    thrown !== null && typeof thrown === 'object' && 'details' in thrown ? thrown.details : undefined;
  if (details !== null && typeof details === 'object' && details !== undefined && 'code' in details) {
    return String(details.code);
  }
  return codeOf(thrown);
}

function isAccessCode(code: string): boolean {
  return code.startsWith('SQLITE_CANTOPEN') || code.startsWith('SQLITE_READONLY');
}
