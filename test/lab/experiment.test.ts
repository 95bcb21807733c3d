import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { buildTargets } from '../../build/build.mjs';
import { builtInScenarios } from '../../src/probes/built-in-scenarios.ts';
import { jsonLines, runCli, type RunningCli, startCli } from '../harness/run-cli.ts';

/**
 * An experiment with stock programs at both ends: our stack drives a slow virtual device, iperf3 and irtt run over its TAP
 * interface against a stock `iperf3 -s` and `irtt server` in a network namespace at the far end of its link. What we
 * measured is held against what those programs report. No guest is needed: this kernel's TAP interfaces do.
 */

const root = fileURLToPath(new URL('../..', import.meta.url));
const isRoot = process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/dev/net/tun');
const hasPrograms = ['iperf3', 'irtt'].every((name) => spawnSync(name, ['--help']).error === undefined);
const near = 'qsexp0';
const far = 'qsexpfar0';
const namespace = 'qs-experiment';

interface Segment {
  readonly name: string;
  readonly load: string;
  readonly direction: string;
  readonly counts: boolean;
  readonly notes: readonly string[];
  readonly rttUs: { readonly p50: number; readonly n: number };
  readonly payloadUpBitsPerSecond: number;
  readonly payloadDownBitsPerSecond: number;
  readonly iperf3?: { readonly upBitsPerSecond: number | null; readonly downBitsPerSecond: number | null };
  readonly irtt?: { readonly rttP50Us: number; readonly received: number };
}

interface Result {
  readonly segments: readonly Segment[];
  readonly notes: readonly string[];
  readonly verdict: { readonly kind: string; readonly sentence: string };
}

let folder = '';
let servers: ChildProcess[] = [];
let running: RunningCli | undefined;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'qs-experiment-'));
  await buildTargets({ root, names: ['node'], print: () => {} });
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function inNamespace(...command: string[]): ChildProcess {
  return spawn('ip', ['netns', 'exec', namespace, 'nice', '-n', '-15', ...command], { stdio: 'ignore' });
}

/** A shortened `quick-ab`, loaded by iperf3 and probed by irtt, too. */
function scenarioFile(name: string, changes: object): string {
  const quick = builtInScenarios().find((scenario) => scenario.name === 'quick-ab');
  const path = join(folder, `${name}.json`);
  writeFileSync(
    path,
    JSON.stringify({
      ...quick,
      name,
      idleBeforeSeconds: 1,
      idleAfterSeconds: 0,
      settleSeconds: 2,
      repeats: 1,
      probes: [
        { kind: 'icmp', intervalMs: 50 },
        { kind: 'irtt', intervalMs: 50 },
      ],
      ...changes,
    }),
  );
  return path;
}

function start(scenario: string, ...more: string[]): RunningCli {
  const ends = ['--tap', near, '--far-tap', far, '--far-netns', namespace];
  running = startCli(['run', 'sim:modem-10mbit', '--scenario', scenario, ...ends, '--json', ...more]);
  // What else the machine is busy with is not what is measured. Its programs inherit it.
  if (running.child.pid !== undefined) setPriority(running.child.pid, -15);
  return running;
}

async function resultOf(
  run: RunningCli,
): Promise<{ readonly exitCode: number | null; readonly result: Result }> {
  const { exitCode, stdout } = await run.ended;
  const result = jsonLines(stdout).findLast(({ type }) => type === 'result');
  return { exitCode, result: result as unknown as Result };
}

