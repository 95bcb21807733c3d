import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { defaultSessionSettings } from '../../../src/contract/settings.ts';
import { faultColumns } from '../../../src/contract/telemetry.ts';
import { ObservedNetdev } from './observed-netdev.ts';

const usb = { path: 'usb1/1-1/1-1:1.0', driver: 'cdc_ncm', bus: 'usb' };
const maxLimit = 1_879_048_192;

let netdev: ObservedNetdev;

beforeEach(() => {
  netdev = new ObservedNetdev();
});
afterEach(() => netdev.dispose());

async function startWithBql(limit = 3028): Promise<void> {
  netdev.system.add('usb0', { device: usb });
  netdev.system.setLimit('usb0', 'limit', limit);
  await netdev.start();
}

describe('samples', () => {
  test('hold what the files hold, rates over their interval, and NaN for what only a driver knows', async () => {
    await startWithBql();
    const { system } = netdev;
    await netdev.pass(50_000);
    system.setLimit('usb0', 'inflight', 4542);
    system.setLimit('usb0', 'limit', 6056);
    system.count('usb0', 'tx_bytes', 125_000);
    system.count('usb0', 'tx_packets', 100);
    system.count('usb0', 'rx_bytes', 6250);
    system.count('usb0', 'rx_packets', 5);
    netdev.backlogBytes = 15_140;
    await netdev.pass(50_000);
    expect(netdev.newestSample()).toEqual({
      timeUs: 100_000,
      inflightBytes: 4542,
      inflightMaxBytes: 4542,
      limitBytes: 6056,
      bqlEnabled: 1,
      txTransfers: Number.NaN,
      backlogPackets: 10,
      backlogBytes: 15_140,
      qdiscFlows: Number.NaN,
      txBitsPerSecond: 20e6,
      rxBitsPerSecond: 1e6,
      txPacketsPerSecond: 2000,
      rxPacketsPerSecond: 100,
      driverQueueP50Us: Number.NaN,
      driverQueueP95Us: Number.NaN,
      driverQueueMaxUs: Number.NaN,
      qdiscWaitP50Us: Number.NaN,
      qdiscWaitP95Us: Number.NaN,
      qdiscWaitMaxUs: Number.NaN,
      txDroppedPackets: 0,
      qdiscDroppedPackets: 0,
      qdiscMarkedPackets: Number.NaN,
      txErrors: 0,
      rxErrors: 0,
      driverXoff: Number.NaN,
      stackXoff: Number.NaN,
      eventLoopLagUs: Number.NaN,
      // Only a driver of our own knows how transfers fail.
      ...Object.fromEntries(faultColumns.map((column) => [column, Number.NaN])),
      txTimeouts: 0,
    });
  });

  test('know of a peak between two of them', async () => {
    await startWithBql();
    netdev.system.setLimit('usb0', 'inflight', 9084);
    await netdev.pass(20_000);
    netdev.system.setLimit('usb0', 'inflight', 1514);
    await netdev.pass(30_000);
    expect(netdev.newestSample()).toMatchObject({ inflightBytes: 1514, inflightMaxBytes: 9084 });
    await netdev.pass(50_000);
    expect(netdev.newestSample()).toMatchObject({ inflightMaxBytes: 1514 });
  });

  test('count from the start of the session, whatever was before, and never backwards', async () => {
    netdev.system.add('usb0', { device: usb });
    netdev.system.count('usb0', 'tx_errors', 1000);
    netdev.qdiscDrops = 500;
    await netdev.start();
    await netdev.pass(50_000);
    netdev.system.count('usb0', 'tx_errors', 1007);
    netdev.qdiscDrops = 520;
    await netdev.pass(600_000);
    expect(netdev.newestSample()).toMatchObject({ txErrors: 7, qdiscDroppedPackets: 20 });
    // The driver starts anew.
    netdev.system.count('usb0', 'tx_errors', 2);
    await netdev.pass(600_000);
    netdev.system.count('usb0', 'tx_errors', 3);
    await netdev.pass(600_000);
    expect(netdev.newestSample()).toMatchObject({ txErrors: 8 });
  });

  test('keep the pace that was asked for', async () => {
    netdev.system.add('usb0', { device: usb });
    await netdev.start({ sampleRateHz: 100 });
    await netdev.pass(1_000_000);
    expect(netdev.report.samples.map(({ timeUs }) => timeUs)).toEqual(
      Array.from({ length: 100 }, (_, i) => (i + 1) * 10_000),
    );
  });
});

