import { spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildTargets } from '../../build/build.mjs';
import { deviceSchema } from '../../src/contract/device.ts';
import { z } from 'zod';
import { RecordingReader } from '../../src/recording/recording-reader.ts';
import { jsonLines, runCli, startCli } from '../harness/run-cli.ts';

/** The command line as scripts depend on it: output, exit codes, files (DESIGN section 4). */

const root = fileURLToPath(new URL('../..', import.meta.url));
const traces = fileURLToPath(new URL('../fixtures/kernel-traces/', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'queuescope-cli-'));
const recording = join(folder, 'run.qscope');

function inFolder(name: string): string {
  return join(folder, name);
}

function phasesOf(document: Record<string, unknown>): { bql: string; rttUs: { p50: number; n: number } }[] {
  return document['segments'] as { bql: string; rttUs: { p50: number; n: number } }[];
}

/** How a recording ended, as a report tells it. */
async function storedState(path: string): Promise<unknown> {
  const { stdout } = await runCli(['report', path, '--format', 'json', '--out', '-']);
  return (JSON.parse(stdout) as { meta: { state: string } }).meta.state;
}

beforeAll(async () => {
  await buildTargets({ root, names: ['node'], print: () => {} });
}, 120_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('list', () => {
  test('--json prints one document of devices as the contract has them', async () => {
    const { exitCode, stdout } = await runCli(['list', '--json']);
    expect(exitCode).toBe(0);
    const devices = z.array(deviceSchema).parse(JSON.parse(stdout));
    expect(devices.map((device) => device.id)).toContain('sim:modem-10mbit');
    for (const device of devices) if (device.mode !== 'observe') expect(device.speed).not.toBe('unknown');
  });

  test('prints a table for people', async () => {
    const { stdout } = await runCli(['list']);
    expect(stdout).toMatch(/sim:modem-10mbit +1209:0001 +super +cdc_ether +available/);
  });
});

describe('doctor', () => {
  const doctorSchema = z.object({
    state: z.enum(['ok', 'warning', 'problem']),
    exitCode: z.number(),
    checks: z.array(
      z.object({
        id: z.string(),
        group: z.string(),
        subject: z.string().nullable(),
        state: z.enum(['ok', 'warning', 'problem', 'not-applicable']),
        message: z.string().min(1),
        remedy: z.string().nullable(),
        kind: z.string().nullable(),
      }),
    ),
  });

  test('--json prints one document of findings; its exit code is that of the command', async () => {
    const { exitCode, stdout, stderr } = await runCli(['doctor', '--json'], {
      QUEUESCOPE_RECORDINGS: folder,
    });
    expect(stderr).toBe('');
    const document = doctorSchema.parse(JSON.parse(stdout));
    expect(exitCode).toBe(document.exitCode);
    const find = (id: string): unknown => document.checks.find((check) => check.id === id);
    // What runs the tests has them.
    for (const id of ['node-version', 'recordings-folder', 'usb-library']) {
      expect(find(id)).toMatchObject({ state: 'ok' });
    }
  });

  test('no place for recordings: exit code 2, and words that fit a terminal', async () => {
    const { exitCode, stdout } = await runCli(['doctor'], {
      QUEUESCOPE_RECORDINGS: join(root, 'package.json', 'no-folder'),
    });
    // A problem with a device would come first.
    expect([2, 4, 5]).toContain(exitCode);
    expect(stdout).toMatch(/^ {2}problem {2}Recordings cannot be written to/m);
    expect(stdout).toMatch(/^ +export QUEUESCOPE_RECORDINGS=FOLDER$/m);
  });
});

describe('identify', () => {
  const descriptors = fileURLToPath(new URL('../fixtures/descriptors/', import.meta.url));
  const listing = join(descriptors, 'huawei-1506-ncm.txt');
  const identified = z.object({
    devices: z.array(
      z.object({
        functions: z.array(
          z.object({
            function: z.string(),
            driver: z.string().nullable(),
            linuxDriver: z.string(),
            configuration: z.number(),
            interfaces: z.array(z.number()),
            quirks: z.array(z.string()),
            reason: z.string(),
          }),
        ),
      }),
    ),
  });

  test('--json prints one document, of a file or of standard input', async () => {
    const fromFile = await runCli(['identify', listing, '--json']);
    expect(fromFile.exitCode).toBe(0);
    const [device] = identified.parse(JSON.parse(fromFile.stdout)).devices;
    expect(device?.functions).toMatchObject([
      { function: 'wwan', linuxDriver: 'huawei_cdc_ncm', configuration: 1, interfaces: [2] },
    ]);
    const fromInput = spawnSync(
      process.execPath,
      [join(root, 'build/queuescope.mjs'), 'identify', '-', '--json'],
      {
        input: readFileSync(listing),
        encoding: 'utf8',
        timeout: 10_000,
      },
    );
    expect(fromInput).toMatchObject({ status: 0, stdout: fromFile.stdout });
  });

  test('says it in words', async () => {
    const { stdout } = await runCli(['identify', join(descriptors, 'realtek-rtl8153-lenovo-dock.txt')]);
    expect(stdout).toMatch(/^0bda:8153 Realtek/);
    expect(stdout).toMatch(/minidriver cdc_ether; in Linux: cdc_ether/);
    expect(stdout).toMatch(/switches to that configuration/);
  });

  test.each([
    ['a file that is not there', 'missing.txt', undefined, /no such file/],
    [
      'a text that is no listing',
      'letter.txt',
      '\n\nDear all,\n\nit does not work.\n',
      /line 3: "Dear all,"/,
    ],
    ['an empty file', 'empty.txt', '', /line 1: there is nothing in it/],
  ])('%s: exit code 2, and words', async (_name, file, text, words) => {
    const path = inFolder(file);
    if (text !== undefined) writeFileSync(path, text);
    const { exitCode, stdout, stderr } = await runCli(['identify', path, '--json']);
    expect(exitCode).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toMatch(words);
  });
});

describe('dql-replay', () => {
  for (const file of readdirSync(traces)) {
    test(`${file}: a line for every completion, equal to the kernel's own`, async () => {
      const { exitCode, stdout } = await runCli(['dql-replay', join(traces, file)]);
      expect(exitCode).toBe(0);
      const expected = readFileSync(join(traces, file), 'utf8')
        .split('\n')
        .filter((line) => line.startsWith('{"completed"'));
      expect(jsonLines(stdout)).toEqual(expected.map((line) => JSON.parse(line) as unknown));
    });
  }

  test.each([
    ['a file that is not there', 'missing.jsonl', undefined, /no such file/],
    [
      'a trace that completes too much',
      'bad.jsonl',
      '{"hold_time":1,"limit_max":9}\n{"completed":5,"now":1}\n',
      /line 2/,
    ],
    [
      'a file without a line’s end',
      'endless.jsonl',
      '\0'.repeat(1_100_000),
      /line 1 is longer than 1,000,000 characters/,
    ],
  ])('%s: exit code 2, and words', async (_name, file, text, words) => {
    const path = inFolder(file);
    if (text !== undefined) writeFileSync(path, text);
    const { exitCode, stdout, stderr } = await runCli(['dql-replay', path]);
    expect(exitCode).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toMatch(words);
  });
});

const own = {
  version: 1,
  name: 'own',
  arms: [{ name: 'BQL on', bql: { enabled: true } }],
  phases: [{ direction: 'up', seconds: 3 }],
};

/** A scenario laid out over lines. */
function ownText(changes: object): string {
  return JSON.stringify({ ...own, ...changes }, undefined, 1);
}

describe('simulate', { timeout: 30_000 }, () => {
  test('cellular-10mbit: one document, with the figures of the patch, in less than 5 s', async () => {
    const startedAtMs = performance.now();
    const { exitCode, stdout } = await runCli(['simulate', '--scenario', 'cellular-10mbit', '--json']);
    expect(exitCode).toBe(0);
    // A whole process on a shared machine; the simulation itself takes well under a second.
    expect(performance.now() - startedAtMs).toBeLessThan(15_000);
    const document = JSON.parse(stdout) as Record<string, unknown>;
    const idle = document['idle'] as { rttUs: { p50: number } };
    const [off, on] = phasesOf(document);
    expect(off?.bql).toBe('off');
    expect(on?.bql).toBe('on');
    const offMs = ((off?.rttUs.p50 ?? 0) - idle.rttUs.p50) / 1000;
    const onMs = ((on?.rttUs.p50 ?? 0) - idle.rttUs.p50) / 1000;
    expect(offMs).toBeGreaterThan(363);
    expect(offMs).toBeLessThan(369);
    expect(onMs).toBeLessThan(offMs / 10);
    for (const segment of phasesOf(document)) {
      expect(segment).toMatchObject({
        rttUs: {
          n: expect.any(Number),
          p50: expect.any(Number),
          p95: expect.any(Number),
          p99: expect.any(Number),
        },
        throughputBitsPerSecond: expect.any(Number),
        inflightBytes: { p50: expect.any(Number), max: expect.any(Number) },
      });
      expect(segment).toHaveProperty('limitBytes.p50');
      expect(segment).toHaveProperty('limitBytes.max');
    }
  });

  test('a scenario of one’s own, from a file', async () => {
    const path = inFolder('own.json');
    writeFileSync(
      path,
      JSON.stringify({
        ...own,
        device: 'sim:tether-usb2',
        idleBeforeSeconds: 1,
      }),
    );
    const { exitCode, stdout } = await runCli(['simulate', '--scenario', path, '--json']);
    expect(exitCode).toBe(0);
    expect(phasesOf(JSON.parse(stdout) as Record<string, unknown>)).toHaveLength(1);
  });

  test.each([
    ['no such scenario', 'nothing-like-it', /no scenario and no file/],
    ['no JSON', '{', /JSON/],
    [
      'a misspelt property',
      ownText({ phases: [{ direction: 'up', secnds: 3 }] }),
      /line 15: phases\.0\.secnds/,
    ],
    [
      'an impossible value',
      ownText({ phases: [{ direction: 'up', seconds: -1 }] }),
      /line 15: phases\.0\.seconds/,
    ],
    ['no phases', ownText({ phases: [] }), /line 12: phases/],
    ['another version', ownText({ version: 2 }), /line 2: version: it is 2/],
  ])('%s: exit code 2, and the place', async (name, text, words) => {
    const path = text.startsWith('{') ? inFolder(`${name}.json`) : text;
    if (text.startsWith('{')) writeFileSync(path, text);
    const { exitCode, stderr } = await runCli(['simulate', '--scenario', path, '--json']);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(words);
  });

  test('an unknown virtual device: exit code 3', async () => {
    const path = inFolder('unknown-device.json');
    writeFileSync(path, ownText({ device: 'sim:none' }));
    expect((await runCli(['simulate', '--scenario', path])).exitCode).toBe(3);
  });

  test('criteria of its own: exit code 6 if one is not met', async () => {
    const path = inFolder('criteria.json');
    const criterion = { metric: 'rttP50Us', arm: 'BQL on' };
    writeFileSync(path, ownText({ pass: [{ ...criterion, max: 1_000_000 }] }));
    expect((await runCli(['simulate', '--scenario', path])).exitCode).toBe(0);
    writeFileSync(
      path,
      ownText({
        pass: [
          { ...criterion, max: 1_000_000 },
          { ...criterion, max: 1 },
        ],
      }),
    );
    const { exitCode, stdout } = await runCli(['simulate', '--scenario', path]);
    expect(exitCode).toBe(6);
    expect(stdout).toMatch(/^met: rttP50Us of BQL on/m);
    expect(stdout).toMatch(/^NOT MET: rttP50Us of BQL on: [\d.]+ ms; at most 0\.00 ms/m);
  });

  test('a cap on data ends it, and says so', async () => {
    const path = inFolder('capped.json');
    writeFileSync(path, ownText({ repeats: 4 }));
    const { exitCode, stdout } = await runCli([
      'simulate',
      '--scenario',
      path,
      '--max-data',
      '10MB',
      '--json',
    ]);
    expect(exitCode).toBe(0);
    const result = JSON.parse(stdout) as {
      dataBytes: number;
      plannedData: { upBytes: number };
      notes: string[];
    };
    expect(result.plannedData.upBytes).toBeGreaterThan(14e6);
    // The last sample may go beyond it.
    expect(result.dataBytes).toBeGreaterThanOrEqual(10e6);
    expect(result.dataBytes).toBeLessThan(10.2e6);
    expect(result.notes.join()).toMatch(/its cap of 10\.0 MB/);
  });

  test('what was fitted is told, with what the model gives without', async () => {
    const { exitCode, stdout } = await runCli(['simulate', '--scenario', 'seed-cellular-10mbit']);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^BQL cut the loaded p95 of a priority ping from /m);
    expect(stdout).toMatch(/^Calibration: .*FIFO/m);
    expect(stdout).toMatch(/^Without the fit: /m);
  });
});

