/**
 * USB/IP against implementations that are not ours: the kernel's drivers on our virtual devices, served from this machine
 * and attached with Debian's tools; and our client on the kernel's gadgets and QEMU's usb-net, offered by Debian's usbipd.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { bootGuest, type GuestRun } from './guest.ts';
import { readRun } from './run-output.ts';
import { served } from './usbip-server.ts';

const exitCodes = { ok: 0, accessDenied: 4, deviceFailed: 5, interrupted: 130 };

/** The virtual devices that the kernel is tried on here. */
const cdcDevices = [
  { name: 'modem-10mbit', driver: 'cdc_ether', speedMbit: 5000 },
  { name: 'adapter-100mbit', driver: 'cdc_ncm', speedMbit: 5000 },
  { name: 'modem-usb2-10mbit', driver: 'cdc_ether', speedMbit: 480 },
  { name: 'tether-usb2', driver: 'cdc_ncm', speedMbit: 480 },
];

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
          // What is sent to it is not passed on to this machine, where another test may count what comes. It answers pings,
          // but does not tell of itself as a gateway.
          'user,id=link,net=10.0.3.0/24,restrict=on',
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
  expect(detached).toHaveLength(cdcDevices.length);
  for (const event of detached) expect(event).toMatchObject({ refused: 0, failed: 0 });
  const words = detached.map(({ busId, lateP50Us, lateP95Us, lateMaxUs }) =>
    [busId, lateP50Us, lateP95Us, lateMaxUs].join(' '),
  );
  process.stdout.write(`later than due, us (median, p95, most):\n  ${words.join('\n  ')}\n`);
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
