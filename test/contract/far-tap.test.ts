import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
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

/** Answers with the hash of what came. */
const server = `
  const { createHash } = require('node:crypto');
  require('node:net').createServer({ allowHalfOpen: true }, (socket) => {
    const hash = createHash('sha256');
    socket.on('data', (bytes) => hash.update(bytes));
    socket.on('end', () => socket.end(hash.digest('hex')));
  }).listen(7000, () => console.log('ready'));
`;
const client = `
  const { createHash, randomBytes } = require('node:crypto');
  const bytes = randomBytes(1_000_000);
  const socket = require('node:net').connect(7000, '10.64.0.1', () => socket.end(bytes));
  let answer = '';
  socket.on('data', (text) => (answer += text));
  socket.on('end', () => console.log(answer === createHash('sha256').update(bytes).digest('hex')));
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

  test('a TCP stream arrives byte for byte', async () => {
    await start();
    const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, '-e', server]);
    try {
      await new Promise((resolve) => {
        child.stdout.once('data', resolve);
      });
      expect((await output(process.execPath, ['-e', client])).trim()).toBe('true');
    } finally {
      child.kill();
    }
  }, 60_000);
});

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