describe('an interface without BQL', () => {
  test('that has no files for it says so, and shows the rest', async () => {
    netdev.system.add('usb0', { bqlQueues: 0, device: usb });
    netdev.kernelRelease = '6.12.48';
    await netdev.start();
    await netdev.pass(50_000);
    netdev.system.count('usb0', 'tx_bytes', 6250);
    await netdev.pass(50_000);
    expect(netdev.report.problems.get('no-bql')).toMatchObject({
      severity: 'info',
      remedy: 'Drivers built on usbnet have it since Linux 6.19; this is 6.12.48.',
    });
    expect(netdev.report.facts.get('BQL')).toMatch(/^none/);
    expect(netdev.newestSample()).toMatchObject({
      inflightBytes: Number.NaN,
      inflightMaxBytes: Number.NaN,
      limitBytes: Number.NaN,
      bqlEnabled: 0,
      txBitsPerSecond: 1e6,
    });
  });

  test('whose limit stays 0 while it sends is told from one that has not sent yet', async () => {
    netdev.system.add('usb0', { device: usb });
    netdev.system.count('usb0', 'tx_packets', 5000);
    await netdev.start();
    await netdev.pass(200_000);
    expect(netdev.report.problems.has('no-bql')).toBe(false);
    netdev.system.count('usb0', 'tx_packets', 5020);
    await netdev.pass(100_000);
    expect(netdev.report.problems.get('no-bql')?.message).toContain('does not take part');
    expect(netdev.newestSample()).toMatchObject({ inflightBytes: Number.NaN, bqlEnabled: 0 });
    // It does after all.
    netdev.system.setLimit('usb0', 'limit', 1514);
    await netdev.pass(100_000);
    expect(netdev.report.problems.has('no-bql')).toBe(false);
    expect(netdev.newestSample()).toMatchObject({ limitBytes: 1514, bqlEnabled: 1 });
  });
});

describe('settings', () => {
  test('are the kernel’s, and nothing is written, unless asked for', async () => {
    netdev.system.add('usb0', { device: usb });
    netdev.system.setLimit('usb0', 'limit_min', 3000);
    netdev.system.setLimit('usb0', 'hold_time', 250);
    await netdev.start();
    await netdev.pass(1_000_000);
    const bql = { enabled: true, limitMinBytes: 3000, limitMaxBytes: maxLimit, holdTimeMs: 250 };
    expect(netdev.report.settings?.bql).toEqual(bql);
    expect(netdev.path.settings.bql).toEqual(bql);
    expect(netdev.system.getLimit('usb0', 'limit_min')).toBe(3000);
  });

  test('that a session is started with are set, the standard ones left', async () => {
    netdev.system.add('usb0', { device: usb });
    netdev.system.setLimit('usb0', 'hold_time', 250);
    await netdev.start({ bql: { ...defaultSessionSettings.bql, limitMaxBytes: 6000 } });
    expect(netdev.system.getLimit('usb0', 'limit_max')).toBe(6000);
    expect(netdev.system.getLimit('usb0', 'hold_time')).toBe(250);
  });

  test('of BQL off and on again, and back at the end', async () => {
    await startWithBql();
    netdev.path.configure({ bql: { enabled: false } }, netdev.nowUs);
    expect(netdev.path.settings.bql.enabled).toBe(false);
    await netdev.pass(50_000);
    expect(netdev.newestSample()).toMatchObject({ bqlEnabled: 0, limitBytes: Number.NaN });
    netdev.path.configure({ bql: { enabled: true, limitMinBytes: 2000 } }, netdev.nowUs);
    await netdev.pass(50_000);
    expect(netdev.newestSample()).toMatchObject({ bqlEnabled: 1, limitBytes: 3028 });
    expect(netdev.system.getLimit('usb0', 'limit_min')).toBe(2000);
    let isStopped = false;
    netdev.path.stop(netdev.nowUs, () => (isStopped = true));
    expect(isStopped).toBe(true);
    expect(netdev.system.getLimit('usb0', 'limit_min')).toBe(0);
    expect(netdev.report.events.map(({ kind }) => kind).filter((kind) => kind.startsWith('bql'))).toEqual([
      'bql-off',
      'bql-on',
    ]);
    expect(netdev.path.release()).toEqual([]);
  });

  test('that cannot be are a problem until one can', async () => {
    await startWithBql();
    netdev.path.configure({ bql: { limitMinBytes: maxLimit + 1 } }, netdev.nowUs);
    expect(netdev.report.problems.has('limits-invalid')).toBe(true);
    expect(netdev.path.settings.bql.limitMinBytes).toBe(0);
    netdev.path.configure({ bql: { limitMinBytes: 1000 } }, netdev.nowUs);
    expect(netdev.report.problems.has('limits-invalid')).toBe(false);
  });

  test('of another program become ours, and are told', async () => {
    await startWithBql();
    netdev.system.setLimit('usb0', 'limit_max', 9000);
    await netdev.pass(1_000_000);
    expect(netdev.report.settings?.bql.limitMaxBytes).toBe(9000);
    expect(netdev.report.events.filter(({ kind }) => kind === 'settings')).toHaveLength(1);
  });

  test('of a load are not ours to have', async () => {
    await startWithBql();
    netdev.path.configure({ load: { enabled: true } }, netdev.nowUs);
    expect(netdev.path.settings.load.enabled).toBe(false);
    expect(netdev.report.facts.get('Load')).toContain('other programs');
  });
});

