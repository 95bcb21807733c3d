/**
 * USB/IP against implementations that are not ours: the kernel's drivers on our virtual devices, served from this machine
 * and attached with Debian's tools; and our client on the kernel's gadgets and QEMU's usb-net, offered by Debian's usbipd.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { bootGuest, type GuestRun, type Scenario } from './guest.ts';
import { readRun } from './run-output.ts';
import { served } from './usbip-server.ts';

const exitCodes = { ok: 0, accessDenied: 4, deviceFailed: 5, interrupted: 130 };
/** What the driver lets wait at SuperSpeed: 300 transfers of 1,514 bytes. */
const fullQueueBytes = 454_200;

/** The virtual devices that the kernel is tried on here. */
const cdcDevices = [
  { name: 'modem-10mbit', driver: 'cdc_ether', speedMbit: 5000 },
  { name: 'adapter-100mbit', driver: 'cdc_ncm', speedMbit: 5000 },
  { name: 'modem-usb2-10mbit', driver: 'cdc_ether', speedMbit: 480 },
  { name: 'tether-usb2', driver: 'cdc_ncm', speedMbit: 480 },
];

/** Round trips of iputils' ping, milliseconds, in order of size. */
function roundTrips(scenario: Scenario, file: string): readonly number[] {
  const times = Array.from(scenario.text(file).matchAll(/time=([\d.]+) ms/g), ([, time]) => Number(time));
  return times.sort((a, b) => a - b);
}

function median(values: readonly number[]): number {
  return values[Math.floor(values.length / 2)] ?? Number.NaN;
}

let guest: GuestRun;
let events: readonly Record<string, unknown>[];

beforeAll(async () => {
  const names = cdcDevices.map(({ name }) => name);
  ({ result: guest, events } = await served(
    (port, devices) =>
      bootGuest({
        name: 'usbip',
        program: true,
        network: true,
        scriptFile: new URL('usbip.guest.sh', import.meta.url),
        files: {
          port: String(port),
          'devices.tsv': devices
            .map(({ busId, id, name }) => `${busId}\t${id.replace('sim:', '')}\t${name}\n`)
            .join(''),
        },
        qemuArguments: [
          '-netdev',
          'user,id=link,net=10.0.3.0/24',
          '-device',
          'usb-net,bus=xhci.0,netdev=link',
        ],
        limitSeconds: 800,
      }),
    names,
  ));
}, 1_000_000);

