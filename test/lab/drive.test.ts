/**
 * The main job on real usbfs and the real `usb` package: `queuescope run` drives devices that are not ours, gets its
 * address, pings, loads the link, records, reports, and gives the device back to the kernel's driver.
 */
import { createSocket } from 'node:dgram';
import { beforeAll, describe, expect, test } from 'vitest';
import { bootGuest, type GuestRun } from './guest.ts';
import { reportOf } from './report-of.ts';
import { readRun } from './run-output.ts';

interface DriveCase {
  readonly name: string;
  /** The kernel's gadget with this function, or QEMU's own usb-net. */
  readonly device: 'ncm' | 'ecm' | 'qemu';
  readonly speed: 'super' | 'high' | 'full';
  readonly addressing: 'dhcp' | 'static';
  /** More arguments of `queuescope run`. */
  readonly arguments: string;
  /** The kernel's driver for it, before and after. */
  readonly driver: string;
  /** What the address's stage says. */
  readonly address: RegExp;
  /** The least that the link carries, however slow the emulated machine is. */
  readonly leastDatagrams: number;
}

const cases: readonly DriveCase[] = [
  {
    name: 'ncm-super',
    device: 'ncm',
    speed: 'super',
    addressing: 'dhcp',
    arguments: '--duration 5',
    driver: 'cdc_ncm',
    address: /10\.9\.0\.2\d/,
    leastDatagrams: 300,
  },
  {
    name: 'ecm-high',
    device: 'ecm',
    speed: 'high',
    addressing: 'static',
    arguments: '--duration 5 --address 10.9.0.2/24 --target 10.9.0.1',
    driver: 'cdc_ether',
    address: /10\.9\.0\.2\b/,
    leastDatagrams: 300,
  },
  {
    name: 'qemu-usb-net',
    device: 'qemu',
    speed: 'full',
    addressing: 'dhcp',
    arguments: '--duration 5 --load-rate 2M',
    driver: 'cdc_ether',
    address: /10\.0\.2\.\d+/,
    leastDatagrams: 300,
  },
];

const discardPort = 9;
/** Ports below 1024 are root's; without it nobody counts what arrives behind QEMU's user network. */
const isRoot = process.getuid?.() === 0;

/** Counts the UDP datagrams that reach this machine's discard port while `use` runs. */
async function countingDiscard<Result>(
  use: () => Promise<Result>,
): Promise<{ result: Result; datagrams: number }> {
  let datagrams = 0;
  const socket = createSocket('udp4').on('message', () => datagrams++);
  if (isRoot) {
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject).bind(discardPort, '127.0.0.1', resolve);
    });
  }
  try {
    return { result: await use(), datagrams };
  } finally {
    socket.close();
  }
}

let guest: GuestRun;
let discarded = 0;

beforeAll(async () => {
  const fields = (each: DriveCase): string[] => [
    each.name,
    each.device,
    each.speed,
    each.addressing,
    each.arguments,
  ];
  ({ result: guest, datagrams: discarded } = await countingDiscard(() =>
    bootGuest({
      name: 'drive',
      program: true,
      scriptFile: new URL('drive.guest.sh', import.meta.url),
      files: { 'cases.tsv': cases.map((each) => `${fields(each).join('\t')}\n`).join('') },
      qemuArguments: ['-netdev', 'user,id=link', '-device', 'usb-net,bus=xhci.0,netdev=link'],
      limitSeconds: 420,
    }),
  ));
}, 600_000);

describe.each(cases)('$name', ({ name, device, driver, address, leastDatagrams }) => {
  test('gets its address, and its pings are answered', () => {
    const scenario = guest.scenario(name);
    const { result, answered, probes } = readRun(scenario, 'run.jsonl');
    const session = result?.['session'] as
      { stages: { name: string; status: string; text?: string }[] } | undefined;
    const stage = session?.stages.find((each) => each.name === 'address');
    expect(stage).toMatchObject({ status: 'done', text: expect.stringMatching(address) as string });
    expect(probes.length).toBeGreaterThan(10);
    expect(answered / probes.length).toBeGreaterThan(0.5);
  });

  test('delivers the load that it says it sent, with BQL in force', () => {
    const scenario = guest.scenario(name);
    const { txPackets, samples } = readRun(scenario, 'run.jsonl');
    expect(txPackets).toBeGreaterThan(leastDatagrams);
    expect(samples.some((sample) => Number(sample['limitBytes']) > 0)).toBe(true);
    expect(samples.some((sample) => Number(sample['inflightMaxBytes']) > 0)).toBe(true);
    if (device === 'qemu') return;
    // The far end's kernel counts what arrived for UDP; besides the load we send pings, ARP and DHCP.
    const delivered =
      scenario.number('farDatagrams') + scenario.number('farNoPort') + scenario.number('farOverflows');
    expect(delivered).toBeGreaterThan(txPackets * 0.95);
    expect(delivered).toBeLessThanOrEqual(Math.ceil(txPackets));
  });

  test('records what it printed, readable by the stock sqlite3', () => {
    const scenario = guest.scenario(name);
    const { samples, probes } = readRun(scenario, 'run.jsonl');
    expect(scenario.fact('integrity')).toBe('ok');
    expect(scenario.number('recordedSamples')).toBe(samples.length);
    expect(scenario.number('recordedProbes')).toBe(probes.length);
  });

  test('reports as HTML, CSV and JSON', async () => {
    const scenario = guest.scenario(name);
    const html = await reportOf(scenario, 'run.qscope', 'html');
    expect(html).toMatch(/<html/i);
    // Self-contained: nothing is fetched to show it.
    expect(html).not.toMatch(/(?:src|href)="(?:https?:)?\/\//i);
    const csv = await reportOf(scenario, 'run.qscope', 'csv');
    expect(csv.split('\n').length).toBeGreaterThan(50);
    expect(JSON.parse(await reportOf(scenario, 'run.qscope', 'json'))).toBeTypeOf('object');
  });

  test("gives the device back: the kernel's netdev is there again", () => {
    const scenario = guest.scenario(name);
    expect(scenario.fact('driverBefore')).toBe(driver);
    expect(scenario.fact('driverAfter')).toBe(driver);
  });
});

test.runIf(isRoot)("the load on QEMU's usb-net arrives at this machine", () => {
  const { txPackets } = readRun(guest.scenario('qemu-usb-net'), 'run.jsonl');
  expect(discarded).toBeGreaterThan(txPackets * 0.8);
  expect(discarded).toBeLessThanOrEqual(Math.ceil(txPackets));
});
