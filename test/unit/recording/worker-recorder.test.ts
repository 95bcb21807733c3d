import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWorkerRecorder } from '../../../src/recording/create-recorder.ts';
import type { ChannelRecorderStatus } from '../../../src/recording/recorder.ts';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import { syntheticSession } from '../../harness/synthetic-session.ts';
import { bundleNodeEntry } from './bundle-node-entry.ts';
import { scratchFolder } from './scratch-folder.ts';

const made = syntheticSession({ phases: [{ seconds: 10, bql: true, load: true }] });
let bundles = '';
let workerScript = '';

beforeAll(async () => {
  bundles = mkdtempSync(join(tmpdir(), 'queuescope-bundle-'));
  workerScript = await bundleNodeEntry(
    new URL('../../../src/recording/recording-worker.ts', import.meta.url),
    bundles,
  );
}, 60_000);

afterAll(() => rmSync(bundles, { recursive: true, force: true }));

test('a recording through a worker thread holds what went in, and a flush is a promise kept', async () => {
  const path = join(scratchFolder(), 'a.qscope');
  const recorder = createWorkerRecorder(workerScript, { path, header: made.header });
  const states: ChannelRecorderStatus['state'][] = [];
  recorder.onStatus(({ state }) => states.push(state));
  await recorder.whenOpen();
  recorder.writeRows('samples', made.samples);
  recorder.writeRows('probes', made.probes);
  await recorder.flush();
  const reader = RecordingReader.open(path);
  expect(reader.rowCount('samples')).toBe(200);
  recorder.writeEvent({ timeUs: 11e6, kind: 'note', text: 'ß € 😀' });
  expect(await recorder.close()).toMatchObject({ state: 'closed', durationUs: 11e6 });
  expect(reader.events()).toEqual([{ timeUs: 11e6, kind: 'note', text: 'ß € 😀' }]);
  reader.close();
  expect(states[0]).toBe('recording');
  expect(states.at(-1)).toBe('closed');
});

test('a file that exists is an error with its remedy, from the other thread too', async () => {
  const path = join(scratchFolder(), 'a.qscope');
  writeFileSync(path, 'mine');
  const recorder = createWorkerRecorder(workerScript, { path, header: made.header });
  await expect(recorder.whenOpen()).rejects.toMatchObject({
    kind: 'file-failed',
    details: { code: 'EEXIST', path },
    remedy: expect.stringContaining('another name') as string,
  });
  expect(recorder.status.state).toBe('failed');
});

test.each([
  ['crashes', 'throw new Error("boom")', 'boom'],
  ['ends without a word', 'process.exit(3)', 'its thread ended'],
])('a writer that %s fails the recording, not the process', async (_name, code, reason) => {
  const script = join(scratchFolder(), 'bad-worker.mjs');
  writeFileSync(script, code);
  const recorder = createWorkerRecorder(script, { path: 'nowhere', header: made.header });
  await expect(recorder.whenOpen()).rejects.toMatchObject({ kind: 'file-failed' });
  expect(recorder.status.failure?.message).toContain(reason);
  expect(await recorder.close()).toMatchObject({ state: 'failed' });
});

test('a script that is not there fails the recording', async () => {
  const script = join(scratchFolder(), 'none.mjs');
  const recorder = createWorkerRecorder(script, { path: 'nowhere', header: made.header });
  await expect(recorder.whenOpen()).rejects.toMatchObject({ kind: 'file-failed' });
});
