import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildTargets } from '../../build/build.mjs';
import { runCli } from '../harness/run-cli.ts';
import { Ends, far, hasBegun, hasEnds, namespace, resultOf, scenarioFile } from './experiment-ends.ts';

/** What goes wrong during an experiment with stock programs: it comes to its end, and what was measured is kept. */

const root = fileURLToPath(new URL('../..', import.meta.url));

let folder = '';
let ends: Ends;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'qs-experiment-'));
  await buildTargets({ root, names: ['node'], print: () => {} });
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

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

describe.runIf(hasEnds())('with stock programs at both ends', () => {
  beforeEach(async () => {
    ends = await Ends.open();
  }, 30_000);

  afterEach(() => ends.close());

  const short = { phases: [{ direction: 'up', seconds: 4 }], repeats: 2, load: { generator: 'iperf3-tcp' } };

  test('the server is killed: the run goes on to its end, and says that there is not enough data', async () => {
    const out = join(folder, 'server.qscope');
    const run = ends.start(scenarioFile(folder, 'server-gone', short), '--out', out);
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
    const run = ends.start(scenarioFile(folder, 'link-gone', short), '--out', out);
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
    const run = ends.start(scenarioFile(folder, 'interrupted', short), '--out', out);
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
    const run = ends.start(scenarioFile(folder, 'killed', short), '--out', out);
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
