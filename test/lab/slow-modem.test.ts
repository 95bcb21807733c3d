/**
 * The case that the kernel's patch was made for, with the kernel's own driver on our virtual modem, served from this machine
 * and attached with Debian's tools: a slow link behind a fast USB device, with and without BQL.
 */
import { beforeAll, expect, test } from 'vitest';
import { bootGuest, type GuestRun, type Scenario } from './guest.ts';
import { served } from './usbip-server.ts';

/** What the driver lets wait at SuperSpeed: 300 transfers of 1,514 bytes. */
const fullQueueBytes = 454_200;

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
  ({ result: guest, events } = await served(
    (port, devices) =>
      bootGuest({
        name: 'slow-modem',
        network: true,
        scriptFile: new URL('slow-modem.guest.sh', import.meta.url),
        files: {
          port: String(port),
          'devices.tsv': devices
            .map(({ busId, id, name }) => `${busId}\t${id.replace('sim:', '')}\t${name}\n`)
            .join(''),
        },
        limitSeconds: 200,
      }),
    ['modem-10mbit'],
  ));
}, 300_000);

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

test('the server saw no transfer fail, and the device came back', () => {
  const detached = events.filter(({ type }) => type === 'detached');
  expect(detached).toMatchObject([{ refused: 0, failed: 0 }]);
});