describe('run --scenario', () => {
  test('progress with time left, the verdict, the record; criteria decide the exit code', async () => {
    const path = inFolder('live.json');
    const out = inFolder('live.qscope');
    writeFileSync(
      path,
      ownText({
        idleBeforeSeconds: 1,
        settleSeconds: 0.5,
        arms: [{ name: 'BQL off', bql: { enabled: false } }, ...own.arms],
        phases: [{ direction: 'both', seconds: 2 }],
        probes: [{ intervalMs: 50 }, { intervalMs: 100, priority: false, target: '10.64.0.9' }],
        pass: [{ metric: 'rttP50Us', arm: 'BQL off', max: 1000 }],
      }),
    );
    const { exitCode, stdout, stderr } = await runCli([
      'run',
      'sim:modem-10mbit',
      '--scenario',
      path,
      '--out',
      out,
      '--json',
    ]);
    expect(exitCode).toBe(6);
    expect(stderr).toMatch(/^own: 3 segments, 0:05, about .* up and .* down/m);
    expect(stderr).toMatch(/^3 of 3: BQL on 1, 0:0\d left/m);
    const result = jsonLines(stdout).findLast(({ type }) => type === 'result');
    expect(result).toMatchObject({
      scenario: 'own',
      verdict: { kind: 'not enough data', criteria: [{ passed: false }] },
    });
    const segments = result?.['segments'] as {
      rttUs: { p50: number };
      receivedBitsPerSecond: number;
      moreProbes: { probes: number; lost: number; rttUs: { p50: number } }[];
    }[];
    expect(segments).toHaveLength(2);
    for (const { receivedBitsPerSecond, moreProbes, rttUs } of segments) {
      expect(receivedBitsPerSecond).toBeGreaterThan(40e6);
      // Best effort waits behind the load in the qdisc.
      expect(moreProbes[0]?.rttUs.p50 ?? 0).toBeGreaterThan(rttUs.p50 + 50_000);
    }
    const reader = RecordingReader.open(out);
    try {
      expect(reader.metaValue('experiment')).toMatchObject({
        state: 'done',
        scenario: { name: 'own' },
        verdict: { kind: 'not enough data' },
      });
      expect(reader.metaValue('experiment.segment.00003')).toMatchObject({ arm: 'BQL on', pair: 1 });
    } finally {
      reader.close();
    }
  }, 60_000);

  test('interrupted: exit code 130, with what there is', async () => {
    const running = startCli(['run', 'sim:modem-10mbit', '--scenario', 'quick-ab', '--json']);
    await expect
      .poll(() => running.stdoutSoFar().includes('"text":"BQL off 1"'), { timeout: 30_000 })
      .toBe(true);
    running.child.kill('SIGINT');
    const { exitCode, stdout } = await running.ended;
    expect(exitCode).toBe(130);
    const result = jsonLines(stdout).findLast(({ type }) => type === 'result');
    expect(result).toMatchObject({ notes: ['interrupted'], verdict: { kind: 'not enough data' } });
    expect(result?.['segments']).toHaveLength(1);
  }, 60_000);

  test('a simulation that is interrupted ends at once, with exit code 130 and what there is', async () => {
    const running = startCli(['simulate', '--scenario', 'soak', '--json']);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(running.child.exitCode).toBeNull();
    running.child.kill('SIGINT');
    const askedAtMs = performance.now();
    const { exitCode, stdout } = await running.ended;
    expect(performance.now() - askedAtMs).toBeLessThan(10_000);
    expect(exitCode).toBe(130);
    expect(JSON.parse(stdout)).toMatchObject({ scenario: 'soak', notes: ['it was interrupted'] });
  }, 60_000);
});

