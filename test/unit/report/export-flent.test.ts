import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import type { RecordingEntry } from '../../../src/recording/recording-batch.ts';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import { SessionStore } from '../../../src/recording/session-store.ts';
import { createReport, type Report } from '../../../src/report/create-report.ts';
import type { ReportOptions } from '../../../src/report/report-model.ts';
import {
  recordSyntheticSession,
  type SyntheticOptions,
  syntheticSession,
} from '../../harness/synthetic-session.ts';
import { scratchFolder } from '../recording/scratch-folder.ts';

interface RawValue {
  readonly t: number;
  readonly val?: number | null;
  readonly [key: string]: unknown;
}

interface DataFile {
  readonly version: number;
  readonly metadata: Record<string, unknown> & {
    readonly TITLE: string;
    readonly SERIES_META: Record<string, Record<string, unknown>>;
  };
  readonly x_values: readonly number[];
  readonly results: Record<string, readonly (number | null)[]>;
  readonly raw_values: Record<string, readonly RawValue[]>;
}

function open(path: string): RecordingReader {
  const reader = RecordingReader.open(path);
  onTestFinished(() => reader.close());
  return reader;
}

function reported(options: SyntheticOptions, reportOptions: ReportOptions = {}): Report {
  const path = join(scratchFolder(), 'run.qscope');
  recordSyntheticSession(path, options);
  return createReport(open(path), 'flent', reportOptions);
}

function contentOf(file: { readonly bytes?: Uint8Array } | undefined): DataFile {
  expect(file?.bytes).toBeDefined();
  return JSON.parse(gunzipSync(file?.bytes ?? new Uint8Array()).toString('utf8')) as DataFile;
}

/** Segments of a scenario: each lasts ten seconds, of which two do not count. */
function scenario(
  segments: readonly { readonly arm: string; readonly direction: string; readonly load: string }[],
): SyntheticOptions {
  const entries = segments.map((segment, index): RecordingEntry => ({
    type: 'meta',
    key: `experiment.segment.${String(index + 1).padStart(5, '0')}`,
    value: {
      ...segment,
      pair: 1 + (index >> 1),
      startUs: index * 10e6,
      endUs: (index + 1) * 10e6,
      settleUs: 2e6,
      tailUs: 0,
      counts: true,
    },
  }));
  return {
    phases: segments.map(({ arm, direction }) => ({
      seconds: 10,
      bql: arm !== 'BQL off',
      load: direction !== 'idle',
    })),
    entries: [
      { type: 'meta', key: 'experiment', value: { version: 1, scenario: {}, state: 'done', notes: [] } },
      ...entries,
    ],
  };
}

