import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { RecordingLibrary } from '../../../src/recording/library.ts';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import { recoverRecording } from '../../../src/recording/recover.ts';
import { bundleNodeEntry } from './bundle-node-entry.ts';
import { scratchFolder } from './scratch-folder.ts';
import { noStockSqlite, stockSqlite } from './stock-sqlite.ts';

let bundles = '';
let workerScript = '';
let processScript = '';

beforeAll(async () => {
  bundles = mkdtempSync(join(tmpdir(), 'queuescope-bundle-'));
  workerScript = await bundleNodeEntry(
    new URL('../../../src/recording/recording-worker.ts', import.meta.url),
    bundles,
  );
  processScript = await bundleNodeEntry(new URL('killed-process.ts', import.meta.url), bundles);
}, 60_000);

afterAll(() => rmSync(bundles, { recursive: true, force: true }));

async function startRecording(path: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [processScript, workerScript, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`the recording process ended with ${code}`)));
  });
  return child;
}

async function kill(child: ChildProcess): Promise<number> {
  const killedAtMs = Date.now();
  child.kill('SIGKILL');
  await once(child, 'exit');
  return killedAtMs;
}

test('a killed process loses at most one second, and the file is whole again after recovery', async () => {
  const path = join(scratchFolder(), 'killed.qscope');
  const child = await startRecording(path);
  await sleep(2300);
  expect(recoverRecording(path), 'while it is being recorded').toBe('in-use');
  const killedAtMs = await kill(child);

  // Left as it is, with its WAL: readable, also for the stock program on a copy of all files.
  expect(existsSync(`${path}-wal`)).toBe(true);
  const before = RecordingReader.open(path);
  const startMs = Number(before.metaValue('startMs'));
  const lastBefore = before.timeRange()?.toUs ?? 0;
  expect(before.meta().state).toBe('recording');
  before.close();
  const lostMs = killedAtMs - (startMs + lastBefore / 1000);
  expect(lostMs).toBeLessThan(1000);
  expect(lastBefore).toBeGreaterThan(1_000_000);

  expect(recoverRecording(path)).toBe('recovered');
  expect(existsSync(`${path}-wal`)).toBe(false);
  const after = RecordingReader.open(path);
  expect(after.meta().state).toBe('recovered');
  expect(after.timeRange()?.toUs).toBe(lastBefore);
  expect(after.phases()).toMatchObject([{ name: 'only', endUs: lastBefore }]);
  const startedAtMs = Date.parse(after.meta().startedAt);
  expect(Date.parse(after.meta().endedAt ?? '')).toBeCloseTo(startedAtMs + lastBefore / 1000, -1);
  after.close();
  expect(recoverRecording(path), 'a second time').toBe('complete');
}, 30_000);

test.skipIf(noStockSqlite !== undefined)(
  `the stock sqlite3 program finds a killed recording in order${noStockSqlite === undefined ? '' : ` (skipped: ${noStockSqlite})`}`,
  async () => {
    const folder = scratchFolder();
    const path = join(folder, 'killed.qscope');
    const child = await startRecording(path);
    await sleep(1500);
    // A reader beside the writer.
    const [whileRecording] = stockSqlite(path, 'SELECT count(*) FROM samples');
    expect(Number(whileRecording)).toBeGreaterThan(20);
    const killedAtMs = await kill(child);
    for (const suffix of ['', '-wal']) copyFileSync(path + suffix, join(folder, `copy.qscope${suffix}`));
    const copy = join(folder, 'copy.qscope');
    expect(stockSqlite(copy, 'PRAGMA integrity_check')).toEqual(['ok']);
    const [startMs, lastUs] = stockSqlite(
      copy,
      "SELECT value FROM meta WHERE key = 'startMs'; SELECT max(timeUs) FROM samples",
    );
    expect(killedAtMs - (Number(startMs) + Number(lastUs) / 1000)).toBeLessThan(1000);

    expect(recoverRecording(path)).toBe('recovered');
    expect(
      stockSqlite(path, 'PRAGMA integrity_check; PRAGMA journal_mode; SELECT max(timeUs) FROM samples'),
    ).toEqual(['ok', 'delete', lastUs]);
  },
  30_000,
);

test('the library tells a recording from one that was killed, and repairs it', async () => {
  const folder = scratchFolder();
  const path = join(folder, 'killed.qscope');
  const child = await startRecording(path);
  await sleep(700);
  const library = new RecordingLibrary(folder);
  expect(library.list()).toMatchObject([
    { id: 'killed.qscope', state: 'recording', deviceName: 'RM520N-GL' },
  ]);
  expect(library.recoverAll(), 'while it is being recorded').toEqual([]);
  await kill(child);
  const later = new RecordingLibrary(folder, () => Date.now() + 60_000);
  expect(later.list()).toMatchObject([{ state: 'interrupted' }]);
  expect(later.recoverAll()).toEqual(['killed.qscope']);
  expect(later.list()).toMatchObject([{ state: 'recovered' }]);
}, 30_000);
