/**
 * `queuescope run usb:... --tap NAME` on the kernel's gadgets: stock ping and iperf3 use the device through our qdisc, BQL and
 * minidriver, in both directions.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { bootGuest, type GuestRun, type Scenario } from './guest.ts';
import { readRun } from './run-output.ts';

const exitCodes = { accessDenied: 4, interrupted: 130 };

interface IperfSum {
  readonly bytes: number;
  readonly bits_per_second: number;
  readonly lost_percent?: number;
}

let guest: GuestRun;

beforeAll(async () => {
  guest = await bootGuest({
    name: 'tap',
    program: true,
    scriptFile: new URL('tap.guest.sh', import.meta.url),
    limitSeconds: 700,
  });
}, 800_000);

/** What the receiver of an iperf3 run got; of UDP, what its own side says. */
function received(scenario: Scenario, name: string): IperfSum {
  const { end } = scenario.json(`${name}.json`) as { end: { sum_received?: IperfSum; sum: IperfSum } };
  return end.sum_received ?? end.sum;
}

const drops = (scenario: Scenario): readonly string[] =>
  readRun(scenario, 'run.jsonl')
    .events.concat(readRun(scenario, 'run.jsonl').result ?? [])
    .flatMap((line) => [...JSON.stringify(line).matchAll(/"TAP drops","value":"([^"]*) frames"/g)])
    .map(([, count = '']) => count);

describe.each([
  { name: 'tap-ncm', driver: 'cdc_ncm' },
  { name: 'tap-ecm', driver: 'cdc_ether' },
])('$name', ({ name, driver }) => {
  test('stock ping: every one is answered', () => {
    const scenario = guest.scenario(name);
    expect(scenario.fact('route')).toMatch(/dev qs0 src 10\.9\.0\.2/);
    expect(scenario.text('ping.txt')).toMatch(/10 received, 0% packet loss/);
  });

  test('our own probes’ replies never reach the host', () => {
    const scenario = guest.scenario(name);
    const { probes, answered } = readRun(scenario, 'run.jsonl');
    expect(answered).toBeGreaterThan(100);
    expect(answered / probes.length).toBeGreaterThan(0.5);
    expect(scenario.number('strayReplies')).toBe(0);
    expect(scenario.number('replies')).toBe(10);
  });

  test.each([
    ['tcp-up', 5e5],
    ['tcp-down', 5e5],
    ['udp-up', 9e5],
    ['udp-down', 9e5],
    // How fast it is says `npm run bench`, beside the kernel: an emulated machine that has little time is slow.
  ])('iperf3 %s', (direction, least) => {
    const { bits_per_second: rate, lost_percent: lost } = received(guest.scenario(name), direction);
    process.stdout.write(`${name} ${direction}: ${(rate / 1e6).toFixed(1)} Mbit/s, lost ${lost ?? '-'} %\n`);
    expect(rate).toBeGreaterThan(least);
    if (lost !== undefined) expect(lost).toBeLessThan(5);
  });

  test('segments of TCP come in one read each, are cut here, and arrive byte for byte', () => {
    const scenario = guest.scenario(name);
    // How long they are depends on how fast the emulated machine is.
    expect(scenario.number('bytesPerRead')).toBeGreaterThan(1514);
    expect([scenario.fact('same.up'), scenario.fact('same.down')]).toEqual(['yes', 'yes']);
    expect([scenario.number('checksumErrors'), scenario.number('farChecksumErrors')]).toEqual([0, 0]);
  });

  test('what is lost between the host and us is counted and told', () => {
    const told = drops(guest.scenario(name));
    expect(told.length).toBeGreaterThan(0);
    expect(Number((told.at(-1) ?? '').replace(/\D/g, ''))).toBeGreaterThan(0);
  });

  test('all is given back', () => {
    const scenario = guest.scenario(name);
    expect(scenario.number('run')).toBe(exitCodes.interrupted);
    expect(scenario.fact('tapAfter')).toBe('gone');
    expect(scenario.fact('driverAfter')).toBe(driver);
  });
});

test('without rights: the commands that are told make an interface that this user can use', () => {
  const scenario = guest.scenario('without-rights');
  expect(scenario.number('refused')).toBe(exitCodes.accessDenied);
  expect(scenario.text('refused.err')).toMatch(/sudo ip tuntap add dev qs1 mode tap user nobody/);
  expect(scenario.fact('told')).toBe('sudo ip address replace 10.9.0.2/24 dev qs1');
  expect(scenario.text('ping.txt')).toMatch(/5 received, 0% packet loss/);
  expect(scenario.number('run')).toBe(exitCodes.interrupted);
  expect(scenario.fact('tapAfter')).toBe('there');
});
