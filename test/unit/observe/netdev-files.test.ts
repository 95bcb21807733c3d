import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findGateway, isNetdevName, NetdevFiles } from '../../../src/observe/netdev-files.ts';
import { FakeNetdevs } from './fake-netdevs.ts';

let system: FakeNetdevs;
let files: NetdevFiles;

beforeEach(() => {
  system = new FakeNetdevs();
  files = new NetdevFiles(system.root);
});
afterEach(() => system.dispose());

describe('an interface', () => {
  test('on a USB device: who made it, how fast it is connected, which driver has it', async () => {
    system.add('wwan0', {
      index: 12,
      device: { path: 'pci0/usb2/2-1/2-1.4/2-1.4:1.4', driver: 'qmi_wwan', bus: 'usb' },
    });
    system.set('wwan0', 'uevent', 'DEVTYPE=wwan\nINTERFACE=wwan0');
    const usb = 'sys/devices/pci0/usb2/2-1/2-1.4';
    system.write(`${usb}/idVendor`, '2c7c');
    system.write(`${usb}/idProduct`, '0801');
    system.write(`${usb}/manufacturer`, 'Quectel');
    system.write(`${usb}/product`, 'RM520N-GL');
    system.write(`${usb}/speed`, '5000');
    expect(await files.describe('wwan0')).toMatchObject({
      name: 'wwan0',
      index: 12,
      function: 'wwan',
      driver: 'qmi_wwan',
      bus: 'usb',
      busAddress: '2-1.4:1.4',
      usb: {
        name: '2-1.4',
        vendorId: 0x2c7c,
        productId: 0x0801,
        manufacturer: 'Quectel',
        product: 'RM520N-GL',
        speedMbit: '5000',
      },
      txQueues: ['tx-0'],
      bqlQueues: ['tx-0'],
    });
  });

  test('on PCI, with many queues in the order of their numbers, not all with limits', async () => {
    system.add('eth0', {
      queues: 12,
      bqlQueues: 11,
      device: { path: 'pci0/0000:03:00.0', driver: 'igb', bus: 'pci' },
    });
    const netdev = await files.describe('eth0');
    expect(netdev).toMatchObject({ driver: 'igb', bus: 'pci', usb: undefined, function: 'ethernet' });
    expect(netdev?.txQueues.slice(8)).toEqual(['tx-8', 'tx-9', 'tx-10', 'tx-11']);
    expect(netdev?.bqlQueues.at(-1)).toBe('tx-10');
  });

  test('without a device behind it and without limits', async () => {
    system.add('veth0', { bqlQueues: 0 });
    expect(await files.describe('veth0')).toMatchObject({ bus: undefined, driver: undefined, bqlQueues: [] });
  });

  test('the loopback interface and what is not there are none', async () => {
    system.add('lo');
    system.set('lo', 'type', 772);
    expect(await files.describe('lo')).toBeUndefined();
    expect(await files.describe('eth7')).toBeUndefined();
  });

  test('its link, and the speed where the driver knows one', async () => {
    system.add('eth0');
    expect(await files.carrier('eth0')).toBe(true);
    expect(await files.linkBitsPerSecond('eth0')).toBe(1e9);
    system.set('eth0', 'carrier', 0);
    system.set('eth0', 'speed', -1);
    expect(await files.carrier('eth0')).toBe(false);
    expect(await files.linkBitsPerSecond('eth0')).toBeUndefined();
    // What reading it answers while the interface is down.
    system.set('eth0', 'carrier', '');
    expect(await files.carrier('eth0')).toBeUndefined();
  });
});

test('nothing is looked for outside of the folder of interfaces', async () => {
  system.write('sys/class/secret/ifindex', 1);
  expect(await files.index('../secret')).toBeUndefined();
  expect(await files.describe('../secret')).toBeUndefined();
});

test('a machine without sysfs has no interfaces', async () => {
  expect(await new NetdevFiles(`${system.root}/nowhere`).names()).toEqual([]);
});

test.each([
  ['eth0', true],
  ['enx0250f4000001', true],
  ['eth0.100', true],
  ['br-lan', true],
  ['..', false],
  ['a/b', false],
  ['a b', false],
  ['sixteen-letters-', false],
  ['$(reboot)', false],
  ['', false],
])('%j as a name: %j', (name, isName) => {
  expect(isNetdevName(name)).toBe(isName);
});

describe('the default gateway', () => {
  const heading = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT';
  const line = (
    netdev: string,
    destination: string,
    gateway: string,
    flags: string,
    metric: number,
  ): string => `${netdev}\t${destination}\t${gateway}\t${flags}\t0\t0\t${metric}\t00000000\t0\t0\t0   `;

  test('is that of the lowest metric through this interface', () => {
    const routes = [
      heading,
      line('eth0', '00000000', '010200C0', '0003', 100),
      line('wwan0', '00000000', '0100000A', '0003', 700),
      line('wwan0', '00000000', '0200000A', '0003', 600),
      line('wwan0', '0000000A', '00000000', '0001', 0),
    ].join('\n');
    expect(findGateway(routes, 'wwan0')).toBe('10.0.0.2');
    expect(findGateway(routes, 'eth0')).toBe('192.0.2.1');
    expect(findGateway(routes, 'eth1')).toBeUndefined();
  });

  test('a route straight out of the interface has none', () => {
    expect(findGateway([heading, line('wwan0', '00000000', '00000000', '0001', 0)].join('\n'), 'wwan0')).toBe(
      undefined,
    );
  });
});