describe('all of a recording', () => {
  test('has Flent’s series and ours, each value at its own time, and every loss as null', () => {
    const made = syntheticSession();
    const { fileName, mediaType, ...report } = reported({});
    expect([fileName, mediaType]).toEqual(['run.flent.gz', 'application/gzip']);
    const file = contentOf(report);
    expect(file.version).toBe(3);
    expect(file.metadata).toMatchObject({
      NAME: 'udp_flood',
      TITLE: 'RM520N-GL',
      TIME: '2025-11-06T13:30:05.000Z',
      T0: '2025-11-06T13:30:05.000Z',
      LENGTH: 60,
      TOTAL_LENGTH: 60,
      STEP_SIZE: 0.2,
      KERNEL_NAME: 'Linux',
      KERNEL_RELEASE: '6.19.2',
      DATA_FILENAME: 'run.flent.gz',
    });
    expect(Object.keys(file.results)).toEqual([
      'Ping (ms) ICMP',
      'UDP upload',
      'UDP download',
      'BQL limit',
      'BQL inflight',
      'Qdisc backlog',
      'Driver queue (ms)',
      'Qdisc wait (ms)',
    ]);
    expect(file.x_values).toHaveLength(301);
    for (const values of Object.values(file.results)) expect(values).toHaveLength(301);

    const pings = file.raw_values['Ping (ms) ICMP'] ?? [];
    const startSeconds = Date.parse('2025-11-06T13:30:05Z') / 1000;
    const sent = made.probes.filter((_value, index) => index % 6 === 0);
    const rttUs = made.probes.filter((_value, index) => index % 6 === 2);
    expect(pings.map(({ t }) => Math.round((t - startSeconds) * 1e6))).toEqual([...sent]);
    expect(pings.map(({ val }) => val)).toEqual(
      [...rttUs].map((us) => (Number.isNaN(us) ? null : us / 1000)),
    );
    const lost = pings.filter((ping) => ping['lost'] === true);
    expect(lost.length).toBeGreaterThan(0);
    expect(lost.every(({ val }) => val === null)).toBe(true);
    expect(file.metadata.SERIES_META['Ping (ms) ICMP']).toMatchObject({
      UNITS: 'ms',
      PACKETS_SENT: pings.length,
      PACKET_LOSS_RATE: lost.length / pings.length,
    });
    // A step has the mean of what was measured since the one before: four samples.
    const [one, two, three, four] = (file.raw_values['BQL inflight'] ?? []).slice(200, 204);
    const mean = [one, two, three, four].reduce((sum, value) => sum + (value?.val ?? Number.NaN), 0) / 4;
    expect(file.results['BQL inflight']?.[51]).toBe(mean);
  });

  test('breaks the lines where nothing was recorded', () => {
    const file = contentOf(reported({ gap: { fromUs: 26e6, toUs: 31e6 } }));
    const breaks = (file.raw_values['BQL inflight'] ?? []).filter(({ val }) => val === null);
    expect(breaks).toHaveLength(1);
    expect(Object.keys(breaks[0] ?? {})).toEqual(['t', 'val']);
    expect(file.results['BQL inflight']?.slice(132, 155).every((value) => value === null)).toBe(true);
    // Flent adds counters up: what has no value must not have one either.
    const queue = (file.raw_values['qdisc_stats_qdisc'] ?? []).filter((value) => value['delay'] === null);
    expect(queue.map((value) => Object.keys(value))).toEqual([['t', 'backlog_bytes', 'delay']]);
  });

  test('names nobody unless asked to', () => {
    const secrets = ['7C2B9A41F0', '02:1e:10:1f:ac:0d', '10.9.0.'];
    const text = JSON.stringify(contentOf(reported({})));
    for (const secret of secrets) expect(text).not.toContain(secret);
    expect(JSON.parse(text)).toMatchObject({ metadata: { HOST: '', HOSTS: [], LOCAL_HOST: '' } });
    const session = { facts: [{ group: 'network', name: 'Target', value: '10.9.0.1' }] } as const;
    const named = contentOf(reported({ session: { facts: [...session.facts] } }, { showIdentifiers: true }));
    expect(named.metadata).toMatchObject({ HOST: '10.9.0.1', HOSTS: ['10.9.0.1'] });
  });

  test('is the same for the same recording', () => {
    expect(reported({}).bytes).toEqual(reported({}).bytes);
  });
});