describe('round trips', () => {
  const line = (sequence: number, rtt: string): string =>
    `[${(netdev.nowUs / 1e6).toFixed(6)}] 64 bytes from 10.9.0.1: icmp_seq=${sequence} ttl=64 time=${rtt} ms`;

  test('go to the gateway through this interface, and are rows of their own', async () => {
    await startWithBql();
    await netdev.pass(100_000);
    const ping = netdev.programs.newest('ping');
    expect(ping.option('-I')).toBe('usb0');
    expect(ping.arguments.at(-1)).toBe('10.9.0.1');
    ping.say(line(1, '12.3'));
    expect(netdev.report.stages.get('target')).toEqual({ status: 'done', text: '10.9.0.1 answers' });
    expect(netdev.report.probes).toEqual([
      {
        timeUs: 87_700,
        sequence: 0,
        rttUs: 12_300,
        qdiscWaitUs: Number.NaN,
        driverQueueUs: Number.NaN,
        lateUs: Number.NaN,
      },
    ]);
  });

  test('go to the host that was named', async () => {
    netdev.system.add('usb0', { device: usb });
    await netdev.start({ target: '10.9.0.7' });
    await netdev.pass(1000);
    expect(netdev.programs.newest('ping').arguments.at(-1)).toBe('10.9.0.7');
  });

  test('to a host that never answers are a problem, while samples go on', async () => {
    await startWithBql();
    await netdev.pass(1000);
    for (let sequence = 1; sequence <= 6; sequence++) {
      netdev.programs
        .newest('ping')
        .say(`[${(netdev.nowUs / 1e6).toFixed(6)}] no answer yet for icmp_seq=${sequence}`);
      await netdev.pass(200_000);
    }
    expect(netdev.report.problems.has('target-silent')).toBe(false);
    await netdev.pass(6_000_000);
    expect(netdev.report.problems.get('target-silent')?.message).toContain('10.9.0.1');
    netdev.programs.newest('ping').say(line(40, '0.3'));
    expect(netdev.report.problems.has('target-silent')).toBe(false);
  });

  test.each([
    ['there is no address', () => (netdev.addresses = []), 'has no IPv4 address'],
    ['no route leads there', () => netdev.system.routes([['eth0', '010200C0', 1]]), 'no default route'],
  ])('are not there where %s; once there is, they are', async (_case, take, words) => {
    take();
    await startWithBql();
    await netdev.pass(100_000);
    expect(netdev.programs.of('ping')).toEqual([]);
    expect(netdev.report.problems.get('no-target')?.message).toContain(words);
    netdev.addresses = ['10.9.0.2/24'];
    netdev.system.routes([['usb0', '0100090A', 100]]);
    for (let i = 0; i < 6; i++) await netdev.pass(500_000);
    expect(netdev.report.problems.has('no-target')).toBe(false);
    expect(netdev.programs.of('ping')).toHaveLength(1);
  });

  test('stop without a link, which is told when it stays away', async () => {
    await startWithBql();
    await netdev.pass(1000);
    netdev.system.set('usb0', 'carrier', 0);
    await netdev.pass(600_000);
    expect(netdev.programs.newest('ping').isStopped).toBe(true);
    expect(netdev.report.events).toContainEqual({ kind: 'carrier', text: 'carrier off' });
    await netdev.pass(10_000_000);
    expect(netdev.report.problems.get('no-carrier')?.severity).toBe('warning');
    netdev.system.set('usb0', 'carrier', 1);
    await netdev.pass(600_000);
    await netdev.pass(1000);
    expect(netdev.report.problems.has('no-carrier')).toBe(false);
    expect(netdev.programs.of('ping')).toHaveLength(2);
    expect(netdev.report.stages.get('carrier')).toEqual({ status: 'done', text: 'link up, 1.00 Gbit/s' });
  });
});

