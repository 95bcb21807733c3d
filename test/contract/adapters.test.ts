import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildTargets } from '../../build/build.mjs';
import { jsonLines, type RunningCli, startCli } from '../harness/run-cli.ts';

/**
 * Our own drivers on the virtual Ethernet adapters, with Linux at both ends: the host's programs on a TAP interface at the
 * near end, stock TCP in a network namespace at the far end. The device is in the same process, or on the other side of
 * USB/IP. Making interfaces takes root.
 */

const root = fileURLToPath(new URL('../..', import.meta.url));
const streamPeer = fileURLToPath(new URL('../lab/peers/tcp-stream.mjs', import.meta.url));
const isRoot = process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/dev/net/tun');
const near = 'qsadnear0';
const far = ['--far-tap', 'qsadfar0', '--far-netns', 'qs-adapters-test'];
const namespace = 'qs-adapters-test';
const streamBytes = 10_000_000;

beforeAll(async () => {
  await buildTargets({ root, names: ['node'], print: () => {} });
}, 120_000);

function samplesOf(output: string): readonly Record<string, unknown>[] {
  return jsonLines(output).filter(({ type }) => type === 'sample');
}

describe.runIf(isRoot)('our drivers, with Linux at both ends', () => {
  let running: RunningCli[] = [];

  beforeEach(() => {
    execFileSync('ip', ['netns', 'add', namespace]);
  });

  afterEach(async () => {
    for (const each of running.toReversed()) {
      each.child.kill('SIGINT');
      // The user of a device ends before its server.
      // oxlint-disable-next-line no-await-in-loop
      await each.ended;
    }
    running = [];
    execFileSync('ip', ['netns', 'del', namespace]);
  });

  function start(args: readonly string[]): RunningCli {
    const each = startCli(args);
    running.push(each);
    return each;
  }

  async function startServer(name: string): Promise<string> {
    const server = start(['serve-usbip', name, '--port', '0', ...far, '--json']);
    await expect.poll(() => server.stdoutSoFar(), { timeout: 20_000 }).toContain('\n');
    return `usbip://127.0.0.1:${Number(jsonLines(server.stdoutSoFar())[0]?.['port'])}/1-1`;
  }

  /** 10 MB each way at the same time through the device. */
  async function stream(): Promise<void> {
    const listener = spawn('ip', [
      'netns',
      'exec',
      namespace,
      process.execPath,
      streamPeer,
      'listen',
      '7000',
      String(streamBytes),
    ]);
    try {
      await new Promise((resolve) => {
        listener.stdout.once('data', resolve);
      });
      const there = new Promise<string>((resolve) => {
        listener.stdout.setEncoding('utf8').once('data', resolve);
      });
      const here = new Promise<string>((resolve) => {
        const words = ['connect', '10.64.0.1', '7000', String(streamBytes)];
        const child = spawn(process.execPath, [streamPeer, ...words]);
        child.stdout.setEncoding('utf8').once('data', resolve);
      });
      const whole = { sent: streamBytes, received: streamBytes, good: true };
      expect([JSON.parse(await here), JSON.parse(await there)]).toEqual([whole, whole]);
    } finally {
      listener.kill();
    }
  }

  test.each([
    ['adapter-2500mbit', 'ax88179_178a', 'in this process'],
    ['adapter-2500mbit', 'ax88179_178a', 'over USB/IP'],
    ['adapter-usb2-1gbe', 'asix', 'in this process'],
    ['adapter-usb2-1gbe', 'asix', 'over USB/IP'],
    ['adapter-usb2-100mbit', 'asix', 'in this process'],
    ['adapter-usb2-100mbit', 'asix', 'over USB/IP'],
    ['adapter-usb2-10mbit', 'asix', 'in this process'],
    ['adapter-usb2-10mbit', 'asix', 'over USB/IP'],
  ])(
    '%s, %s, %s: every byte arrives',
    async (name, driver, where) => {
      const over = where === 'over USB/IP';
      const device = over ? await startServer(name) : `sim:${name}`;
      const options = ['--tap', near, '--duration', '100', '--no-load', '--json'];
      const run = start(['run', device, ...options, ...(over ? [] : far)]);
      await expect.poll(() => run.stdoutSoFar().includes('answers'), { timeout: 30_000 }).toBe(true);
      expect(run.stdoutSoFar()).toContain(`"text":"bind: ${driver}: `);
      const address = (): string => execFileSync('ip', ['-4', 'address', 'show', near], { encoding: 'utf8' });
      await expect.poll(address, { timeout: 5000 }).toContain('10.64.0.2/24');
      // What was to be sent before there was a link was dropped.
      const before = samplesOf(run.stdoutSoFar().replace(/[^\n]*$/, '')).at(-1);
      await stream();
      run.child.kill('SIGINT');
      const { stdout } = await run.ended;
      const samples = samplesOf(stdout);
      expect(samples.length).toBeGreaterThan(10);
      expect(samples.at(-1)).toMatchObject({
        rxErrors: 0,
        txErrors: 0,
        txDroppedPackets: before?.['txDroppedPackets'],
      });
    },
    100_000,
  );
});