describe('arms', () => {
  test('of BQL off and on are files of their own on the same steps', () => {
    const report = reported({});
    expect(report.companions.map(({ fileName, suffix }) => [fileName, suffix])).toEqual([
      ['run-idle.flent.gz', '-idle'],
      ['run-BQL_off.flent.gz', '-BQL_off'],
      ['run-BQL_on.flent.gz', '-BQL_on'],
    ]);
    const [idle, off, on] = report.companions.map(contentOf);
    expect(idle?.metadata['NAME']).toBe('ping');
    expect(off?.metadata).toMatchObject({ NAME: 'udp_flood', TITLE: 'RM520N-GL, BQL off' });
    expect(on?.x_values).toEqual(off?.x_values);
    const inBoth = off?.results['UDP upload']?.filter(
      (value, step) => value !== null && on?.results['UDP upload']?.[step] !== null,
    );
    expect(inBoth).toEqual([]);
    // Of each only what counts: 25 of 27 seconds, without a loss of our making between the two phases.
    const pings = (off?.raw_values['Ping (ms) ICMP'] ?? []).filter((ping) => ping['seq'] !== undefined);
    expect(pings.map((ping) => ping['seq'])).toEqual(pings.map((_ping, index) => index + 1));
    expect(off?.metadata['LENGTH']).toBe(25);
  });

  test.each([
    ['up', 'iperf3-tcp', 'tcp_upload', 'TCP upload'],
    ['down', 'iperf3-tcp', 'tcp_download', 'TCP download'],
    ['both', 'iperf3-tcp', 'tcp_bidirectional', 'TCP upload'],
    ['up', 'iperf3-udp', 'udp_flood', 'UDP upload'],
    ['down', 'udp', 'udp_flood', 'UDP download'],
    ['idle', 'none', 'ping', 'Upload'],
  ])('loaded %s by %s go to the test that says so: %s', (direction, load, name, series) => {
    const arms = ['BQL off', 'BQL on'].map((arm) => ({ arm, direction, load }));
    const [first] = reported(scenario(arms)).companions;
    const file = contentOf(first);
    expect(file.metadata['NAME']).toBe(name);
    expect(Object.keys(file.results)).toContain(series);
  });

  test('in several directions are told apart, and so are names that a file cannot have', () => {
    const arms = ['10 ms/flow', '10-ms:flow', '300'];
    const segments = arms.flatMap((arm) =>
      ['up', 'down'].map((direction) => ({ arm, direction, load: 'udp' })),
    );
    expect(reported(scenario(segments)).companions.map(({ suffix }) => suffix)).toEqual([
      '-10_ms_flow_up',
      '-10_ms_flow_down',
      '-10_ms_flow_up_2',
      '-10_ms_flow_down_2',
      '-300_up',
      '-300_down',
    ]);
    const plain = arms.map((arm) => ({ arm, direction: 'up', load: 'udp' }));
    expect(reported(scenario(plain)).companions.at(-1)?.suffix).toBe('-arm_300');
  });

  test('of an observed interface do not claim a load', () => {
    const file = contentOf(reported({ device: { mode: 'observe' } }).companions[1]);
    expect(file.metadata).toMatchObject({ NAME: 'ping', TITLE: 'RM520N-GL, BQL off' });
    expect(String(file.metadata['NOTE'])).toContain('other programs');
    expect(Object.keys(file.results)).toContain('Upload');
  });

  test('pinged over UDP are under the one test that knows such pings', () => {
    const { settings } = syntheticSession().header.session;
    const session = { settings: { ...settings, ping: { ...settings.ping, protocol: 'udp' as const } } };
    const file = contentOf(reported({ session }));
    expect(file.metadata['NAME']).toBe('ping');
    expect(Object.keys(file.results)).toContain('Ping (ms) UDP');
  });
});

describe('a recording that Flent has no use for is refused', () => {
  function refusal(prepare: (path: string) => void): AppError {
    const path = join(scratchFolder(), 'poor.qscope');
    prepare(path);
    const reader = open(path);
    try {
      createReport(reader, 'flent');
    } catch (error) {
      if (error instanceof AppError) return error;
      throw error;
    }
    throw new Error('it was not refused');
  }

  function store(path: string, options: SyntheticOptions, withPings: boolean): void {
    const made = syntheticSession(options);
    const file = SessionStore.create(path, made.header);
    const { samples, entries } = made;
    file.writeBatch({ samples, probes: withPings ? made.probes : new Float64Array(), entries });
    file.close({ state: 'closed', dropped: { samples: 0, probes: 0, entries: 0 } });
  }

  test.each([
    ['of no length', 'has nothing that was measured', { phases: [] }, true],
    ['without pings', 'has no pings', {}, false],
    ['that does not know its time', 'does not say when', { startedAt: 'once' }, true],
  ])('%s', (_what, words, options, withPings) => {
    const { kind, message } = refusal((path) => store(path, options, withPings));
    expect([kind, message]).toEqual(['bad-input', expect.stringContaining(`poor.qscope ${words}`)]);
  });
});
