import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildTargets } from '../../build/build.mjs';
import { runCli } from '../harness/run-cli.ts';
import { recordSyntheticSession } from '../harness/synthetic-session.ts';

/** Data files for Flent, before the stock Flent: it reads them, comes to the figures that our report has, and plots. */

const root = fileURLToPath(new URL('../..', import.meta.url));

let folder = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'qs-flent-'));
  await buildTargets({ root, names: ['node'], print: () => {} });
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const hasFlent = spawnSync('flent', ['--version']).error === undefined;

/** Runs it in the scratch folder; answers with its standard output. */
function flent(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('flent', args, { cwd: folder, encoding: 'utf8' });
  expect([args, status, /^(?:ERROR|CRITICAL|Traceback).*/m.exec(stderr)?.[0]]).toEqual([args, 0, undefined]);
  return stdout;
}

interface Spread {
  readonly n: number;
  readonly min: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly mean: number;
}

interface Arm {
  readonly probes: number;
  readonly lost: number;
  readonly rttUs: Spread;
  readonly inflightBytes: Spread;
  readonly limitBytes: Spread;
  readonly backlogBytes: Spread;
  readonly throughputBitsPerSecond: number;
}

/** The report's own figures, and the data files beside them: `name.flent.gz` and one for each arm. */
async function reported(name: string): Promise<Record<'idle' | 'bqlOff' | 'bqlOn', Arm>> {
  const recording = join(folder, `${name}.qscope`);
  const made = await runCli([
    'report',
    recording,
    '--format',
    'flent',
    '--out',
    join(folder, `${name}.flent.gz`),
  ]);
  expect([made.exitCode, made.stderr]).toEqual([0, expect.stringContaining(`${name}-BQL_on.flent.gz`)]);
  const { stdout } = await runCli(['report', recording, '--format', 'json', '--out', '-']);
  return (JSON.parse(stdout) as { arms: Record<'idle' | 'bqlOff' | 'bqlOn', Arm> }).arms;
}

/** Flent's statistics of a file: series → name → value. */
function statisticsOf(file: string): Record<string, Record<string, number>> {
  const series: Record<string, Record<string, number>> = {};
  let current: Record<string, number> = {};
  for (const line of flent('-i', file, '-f', 'stats').split('\n')) {
    const name = /^ (\S.*):$/.exec(line)?.[1];
    if (name !== undefined) series[name] = current = {};
    const value = /^ {2}(\S.*?): +(-?[\d.]+)/.exec(line);
    if (value?.[1] !== undefined) current[value[1]] = Number(value[2]);
  }
  return series;
}

/**
 * Number, mean and extremes are the same. Percentiles are not by the same rule: ours are measured values, Flent puts its
 * own between two of them.
 */
function expectSame(theirs: Record<string, number> | undefined, ours: Spread, scale: number): void {
  expect(theirs?.['Data points']).toBe(ours.n);
  expect(theirs?.['Mean']).toBeCloseTo(ours.mean / scale, 4);
  expect(theirs?.['Min']).toBeCloseTo(ours.min / scale, 4);
  expect(theirs?.['Max']).toBeCloseTo(ours.max / scale, 4);
  for (const [name, value] of [
    ['Median', ours.p50],
    ['99th %', ours.p99],
  ] as const) {
    const difference = Math.abs((theirs?.[name] ?? Number.NaN) * scale - value);
    expect([name, difference <= 0.03 * value, theirs?.[name], value / scale]).toEqual([
      name,
      true,
      theirs?.[name],
      value / scale,
    ]);
  }
}

/** How many points the longest line of a plot has, in the colour that Flent gives to the first series. */
function pointsDrawn(plot: string): number {
  const svg = readFileSync(join(folder, plot), 'utf8');
  const lines = [...svg.matchAll(/<path d="([^"]*)"[^>]*clip-path[^>]*stroke: #1b9e77/g)];
  return Math.max(0, ...lines.map(([, path = '']) => path.split(/[ML]/).length - 1));
}

