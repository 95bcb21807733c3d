import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import { deviceSchema } from '../../../src/contract/device.ts';
import { monotonicClock } from '../../../src/engine/monotonic-clock.ts';
import { NetdevSource } from '../../../src/engine/netdev-source.ts';
import { ObservedNetdev } from './observed-netdev.ts';

const usb = { path: 'usb2/2-1/2-1:1.0', driver: 'cdc_ncm', bus: 'usb' };
const pci = { path: 'pci0/0000:03:00.0', driver: 'igb', bus: 'pci' };

let netdev: ObservedNetdev;
let source: NetdevSource;

beforeEach(() => {
  netdev = new ObservedNetdev();
  source = new NetdevSource(netdev.observeSystem, monotonicClock, silentLog);
});
afterEach(async () => {
  await source.close();
  netdev.dispose();
});

describe('the list', () => {
  test('has what hangs on a bus; the others are found by name', async () => {
    netdev.system.add('eth0', { index: 2, queues: 4, device: pci });
    netdev.system.add('veth0', { index: 3, bqlQueues: 0 });
    netdev.system.add('lo', { index: 1 });
    netdev.system.set('lo', 'type', 772);
    const listed = await source.list();
    expect(listed.map(({ device }) => device)).toEqual([
      {
        id: 'net:eth0',
        mode: 'observe',
        name: 'eth0 (igb)',
        speed: 'unknown',
        function: 'ethernet',
        netdev: 'eth0',
        kernelDriver: 'igb',
        state: 'available',
        description:
          'eth0, kept by the kernel: 4 transmit queues, with BQL on all; bytes and limits are sums over them',
        problems: [],
      },
    ]);
    expect((await source.find('net:veth0'))?.device).toMatchObject({
      name: 'veth0',
      description: 'veth0, kept by the kernel: 1 transmit queue, without BQL',
    });
    for (const id of ['net:eth7', 'net:lo', 'net:../eth0', 'usb:eth0', 'eth0', 'net:']) {
      expect(await source.find(id)).toBeUndefined();
    }
  });

  test('names a USB device as the device names itself', async () => {
    netdev.system.add('usb0', { device: usb });
    netdev.system.write('sys/devices/usb2/2-1/idVendor', '2c7c');
    netdev.system.write('sys/devices/usb2/2-1/idProduct', '0801');
    netdev.system.write('sys/devices/usb2/2-1/product', 'RM520N-GL');
    netdev.system.write('sys/devices/usb2/2-1/speed', '5000');
    const [listed] = await source.list();
    expect(deviceSchema.parse(listed?.device)).toMatchObject({
      name: 'RM520N-GL (usb0)',
      vendorId: 0x2c7c,
      productId: 0x0801,
      speed: 'super',
      kernelDriver: 'cdc_ncm',
    });
  });
});

test('an interface that comes or goes changes the list', async () => {
  let changes = 0;
  source.onChange(() => changes++);
  // What is there at the first look is no change.
  await pause(300);
  netdev.system.add('usb0', { device: usb });
  await waitUntil(() => changes > 0);
  expect(changes).toBe(1);
  netdev.system.remove('usb0');
  await waitUntil(() => changes > 1);
  expect(changes).toBe(2);
});

describe('limits that a killed session left', () => {
  async function leave(): Promise<void> {
    netdev.system.add('usb0', { device: usb });
    const netdevIndex = 7;
    const change = { queue: 'tx-0', file: 'limit_min', was: 0, set: 500_000 };
    const entry = {
      netdev: 'usb0',
      index: netdevIndex,
      pid: 4_000_000,
      processStart: '1',
      changes: [change],
    };
    netdev.system.write('run/queuescope/usb0.limits.json', JSON.stringify(entry));
    netdev.system.setLimit('usb0', 'limit_min', 500_000);
  }

  test('are a problem of the device, with the command that puts them back', async () => {
    await leave();
    const [listed] = await source.list();
    expect(listed?.device.problems).toMatchObject([
      {
        id: 'limits-left',
        severity: 'warning',
        message: 'A session that was killed has left usb0 with limit_min 500000 (was 0).',
        remedy: expect.stringMatching(
          /^echo 0 \| sudo tee .*\/tx-0\/byte_queue_limits\/limit_min$/m,
        ) as string,
      },
    ]);
  });

  test('are put back by the next session that may', async () => {
    await leave();
    const [listed] = await source.list();
    const opened = await listed?.open?.(() => {}, {});
    expect(netdev.system.getLimit('usb0', 'limit_min')).toBe(0);
    expect(opened?.text).toContain('limits that a killed session had left were put back');
    expect((await source.list())[0]?.device.problems).toEqual([]);
    opened?.loop.close();
    expect(await opened?.close()).toEqual([]);
  });
});

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

async function waitUntil(condition: () => boolean): Promise<void> {
  const endMs = performance.now() + 5000;
  while (!condition() && performance.now() < endMs) await pause(20);
}