describe('an interface that vanishes', () => {
  test('is told, and neither read nor pinged any more', async () => {
    await startWithBql();
    await netdev.pass(100_000);
    const programs = [netdev.programs.newest('ping'), netdev.programs.newest('tc')];
    netdev.system.remove('usb0');
    await netdev.pass(600_000);
    expect(netdev.report.losses).toBe(1);
    expect(netdev.report.events).toContainEqual({ kind: 'unplug', text: 'usb0 is gone' });
    expect(programs.map(({ isStopped }) => isStopped)).toEqual([true, true]);
    const before = netdev.report.samples.length;
    await netdev.pass(5_000_000);
    expect(netdev.report.samples).toHaveLength(before);
    expect(netdev.report.losses).toBe(1);
  });

  test('and is another one at the next look is gone all the same', async () => {
    await startWithBql();
    netdev.system.set('usb0', 'ifindex', 9);
    await netdev.pass(600_000);
    expect(netdev.report.losses).toBe(1);
  });

  test('with BQL off leaves nothing to be put back', async () => {
    await startWithBql();
    netdev.path.configure({ bql: { enabled: false } }, netdev.nowUs);
    netdev.system.remove('usb0');
    await netdev.pass(600_000);
    expect(netdev.path.release()).toEqual([]);
    // What it is to be opened with when it is back.
    expect(netdev.path.settings.bql.enabled).toBe(false);
    expect(netdev.journal.left()).toEqual([]);
  });
});

describe('what goes wrong below', () => {
  test('bytes that stay in flight while nothing is sent are a stall', async () => {
    await startWithBql();
    netdev.system.setLimit('usb0', 'inflight', 3028);
    await netdev.pass(1_900_000);
    expect(netdev.report.stalled).toEqual([]);
    await netdev.pass(300_000);
    expect(netdev.report.stalled).toEqual([true]);
    expect(netdev.report.problems.get('stalled')?.message).toContain('3.03 KB');
    netdev.system.count('usb0', 'tx_bytes', 1514);
    await netdev.pass(100_000);
    expect(netdev.report.stalled).toEqual([true, false]);
    expect(netdev.report.problems.has('stalled')).toBe(false);
  });

  test('the kernel’s watchdog and BQL’s own stalls are events', async () => {
    await startWithBql();
    netdev.system.set('usb0', 'queues/tx-0/tx_timeout', 1);
    netdev.system.setLimit('usb0', 'stall_thrs', 50);
    netdev.system.setLimit('usb0', 'stall_cnt', 2);
    netdev.system.setLimit('usb0', 'stall_max', 120);
    await netdev.pass(600_000);
    expect(netdev.report.events.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['timeout', 'halt']));
    expect(netdev.report.facts.get('Stalls')).toBe(
      '2 of more than 50 ms, the longest 120 ticks of the kernel',
    );
  });

  test('a missing tc costs the backlog alone', async () => {
    await startWithBql();
    await netdev.pass(45_000);
    netdev.programs.newest('tc').end({ isMissing: true });
    await netdev.pass(100_000);
    expect(netdev.report.problems.get('no-qdisc')?.severity).toBe('info');
    expect(netdev.newestSample()).toMatchObject({
      backlogBytes: Number.NaN,
      qdiscDroppedPackets: Number.NaN,
      limitBytes: 3028,
    });
  });
});
