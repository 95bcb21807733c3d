import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import { SessionStore } from '../../../src/recording/session-store.ts';
import { SqliteFile } from '../../../src/recording/sqlite-file.ts';
import { createHeadline } from '../../../src/report/headline.ts';
import { createMask } from '../../../src/report/mask.ts';
import { createReportModel, type ReportModel, type ReportOptions } from '../../../src/report/report-model.ts';
import {
  recordSyntheticSession,
  type SyntheticOptions,
  syntheticSession,
} from '../../harness/synthetic-session.ts';
import { scratchFolder } from '../recording/scratch-folder.ts';

function recorded(options: SyntheticOptions): string {
  const path = join(scratchFolder(), 'a.qscope');
  recordSyntheticSession(path, options);
  return path;
}

function modelOf(path: string, options: ReportOptions = {}): ReportModel {
  const reader = RecordingReader.open(path);
  onTestFinished(() => reader.close());
  return createReportModel(reader, options);
}

const noteIds = (model: ReportModel): string[] => model.validity.map(({ id }) => id);

describe('the headline', () => {
  test('compares the arms in numbers', () => {
    const { main, more } = createHeadline(modelOf(recorded({})));
    expect(main).toMatch(
      /^BQL cut the round trip under load from 39\d ms to 5\d\.\d ms \(p50\), at the same throughput of 10\.0 Mbit\/s\.$/,
    );
    expect(more.join(' ')).toContain('454 KB were in flight to the device without BQL');
    expect(more.join(' ')).toMatch(/Idle, the round trip was 33\.\d ms: the load added 36\d ms without BQL/);
  });

  test('says so where BQL changes nothing', () => {
    const idle = [
      { seconds: 5, bql: false, load: true },
      { seconds: 5, bql: true, load: true },
    ];
    const path = recorded({ phases: idle });
    const file = SqliteFile.open(path, 'write');
    file.exec('UPDATE probes SET rttUs = 20000 + sequence');
    file.close();
    expect(createHeadline(modelOf(path)).main).toContain(
      'BQL made no difference to the round trip under load',
    );
  });

  test('of a single arm gives its round trip', () => {
    const { main } = createHeadline(modelOf(recorded({ phases: [{ seconds: 30, bql: true, load: true }] })));
    expect(main).toMatch(/^Under load, with BQL on, the round trip was \d\d\.\d ms \(p50\); 95 of 100 pings/);
  });

  test('of an observed device leaves open what load there was', () => {
    const device = { mode: 'observe' } as const;
    const model = modelOf(recorded({ device, phases: [{ seconds: 30, bql: true, load: true }] }));
    expect(createHeadline(model).main).toMatch(/^Under the load there was, with BQL on, the round trip was/);
    expect(noteIds(model)).toContain('observed');
  });

  test('of an empty recording says that, and nothing fails', () => {
    const path = join(scratchFolder(), 'a.qscope');
    SessionStore.create(path, syntheticSession({ phases: [] }).header).close({
      state: 'closed',
      dropped: { samples: 0, probes: 0, entries: 0 },
    });
    const model = modelOf(path);
    expect(createHeadline(model)).toEqual({ main: 'Nothing was measured.', more: [] });
    expect(noteIds(model)).toContain('no-samples');
  });
});