describe('run, sessions and report', () => {
  test('drives a virtual device, streams JSON lines and records', async () => {
    const { exitCode, stdout, stderr } = await runCli([
      'run',
      'sim:modem-10mbit',
      '--bql',
      'ab',
      '--duration',
      '6',
      '--out',
      recording,
      '--json',
    ]);
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
    const lines = jsonLines(stdout);
    expect(lines[0]).toMatchObject({ type: 'session' });
    expect(lines.filter((line) => line['type'] === 'sample').length).toBeGreaterThan(100);
    expect(lines.filter((line) => line['type'] === 'probe').length).toBeGreaterThan(15);
    const last = lines.at(-1) ?? {};
    expect(last).toMatchObject({ type: 'result', state: 'stopped' });
    const [off, on] = phasesOf(last);
    expect(off?.rttUs.p50).toBeGreaterThan(300_000);
    expect(on?.rttUs.p50).toBeLessThan(60_000);
    expect(existsSync(recording)).toBe(true);
  }, 60_000);

  test('with a qdisc of choice, which the record and the report name', async () => {
    const path = inFolder('fq-codel.qscope');
    const { exitCode, stdout } = await runCli([
      'run',
      'sim:modem-10mbit',
      '--qdisc',
      'fq_codel target 10ms',
      '--duration',
      '4',
      '--out',
      path,
      '--json',
    ]);
    expect(exitCode).toBe(0);
    const lines = jsonLines(stdout);
    expect(lines[0]).toMatchObject({
      session: { settings: { qdisc: { kind: 'fq_codel', targetUs: 10_000 } } },
    });
    const samples = lines.filter((line) => line['type'] === 'sample');
    expect(samples.at(-1)).toMatchObject({ qdiscMarkedPackets: 0 });
    expect(Number(samples.at(-1)?.['qdiscDroppedPackets'])).toBeGreaterThan(0);
    expect(samples.some((sample) => Number(sample['qdiscFlows']) >= 1)).toBe(true);
    expect((await runCli(['report', path, '--out', inFolder('fq-codel.html')])).exitCode).toBe(0);
    const html = readFileSync(inFolder('fq-codel.html'), 'utf8');
    expect(html).toContain('fq_codel, target 10.0 ms');
    expect(html).toContain('fq_codel target 10.0 ms');
  }, 30_000);

  test('html: one file that needs nothing else', async () => {
    const out = inFolder('report.html');
    expect((await runCli(['report', recording, '--out', out])).exitCode).toBe(0);
    const html = readFileSync(out, 'utf8');
    expect(html).toMatch(/^<!doctype html>/i);
    expect(html).toContain('Queuescope virtual modem');
    expect(html).toContain('p99');
    expect(html).not.toMatch(/(?:src|href)\s*=\s*["']?(?:https?:)?\/\//);
    expect(html).not.toMatch(/url\(\s*["']?(?:https?:)?\/\//);
  });

  test('csv: samples, and probes beside them', async () => {
    const out = inFolder('report.csv');
    expect((await runCli(['report', recording, '--format', 'csv', '--out', out])).exitCode).toBe(0);
    const [header = '', ...rows] = readFileSync(out, 'utf8').trim().split(/\r?\n/);
    expect(header).toContain('inflightBytes');
    expect(rows.length).toBeGreaterThan(100);
    expect(readFileSync(inFolder('report-probes.csv'), 'utf8')).toContain('rttUs');
  });

  test('json: on standard output with "-"', async () => {
    const { exitCode, stdout } = await runCli(['report', recording, '--format', 'json', '--out', '-']);
    expect(exitCode).toBe(0);
    const document = JSON.parse(stdout) as { phases: unknown[] };
    expect(document.phases.length).toBe(3);
  });

  test('flent: a data file of the whole, and one of each arm beside it; with "-" the bytes and nothing else', async () => {
    const out = inFolder('report.flent.gz');
    const { exitCode, stderr } = await runCli(['report', recording, '--format', 'flent', '--out', out]);
    expect(exitCode).toBe(0);
    const written = ['report', 'report-idle', 'report-BQL_off', 'report-BQL_on'].map((name) =>
      inFolder(`${name}.flent.gz`),
    );
    expect(stderr.trim().split('\n')).toEqual(written.map((path) => `written to ${path}`));
    for (const path of written) {
      const document = JSON.parse(gunzipSync(readFileSync(path)).toString('utf8')) as { version: number };
      expect(document.version).toBe(3);
    }
    const piped = inFolder('piped.gz');
    const file = openSync(piped, 'w');
    const all = ['report', recording, '--format', 'flent', '--out', '-'];
    expect((await startCli(all, {}, file).ended).exitCode).toBe(0);
    closeSync(file);
    expect(readFileSync(piped)).toEqual(readFileSync(out));
  });

  test.each([
    ['a name that Flent would misread', 'x.gz', 'has to end in .flent.gz'],
    ['a folder that is not there', join('nowhere', 'x.flent.gz'), 'there is no such file or folder'],
    ['a folder in its place', 'folder.flent.gz', 'it is a folder'],
  ])('flent to %s: exit code 2, words, and no part of a file', async (_what, name, words) => {
    mkdirSync(inFolder('folder.flent.gz'), { recursive: true });
    const before = readdirSync(folder).toSorted();
    const { exitCode, stderr } = await runCli([
      'report',
      recording,
      '--format',
      'flent',
      '--out',
      inFolder(name),
    ]);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(words)]);
    expect(readdirSync(folder).toSorted()).toEqual(before);
  });

  test('a damaged recording: exit code 2, words, and no part of a file', async () => {
    const path = inFolder('damaged.qscope');
    const bytes = readFileSync(recording);
    bytes.fill(0xa5, 4096, Math.min(bytes.length, 65_536));
    writeFileSync(path, bytes);
    const out = inFolder('damaged.flent.gz');
    const { exitCode, stderr } = await runCli(['report', path, '--format', 'flent', '--out', out]);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('damaged.qscope')]);
    expect(existsSync(out) || existsSync(`${out}.partial`)).toBe(false);
  });

  test('a file that is no recording: exit code 2, and words', async () => {
    const path = inFolder('no.qscope');
    writeFileSync(path, 'not a database, but long enough to be looked at as one'.repeat(100));
    const { exitCode, stderr } = await runCli(['report', path, '--out', inFolder('x.html')]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('no.qscope');
  });

  test('a recording is never overwritten', async () => {
    const before = readFileSync(recording);
    const { exitCode, stderr } = await runCli([
      'run',
      'sim:modem-10mbit',
      '--duration',
      '1',
      '--out',
      recording,
    ]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('run.qscope');
    expect(readFileSync(recording).equals(before)).toBe(true);
  }, 30_000);

  test('Ctrl-C: exit code 130, and what was recorded is kept', async () => {
    const path = inFolder('interrupted.qscope');
    const running = startCli(['run', 'sim:modem-10mbit', '--duration', '60', '--out', path, '--json']);
    await expect
      .poll(() => running.stdoutSoFar().split('"type":"sample"').length, { timeout: 20_000 })
      .toBeGreaterThan(30);
    running.child.kill('SIGINT');
    const { exitCode, stdout } = await running.ended;
    expect(exitCode).toBe(130);
    expect(jsonLines(stdout).at(-1)).toMatchObject({ type: 'result', state: 'stopped' });
    const { stdout: report } = await runCli(['report', path, '--format', 'json', '--out', '-']);
    expect(JSON.parse(report)).toHaveProperty('phases');
  }, 60_000);

  test('a terminal that is closed (SIGHUP) ends a run in an orderly way', async () => {
    const path = inFolder('hung-up.qscope');
    const running = startCli(['run', 'sim:modem-10mbit', '--duration', '60', '--out', path, '--json']);
    await expect
      .poll(() => running.stdoutSoFar().split('"type":"sample"').length, { timeout: 20_000 })
      .toBeGreaterThan(10);
    running.child.kill('SIGHUP');
    const { exitCode, stdout } = await running.ended;
    expect(exitCode).toBe(130);
    expect(jsonLines(stdout).at(-1)).toMatchObject({ type: 'result', state: 'stopped' });
    expect(await storedState(path)).toBe('closed');
  }, 60_000);

  test.each([
    ['standard output', ['--json'], 'stdout'],
    ['standard error', [], 'stderr'],
  ] as const)(
    'a reader of %s that goes away ends a run in an orderly way',
    async (name, args, stream) => {
      const path = inFolder(`${name}.qscope`);
      const running = startCli(['run', 'sim:modem-10mbit', '--duration', '60', '--out', path, ...args]);
      const reader = running.child[stream];
      await new Promise((resolve) => {
        reader?.once('data', resolve);
      });
      reader?.destroy();
      expect((await running.ended).exitCode).toBe(0);
      expect(await storedState(path)).toBe('closed');
    },
    60_000,
  );

  test.skipIf(!existsSync('/dev/full'))(
    'standard output on a full disk: exit code 2, and words',
    async () => {
      const path = inFolder('full-output.qscope');
      const full = openSync('/dev/full', 'w');
      const args = ['run', 'sim:modem-10mbit', '--duration', '60', '--out', path, '--json'];
      const { exitCode, stderr } = await startCli(args, {}, full).ended;
      closeSync(full);
      expect(stderr).toContain('standard output cannot be written: the disk is full');
      expect(exitCode).toBe(2);
      expect(await storedState(path)).toBe('closed');
    },
    60_000,
  );

  test('a report never takes the place of a recording', async () => {
    const copy = inFolder('copy-without-extension');
    copyFileSync(recording, copy);
    const before = readFileSync(recording);
    for (const [file, out] of [
      [recording, recording],
      [copy, recording],
      [copy, copy],
    ] as const) {
      const { exitCode, stderr } = await runCli(['report', file, '--out', out]);
      expect(stderr).toMatch(/must not take the place of a recording/);
      expect(exitCode).toBe(2);
      expect(readFileSync(out).equals(before)).toBe(true);
    }
  }, 60_000);

  test('a recording that cannot be made is not said to be there', async () => {
    const path = join(folder, 'no-such-folder', 'x.qscope');
    const { exitCode, stderr } = await runCli(['run', 'sim:modem-10mbit', '--out', path]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('could not be created: there is no such file or folder');
    expect(stderr).not.toContain('recorded in');
  }, 60_000);

  test('killed: at most the last second is lost', async () => {
    const path = inFolder('killed.qscope');
    const running = startCli(['run', 'sim:modem-10mbit', '--duration', '60', '--out', path, '--json']);
    const samples = (text: string): number => text.split('"type":"sample"').length - 1;
    await expect.poll(() => samples(running.stdoutSoFar()), { timeout: 20_000 }).toBeGreaterThan(60);
    running.child.kill('SIGKILL');
    const { stdout } = await running.ended;
    const lastUs = Number(
      jsonLines(stdout.slice(0, stdout.lastIndexOf('\n') + 1)).findLast(
        (line) => line['type'] === 'sample',
      )?.['timeUs'],
    );
    const { exitCode, stdout: report } = await runCli(['report', path, '--format', 'csv', '--out', '-']);
    expect(exitCode).toBe(0);
    const rows = report.trim().split(/\r?\n/);
    const lastRow = (rows.at(-1) ?? '').split(',');
    const column = (rows[0] ?? '').split(',').findIndex((name) => name.startsWith('timeUs'));
    expect(lastUs - Number(lastRow[column])).toBeLessThan(1_000_000);
  }, 60_000);

  test('compare: one document of two recordings, and words', async () => {
    const other = inFolder('fq-codel.qscope');
    const { exitCode, stdout } = await runCli(['compare', recording, other, '--json']);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      format: 'queuescope-comparison',
      a: { fileName: 'run.qscope' },
      b: { fileName: 'fq-codel.qscope' },
      arms: {
        bqlOff: { a: { rttP50Us: expect.any(Number) }, b: null },
        bqlOn: { ratio: { throughputBitsPerSecond: expect.any(Number) } },
      },
      warnings: expect.arrayContaining([expect.objectContaining({ id: 'different-settings' })]),
    });
    const words = await runCli(['compare', recording, other]);
    expect(words.exitCode).toBe(0);
    expect(words.stdout).toMatch(/^Throughput +10\.\d Mbit\/s +10\.\d Mbit\/s/m);
    expect(words.stdout).toContain('none of them is called significant');
  });

  test('compare: a recording that is missing or none is told, with exit code 2', async () => {
    for (const file of [inFolder('missing.qscope'), inFolder('no.qscope')]) {
      const { exitCode, stdout, stderr } = await runCli(['compare', recording, file, '--json']);
      expect(exitCode).toBe(2);
      expect(stdout).toBe('');
      expect(stderr).toContain(file.endsWith('no.qscope') ? 'no.qscope' : 'there is no such file');
    }
  });

  test('sessions lists what is in the library', async () => {
    const { exitCode, stdout } = await runCli(['sessions', '--json'], { QUEUESCOPE_RECORDINGS: folder });
    expect(exitCode).toBe(0);
    const recordings = JSON.parse(stdout) as { fileName: string; state: string }[];
    expect(recordings.find(({ fileName }) => fileName === 'run.qscope')).toMatchObject({ state: 'closed' });
  });

  test('sessions says why a file is damaged', async () => {
    const damaged = mkdtempSync(join(folder, 'damaged-'));
    writeFileSync(join(damaged, 'broken.qscope'), 'not a database, but long enough'.repeat(100));
    const { exitCode, stdout, stderr } = await runCli(['sessions'], { QUEUESCOPE_RECORDINGS: damaged });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/broken\.qscope +damaged/);
    expect(stderr).toMatch(/^broken\.qscope could not be opened: it is damaged, or not a recording$/m);
  });
});

describe('bad input', () => {
  test.each([
    ['an unknown device', ['run', 'usb:9-9'], 3, /no device usb:9-9/],
    ['an unknown command', ['measure'], 2, /unknown command/],
    ['an unknown option', ['list', '--yaml'], 2, /unknown option/],
    ['no device', ['run'], 2, /missing required argument/],
    ['a rate that is none', ['run', 'sim:modem-10mbit', '--load-rate', 'fast'], 2, /bits per second/],
    ['a qdisc that is none', ['run', 'sim:modem-10mbit', '--qdisc', 'cake'], 2, /fq_codel/],
    ['an address that is none', ['run', 'sim:modem-10mbit', '--address', '10.9.0.2'], 2, /prefix/],
    [
      'a target that is everybody',
      ['run', 'sim:modem-10mbit', '--target', '255.255.255.255'],
      2,
      /--target 255.255.255.255: it is not the address of a host/,
    ],
    [
      'a target that no way leads to',
      ['run', 'sim:modem-10mbit', '--address', '10.9.0.2/24', '--target', '10.8.0.1'],
      2,
      /no way leads to 10.8.0.1/,
    ],
    [
      'limits that cross',
      ['run', 'sim:modem-10mbit', '--limit-min', '9', '--limit-max', '8'],
      2,
      /limit-min/,
    ],
    [
      'a scenario and its own settings',
      ['run', 'sim:modem-10mbit', '--scenario', 'cellular-10mbit', '--bql', 'on'],
      2,
      /contradict/,
    ],
    [
      'a format that does not exist',
      ['report', 'x.qscope', '--format', 'xlsx', '--out', 'x'],
      2,
      /html, csv, json, flent, pdf/,
    ],
  ])('%s', async (_name, args, code, words) => {
    const { exitCode, stdout, stderr } = await runCli(args);
    expect(stderr).toMatch(words);
    expect(exitCode).toBe(code);
    expect(stdout).toBe('');
  });

  test('--version and help are no errors', async () => {
    expect((await runCli(['--version'])).exitCode).toBe(0);
    expect((await runCli(['help'])).exitCode).toBe(0);
    expect((await runCli(['run', '--help'])).exitCode).toBe(0);
  });
});
