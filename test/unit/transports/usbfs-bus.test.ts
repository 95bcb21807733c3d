/** The bus on Linux without libusb: devices are opened through usbfs, and the package `usb` is not even there. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { ReadyFiles } from '../../../src/linux/ready-files.ts';
import { LibusbBus } from '../../../src/transports/libusb-bus.ts';
import { LinuxUsbFiles } from '../../../src/transports/linux-usb-files.ts';
import { FakeSysfs } from './fake-sysfs.ts';
import { FakeUsbfs } from './fake-usbfs.ts';
import { ncmGadgetDescriptors } from './ncm-gadget.ts';
import { RecordingHandler } from './recording-handler.ts';

const id = 'usb:1-1';
const bulkIn = 0x81;

let sysfs: FakeSysfs;
let kernel: FakeUsbfs;
let bus: LibusbBus;
let lines: string[];

beforeEach(() => {
  // libusb would be asked what is plugged in.
  sysfs = new FakeSysfs({ udev: true });
  sysfs.addDevice('1-1', 2, ncmGadgetDescriptors);
  lines = [];
  kernel = new FakeUsbfs({ interfaces: { 0: [0x85], 1: [bulkIn, 0x02] } });
  kernel.automatic = true;
  for (const number of [0, 1]) sysfs.addInterface('1-1', 1, number);
  kernel.drivers.onChange = (number, driver) => sysfs.setDriver('1-1', 1, number, driver);
  for (const number of [0, 1]) {
    kernel.drivers.set(number, 'cdc_ncm');
    kernel.ownDrivers.set(number, 'cdc_ncm');
  }
  const missing = (): Promise<never> => Promise.reject(new Error('there is no such package'));
  bus = new LibusbBus({
    clock: { nowUs: () => 0 },
    log: { log: (level, message) => lines.push(`${level} ${message}`) },
    platform: 'linux',
    loader: { load: missing, loadAgain: missing },
    files: new LinuxUsbFiles(sysfs.root),
    usbfs: { calls: kernel, files: new ReadyFiles(kernel, () => 0) },
  });
});

afterEach(async () => {
  await bus.closeAll();
  sysfs.dispose();
});

async function kindOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof AppError ? error.kind : String(error);
}

/** Lets what other threads do come to its end. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

test('nothing is in the way of opening devices', async () => {
  expect(await bus.unavailable()).toBeUndefined();
});

test('a device is taken from its driver, moves bytes, and is given back', async () => {
  const lease = await bus.open(id, { interfaces: [0, 1] });
  expect([...kernel.drivers.values()]).toEqual(['usbfs', 'usbfs']);
  const handler = new RecordingHandler();
  lease.transport.setHandler(handler);
  const transfers = [1, 2].map(() => lease.transport.makeTransfer(bulkIn, 512, 0));
  for (const transfer of transfers) {
    transfer.length = 512;
    expect(lease.transport.submit(transfer, 0)).toBe('ok');
  }
  const [urb] = kernel.pending;
  if (urb !== undefined) kernel.end(urb, 0, Uint8Array.of(1, 2, 3));
  await settle();
  expect(handler.ends).toMatchObject([{ status: 'completed', actualLength: 3 }]);

  const report = await lease.close();
  expect(report).toEqual({
    reattached: [
      { interfaceNumber: 0, driver: 'cdc_ncm' },
      { interfaceNumber: 1, driver: 'cdc_ncm' },
    ],
    notReturned: [],
    transfersLost: 0,
  });
  expect(handler.ends.map(({ status }) => status)).toEqual(['completed', 'cancelled']);
  await settle();
  expect([kernel.openFiles, kernel.openEvents, kernel.waiting]).toEqual([0, 0, 0]);
  expect(kernel.violations).toEqual([]);
});

test('an unplug with nothing out is seen in sysfs, without a word of libusb', async () => {
  const lease = await bus.open(id, { interfaces: [0, 1] });
  const handler = new RecordingHandler();
  lease.transport.setHandler(handler);
  // It has to have been there once.
  await new Promise((resolve) => setTimeout(resolve, 100));
  kernel.unplug();
  sysfs.removeDevice('1-1');
  for (let i = 0; i < 400 && handler.goneAtUs.length === 0; i++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(handler.goneAtUs).toHaveLength(1);
  expect(lines.filter((line) => line.startsWith('warn'))).toEqual([]);
});

describe('what fails', () => {
  test.each([
    [13, 'access-denied'],
    [19, 'device-gone'],
  ])('to open with %i is %s, and nothing stays open', async (error, kind) => {
    kernel.openError = error;
    expect(await kindOf(bus.open(id, { interfaces: [0] }))).toBe(kind);
    expect(kernel.openFiles).toBe(0);
  });

  test('because another program has the interface is a device that is busy, and leaves the drivers as they were', async () => {
    kernel.drivers.set(1, 'usbfs');
    expect(await kindOf(bus.open(id, { interfaces: [0, 1] }))).toBe('device-busy');
    await settle();
    expect([...kernel.drivers]).toEqual([
      [1, 'usbfs'],
      [0, 'cdc_ncm'],
    ]);
    expect(kernel.openFiles).toBe(0);
  });

  test('because it was unplugged in the middle is told once, and closing it is no trouble', async () => {
    const lease = await bus.open(id, { interfaces: [0, 1] });
    const handler = new RecordingHandler();
    lease.transport.setHandler(handler);
    const transfer = lease.transport.makeTransfer(bulkIn, 512, 0);
    transfer.length = 512;
    lease.transport.submit(transfer, 0);
    kernel.unplug();
    await settle();
    expect(handler.ends).toHaveLength(1);
    expect(lease.transport.submit(transfer, 0)).toBe('gone');
    await settle();
    expect(handler.goneAtUs).toHaveLength(1);
    expect(await lease.close()).toMatchObject({ notReturned: [], transfersLost: 0 });
    await settle();
    expect([kernel.openFiles, kernel.openEvents]).toEqual([0, 0]);
  });
});
