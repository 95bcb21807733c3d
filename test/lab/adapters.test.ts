/**
 * Linux's own drivers on our virtual Ethernet adapters over USB/IP, with this machine's kernel at the far end of each link:
 * bytes go through Linux's driver, our USB/IP server and virtual chip, and Linux's TCP at both ends. Making interfaces at
 * the far end takes root.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { jsonLines } from '../harness/run-cli.ts';
import { bootGuest, type GuestRun } from './guest.ts';

const program = fileURLToPath(new URL('../../build/queuescope.mjs', import.meta.url));
const streamPeer = fileURLToPath(new URL('peers/tcp-stream.mjs', import.meta.url));
const isRoot = process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/dev/net/tun');
const streamBytes = 10_000_000;
const usefulSeconds = 900;

const adapters = [
  { name: 'adapter-2500mbit', driver: 'ax88179_178a', speedMbit: 5000, address: '02:51:53:00:17:90' },
  { name: 'adapter-usb2-1gbe', driver: 'asix', speedMbit: 480, address: '02:51:53:00:17:80' },
  { name: 'adapter-usb2-100mbit', driver: 'asix', speedMbit: 480, address: '02:51:53:00:77:2a' },
  { name: 'adapter-usb2-10mbit', driver: 'asix', speedMbit: 480, address: '02:51:53:00:17:20' },
] as const;

interface Served {
  readonly port: number;
  readonly product: string;
  /** All lines of server and peer so far. */
  readonly serverLines: () => readonly Record<string, unknown>[];
  readonly peerLines: () => readonly Record<string, unknown>[];
}

const children: ChildProcess[] = [];
const namespaces: string[] = [];

/** Starts a program, and waits for its first line. */
async function startProgram(
  command: string,
  args: readonly string[],
): Promise<() => readonly Record<string, unknown>[]> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  let output = '';
  await new Promise<void>((resolve, reject) => {
    child.on('error', reject).on('close', () => reject(new Error(`${command} ended: ${output}`)));
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes('\n')) resolve();
    });
  });
  return () => jsonLines(output);
}

/** A server of one device, whose far end is in a namespace of its own, with a listener there. */
async function serve(name: string, index: number): Promise<Served> {
  const namespace = `qs-lab-${index}`;
  execFileSync('ip', ['netns', 'add', namespace]);
  namespaces.push(namespace);
  const far = ['--far-tap', `qslab${index}`, '--far-netns', namespace];
  const serverLines = await startProgram(process.execPath, [
    program,
    'serve-usbip',
    name,
    '--port',
    '0',
    ...far,
    '--json',
  ]);
  const peer = [process.execPath, streamPeer, 'listen', '7000', String(streamBytes)];
  const peerLines = await startProgram('ip', ['netns', 'exec', namespace, ...peer]);
  const [first = {}] = serverLines();
  const [device] = first['devices'] as readonly { readonly name: string }[];
  return { port: Number(first['port']), product: device?.name ?? '', serverLines, peerLines };
}

describe.runIf(isRoot)("Linux's own drivers on our virtual adapters", () => {
  const served = new Map<string, Served>();
  let guest: GuestRun;

  beforeAll(async () => {
    for (const [index, { name }] of adapters.entries()) {
      // One after another: each wants the next free port.
      // oxlint-disable-next-line no-await-in-loop
      served.set(name, await serve(name, index));
    }
    guest = await bootGuest({
      name: 'adapters',
      network: true,
      scriptFile: new URL('adapters.guest.sh', import.meta.url),
      files: {
        'devices.tsv': Array.from(
          served,
          ([name, { port, product }]) => `${name}\t${port}\t${product}\n`,
        ).join(''),
      },
      limitSeconds: usefulSeconds,
    });
  }, 1_100_000);

  afterAll(() => {
    for (const child of children) child.kill('SIGINT');
    for (const namespace of namespaces) execFileSync('ip', ['netns', 'del', namespace]);
  });

  describe.each(adapters)('$driver on $name', ({ name, driver, speedMbit, address }) => {
    test('binds, with the address of the chip, gets a carrier and an address', () => {
      const scenario = guest.scenario(name);
      expect(scenario.fact('driver')).toBe(driver);
      expect(scenario.number('speed')).toBe(speedMbit);
      expect(scenario.fact('address')).toBe(address);
      expect(scenario.text('dhcp')).toMatch(/lease of 10\.64\.0\.2 obtained/);
    });

    test('passes frames of all lengths, and is opened again', () => {
      const scenario = guest.scenario(name);
      expect(scenario.text('ping')).toMatch(/30 received, 0% packet loss/);
      expect(scenario.text('again')).toMatch(/10 received, 0% packet loss/);
      expect(scenario.text('ping6')).toMatch(/10 received, 0% packet loss/);
      expect(scenario.fact('lost')).toBe('');
    });

    test('10 MB each way at the same time: every byte arrives, and no error counter moves', () => {
      const scenario = guest.scenario(name);
      const whole = { sent: streamBytes, received: streamBytes, good: true };
      expect(scenario.json('stream.json')).toEqual(whole);
      // The last: a guest that died of its emulator is started once more.
      expect(served.get(name)?.peerLines().slice(1).at(-1)).toEqual(whole);
      expect(scenario.number('txBytes')).toBeGreaterThan(streamBytes);
      expect(scenario.number('rxBytes')).toBeGreaterThan(streamBytes);
      expect(scenario.fact('counters')).toBe('');
      expect(scenario.fact('countersAgain')).toMatch(/^(tx_dropped=\d )?$/);
      expect(scenario.fact('qdisc')).toMatch(/pfifo_fast.*\(dropped 0,/);
      expect(scenario.number('limit')).toBeGreaterThan(0);
      expect(scenario.number('inflight')).toBe(0);
    });

    test('the server saw no transfer fail', () => {
      const detached = served
        .get(name)
        ?.serverLines()
        .filter(({ type }) => type === 'detached');
      expect(detached?.at(-1)).toMatchObject({ refused: 0, failed: 0 });
    });
  });
});
