/**
 * RNDIS, EEM, ECM, NCM and Huawei's NCM against implementations that are not ours, with 10 MB each way over TCP between
 * stock programs: our drivers on the kernel's gadgets and on QEMU's usb-net, and the kernel's drivers on our virtual
 * devices. Making interfaces at the far end of those takes root.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { jsonLines } from '../harness/run-cli.ts';
import { bootGuest, type GuestRun, type Scenario } from './guest.ts';
import { readRun } from './run-output.ts';

const program = fileURLToPath(new URL('../../build/queuescope.mjs', import.meta.url));
const isRoot = process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/dev/net/tun');
const streamBytes = 10_000_000;
const streamPort = 7000;

const gadgets = [
  { name: 'rndis-high', function: 'rndis', speed: 'high', driver: 'rndis_host' },
  { name: 'eem-high', function: 'eem', speed: 'high', driver: 'cdc_eem' },
  { name: 'ecm-high', function: 'ecm', speed: 'high', driver: 'cdc_ether' },
  { name: 'ncm-super', function: 'ncm', speed: 'super', driver: 'cdc_ncm' },
] as const;

const virtual = [
  { name: 'tether-rndis', driver: 'rndis_host', address: '02:51:53:00:00:05' },
  { name: 'board-eem', driver: 'cdc_eem', address: undefined },
  { name: 'stick-huawei', driver: 'huawei_cdc_ncm', address: '02:51:53:00:15:06' },
] as const;

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** One end of a TCP stream: what it sent, and what came. */
interface StreamEnd {
  readonly sent: string;
  received(): string;
}

/** A listener on this machine for QEMU's user network, which sends and takes one stream. */
async function listenHere(): Promise<StreamEnd & { readonly port: number; close(): void }> {
  const bytes = randomBytes(streamBytes);
  const hash = createHash('sha256');
  let received = '';
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('data', (data) => hash.update(data));
    socket.on('end', () => (received = hash.digest('hex')));
    socket.on('error', () => {});
    socket.end(bytes);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    sent: sha256(bytes),
    received: () => received,
    close: () => server.close(),
  };
}

interface Served extends StreamEnd {
  readonly port: number;
  readonly product: string;
  /** What the server has printed so far. */
  readonly lines: () => readonly Record<string, unknown>[];
}

const children: ChildProcess[] = [];
const namespaces: string[] = [];

