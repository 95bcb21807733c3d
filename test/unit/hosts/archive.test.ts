import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FileArchive } from '../../../src/hosts/archive.ts';
import { recordSyntheticSession } from '../../harness/synthetic-session.ts';
import { scratchFolder } from '../recording/scratch-folder.ts';

test('reports cross the contract as they are, and in base64 where they are not text', async () => {
  const folder = scratchFolder();
  recordSyntheticSession(join(folder, 'run.qscope'));
  const archive = new FileArchive({ folder, workerScript: undefined });
  const [recording] = await archive.list();
  const recordingId = recording?.id ?? '';
  const [html] = await archive.report({ recordingId, format: 'html' });
  expect(html?.text).toMatch(/^<!doctype html>/i);
  expect(html).not.toHaveProperty('encoding');
  const files = await archive.report({ recordingId, format: 'flent' });
  expect(files.map(({ fileName }) => fileName)).toEqual([
    'run.flent.gz',
    'run-idle.flent.gz',
    'run-BQL_off.flent.gz',
    'run-BQL_on.flent.gz',
  ]);
  for (const { encoding, text } of files) {
    expect(encoding).toBe('base64');
    expect([...Buffer.from(text, 'base64').subarray(0, 2)]).toEqual([0x1f, 0x8b]);
  }
});
