import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LinuxUsbFiles } from '../../../src/transports/linux-usb-files.ts';
import { FakeSysfs } from './fake-sysfs.ts';

let sysfs: FakeSysfs;
let files: LinuxUsbFiles;
const descriptors = Uint8Array.of(18, 1);

beforeEach(() => {
  sysfs = new FakeSysfs();
  files = new LinuxUsbFiles(sysfs.root);
});

afterEach(() => {
  sysfs.dispose();
});

describe('a device in sysfs', () => {
  test.each([
    ['1.5', 'low'],
    ['12', 'full'],
    ['480', 'high'],
    ['5000', 'super'],
    ['10000', 'super-plus'],
    ['20000', 'super-plus'],
    ['unknown', 'unknown'],
  ])('speed %s is %s', async (text, speed) => {
    sysfs.addDevice('1-1', 2, descriptors, { speed: text });
    expect((await files.read('1-1'))?.speed).toBe(speed);
  });

  test('that has no names, no configuration and no driver', async () => {
    sysfs.addDevice('3-1.2', 17, descriptors, { bConfigurationValue: '', authorized: '0' });
    expect(await files.read('3-1.2')).toEqual({
      name: '3-1.2',
      busNumber: 3,
      deviceAddress: 17,
      speed: 'high',
      manufacturer: undefined,
      product: undefined,
      serialNumber: undefined,
      activeConfiguration: undefined,
      authorized: false,
      descriptors,
      interfaceDrivers: [],
    });
  });

  test('that goes while it is read', async () => {
    sysfs.addDevice('1-1', 2, descriptors);
    sysfs.removeDevice('1-1');
    expect(await files.read('1-1')).toBeUndefined();
    expect(await files.address('1-1')).toBeUndefined();
    expect(await files.interfaceDrivers('1-1')).toEqual([]);
  });

  test('has its interfaces in the order of their numbers', async () => {
    sysfs.addDevice('1-1', 2, descriptors);
    for (const number of [10, 2, 8]) sysfs.addInterface('1-1', 1, number);
    sysfs.setDriver('1-1', 1, 10, 'qmi_wwan');
    sysfs.setDriver('1-1', 1, 2, 'option');
    expect(await files.interfaceNames('1-1')).toEqual(['1-1:1.2', '1-1:1.8', '1-1:1.10']);
    expect(await files.interfaceDrivers('1-1')).toEqual([
      { interfaceNumber: 2, driver: 'option' },
      { interfaceNumber: 10, driver: 'qmi_wwan' },
    ]);
  });
});

describe('a node', () => {
  test('has the path that the kernel gives it', () => {
    expect(files.nodePath({ busNumber: 1, deviceAddress: 2 })).toBe('/dev/bus/usb/001/002');
    expect(files.nodePath({ busNumber: 12, deviceAddress: 127 })).toBe('/dev/bus/usb/012/127');
  });

  test('is missing or there', async () => {
    sysfs.addDevice('1-1', 2, descriptors);
    expect(await files.nodeAccess('/dev/bus/usb/001/002')).toBe('ok');
    expect(await files.nodeAccess('/dev/bus/usb/001/003')).toBe('missing');
    expect(await files.nodeAccess('/dev/bus/usb/009/001')).toBe('missing');
  });

  test.skipIf(process.getuid?.() === 0)('may not be opened (skipped for root, who may)', async () => {
    sysfs.addDevice('1-1', 2, descriptors);
    chmodSync(join(sysfs.root, 'dev/bus/usb/001/002'), 0o400);
    expect(await files.nodeAccess('/dev/bus/usb/001/002')).toBe('denied');
  });

  test('is held by those who have it open', async () => {
    sysfs.addProcess(10, 'usbmuxd', '/dev/bus/usb/001/002');
    sysfs.addProcess(11, 'bash', '/dev/null');
    sysfs.addProcess(process.pid, 'queuescope', '/dev/bus/usb/001/002');
    sysfs.write('proc/meminfo', '');
    expect(await files.holders('/dev/bus/usb/001/002')).toEqual([{ pid: 10, command: 'usbmuxd' }]);
  });
});

test('asking for a driver writes to the file of the kernel and never makes one', async () => {
  await expect(files.probeDriver('1-1:1.0')).rejects.toMatchObject({ code: 'ENOENT' });
  writeFileSync(join(sysfs.root, 'sys/bus/usb/drivers_probe'), '');
  await files.probeDriver('1-1:1.0');
});

test('udev runs where its socket is', async () => {
  expect(await files.udevRuns()).toBe(false);
  sysfs.write('run/udev/control', '');
  expect(await files.udevRuns()).toBe(true);
});