/** A server of one device, whose far end is in a namespace of its own, with busybox' netcat there. */
async function serve(name: string, index: number): Promise<Served> {
  const namespace = `qs-tether-${index}`;
  execFileSync('ip', ['netns', 'add', namespace]);
  namespaces.push(namespace);
  const far = ['--far-tap', `qstether${index}`, '--far-netns', namespace];
  const server = spawn(process.execPath, [program, 'serve-usbip', name, '--port', '0', ...far, '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(server);
  let output = '';
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject).on('close', () => reject(new Error(`serve-usbip ended: ${output}`)));
    server.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes('\n')) resolve();
    });
  });

  const bytes = randomBytes(streamBytes);
  const hash = createHash('sha256');
  const netcat = spawn('ip', ['netns', 'exec', namespace, 'busybox', 'nc', '-l', '-p', String(streamPort)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.push(netcat);
  netcat.stdout.on('data', (data: Buffer) => hash.update(data));
  netcat.stdin.on('error', () => {});
  netcat.stdin.end(bytes);
  let received = '';
  netcat.on('close', () => (received = hash.digest('hex')));

  const [first = {}] = jsonLines(output);
  const [device] = first['devices'] as readonly { readonly name: string }[];
  return {
    port: Number(first['port']),
    product: device?.name ?? '',
    lines: () => jsonLines(output),
    sent: sha256(bytes),
    received: () => received,
  };
}

/** Every counter of errors that has grown in what `run` printed from `fromUs` on, by name. */
function errorsOf(scenario: Scenario, fromUs = 0): Readonly<Record<string, number>> {
  const { samples } = readRun(scenario, 'run.jsonl');
  const before = samples.findLast((sample) => Number(sample['timeUs']) <= fromUs);
  const found: Record<string, number> = {};
  for (const sample of samples) {
    for (const name of ['rxErrors', 'txErrors', 'txDroppedPackets', 'qdiscDroppedPackets']) {
      const grown = Number(sample[name]) - Number(before?.[name] ?? 0);
      if (Number(sample['timeUs']) > fromUs && grown !== 0) found[name] = grown;
    }
  }
  return found;
}

function expectWholeStream(
  scenario: Scenario,
  far: { readonly sent: string; readonly received: string },
): void {
  const hash = (fact: string): string => scenario.fact(fact).replace(/ .*/, '');
  expect(scenario.number('near.code')).toBe(0);
  expect(scenario.number('near.bytes')).toBe(streamBytes);
  expect(hash('near.received')).toBe(far.sent.replace(/ .*/, ''));
  expect(hash('near.sent')).toBe(far.received.replace(/ .*/, ''));
}

const served = new Map<string, Served>();
let guest: GuestRun;
let here: Awaited<ReturnType<typeof listenHere>>;

beforeAll(async () => {
  here = await listenHere();
  for (const [index, { name }] of (isRoot ? virtual : []).entries()) {
    // One after another: each wants the next free port.
    // oxlint-disable-next-line no-await-in-loop
    served.set(name, await serve(name, index));
  }
  guest = await bootGuest({
    name: 'tethering',
    program: true,
    network: true,
    scriptFile: new URL('tethering.guest.sh', import.meta.url),
    files: {
      'gadgets.tsv': gadgets.map((each) => `${each.name}\t${each.function}\t${each.speed}\n`).join(''),
      'served.tsv': Array.from(served, ([name, { port, product }]) => `${name}\t${port}\t${product}\n`).join(
        '',
      ),
      'stream-port': String(here.port),
    },
    qemuArguments: ['-netdev', 'user,id=link,net=10.0.3.0/24', '-device', 'usb-net,bus=xhci.0,netdev=link'],
    limitSeconds: 1500,
  });
}, 1_700_000);

afterAll(() => {
  here.close();
  for (const child of children) child.kill('SIGINT');
  for (const namespace of namespaces) execFileSync('ip', ['netns', 'del', namespace]);
});

describe.each(gadgets)("our $driver on the kernel's $function gadget, $speed speed", ({ name, driver }) => {
  test('10 MB each way over TCP arrive byte for byte, and no error is counted at either end', () => {
    const scenario = guest.scenario(name);
    expectWholeStream(scenario, { sent: scenario.fact('far.sent'), received: scenario.fact('far.received') });
    expect(scenario.number('far.code')).toBe(0);
    expect(errorsOf(scenario)).toEqual({});
    expect(scenario.fact('gadgetErrors')).toBe('');
    expect(scenario.text('ping')).toMatch(/ 0% packet loss/);
  });

  test('was bound by this minidriver, and is given back to the kernel', () => {
    const scenario = guest.scenario(name);
    expect(scenario.text('run.jsonl')).toContain(driver);
    expect(scenario.fact('driverBefore')).toBe(driver);
    expect(scenario.fact('driverAfter')).toBe(driver);
  });
});

describe("our rndis_host on QEMU's usb-net", () => {
  test('is switched to the configuration for RNDIS, and back', () => {
    const scenario = guest.scenario('qemu-rndis');
    const configurations = ['Before', 'During', 'After'].map((when) =>
      scenario.number(`configuration${when}`),
    );
    expect(configurations).toEqual([1, 2, 1]);
    expect(scenario.text('run.jsonl')).toContain('rndis_host');
  });

  test('10 MB each way over TCP arrive byte for byte', () => {
    const scenario = guest.scenario('qemu-rndis');
    expectWholeStream(scenario, { sent: here.sent, received: here.received() });
    // QEMU keeps a frame that waited for the host over a switch of configurations, and hands it out without a header.
    const { events } = readRun(scenario, 'run.jsonl');
    const measuring = events.find(({ text }) => text === 'measure: measuring');
    expect(measuring).toBeDefined();
    expect(errorsOf(scenario, Number(measuring?.['timeUs']))).toEqual({});
    expect(errorsOf(scenario)['rxErrors'] ?? 0).toBeLessThanOrEqual(1);
  });
});

describe.runIf(isRoot).each(virtual)("the kernel's $driver on our $name", ({ name, driver, address }) => {
  test('binds, gets a carrier and an address', () => {
    const scenario = guest.scenario(name);
    expect(scenario.fact('driver')).toBe(driver);
    if (address !== undefined) expect(scenario.fact('address')).toBe(address);
    expect(scenario.text('dhcp')).toMatch(/lease of 10\.64\.0\.2 obtained/);
    expect(scenario.text('ping')).toMatch(/20 received, 0% packet loss/);
    expect(scenario.text('again')).toMatch(/10 received, 0% packet loss/);
  });

  test('10 MB each way over TCP arrive byte for byte, and no error counter moves', () => {
    const scenario = guest.scenario(name);
    const far = served.get(name);
    expectWholeStream(scenario, { sent: far?.sent ?? '', received: far?.received() ?? '' });
    // What the driver's own timer flushes while its queue is full (5 transfers at high speed) it gives up, and TCP sends it
    // again: cdc_ncm's habit, which the kernel counts here.
    const allowed = driver === 'huawei_cdc_ncm' ? /^(tx_dropped=\d{1,2} )?$/ : /^$/;
    expect(scenario.fact('errors')).toMatch(allowed);
    expect(scenario.fact('qdisc')).toMatch(/pfifo_fast.*\(dropped 0,/);
    expect(scenario.number('limit')).toBeGreaterThan(0);
    // The last: a guest that died of its emulator is started once more.
    const detached = far?.lines().filter(({ type }) => type === 'detached');
    expect(detached?.at(-1)).toMatchObject({ refused: 0, failed: 0 });
  });
});

test.runIf(isRoot)("our stick-huawei answers AT commands through the kernel's cdc-wdm", () => {
  const text = guest.scenario('stick-huawei').text('at');
  expect(text).toMatch(/^OK\r?$/m);
  expect(text).toMatch(/^\^NDISSTATQRY: 1,,,"IPV4"\r?$/m);
});
