/**
 * Both ends of an experiment with stock programs: our stack drives a slow virtual device, iperf3 and irtt run over its TAP
 * interface against a stock `iperf3 -s` and `irtt server` in a network namespace at the far end of its link. No guest is
 * needed: this kernel's TAP interfaces do.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { builtInScenarios } from '../../src/probes/built-in-scenarios.ts';
import { jsonLines, type RunningCli, startCli } from '../harness/run-cli.ts';

const near = 'qsexp0';
/** The far end's interface, in the namespace. */
export const far = 'qsexpfar0';
/** The far end's network namespace. */
export const namespace = 'qs-experiment';

/** Whether this machine has what it takes: root, TAP interfaces, and the stock programs. */
export function hasEnds(): boolean {
  const isRoot = process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/dev/net/tun');
  return isRoot && ['iperf3', 'irtt'].every((name) => spawnSync(name, ['--help']).error === undefined);
}

export interface Segment {
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

export interface Result {
  readonly segments: readonly Segment[];
  readonly notes: readonly string[];
  readonly verdict: { readonly kind: string; readonly sentence: string };
}

function inNamespace(...command: string[]): ChildProcess {
  return spawn('ip', ['netns', 'exec', namespace, 'nice', '-n', '-15', ...command], { stdio: 'ignore' });
}

/** The far end, with its servers listening. */
export class Ends {
  readonly #servers: readonly ChildProcess[];
  #running: RunningCli | undefined;

  private constructor(servers: readonly ChildProcess[]) {
    this.#servers = servers;
  }

  /** Makes the namespace and starts its servers; what an earlier run left of it is removed. */
  static async open(): Promise<Ends> {
    spawnSync('ip', ['netns', 'del', namespace]);
    execFileSync('ip', ['netns', 'add', namespace]);
    execFileSync('ip', ['-n', namespace, 'link', 'set', 'lo', 'up']);
    const ends = new Ends([inNamespace('iperf3', '-s'), inNamespace('irtt', 'server')]);
    // Ports 5201 and 2112, whatever address they listen at.
    const listening = (): boolean => {
      const files = ['tcp', 'tcp6', 'udp', 'udp6'].map((name) => `/proc/net/${name}`);
      const text = execFileSync('ip', ['netns', 'exec', namespace, 'cat', ...files], { encoding: 'utf8' });
      return text.includes(':1451 ') && text.includes(':0840 ');
    };
    await vi.waitUntil(listening, { timeout: 20_000 });
    return ends;
  }

  /** Starts a run of the scenario on a virtual device between the two ends. */
  start(scenario: string, ...more: string[]): RunningCli {
    const ends = ['--tap', near, '--far-tap', far, '--far-netns', namespace];
    const running = startCli(['run', 'sim:modem-10mbit', '--scenario', scenario, ...ends, '--json', ...more]);
    this.#running = running;
    // What else the machine is busy with is not what is measured. Its programs inherit it.
    if (running.child.pid !== undefined) setPriority(running.child.pid, -15);
    return running;
  }

  /** Ends what still runs, and removes the namespace. */
  async close(): Promise<void> {
    this.#running?.child.kill('SIGKILL');
    await this.#running?.ended;
    for (const server of this.#servers) server.kill('SIGKILL');
    execFileSync('ip', ['netns', 'del', namespace]);
  }
}

/** A shortened `quick-ab`, loaded by iperf3 and probed by irtt, too; as a file in the folder. */
export function scenarioFile(folder: string, name: string, changes: object): string {
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

/** How a run ended, and its result. */
export async function resultOf(
  run: RunningCli,
): Promise<{ readonly exitCode: number | null; readonly result: Result }> {
  const { exitCode, stdout } = await run.ended;
  const result = jsonLines(stdout).findLast(({ type }) => type === 'result');
  return { exitCode, result: result as unknown as Result };
}

/** Waits until the segment of that name is being measured. */
export async function hasBegun(run: RunningCli, segment: string): Promise<void> {
  await expect
    .poll(() => run.stdoutSoFar().includes(`"kind":"phase","text":"${segment}"`), { timeout: 60_000 })
    .toBe(true);
}