describe.each(cdcDevices)('the kernel on $name', ({ name, driver, speedMbit }) => {
  test('binds its own driver, gets a carrier and an address', () => {
    const scenario = guest.scenario('all');
    expect(scenario.fact(`${name}.driver`)).toBe(driver);
    expect(scenario.number(`${name}.speed`)).toBe(speedMbit);
    expect(scenario.text(`${name}.dhcp`)).toMatch(/lease of 10\.64\.0\.2 obtained/);
  });

  test('passes traffic both ways for a minute: no byte is wrong, and no error counter moves', () => {
    const scenario = guest.scenario('all');
    const { sent, received, wrong } = scenario.json(`${name}.json`) as Record<string, number>;
    expect(sent).toBeGreaterThan(1700);
    expect(wrong).toBe(0);
    expect(scenario.fact(`${name}.qdisc`)).toMatch(/pfifo_fast.*\(dropped 0,/);
    expect(received).toBe(sent);
    expect(scenario.text(`${name}.ping`)).toMatch(/ 0% packet loss/);
    expect(scenario.fact(`${name}.errors`)).toBe('');
    expect(scenario.number(`${name}.limit`)).toBeGreaterThan(0);
  });
});

test('the server saw no transfer fail, and every device came back', () => {
  const detached = events.filter(({ type }) => type === 'detached');
  expect(detached).toHaveLength(5);
  for (const event of detached) expect(event).toMatchObject({ refused: 0, failed: 0 });
  const words = detached.map(({ busId, lateP50Us, lateP95Us, lateMaxUs }) =>
    [busId, lateP50Us, lateP95Us, lateMaxUs].join(' '),
  );
  process.stdout.write(`later than due, us (median, p95, most):\n  ${words.join('\n  ')}\n`);
});

test('the case of the patch: 10 Mbit/s behind SuperSpeed, with and without BQL', () => {
  const scenario = guest.scenario('slow-link');
  const [idle, off, on] = ['idle', 'off', 'on'].map((name) => roundTrips(scenario, `${name}.ping`)) as [
    readonly number[],
    readonly number[],
    readonly number[],
  ];
  const words = (name: string): string =>
    `${scenario.number(`${name}.inflightMax`)} bytes in flight, limit ${scenario.number(`${name}.limit`)},` +
    ` ${(scenario.number(`${name}.bitsPerSecond`) / 1e6).toFixed(2)} Mbit/s`;
  process.stdout.write(
    `ping of the kernel on modem-10mbit, median (n): idle ${median(idle)} ms (${idle.length});\n` +
      `  limit_min raised ${median(off)} ms (${off.length}), ${words('off')};\n` +
      `  BQL ${median(on)} ms (${on.length}), ${words('on')}\n`,
  );
  expect(scenario.fact('qdisc')).toMatch(/pfifo_fast/);
  expect(Math.min(idle.length - 15, off.length - 40, on.length - 40)).toBeGreaterThan(0);
  // 24 ms of the link, and what the emulated machine adds.
  expect(median(idle)).toBeGreaterThan(24);
  expect(median(idle)).toBeLessThan(45);
  // The full queue takes 363 ms, the device's memory 3, and the link 24.
  expect(scenario.number('off.inflightMax')).toBeGreaterThan(fullQueueBytes - 3028);
  expect(scenario.number('off.inflightMax')).toBeLessThanOrEqual(fullQueueBytes);
  expect(scenario.number('off.bitsPerSecond')).toBeGreaterThan(9.5e6);
  expect(median(off)).toBeGreaterThan(365);
  expect(median(off)).toBeLessThan(470);
  // With BQL the way through the emulated machine is longer than the queue, so the link is not kept busy.
  expect(scenario.number('on.inflightMax')).toBeLessThan(30_000);
  expect(median(on)).toBeLessThan(60);
  expect(scenario.fact('errors')).toBe('');
});

describe.each([
  { name: 'client-ncm', driver: 'cdc_ncm' },
  { name: 'client-ecm', driver: 'cdc_ether' },
])('our client, $name', ({ name, driver }) => {
  test('lists and drives what usbipd offers', () => {
    const scenario = guest.scenario(name);
    const listed = scenario.json('list.json') as { id: string; mode: string }[];
    expect(listed.filter(({ mode }) => mode === 'remote')).toMatchObject([
      { id: `usbip://127.0.0.1/${scenario.fact('busid')}` },
    ]);
    expect(scenario.number('run')).toBe(exitCodes.ok);
    const { txPackets, answered, probes, result } = readRun(scenario, 'run.jsonl');
    expect(result).toMatchObject({ state: 'stopped', session: { device: { name, minidriver: driver } } });
    expect(probes.length).toBeGreaterThan(10);
    expect(answered / probes.length).toBeGreaterThan(0.5);
    expect(txPackets).toBeGreaterThan(300);
    const delivered =
      scenario.number('farDatagrams') + scenario.number('farNoPort') + scenario.number('farOverflows');
    expect(delivered).toBeGreaterThan(txPackets * 0.95);
    expect(delivered).toBeLessThanOrEqual(Math.ceil(txPackets));
  });

  test('gives it back: the kernel drives it again', () => {
    expect(guest.scenario(name).fact('driverAfter')).toBe(driver);
  });
});

test.each(['client-qemu-ecm', 'client-qemu-rndis'])(
  "%s: QEMU's usb-net at full speed, with the configuration chosen and the address by DHCP",
  (name) => {
    const scenario = guest.scenario(name);
    expect(scenario.number('run')).toBe(exitCodes.ok);
    const { answered, probes, result } = readRun(scenario, 'run.jsonl');
    expect(JSON.stringify(result?.['session'])).toMatch(/10\.0\.3\.\d+\/24 by DHCP/);
    expect(answered / probes.length).toBeGreaterThan(0.5);
  },
);

test('a device that is in use: told so, and the first user goes on', () => {
  const scenario = guest.scenario('busy');
  expect(scenario.number('second')).toBe(exitCodes.accessDenied);
  expect(scenario.text('second.err')).toMatch(/in use by another client/);
  expect(scenario.text('list.txt')).toMatch(/no exportable devices/);
  expect(scenario.number('attach')).not.toBe(0);
  expect(scenario.text('attach.txt')).toMatch(/busy/i);
  expect(scenario.number('first')).toBe(exitCodes.interrupted);
});

test('usbipd killed: nothing happens; the device taken away and offered again: the run goes on', () => {
  const scenario = guest.scenario('lost');
  expect(scenario.fact('survived')).toBe('yes');
  const waiting = readRun(scenario, 'waiting.jsonl');
  const kinds = waiting.events.map((event) => event['kind']);
  expect(kinds.filter((kind) => kind === 'unplug' || kind === 'gap')).toEqual(['unplug', 'gap']);
  expect(kinds).not.toContain('error');
  expect(waiting.samples.filter((sample) => sample['inflightBytes'] === null)).toHaveLength(2);
  expect(scenario.number('waiting')).toBe(exitCodes.interrupted);
  expect(scenario.number('ending')).toBe(exitCodes.deviceFailed);
  expect(scenario.text('ending.err')).toMatch(
    /was lost: the (?:server closed|connection broke|device is gone)/,
  );
});

test('a device of this machine, unplugged and plugged in again: the run goes on', () => {
  const scenario = guest.scenario('replugged');
  expect(scenario.fact('samePlace')).toBe('yes');
  const { events: lines, samples } = readRun(scenario, 'waiting.jsonl');
  const kinds = lines.map((event) => event['kind']);
  expect(kinds.filter((kind) => kind === 'unplug' || kind === 'gap')).toEqual(['unplug', 'gap']);
  expect(samples.filter((sample) => sample['inflightBytes'] === null)).toHaveLength(2);
  expect(scenario.number('waiting')).toBe(exitCodes.interrupted);
  expect(scenario.fact('driverAfter')).toBe('cdc_ncm');
});