async function hasBegun(run: RunningCli, segment: string): Promise<void> {
  await expect
    .poll(() => run.stdoutSoFar().includes(`"kind":"phase","text":"${segment}"`), { timeout: 60_000 })
    .toBe(true);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** The report that can be made of a recording, and what it keeps of the experiment. */
async function recordingOf(
  path: string,
): Promise<{ readonly report: Record<string, unknown>; readonly kept: string[] }> {
  const { exitCode, stdout } = await runCli(['report', path, '--format', 'json', '--out', '-']);
  expect(exitCode).toBe(0);
  const { RecordingReader } = await import('../../src/recording/recording-reader.ts');
  const reader = RecordingReader.open(path);
  try {
    const kept = Array.from({ length: 20 }, (_, i) => `experiment.segment.${String(i + 1).padStart(5, '0')}`);
    return {
      report: JSON.parse(stdout) as Record<string, unknown>,
      kept: ['experiment', ...kept].filter((key) => reader.metaValue(key) !== undefined),
    };
  } finally {
    reader.close();
  }
}

describe.runIf(isRoot && hasPrograms)('with stock programs at both ends', () => {
  beforeEach(async () => {
    spawnSync('ip', ['netns', 'del', namespace]);
    execFileSync('ip', ['netns', 'add', namespace]);
    execFileSync('ip', ['-n', namespace, 'link', 'set', 'lo', 'up']);
    servers = [inNamespace('iperf3', '-s'), inNamespace('irtt', 'server')];
    // Ports 5201 and 2112, whatever address they listen at.
    const listening = (): boolean => {
      const files = ['tcp', 'tcp6', 'udp', 'udp6'].map((name) => `/proc/net/${name}`);
      const text = execFileSync('ip', ['netns', 'exec', namespace, 'cat', ...files], { encoding: 'utf8' });
      return text.includes(':1451 ') && text.includes(':0840 ');
    };
    await vi.waitUntil(listening, { timeout: 20_000 });
  }, 30_000);

  afterEach(async () => {
    running?.child.kill('SIGKILL');
    await running?.ended;
    running = undefined;
    for (const server of servers) server.kill('SIGKILL');
    execFileSync('ip', ['netns', 'del', namespace]);
  });

  // Once more if it fails: two programs that measure the same at the same time disagree where something else takes the processor.
  test(
    'what we measure is what iperf3 and irtt report: TCP and UDP, up, down and both',
    { retry: 1, timeout: 180_000 },
    async () => {
      const udp = { generator: 'iperf3-udp', payloadBytes: 1400 };
      const scenario = scenarioFile('both-ends', {
        phases: [
          // TCP takes its time to fill the queue; while it does, a median is that of the moment.
          { direction: 'up', seconds: 14, settleSeconds: 7, load: { generator: 'iperf3-tcp' } },
          { direction: 'up', seconds: 8, load: { ...udp, rateBitsPerSecond: 12e6 } },
          { direction: 'down', seconds: 8, load: { ...udp, downRateBitsPerSecond: 10e6 } },
          { direction: 'both', seconds: 8, load: { generator: 'iperf3-tcp', rateBitsPerSecond: 6e6 } },
        ],
      });
      const { exitCode, result } = await resultOf(start(scenario));
      expect(exitCode).toBe(0);
      expect(result.notes).toEqual([]);
      expect(result.segments.map(({ load, direction }) => `${load} ${direction}`)).toEqual([
        'iperf3-tcp up',
        'iperf3-tcp up',
        'iperf3-udp up',
        'iperf3-udp up',
        'iperf3-udp down',
        'iperf3-udp down',
        'iperf3-tcp both',
        'iperf3-tcp both',
      ]);
      for (const segment of result.segments) {
        const { name, counts, iperf3, irtt, rttUs } = segment;
        expect([name, counts]).toEqual([name, true]);
        for (const [ours, theirs] of [
          [segment.payloadUpBitsPerSecond, iperf3?.upBitsPerSecond],
          [segment.payloadDownBitsPerSecond, iperf3?.downBitsPerSecond],
        ] as const) {
          if (theirs === undefined || theirs === null) continue;
          expect([name, Math.abs(ours / theirs - 1) < 0.05, ours, theirs]).toEqual([
            name,
            true,
            ours,
            theirs,
          ]);
        }
        const irttUs = irtt?.rttP50Us ?? Number.NaN;
        const toleranceUs = Math.max(100, irttUs / 10);
        expect([name, Math.abs(rttUs.p50 - irttUs) < toleranceUs, rttUs.p50, irttUs]).toEqual([
          name,
          true,
          rttUs.p50,
          irttUs,
        ]);
      }
      // And the queue is what makes the difference, for their probes as for ours.
      const [tcpOff, tcpOn, udpOff, udpOn] = result.segments;
      // How long TCP makes the queue in a few seconds is its own affair.
      expect(tcpOff?.irtt?.rttP50Us ?? 0).toBeGreaterThan((tcpOn?.irtt?.rttP50Us ?? 0) + 10_000);
      expect(udpOff?.irtt?.rttP50Us ?? 0).toBeGreaterThan(300_000);
      expect(udpOn?.irtt?.rttP50Us ?? 0).toBeLessThan(60_000);
    },
  );

  const short = { phases: [{ direction: 'up', seconds: 4 }], repeats: 2, load: { generator: 'iperf3-tcp' } };

  test('the server is killed: the run goes on to its end, and says that there is not enough data', async () => {
    const out = join(folder, 'server.qscope');
    const run = start(scenarioFile('server-gone', short), '--out', out);
    await hasBegun(run, 'BQL on 1');
    await sleep(1500);
    execFileSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .forEach((pid) => process.kill(Number(pid), 'SIGKILL'));
    const { exitCode, result } = await resultOf(run);
    expect(exitCode).toBe(0);
    expect(result.segments.map(({ counts }) => counts)).toEqual([true, false, false, false]);
    expect(result.segments[1]?.notes.join()).toMatch(/iperf3/);
    expect(result.verdict.kind).toBe('not enough data');
    expect(result.notes.join()).toMatch(/iperf3/);
    const { report, kept } = await recordingOf(out);
    expect(report).toHaveProperty('phases');
    expect(kept).toHaveLength(6);
  }, 120_000);

  test('the link goes down: the run goes on to its end', async () => {
    const out = join(folder, 'link.qscope');
    const run = start(scenarioFile('link-gone', short), '--out', out);
    await hasBegun(run, 'BQL on 1');
    await sleep(1500);
    execFileSync('ip', ['-n', namespace, 'link', 'set', far, 'down']);
    const { exitCode, result } = await resultOf(run);
    expect(exitCode).toBe(0);
    expect(result.segments).toHaveLength(4);
    expect(result.segments.slice(1).map(({ counts }) => counts)).toEqual([false, false, false]);
    expect(result.verdict.kind).toBe('not enough data');
    expect((await recordingOf(out)).kept).toHaveLength(6);
  }, 120_000);

  test('interrupted: what was measured is kept and told', async () => {
    const out = join(folder, 'interrupted.qscope');
    const run = start(scenarioFile('interrupted', short), '--out', out);
    await hasBegun(run, 'BQL on 1');
    await sleep(1000);
    run.child.kill('SIGINT');
    const { exitCode, result } = await resultOf(run);
    expect(exitCode).toBe(130);
    expect(result.segments.map(({ counts }) => counts)).toEqual([true, false]);
    expect(result.segments[1]?.notes).toContain('it ended before its time');
    expect(result.verdict.kind).toBe('not enough data');
    expect((await recordingOf(out)).kept).toHaveLength(4);
    expect(
      execFileSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' }).trim().split('\n'),
    ).toHaveLength(2);
  }, 120_000);

  test('our process is killed: its record is readable, and no program of its is left', async () => {
    const out = join(folder, 'killed.qscope');
    const run = start(scenarioFile('killed', short), '--out', out);
    await hasBegun(run, 'BQL on 1');
    await sleep(1500);
    const clients = (): string =>
      spawnSync('pgrep', ['-f', 'client=10.64.0.1'], { encoding: 'utf8' }).stdout.trim();
    expect(clients()).not.toBe('');
    run.child.kill('SIGKILL');
    await run.ended;
    const { report, kept } = await recordingOf(out);
    expect(kept).toEqual(['experiment', 'experiment.segment.00001', 'experiment.segment.00002']);
    expect((report['phases'] as { name: string }[]).map(({ name }) => name)).toEqual([
      'idle',
      'BQL off 1',
      'BQL on 1',
    ]);
    // Their interface is gone with us.
    await expect.poll(clients, { timeout: 20_000 }).toBe('');
  }, 120_000);
});
