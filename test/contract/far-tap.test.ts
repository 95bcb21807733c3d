import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildTargets } from '../../build/build.mjs';
import { type RunningCli, startCli } from '../harness/run-cli.ts';

/**
 * Both ends of a virtual device in Linux: the host's programs on a TAP interface at the near end, stock programs in a
 * network namespace at the far end. Making interfaces takes root; without it only the refusals can be tried.
 */

const root = fileURLToPath(new URL('../..', import.meta.url));
const isRoot = process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/dev/net/tun');
const near = 'qsnear0';
const far = 'qsfar0';
const namespace = 'qs-far-test';

let running: RunningCli | undefined;

beforeAll(async () => {
  await buildTargets({ root, names: ['node'], print: () => {} });
}, 120_000);

/** Answers with the same bytes. */
const server = `
  require('node:net').createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket))
    .listen(7000, '::', () => console.log('ready'));
`;
const client = `
  const bytes = require('node:crypto').randomBytes(1_000_000);
  const socket = require('node:net').connect(7000, process.argv[1], () => socket.end(bytes));
  const answer = [];
  socket.on('data', (part) => answer.push(part));
  socket.on('end', () => console.log(Buffer.concat(answer).equals(bytes)));
`;

function output(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args);
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (data: string) => (text += data));
    child.on('error', reject);
    child.on('close', () => resolve(text));
  });
}

describe.runIf(isRoot)('a TAP interface at the far end', () => {
  beforeEach(() => {
    execFileSync('ip', ['netns', 'add', namespace]);
  });

  afterEach(async () => {
    running?.child.kill('SIGINT');
    await running?.ended;
    running = undefined;
    execFileSync('ip', ['netns', 'del', namespace]);
  });

  async function start(): Promise<void> {
    const args = ['--tap', near, '--far-tap', far, '--far-netns', namespace, '--duration', '60', '--no-load'];
    running = startCli(['run', 'sim:modem-10mbit', ...args, '--json']);
    await expect
      .poll(() => running?.stdoutSoFar().includes('answers') ?? false, { timeout: 20_000 })
      .toBe(true);
    const address = (): string => execFileSync('ip', ['-4', 'address', 'show', near], { encoding: 'utf8' });
    await expect.poll(address, { timeout: 5000 }).toContain('10.64.0.2/24');
  }

  test('the kernel there answers pings after the link’s delay', async () => {
    await start();
    const text = await output('ping', ['-n', '-c', '10', '-i', '0.2', '10.64.0.1']);
    const rttMs = [...text.matchAll(/time=([\d.]+) ms/g)].map((match) => Number(match[1]));
    expect(rttMs).toHaveLength(10);
    const median = rttMs.toSorted((a, b) => a - b)[5];
    // 12 ms each way, and what a busy machine adds.
    expect(median).toBeGreaterThan(24);
    expect(median).toBeLessThan(60);
  }, 60_000);

  test('TCP arrives byte for byte, over IPv4 and IPv6, many frames at a time between the host and us', async () => {
    await start();
    const show = (...args: string[]): string => execFileSync('ip', args, { encoding: 'utf8' });
    const linkLocal = (): string =>
      /inet6 (fe80[^/]*)/.exec(show('-n', namespace, '-6', 'address', 'show', far, 'scope', 'link'))?.[1] ??
      '';
    // IPv6 asks first whether anybody has the address.
    const settled = (): boolean =>
      linkLocal() !== '' && !show('-6', 'address', 'show', near).includes('tentative');
    await expect.poll(settled, { timeout: 10_000 }).toBe(true);
    const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, '-e', server]);
    try {
      await new Promise((resolve) => {
        child.stdout.once('data', resolve);
      });
      for (const address of ['10.64.0.1', `${linkLocal()}%${near}`]) {
        const before = counters();
        // One after another, so that each is seen for itself.
        // oxlint-disable-next-line no-await-in-loop
        expect([address, (await output(process.execPath, ['-e', client, address])).trim()]).toEqual([
          address,
          'true',
        ]);
        const after = counters();
        // A frame is 1,514 bytes; what acknowledges the other direction is less.
        const bytesPerRead = (after.readBytes - before.readBytes) / (after.reads - before.reads);
        expect([address, bytesPerRead > 1600, bytesPerRead]).toEqual([address, true, bytesPerRead]);
      }
      expect(counters().errors).toBe(0);
    } finally {
      child.kill();
    }
  }, 60_000);
});

/** What the host's kernel has counted at the near end. */
function counters(): { readonly reads: number; readonly readBytes: number; readonly errors: number } {
  const read = (name: string): number =>
    Number(readFileSync(`/sys/class/net/${near}/statistics/${name}`, 'utf8'));
  return {
    reads: read('tx_packets'),
    readBytes: read('tx_bytes'),
    errors: read('rx_errors') + read('rx_dropped'),
  };
}

describe('refused', () => {
  test.each([
    ['where there is no far end', ['run', 'usb:9-9', '--far-tap', far], /virtual devices/],
    [
      'a place for an interface that is not there',
      ['run', 'sim:modem-10mbit', '--far-netns', 'x'],
      /name that/,
    ],
    ['for all devices at once', ['serve-usbip', '--port', '0', '--far-tap', far], /one device/],
  ])('%s', async (_name, args, words) => {
    const { exitCode, stderr } = await startCli(args).ended;
    expect(stderr).toMatch(words);
    expect(exitCode).toBe(2);
  });
});
