import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { probeColumns, sampleColumns } from '../../../src/contract/telemetry.ts';
import { fileFailure } from '../../../src/recording/file-failure.ts';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import { SessionStore } from '../../../src/recording/session-store.ts';
import { SqliteFile } from '../../../src/recording/sqlite-file.ts';
import { recordSyntheticSession, syntheticSession } from '../../harness/synthetic-session.ts';
import { bundleNodeEntry } from './bundle-node-entry.ts';
import { scratchFolder } from './scratch-folder.ts';
import { noStockSqlite, stockSqlite } from './stock-sqlite.ts';

const { header } = syntheticSession({ phases: [{ seconds: 1, bql: true, load: false }] });
const none = { samples: 0, probes: 0, entries: 0 };
const noRows = new Float64Array(0);

function failureOf(action: () => unknown): AppError {
  try {
    action();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('it did not fail');
}

function sample(timeUs: number, value: number): Float64Array {
  const row = new Float64Array(sampleColumns.length).fill(value);
  row[0] = timeUs;
  return row;
}

function everyNth(values: Float64Array, width: number, index: number): Float64Array {
  return values.filter((_value, position) => position % width === index);
}

/** Runs something as an ordinary user, also where the tests run as root, who may write anywhere. */
function withoutPrivileges<T>(action: () => T): T {
  if (process.getuid?.() !== 0) return action();
  process.seteuid?.(65_534);
  try {
    return action();
  } finally {
    process.seteuid?.(0);
  }
}

/** Files that this process has open under a folder; handles that outlive their use would block Windows users. */
function openFiles(folder: string): string[] {
  return readdirSync('/proc/self/fd')
    .map((fd) => {
      try {
        return (
          readFileSync(`/proc/self/fdinfo/${fd}`) &&
          spawnSync('readlink', [`/proc/self/fd/${fd}`]).stdout.toString()
        );
      } catch {
        return '';
      }
    })
    .filter((target) => target.startsWith(folder));
}

describe('a recording', () => {
  test('gives back every number it was given, and NaN as missing', () => {
    const path = join(scratchFolder(), 'a.qscope');
    const made = recordSyntheticSession(path);
    const reader = RecordingReader.open(path);
    const sampled = reader.columns('samples', sampleColumns);
    for (const [index, column] of sampleColumns.entries()) {
      expect(sampled.values[column], column).toEqual(everyNth(made.samples, sampleColumns.length, index));
    }
    const probed = reader.columns('probes', probeColumns);
    for (const [index, column] of probeColumns.entries()) {
      expect(probed.values[column], column).toEqual(everyNth(made.probes, probeColumns.length, index));
    }
    expect(reader.rowCount('samples')).toBe(1200);
    reader.close();
  });

  test.skipIf(noStockSqlite !== undefined)(
    'is plain SQLite to the stock sqlite3 program, while and after it is written',
    () => {
      const path = join(scratchFolder(), 'plain.qscope');
      const store = SessionStore.create(path, header);
      store.writeBatch({ samples: sample(50_000, Number.NaN), probes: noRows, entries: [] });
      expect(
        stockSqlite(path, 'PRAGMA integrity_check; PRAGMA journal_mode; SELECT count(*) FROM samples'),
      ).toEqual(['ok', 'wal', '1']);
      store.writeBatch({ samples: sample(100_000, 3), probes: noRows, entries: [] });
      expect(stockSqlite(path, 'SELECT timeUs, limitBytes IS NULL FROM samples')).toEqual([
        '50000.0|1',
        '100000.0|0',
      ]);
      store.close({ state: 'closed', dropped: none });
      expect(stockSqlite(path, 'PRAGMA integrity_check; PRAGMA application_id; PRAGMA user_version')).toEqual(
        ['ok', String(0x51534350), '1'],
      );
      expect(stockSqlite(path, "SELECT name FROM pragma_table_info('samples')")).toEqual(sampleColumns);
      expect(stockSqlite(path, "SELECT name FROM pragma_table_info('probes')")).toEqual(probeColumns);
      expect(stockSqlite(path, "SELECT value FROM meta WHERE key = 'state'")).toEqual(['"closed"']);
    },
  );

  test('is one file once it is closed, and nothing holds it open', () => {
    const folder = scratchFolder();
    recordSyntheticSession(join(folder, 'one.qscope'));
    const reader = RecordingReader.open(join(folder, 'one.qscope'));
    reader.events();
    reader.close();
    expect(readdirSync(folder)).toEqual(['one.qscope']);
    if (existsSync('/proc/self/fd')) expect(openFiles(folder)).toEqual([]);
  });

  test('is made with a rollback journal where WAL does not work', () => {
    const path = join(scratchFolder(), 'no-wal.qscope');
    // In the way of the WAL's shared memory, as a file system without such a thing would be.
    mkdirSync(`${path}-shm`);
    const store = SessionStore.create(path, header);
    store.writeBatch({ samples: sample(50_000, 1), probes: noRows, entries: [] });
    const reader = RecordingReader.open(path);
    expect(reader.rowCount('samples')).toBe(1);
    store.writeBatch({ samples: sample(100_000, 1), probes: noRows, entries: [] });
    expect(reader.rowCount('samples')).toBe(2);
    store.close({ state: 'closed', dropped: none });
    expect(reader.meta().state).toBe('closed');
    reader.close();
  });

  test('can be read while it is written, each call seeing what is there by then', () => {
    const path = join(scratchFolder(), 'live.qscope');
    const store = SessionStore.create(path, header);
    const reader = RecordingReader.open(path);
    expect(reader.timeRange()).toBeUndefined();
    store.writeBatch({ samples: sample(50_000, 1), probes: noRows, entries: [] });
    expect(reader.timeRange()).toEqual({ fromUs: 50_000, toUs: 50_000 });
    store.writeBatch({ samples: sample(100_000, 2), probes: noRows, entries: [] });
    expect(reader.columns('samples', ['timeUs', 'inflightBytes']).values.inflightBytes).toEqual(
      new Float64Array([1, 2]),
    );
    expect(reader.meta()).toMatchObject({ state: 'recording', appVersion: '0.1.0' });
    store.close({ state: 'closed', dropped: { ...none, samples: 7 } });
    expect(reader.meta()).toMatchObject({ state: 'closed', dropped: { samples: 7 } });
    reader.close();
  });

  test('refuses a row without a time of its own, and says how many', () => {
    const path = join(scratchFolder(), 'refused.qscope');
    const store = SessionStore.create(path, header);
    const rows = new Float64Array([...sample(50_000, 1), ...sample(50_000, 2), ...sample(Number.NaN, 3)]);
    store.writeBatch({ samples: rows, probes: noRows, entries: [] });
    expect(store.refusedRows).toBe(2);
    store.close({ state: 'closed', dropped: none });
    const reader = RecordingReader.open(path);
    expect(reader.columns('samples', ['inflightBytes']).values.inflightBytes).toEqual(new Float64Array([1]));
    reader.close();
  });

  test('keeps how long there was a problem, also one that came back', () => {
    const path = join(scratchFolder(), 'problems.qscope');
    const store = SessionStore.create(path, header);
    const { session } = header;
    const halted = {
      id: 'tx-halt',
      severity: 'warning',
      message: 'The endpoint halted',
      remedy: 'Replug it',
    } as const;
    const write = (timeUs: number, problems: (typeof halted)[]): void =>
      store.writeBatch({
        samples: noRows,
        probes: noRows,
        entries: [{ type: 'session', timeUs, session: { ...session, problems } }],
      });
    write(1e6, [halted]);
    write(2e6, [halted]);
    write(3e6, []);
    write(4e6, [halted]);
    store.close({ state: 'closed', dropped: none });
    const reader = RecordingReader.open(path);
    expect(reader.problems()).toEqual([
      { ...halted, raisedUs: 1e6, withdrawnUs: 3e6 },
      { ...halted, raisedUs: 4e6 },
    ]);
    expect(reader.facts()).toEqual(session.facts);
    expect(reader.session('end').problems).toEqual([halted]);
    expect(reader.session('start')).toEqual(session);
    reader.close();
  });

  test('ends a phase when the next begins, and the last one at its own end', () => {
    const path = join(scratchFolder(), 'phases.qscope');
    const store = SessionStore.create(path, header);
    const phase = { bqlEnabled: true, loadEnabled: false, loadRateBitsPerSecond: 0 };
    store.writeBatch({
      samples: sample(9e6, 0),
      probes: noRows,
      entries: [
        { type: 'phase-start', phase: { ...phase, name: 'a', startUs: 1e6 } },
        { type: 'phase-start', phase: { ...phase, name: 'b', startUs: 3e6, loadEnabled: true } },
        { type: 'phase-end', timeUs: 5e6 },
        { type: 'phase-start', phase: { ...phase, name: 'c', startUs: 6e6, bqlEnabled: false } },
      ],
    });
    store.close({ state: 'closed', dropped: none });
    const reader = RecordingReader.open(path);
    expect(reader.phases()).toEqual([
      { name: 'a', bqlEnabled: true, loadEnabled: false, startUs: 1e6, endUs: 3e6 },
      { name: 'b', bqlEnabled: true, loadEnabled: true, loadRateBitsPerSecond: 0, startUs: 3e6, endUs: 5e6 },
      { name: 'c', bqlEnabled: false, loadEnabled: false, startUs: 6e6, endUs: 9e6 },
    ]);
    reader.close();
  });
});

test.skipIf(process.platform === 'win32')(
  'a file left in WAL mode can be read from a folder that cannot be written',
  () => {
    const folder = scratchFolder();
    const store = SessionStore.create(join(folder, 'a.qscope'), header);
    store.writeBatch({ samples: sample(50_000, 1), probes: noRows, entries: [] });
    store.checkpoint();
    const medium = scratchFolder();
    copyFileSync(join(folder, 'a.qscope'), join(medium, 'a.qscope'));
    store.close({ state: 'closed', dropped: none });
    chmodSync(medium, 0o555);
    const count = withoutPrivileges(() => {
      const reader = RecordingReader.open(join(medium, 'a.qscope'));
      try {
        return reader.rowCount('samples');
      } finally {
        reader.close();
      }
    });
    chmodSync(medium, 0o755);
    expect(count).toBe(1);
  },
);

describe('a file that cannot be made', () => {
  test('exists already: it is left alone', () => {
    const path = join(scratchFolder(), 'there.qscope');
    writeFileSync(path, 'mine');
    const failure = failureOf(() => SessionStore.create(path, header));
    expect(failure).toMatchObject({ kind: 'file-failed', details: { code: 'EEXIST' } });
    expect(failure.remedy).toContain('another name');
    expect(readFileSync(path, 'utf8')).toBe('mine');
  });

  test('has no folder', () => {
    const failure = failureOf(() => SessionStore.create(join(scratchFolder(), 'no', 'a.qscope'), header));
    expect(failure).toMatchObject({ kind: 'file-failed', details: { code: 'ENOENT' } });
    expect(failure.remedy).toContain('folder');
  });

  test('lies where a folder is needed', () => {
    const folder = scratchFolder();
    writeFileSync(join(folder, 'file'), '');
    expect(
      failureOf(() => SessionStore.create(join(folder, 'file', 'a.qscope'), header)).details['code'],
    ).toBe('ENOTDIR');
  });

  test.skipIf(process.platform === 'win32')('lies in a folder that may not be written', () => {
    const folder = scratchFolder();
    chmodSync(folder, 0o555);
    const failure = withoutPrivileges(() =>
      failureOf(() => SessionStore.create(join(folder, 'a.qscope'), header)),
    );
    expect(failure.details['code']).toBe('EACCES');
    expect(failure.remedy).toContain('folder that you may write to');
    chmodSync(folder, 0o755);
  });

  test.each([
    ['EACCES', 'permission'],
    ['EROFS', 'permission'],
    ['ENOSPC', 'full'],
    ['SQLITE_FULL', 'full'],
    ['SQLITE_IOERR_WRITE', 'full'],
    ['SQLITE_IOERR_FSYNC', 'disk answered with an error'],
    ['SQLITE_BUSY_SNAPSHOT', 'locked'],
    ['SQLITE_READONLY_DIRECTORY', 'write-protected'],
    ['SQLITE_CORRUPT_VTAB', 'damaged'],
  ])('%s is said in words, with a remedy', (code, word) => {
    const failure = fileFailure('written', '/data/runs/a.qscope', Object.assign(new Error('x'), { code }));
    expect(failure).toMatchObject({ kind: 'file-failed', details: { code, path: '/data/runs/a.qscope' } });
    expect(failure.message).toContain('a.qscope');
    expect(failure.message).toContain(word);
    expect(failure.remedy).toMatch(/^[A-Z].*\.$/s);
  });
});

test('an extended code that libsql has no name for is told by its primary code', () => {
  const unnamed = Object.assign(new Error('x'), { code: 'UNKNOWN_SQLITE_ERROR_1544', rawCode: 1544 });
  expect(fileFailure('opened', 'a.qscope', unnamed).details['code']).toBe('SQLITE_READONLY');
});

describe('a file that cannot be written any more', () => {
  test('locked by another program: an error within the busy time, and what was stored stays', () => {
    const path = join(scratchFolder(), 'locked.qscope');
    const store = SessionStore.create(path, header);
    store.writeBatch({ samples: sample(50_000, 1), probes: noRows, entries: [] });
    const other = SqliteFile.open(path, 'write');
    other.exec('BEGIN IMMEDIATE');
    const failure = failureOf(() =>
      store.writeBatch({ samples: sample(100_000, 1), probes: noRows, entries: [] }),
    );
    expect(failure).toMatchObject({ kind: 'file-failed', details: { code: 'SQLITE_BUSY' } });
    other.exec('ROLLBACK');
    other.close();
    store.writeBatch({ samples: sample(150_000, 1), probes: noRows, entries: [] });
    store.close({ state: 'closed', dropped: none });
    const reader = RecordingReader.open(path);
    expect(reader.columns('samples', ['timeUs']).values.timeUs).toEqual(new Float64Array([50_000, 150_000]));
    reader.close();
  });

  // The kernel's limit on the size of a file stands in for a full disk: the same call fails.
  test.skipIf(process.platform !== 'linux')(
    'full disk: recording fails, and what was stored before is in order',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'queuescope-full-'));
      try {
        const script = await bundleNodeEntry(new URL('full-disk-process.ts', import.meta.url), folder);
        const path = join(folder, 'full.qscope');
        const limited = `trap '' XFSZ; ulimit -f 400; exec "$0" "$@"`;
        const child = spawnSync('bash', ['-c', limited, process.execPath, script, path], {
          encoding: 'utf8',
        });
        const told = JSON.parse(child.stdout) as Record<string, unknown>;
        expect(told).toMatchObject({ state: 'failed', kind: 'file-failed' });
        expect(told['message']).toContain('the disk is full');
        expect(told['remedy']).toContain('Free space');
        const reader = RecordingReader.open(path);
        const rows = reader.rowCount('samples');
        expect(rows).toBeGreaterThan(100);
        expect(rows + Number(told['droppedSamples'])).toBe(told['writtenSamples']);
        reader.close();
        if (noStockSqlite === undefined) expect(stockSqlite(path, 'PRAGMA integrity_check')).toEqual(['ok']);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
    60_000,
  );
});

