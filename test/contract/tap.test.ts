import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { buildTargets } from '../../build/build.mjs';
import { jsonLines, type RunningCli, startCli } from '../harness/run-cli.ts';

/**
 * A TAP interface of this host on a virtual device: programs that know nothing of Queuescope use the modem. Making an
 * interface takes root; without it only the refusal can be tried.
 */

const root = fileURLToPath(new URL('../..', import.meta.url));
const isRoot = process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/dev/net/tun');
const tap = 'qstest0';

let running: RunningCli | undefined;

beforeAll(async () => {
  await buildTargets({ root, names: ['node'], print: () => {} });
}, 120_000);

afterEach(async () => {
  running?.child.kill('SIGINT');
  await running?.ended;
  running = undefined;
});

function ip(...args: string[]): string {
  return execFileSync('ip', args, { encoding: 'utf8' });
}

/** Runs the stock ping; its summary line, and the round trips in milliseconds. */
function ping(...args: string[]): Promise<{ text: string; rttMs: number[] }> {
  return new Promise((resolve) => {
    const child = spawn('ping', ['-n', ...args]);
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (data: string) => (text += data));
    child.on('close', () => {
      resolve({ text, rttMs: [...text.matchAll(/time=([\d.]+) ms/g)].map((match) => Number(match[1])) });
    });
  });
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function runWithTap(...args: string[]): Promise<void> {
  running = startCli(['run', 'sim:modem-10mbit', '--duration', '60', '--tap', tap, '--json', ...args]);
  await expect
    .poll(() => running?.stdoutSoFar().includes('answers') ?? false, { timeout: 20_000 })
    .toBe(true);
  await expect.poll(() => ip('-4', 'address', 'show', tap), { timeout: 5000 }).toContain('10.64.0.2/24');
}

describe.runIf(isRoot)('a TAP interface', () => {
  test("gives the host the device's address, and its programs the device", async () => {
    await runWithTap('--no-load');
    expect(ip('link', 'show', tap)).toContain('02:51:53:00:00:01');
    const { text, rttMs } = await ping('-c', '10', '-i', '0.2', '10.64.0.1');
    expect(text).toContain(' 0% packet loss');
    // 12 ms each way, and up to a tick of the paced simulation.
    expect(Math.min(...rttMs)).toBeGreaterThan(24);
    expect(median(rttMs)).toBeLessThan(60);
  }, 60_000);

  test('a program’s priority reaches our qdisc: its ping overtakes the load, one without waits behind it', async () => {
    await runWithTap('--bql', 'on');
    const [urgent, plain] = await Promise.all([
      ping('-Q', '0x10', '-c', '15', '-i', '0.2', '10.64.0.1'),
      ping('-c', '15', '-i', '0.2', '10.64.0.1'),
    ]);
    expect(median(urgent.rttMs)).toBeLessThan(70);
    // At least 64 full packets of our load wait in the qdisc: 78 ms.
    expect(median(plain.rttMs)).toBeGreaterThan(90);
  }, 60_000);

  test('our own probes stay ours: their replies never reach the host', async () => {
    await runWithTap('--no-load', '--ping-interval', '50');
    const before = jsonLines(completeLines(running?.stdoutSoFar() ?? '')).filter(
      (line) => line['type'] === 'probe',
    ).length;
    const received = (): number =>
      Number(/RX:.*\n\s*\d+\s+(\d+)/.exec(ip('-s', 'link', 'show', tap))?.[1] ?? Number.NaN);
    const packets = received();
    await new Promise((resolve) => {
      setTimeout(resolve, 3000);
    });
    const probes = jsonLines(completeLines(running?.stdoutSoFar() ?? '')).filter(
      (line) => line['type'] === 'probe',
    );
    expect(probes.length - before).toBeGreaterThan(30);
    // A stray ARP or neighbour message is the host's own affair.
    expect(received() - packets).toBeLessThan(10);
  }, 60_000);

  test('is gone when the run is over', async () => {
    await runWithTap('--no-load');
    running?.child.kill('SIGINT');
    expect((await running?.ended)?.exitCode).toBe(130);
    expect(() => ip('link', 'show', tap)).toThrow(/does not exist/);
  }, 60_000);
});

/** A line that is still being printed is left out. */
function completeLines(text: string): string {
  return text.slice(0, text.lastIndexOf('\n') + 1);
}

describe('refused', () => {
  test.each([
    ['a name that cannot be one', 'way-too-long-a-name', 2, /cannot be the name/],
    ['a shell’s idea of a name', 'a;b', 2, /cannot be the name/],
  ])('%s', async (_name, name, code, words) => {
    const { exitCode, stderr } = await startCli(['run', 'sim:modem-10mbit', '--tap', name, '--duration', '1'])
      .ended;
    expect(stderr).toMatch(words);
    expect(exitCode).toBe(code);
  });

  test.runIf(isRoot)('an interface that is no TAP', async () => {
    const { exitCode, stderr } = await startCli(['run', 'sim:modem-10mbit', '--tap', 'lo', '--duration', '1'])
      .ended;
    expect(stderr).toContain('lo exists and is no TAP interface');
    expect(exitCode).toBe(2);
  });

  test.runIf(isRoot)(
    'without rights: the commands that make an interface for this user',
    async () => {
      const child = spawn('setpriv', [
        '--reuid=65534',
        '--regid=65534',
        '--clear-groups',
        process.execPath,
        fileURLToPath(new URL('../../build/queuescope.mjs', import.meta.url)),
        'run',
        'sim:modem-10mbit',
        '--tap',
        tap,
        '--duration',
        '1',
      ]);
      let stderr = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
      const exitCode = await new Promise((resolve) => child.on('close', resolve));
      expect(stderr).toContain(`sudo ip tuntap add dev ${tap} mode tap user nobody`);
      expect(exitCode).toBe(4);
    },
    30_000,
  );
});