describe('the notes on validity', () => {
  test('are few for a good recording', () => {
    expect(noteIds(modelOf(recorded({})))).toEqual(['few-round-trips']);
    const long = [
      { seconds: 60, bql: false, load: true },
      { seconds: 60, bql: true, load: true },
    ];
    expect(noteIds(modelOf(recorded({ phases: long })))).toEqual([]);
  });

  test('name a virtual device, a USB 2 fallback, and gaps', () => {
    const device = { mode: 'simulate', speed: 'high' } as const;
    const model = modelOf(recorded({ device, gap: { fromUs: 26e6, toUs: 31e6 } }));
    expect(noteIds(model)).toEqual(expect.arrayContaining(['simulated', 'usb2-fallback', 'gaps']));
    expect(model.validity.find(({ id }) => id === 'gaps')?.text).toMatch(
      /once, for 5\.00 s|once, for 4\.9\d s/,
    );
    expect(noteIds(modelOf(recorded({ device: { speed: 'super' } })))).not.toContain('usb2-fallback');
  });

  test('name what the measuring itself added', () => {
    const path = recorded({});
    const file = SqliteFile.open(path, 'write');
    file.exec(
      'UPDATE samples SET eventLoopLagUs = 30000; UPDATE probes SET lateUs = 20000 WHERE sequence % 10 = 0',
    );
    file.close();
    const ids = noteIds(modelOf(path));
    expect(ids).toContain('event-loop-lag');
    expect(ids).toContain('late-probes');
    expect(ids).toContain('timer-error');
  });

  test('name a load that never filled the queue', () => {
    const path = recorded({});
    const file = SqliteFile.open(path, 'write');
    file.exec('UPDATE samples SET driverXoff = 0, stackXoff = 0');
    file.close();
    expect(noteIds(modelOf(path))).toEqual(expect.arrayContaining(['never-full-off', 'never-full-on']));
  });

  test('name what happened to the recording', () => {
    const { header, samples } = syntheticSession({ phases: [{ seconds: 5, bql: true, load: true }] });
    const path = join(scratchFolder(), 'a.qscope');
    const store = SessionStore.create(path, header);
    store.writeBatch({ samples, probes: new Float64Array(0), entries: [] });
    expect(noteIds(modelOf(path))).toEqual(expect.arrayContaining(['unfinished', 'no-probes']));
    store.close({
      state: 'failed',
      reason: 'the disk is full',
      dropped: { samples: 9, probes: 1, entries: 0 },
    });
    const { validity } = modelOf(path);
    expect(validity.map(({ text }) => text)).toEqual(
      expect.arrayContaining([
        'The disk did not keep up: 10 rows were not recorded.',
        'The recording failed before its end: the disk is full.',
      ]),
    );
  });
});

describe('masking', () => {
  const facts = [
    { group: 'device', name: 'Serial number', value: '7C2B9A41F0' },
    { group: 'device', name: 'iSerialNumber', value: '0001' },
    { group: 'device', name: 'MAC address', value: '021E101FAC0D' },
    { group: 'device', name: 'IMEI', value: '861234567890123' },
    { group: 'network', name: 'Address', value: '10.9.0.2/24' },
    { group: 'device', name: 'USB version', value: '3.20' },
  ] as const;
  const mask = createMask(facts);

  test('hides identifiers and leaves the rest', () => {
    expect(facts.map((fact) => mask.fact(fact).value)).toEqual([
      '•••F0',
      '•••',
      '021E10xxxxxx',
      '•••23',
      '10.9.0.2/24',
      '3.20',
    ]);
  });

  test.each([
    ['opened 7C2B9A41F0 at port 2', 'opened •••F0 at port 2'],
    ['host 02:1e:10:1f:ac:0d answers', 'host 02:1e:10:xx:xx:xx answers'],
    ['host 02-1E-10-1F-AC-0D answers', 'host 02-1E-10-xx-xx-xx answers'],
    ['the SIM is 89490200001234567890', 'the SIM is •••90'],
    ['10001 packets in 1.23456789012345 s', '10001 packets in 1.23456789012345 s'],
    ['300 transfers of 1,514 bytes', '300 transfers of 1,514 bytes'],
  ])('%s', (text, masked) => {
    expect(mask.text(text)).toBe(masked);
  });

  test('reaches every text of a report, unless told otherwise', () => {
    const serial = '7C2B9A41F0';
    const path = recorded({
      device: { name: `Modem ${serial}`, reason: `because of ${serial}` },
      entries: [
        { type: 'event', event: { timeUs: 1e6, kind: 'note', text: `seen 02:1e:10:1f:ac:0d and ${serial}` } },
      ],
      session: {
        problems: [{ id: 'x', severity: 'warning', message: `busy: ${serial}`, remedy: `unplug ${serial}` }],
      },
    });
    const { telemetry: _, ...masked } = modelOf(path);
    expect(JSON.stringify(masked)).not.toContain(serial);
    expect(JSON.stringify(masked)).not.toContain('1f:ac:0d');
    expect(masked.title).toBe('Modem •••F0');
    const { telemetry: __, ...open } = modelOf(path, { showIdentifiers: true });
    expect(JSON.stringify(open)).toContain(serial);
    expect(open.masked).toBe(false);
  });
});