describe('a file that cannot be read', () => {
  test.each([
    ['text', 'hello, this is no recording. '.repeat(100), 'damaged, or not a recording'],
    ['cut off', 'SQLite format 3\0', 'damaged, or not a recording'],
  ])('%s', (_name, content, words) => {
    const path = join(scratchFolder(), 'bad.qscope');
    writeFileSync(path, content);
    const failure = failureOf(() => RecordingReader.open(path));
    expect(failure.kind).toBe('file-failed');
    expect(failure.message).toContain(words);
  });

  test("empty, or another program's database", () => {
    const path = join(scratchFolder(), 'bad.qscope');
    writeFileSync(path, '');
    expect(failureOf(() => RecordingReader.open(path)).message).toContain('not a recording of Queuescope');
  });

  test.each([
    [
      'a view without end in place of a table',
      `ALTER TABLE recording.samples RENAME TO kept;
       CREATE VIEW recording.Samples AS WITH RECURSIVE r (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r)
       SELECT kept.* FROM kept, r;`,
      'Samples is no table in it',
    ],
    [
      'a column that is computed',
      'ALTER TABLE recording.facts ADD COLUMN big AS (hex(zeroblob(500000000)));',
      'its table facts has generated columns',
    ],
    [
      'a trigger',
      'CREATE TRIGGER recording.t AFTER UPDATE ON meta BEGIN DELETE FROM samples; END;',
      'it has triggers',
    ],
  ])('that computes when it is read is refused: %s', (_what, sql, words) => {
    const path = join(scratchFolder(), 'alien.qscope');
    SessionStore.create(path, header).close({ state: 'closed', dropped: none });
    const file = SqliteFile.open(path, 'write');
    file.exec(sql);
    file.close();
    const failure = failureOf(() => RecordingReader.open(path));
    expect(failure.kind).toBe('file-failed');
    expect(failure.message).toContain(words);
    expect(failure.remedy).toContain('Do not trust the file');
  });

  test('with a value that is infinite: it counts as not measured', () => {
    const path = join(scratchFolder(), 'infinite.qscope');
    SessionStore.create(path, header).close({ state: 'closed', dropped: none });
    const file = SqliteFile.open(path, 'write');
    file.exec(
      'INSERT INTO recording.samples (timeUs, txBitsPerSecond, limitBytes) VALUES (1, 9e999, -9e999)',
    );
    file.close();
    const reader = RecordingReader.open(path);
    const { values } = reader.columns('samples', ['txBitsPerSecond', 'limitBytes']);
    reader.close();
    expect([...values.txBitsPerSecond, ...values.limitBytes]).toEqual([Number.NaN, Number.NaN]);
  });

  test('that is not there: the remedy names it', () => {
    const path = join(scratchFolder(), 'missing.qscope');
    expect(failureOf(() => RecordingReader.open(path)).remedy).toBe(`Check the path ${path}.`);
  });

  test('from a newer Queuescope: says so, and what to do', () => {
    const path = join(scratchFolder(), 'newer.qscope');
    recordSyntheticSession(path, { phases: [{ seconds: 1, bql: true, load: false }] });
    const file = SqliteFile.open(path, 'write');
    file.exec('PRAGMA recording.user_version=2');
    file.close();
    const failure = failureOf(() => RecordingReader.open(path));
    expect(failure.message).toContain('newer Queuescope (schema 2; this one knows 1)');
    expect(failure.remedy).toContain('Update Queuescope');
  });

  test('missing: not made by looking', () => {
    const path = join(scratchFolder(), 'none.qscope');
    expect(failureOf(() => RecordingReader.open(path)).details['code']).toBe('ENOENT');
    expect(existsSync(path)).toBe(false);
  });

  test('columns of a later version are passed over, and a missing one is NaN', () => {
    const path = join(scratchFolder(), 'columns.qscope');
    recordSyntheticSession(path, { phases: [{ seconds: 1, bql: true, load: false }] });
    const file = SqliteFile.open(path, 'write');
    file.exec(
      'ALTER TABLE samples ADD COLUMN signalDbm REAL; ALTER TABLE samples DROP COLUMN eventLoopLagUs',
    );
    file.close();
    const reader = RecordingReader.open(path);
    const { values } = reader.columns('samples', ['eventLoopLagUs', 'bqlEnabled']);
    expect(values.eventLoopLagUs.every(Number.isNaN)).toBe(true);
    expect(values.bqlEnabled.every((value) => value === 1)).toBe(true);
    reader.close();
  });
});