describe.runIf(hasFlent)('stock Flent', () => {
  test('comes to our report’s figures for a run on a virtual modem, arm by arm', async () => {
    const recording = join(folder, 'run.qscope');
    const length = ['--duration', '12', '--idle', '3'];
    const run = await runCli(['run', 'sim:modem-10mbit', '--bql', 'ab', ...length, '--out', recording]);
    expect(run.exitCode).toBe(0);
    const arms = await reported('run');
    for (const [file, arm] of [
      ['run-BQL_off.flent.gz', arms.bqlOff],
      ['run-BQL_on.flent.gz', arms.bqlOn],
    ] as const) {
      const statistics = statisticsOf(file);
      expectSame(statistics['Ping (ms) ICMP'], arm.rttUs, 1000);
      expectSame(statistics['BQL inflight'], arm.inflightBytes, 1);
      expectSame(statistics['Qdisc backlog'], arm.backlogBytes, 1);
      // Weighted by time there, every sample alike here.
      const upload = (statistics['UDP upload']?.['Mean'] ?? Number.NaN) * 1e6;
      expect(Math.abs(upload / arm.throughputBitsPerSecond - 1)).toBeLessThan(0.01);
    }
    expectSame(statisticsOf('run-BQL_on.flent.gz')['BQL limit'], arms.bqlOn.limitBytes, 1);
    expectSame(statisticsOf('run-idle.flent.gz')['Ping (ms) ICMP'], arms.idle.rttUs, 1000);
    // The queue is what Flent's user sees in them.
    expect(arms.bqlOff.rttUs.p50).toBeGreaterThan(300_000);
    expect(arms.bqlOn.rttUs.p50).toBeLessThan(60_000);
  }, 240_000);

  describe('with losses and a gap', () => {
    const files = ['-i', 'gap-BQL_off.flent.gz', '-i', 'gap-BQL_on.flent.gz'];
    let arms: Record<'idle' | 'bqlOff' | 'bqlOn', Arm>;

    beforeAll(async () => {
      recordSyntheticSession(join(folder, 'gap.qscope'), { gap: { fromUs: 26e6, toUs: 31e6 } });
      arms = await reported('gap');
    }, 60_000);

    test('comes to the same figures, and leaves the losses out as we do', () => {
      for (const [file, { rttUs, probes, lost }] of [
        ['gap-BQL_off.flent.gz', arms.bqlOff],
        ['gap-BQL_on.flent.gz', arms.bqlOn],
      ] as const) {
        const pings = statisticsOf(file)['Ping (ms) ICMP'];
        expectSame(pings, rttUs, 1000);
        expect(lost).toBeGreaterThan(0);
        expect(pings?.['Data points']).toBe(probes - lost);
      }
    }, 60_000);

    test('sums them up with our units and titles', () => {
      const summary = flent('-i', 'gap-BQL_on.flent.gz', '-f', 'summary');
      expect(summary).toContain("Title: 'RM520N-GL, BQL on'");
      const [mean, , , unit, points] =
        /Ping \(ms\) ICMP *: +(\S+) +(\S+) +(\S+) (\S+) +(\d+)/.exec(summary)?.slice(1) ?? [];
      expect([Number(mean), unit, Number(points)]).toEqual([
        Number((arms.bqlOn.rttUs.mean / 1000).toFixed(2)),
        'ms',
        arms.bqlOn.rttUs.n,
      ]);
      expect(summary).toMatch(/BQL limit *: +\S+ +\S+ +\S+ B /);
    }, 60_000);

    test('puts both arms into one table, on the same steps', () => {
      flent(...files, '-f', 'csv', '-o', 'both.csv');
      const text = readFileSync(join(folder, 'both.csv'), 'utf8');
      const [header = '', ...rows] = text.trim().split(/\r?\n/);
      expect(header).toContain('Ping (ms) ICMP - RM520N-GL, BQL on');
      expect(rows).toHaveLength(301);
    }, 60_000);

    test.each(['ping', 'ping_cdf', 'backlog', 'delay'])(
      'plots %s of both',
      (plot) => {
        flent(...files, '-p', plot, '-o', `gap-${plot}.svg`);
        // All round trips of one arm, less what a plot of this size does not show; queues move less.
        expect(pointsDrawn(`gap-${plot}.svg`)).toBeGreaterThan(plot.startsWith('ping') ? 40 : 1);
      },
      60_000,
    );

    test.each(['totals', 'drops'])(
      'plots %s of the whole',
      (plot) => {
        flent('-i', 'gap.flent.gz', '-p', plot, '-o', `whole-${plot}.svg`);
        expect(readFileSync(join(folder, `whole-${plot}.svg`), 'utf8')).toContain('</svg>');
      },
      60_000,
    );
  });

  test('plots a load of TCP over time under its own test for that', async () => {
    const segments = ['off', 'on'].map((bql, index) => ({
      arm: `BQL ${bql}`,
      pair: 1,
      direction: 'up',
      load: 'iperf3-tcp',
      startUs: index * 20e6,
      endUs: (index + 1) * 20e6,
      settleUs: 2e6,
      tailUs: 0,
      counts: true,
    }));
    recordSyntheticSession(join(folder, 'tcp.qscope'), {
      phases: [false, true].map((bql) => ({ seconds: 20, bql, load: true })),
      entries: [
        { type: 'meta', key: 'experiment', value: { version: 1, scenario: {}, state: 'done', notes: [] } },
        ...segments.map((value, index) => ({
          type: 'meta' as const,
          key: `experiment.segment.0000${index + 1}`,
          value,
        })),
      ],
    });
    await reported('tcp');
    expect(flent('-i', 'tcp.flent.gz', '-f', 'summary')).toContain('Summary of tcp_upload test run');
    flent('-i', 'tcp.flent.gz', '-p', 'totals', '-o', 'tcp.svg');
    expect(pointsDrawn('tcp.svg')).toBeGreaterThan(40);
  }, 60_000);
});
