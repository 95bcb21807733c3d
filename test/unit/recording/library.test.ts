import { copyFileSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RecordingLibrary } from '../../../src/recording/library.ts';
import { defaultRecordingsFolder } from '../../../src/recording/recordings-folder.ts';
import { SessionStore } from '../../../src/recording/session-store.ts';
import { recordSyntheticSession, syntheticSession } from '../../harness/synthetic-session.ts';
import { scratchFolder } from './scratch-folder.ts';

const short = [{ seconds: 2, bql: true, load: true }];

describe('the list', () => {
  test('is empty where there is no folder yet', () => {
    const folder = join(scratchFolder(), 'none');
    expect(new RecordingLibrary(folder).list()).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });

  test('has the newest first, whatever their zones, and damaged files among them', () => {
    const folder = scratchFolder();
    recordSyntheticSession(join(folder, 'a.qscope'), {
      phases: short,
      startedAt: '2025-11-06T12:00:00+01:00',
    });
    recordSyntheticSession(join(folder, 'b.qscope'), { phases: short, startedAt: '2025-11-06T11:30:00Z' });
    writeFileSync(join(folder, 'c.qscope'), 'garbage '.repeat(100));
    writeFileSync(join(folder, 'd.qscope'), '');
    writeFileSync(join(folder, 'notes.txt'), 'not listed');
    const list = new RecordingLibrary(folder).list();
    expect(list.map(({ id, state }) => [id, state])).toEqual([
      [expect.stringMatching(/^[cd]/), 'damaged'],
      [expect.stringMatching(/^[cd]/), 'damaged'],
      ['b.qscope', 'closed'],
      ['a.qscope', 'closed'],
    ]);
    expect(list[3]).toEqual({
      id: 'a.qscope',
      fileName: 'a.qscope',
      path: join(folder, 'a.qscope'),
      state: 'closed',
      deviceId: 'usb:2-1.4',
      deviceName: 'RM520N-GL',
      startedAt: '2025-11-06T12:00:00+01:00',
      durationUs: 2e6,
      sizeBytes: statSync(join(folder, 'a.qscope')).size,
    });
    expect(list.find(({ id }) => id === 'c.qscope')?.reason).toContain('damaged, or not a recording');
  });

  test('follows what happens to the files', () => {
    const folder = scratchFolder();
    let nowMs = Date.now();
    const library = new RecordingLibrary(folder, () => nowMs);
    const { header, samples } = syntheticSession({ phases: short });
    const path = library.newPath('RM520N', header.session.startedAt);
    const store = SessionStore.create(path, header);
    expect(library.list()).toMatchObject([{ state: 'recording', durationUs: 0 }]);
    store.writeBatch({ samples, probes: new Float64Array(0), entries: [] });
    expect(library.list()).toMatchObject([{ state: 'recording', durationUs: 2e6 }]);
    nowMs += 60_000;
    expect(library.list()).toMatchObject([{ state: 'interrupted' }]);
    store.close({ state: 'closed', dropped: { samples: 0, probes: 0, entries: 0 } });
    expect(library.list()).toMatchObject([{ state: 'closed' }]);
    library.remove(library.list()[0]?.id ?? '');
    expect(library.list()).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('of a hundred recordings comes fast, and faster the second time', () => {
    const folder = scratchFolder();
    recordSyntheticSession(join(folder, '0.qscope'), { phases: short });
    for (let i = 1; i < 100; i++) copyFileSync(join(folder, '0.qscope'), join(folder, `${i}.qscope`));
    const library = new RecordingLibrary(folder);
    const time = (): number => {
      const startMs = performance.now();
      expect(library.list()).toHaveLength(100);
      return performance.now() - startMs;
    };
    expect(time()).toBeLessThan(1000);
    expect(time()).toBeLessThan(100);
  });
});

describe('names', () => {
  test('say when and what, and are never those of a file that exists', () => {
    const library = new RecordingLibrary(join(scratchFolder(), 'new', 'folder'));
    const startedAt = '2025-11-06T14:30:05.123+01:00';
    const first = library.newPath('Quectel  RM520N-GL (Ünïcode)/../', startedAt);
    expect(first).toBe(join(library.folder, '20251106-143005-quectel-rm520n-gl-u-ni-code.qscope'));
    writeFileSync(first, '');
    expect(library.newPath('Quectel  RM520N-GL (Ünïcode)/../', startedAt)).toBe(
      first.replace('.qscope', '-2.qscope'),
    );
    expect(library.newPath('调制解调器', startedAt)).toBe(
      join(library.folder, '20251106-143005-device.qscope'),
    );
  });

  test.each(['../a.qscope', '/etc/passwd', 'a.txt', '', '..', 'x/../a.qscope'])(
    'an id such as %j stays inside',
    (id) => {
      expect(() => new RecordingLibrary(scratchFolder()).path(id)).toThrow('There is no recording');
    },
  );

  test('a recording that is being made is not deleted', () => {
    const folder = scratchFolder();
    const { header } = syntheticSession({ phases: short });
    const store = SessionStore.create(join(folder, 'a.qscope'), header);
    expect(() => new RecordingLibrary(folder).remove('a.qscope')).toThrow('still being recorded');
    store.close({ state: 'closed', dropped: { samples: 0, probes: 0, entries: 0 } });
  });
});

test.each([
  ['linux', {}, true, '/home/ann/Documents/Queuescope'],
  ['linux', { XDG_DOCUMENTS_DIR: '/home/ann/Dokumente' }, true, '/home/ann/Dokumente/Queuescope'],
  ['linux', {}, false, '/home/ann/.local/share/queuescope'],
  ['linux', { XDG_DATA_HOME: '/data' }, false, '/data/queuescope'],
  ['darwin', {}, false, '/home/ann/Documents/Queuescope'],
])(
  'on %s with %j (documents folder: %s) recordings go to %s by default',
  (platform, environment, there, folder) => {
    expect(defaultRecordingsFolder({ platform, home: '/home/ann', environment, exists: () => there })).toBe(
      folder,
    );
  },
);
