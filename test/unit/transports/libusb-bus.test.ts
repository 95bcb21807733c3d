import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { LibusbBus } from '../../../src/transports/libusb-bus.ts';
import type { LibusbLoader } from '../../../src/transports/libusb-module.ts';
import { libusbErrors } from '../../../src/transports/libusb-status.ts';
import { LinuxUsbFiles } from '../../../src/transports/linux-usb-files.ts';
import { closeLimitMs, type CloseReport, type UsbLease } from '../../../src/transports/usb-bus.ts';
import type { UsbPlatform } from '../../../src/transports/usb-platform.ts';
import {
  type ConfigurationDescriptor,
  encodeConfigurationDescriptor,
} from '../../../src/wire/usb-descriptor.ts';
import {
  type FakeDevice,
  type FakeDeviceOptions,
  FakeUsb,
  loaderOf,
  ncmDeviceDescriptor,
  neverAnswers,
} from './fake-libusb.ts';
import { FakeSysfs } from './fake-sysfs.ts';
import { libusbView } from './libusb-view.ts';
import { ncmGadgetDescriptors } from './ncm-gadget.ts';
import { RecordingHandler } from './recording-handler.ts';

const id = 'usb:1-1';
const cdcNcm = { name: 'cdc_ncm', interfaces: [0, 1] };
const trees: FakeSysfs[] = [];

afterEach(() => {
  vi.useRealTimers();
  for (const tree of trees.splice(0)) tree.dispose();
});

interface LinuxBench {
  readonly sysfs: FakeSysfs;
  readonly usb: FakeUsb;
  readonly handle: FakeDevice;
  readonly bus: LibusbBus;
  readonly lines: string[];
}

function busOf(options: {
  readonly usb: FakeUsb;
  readonly platform: UsbPlatform;
  readonly sysfs?: FakeSysfs;
  readonly loader?: LibusbLoader;
  readonly lines?: string[];
}): LibusbBus {
  let nowUs = 0;
  return new LibusbBus({
    clock: { nowUs: () => ++nowUs },
    log: { log: (level, message) => options.lines?.push(`${level} ${message}`) },
    platform: options.platform,
    loader: options.loader ?? loaderOf(options.usb),
    ...(options.sysfs === undefined ? {} : { files: new LinuxUsbFiles(options.sysfs.root) }),
  });
}

/** The NCM gadget at 1-1 on Linux, with the kernel's driver on it. */
function linuxBench(options: Partial<FakeDeviceOptions> & { readonly udev?: boolean } = {}): LinuxBench {
  const sysfs = new FakeSysfs({ udev: options.udev ?? true });
  trees.push(sysfs);
  const usb = new FakeUsb();
  sysfs.addDevice('1-1', 2, ncmGadgetDescriptors, { manufacturer: 'lab', product: 'ncm', serial: '0001' });
  const handle = usb.addDevice({
    descriptor: ncmDeviceDescriptor,
    interfaces: { 1: [0, 1] },
    kernelDrivers: { 1: [cdcNcm] },
    sysfs,
    ...options,
  });
  const lines: string[] = [];
  return { sysfs, usb, handle, lines, bus: busOf({ usb, platform: 'linux', sysfs, lines }) };
}

async function failureOf(work: Promise<unknown>): Promise<AppError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AppError)) throw new Error(`not an AppError: ${String(error)}`);
  return error;
}

function handlerOn(lease: UsbLease): RecordingHandler {
  const handler = new RecordingHandler();
  lease.transport.setHandler(handler);
  return handler;
}

describe('the list on Linux', () => {
  test('tells everything without loading the package', async () => {
    const { sysfs } = linuxBench();
    const bus = busOf({
      usb: new FakeUsb(),
      platform: 'linux',
      sysfs,
      loader: {
        load: () => Promise.reject(new Error('no')),
        loadAgain: () => Promise.reject(new Error('no')),
      },
    });
    const [device] = await bus.list();
    expect(device).toMatchObject({
      id,
      vendorId: 0x1d6b,
      productId: 0x0103,
      manufacturer: 'lab',
      product: 'ncm',
      serialNumber: '0001',
      speed: 'high',
      activeConfiguration: 1,
      interfaceDrivers: [
        { interfaceNumber: 0, driver: 'cdc_ncm' },
        { interfaceNumber: 1, driver: 'cdc_ncm' },
      ],
      problems: [],
    });
    expect(device?.configurations[0]?.interfaces.map(({ number }) => number)).toEqual([0, 1]);
  });

  test('leaves hubs out, and sorts by bus and port as numbers', async () => {
    const { sysfs, bus } = linuxBench();
    const hub = Uint8Array.from(ncmGadgetDescriptors);
    hub[4] = 9;
    sysfs.addDevice('1-2', 3, hub);
    for (const name of ['1-10', '1-2.3', '10-1', '2-1']) sysfs.addDevice(name, 9, ncmGadgetDescriptors);
    sysfs.write('sys/bus/usb/devices/usb1/idVendor', '1d6b');
    expect((await bus.list()).map((device) => device.id)).toEqual([
      'usb:1-1',
      'usb:1-2.3',
      'usb:1-10',
      'usb:2-1',
      'usb:10-1',
    ]);
  });

  test('is empty on a machine without USB', async () => {
    const sysfs = new FakeSysfs();
    trees.push(sysfs);
    const bus = busOf({ usb: new FakeUsb(), platform: 'linux', sysfs: sysfs });
    expect(await bus.list()).toEqual([]);
    const none = new LinuxUsbFiles(join(sysfs.root, 'nowhere'));
    expect(await none.names()).toEqual([]);
  });

  test('says what is in the way: no node, a policy, another program, broken descriptors', async () => {
    const { sysfs, bus } = linuxBench({ claimedElsewhere: [1], kernelDrivers: {} });
    sysfs.addProcess(77, 'qmicli', '/dev/bus/usb/001/002');
    sysfs.addProcess(78, 'other', '/dev/bus/usb/001/009');
    sysfs.addProcess(process.pid, 'queuescope', '/dev/bus/usb/001/002');
    sysfs.addDevice('1-2', 3, ncmGadgetDescriptors.subarray(0, 60), {
      authorized: '0',
      bConfigurationValue: '',
    });
    sysfs.addDevice('1-3', 4, ncmGadgetDescriptors);
    sysfs.write('sys/bus/usb/devices/1-3/devnum', '5');
    const devices = await bus.list();
    expect(devices.map(({ problems }) => problems.map((problem) => problem.id))).toEqual([
      ['in-use'],
      ['bad-descriptors', 'not-authorized'],
      ['no-node'],
    ]);
    expect(devices[0]?.problems[0]?.message).toBe('Interface 1 is in use by qmicli (process 77).');
    expect(devices[1]?.activeConfiguration).toBeUndefined();
  });
});

describe('opening', () => {
  test('takes only the interfaces that are needed, from their driver', async () => {
    const { bus, handle } = linuxBench();
    const lease = await bus.open(id, { interfaces: [0, 1] });
    // The driver left both interfaces when it was detached from the first.
    expect(handle.log).toEqual(['open', 'detach 0', 'claim 0', 'claim 1']);
    expect(lease.transport.device.configuration.value).toBe(1);
    expect(lease.transport.device.speed).toBe('high');
    await lease.close();
  });

  test("of a driver's second interface: it comes back to both", async () => {
    const { bus, handle } = linuxBench();
    const lease = await bus.open(id, { interfaces: [1] });
    expect(handle.log).toEqual(['open', 'detach 1', 'claim 1']);
    const report = await lease.close();
    expect(report.reattached.map(({ interfaceNumber }) => interfaceNumber)).toEqual([0, 1]);
    expect(handle.drivers.get(0)).toBe('cdc_ncm');
  });

  test('goes by interface numbers, which may have gaps', async () => {
    const sysfs = new FakeSysfs({ udev: true });
    trees.push(sysfs);
    const usb = new FakeUsb();
    sysfs.addDevice('1-1', 2, modemDescriptors([0, 2, 8]));
    const handle = usb.addDevice({
      descriptor: ncmDeviceDescriptor,
      interfaces: { 1: [0, 2, 8] },
      kernelDrivers: {
        1: [
          { name: 'option', interfaces: [0] },
          { name: 'qmi_wwan', interfaces: [8] },
        ],
      },
      sysfs,
    });
    const bus = busOf({ usb, platform: 'linux', sysfs });
    const lease = await bus.open(id, { interfaces: [8] });
    expect(handle.log).toEqual(['open', 'detach 8', 'claim 8']);
    expect(handle.drivers.get(0)).toBe('option');
    const report = await lease.close();
    expect(report.reattached).toEqual([{ interfaceNumber: 8, driver: 'qmi_wwan' }]);
  });

  test('twice at once: the second is refused, and again possible after the close', async () => {
    const { bus } = linuxBench();
    const [first, second] = await Promise.allSettled([
      bus.open(id, { interfaces: [0] }),
      bus.open(id, { interfaces: [1] }),
    ]);
    expect(first.status).toBe('fulfilled');
    expect(second).toMatchObject({ status: 'rejected', reason: { kind: 'device-busy' } });
    if (first.status === 'fulfilled') await first.value.close();
    const again = await bus.open(id, { interfaces: [1] });
    await again.close();
  });

  test('chooses another configuration only if it is another one, and goes back at the end', async () => {
    const two = twoConfigurations();
    const options = {
      interfaces: { 1: [0], 2: [0, 1] },
      kernelDrivers: { 1: [{ name: 'r8152', interfaces: [0] }], 2: [cdcNcm] },
    };
    const { bus, handle, sysfs } = linuxBench({ ...options });
    sysfs.addDevice('1-1', 2, two);
    const same = await bus.open(id, { interfaces: [0], configurationValue: 1 });
    await same.close();
    expect(handle.log.filter((call) => call.startsWith('configure'))).toEqual([]);

    handle.log.length = 0;
    const lease = await bus.open(id, { interfaces: [0, 1], configurationValue: 2 });
    expect(handle.log).toEqual(['open', 'detach 0', 'configure 2', 'detach 0', 'claim 0', 'claim 1']);
    expect(lease.transport.device.configuration.value).toBe(2);
    const report = await lease.close();
    expect(handle.activeConfiguration).toBe(1);
    expect(handle.drivers.get(0)).toBe('r8152');
    expect(report).toEqual({
      reattached: [{ interfaceNumber: 0, driver: 'r8152' }],
      notReturned: [],
      transfersLost: 0,
    });
  });

  test('of a device that libusb has not heard of looks with a new instance of the addon', async () => {
    const { sysfs } = linuxBench({ udev: false });
    const stale = new FakeUsb();
    const fresh = new FakeUsb();
    const handle = fresh.addDevice({ descriptor: ncmDeviceDescriptor, interfaces: { 1: [0, 1] } });
    let instances = 0;
    const loader = loaderOf(stale, () => {
      instances++;
      return fresh;
    });
    const bus = busOf({ usb: stale, platform: 'linux', sysfs, loader });
    const lease = await bus.open(id, { interfaces: [0] });
    expect(handle.claimed.has(0)).toBe(true);
    await lease.close();
    await (await bus.open(id, { interfaces: [0] })).close();
    expect(instances).toBe(1);
  });
});

describe('opening that fails', () => {
  test('for want of permission names the node, the rule and where it goes', async () => {
    const { bus, handle } = linuxBench();
    handle.openError = libusbErrors.access;
    const error = await failureOf(bus.open(id, { interfaces: [0, 1] }));
    expect(error.kind).toBe('access-denied');
    expect(error.message).toBe('There is no permission to open usb:1-1 (/dev/bus/usb/001/002)');
    expect(error.remedy).toBe(
      [
        'As root, put this line into /etc/udev/rules.d/70-queuescope.rules:',
        'SUBSYSTEM=="usb", ATTR{idVendor}=="1d6b", ATTR{idProduct}=="0103", MODE="0660", TAG+="uaccess"',
        'then run',
        'udevadm control --reload-rules && udevadm trigger /dev/bus/usb/001/002',
        'The rule serves who sits at the machine. For a login over SSH append , GROUP="plugdev" to it and join that group.',
      ].join('\n'),
    );
    expect(handle.drivers.get(0)).toBe('cdc_ncm');
  });

  test('for want of permission without udev says what helps there', async () => {
    const { bus, handle } = linuxBench({ udev: false });
    handle.openError = libusbErrors.access;
    const error = await failureOf(bus.open(id, { interfaces: [0] }));
    expect(error.remedy).toMatch(/\nchmod a\+rw \/dev\/bus\/usb\/001\/002$/);
  });

  test('because another program has an interface names it, and gives back what was taken', async () => {
    const { bus, handle, sysfs } = linuxBench({
      claimedElsewhere: [1],
      kernelDrivers: { 1: [{ name: 'cdc_acm', interfaces: [0] }] },
    });
    sysfs.addProcess(4321, 'ModemManager', '/dev/bus/usb/001/002');
    const error = await failureOf(bus.open(id, { interfaces: [0, 1] }));
    expect(error.kind).toBe('device-busy');
    expect(error.message).toBe('Interface 1 of usb:1-1 is in use by ModemManager (process 4321)');
    expect(error.details).toMatchObject({ interfaceNumber: 1, pid: 4321, command: 'ModemManager' });
    expect(handle.log).toEqual([
      'open',
      'detach 0',
      'claim 0',
      'claim 1',
      'claim 1',
      'release 0',
      'attach 0',
      'close',
    ]);
    expect(handle.drivers.get(0)).toBe('cdc_acm');
    expect(handle.isOpen).toBe(false);
  });

  test('because a kernel driver does not let go names the driver', async () => {
    const { bus, handle } = linuxBench();
    handle.failures.set('detach 0', libusbErrors.notFound);
    const error = await failureOf(bus.open(id, { interfaces: [0] }));
    expect(error.kind).toBe('device-busy');
    expect(error.message).toBe('Interface 0 of usb:1-1 is in use by the kernel driver cdc_ncm');
    expect(error.details).toMatchObject({ driver: 'cdc_ncm' });
  });

  test.each([
    ['claim 1', libusbErrors.io, 'device-failed'],
    ['claim 1', libusbErrors.noDevice, 'device-gone'],
    ['claim 0', libusbErrors.other, 'device-failed'],
    ['detach 0', libusbErrors.other, 'device-failed'],
  ])('at "%s" with %i is %s, and leaves all as it was', async (call, errno, kind) => {
    const { bus, handle } = linuxBench();
    handle.failures.set(call, errno);
    const error = await failureOf(bus.open(id, { interfaces: [0, 1] }));
    expect(error.kind).toBe(kind);
    expect([...handle.claimed]).toEqual([]);
    expect([...handle.drivers]).toEqual([
      [0, 'cdc_ncm'],
      [1, 'cdc_ncm'],
    ]);
    expect(handle.isOpen).toBe(false);
    handle.failures.clear();
    await (await bus.open(id, { interfaces: [0, 1] })).close();
  });

  test('because the configuration cannot be chosen gives the drivers back', async () => {
    const { bus, handle, sysfs } = linuxBench({
      interfaces: { 1: [0], 2: [0, 1] },
      kernelDrivers: { 1: [{ name: 'r8152', interfaces: [0] }] },
    });
    sysfs.addDevice('1-1', 2, twoConfigurations());
    handle.failures.set('configure 2', libusbErrors.busy);
    const error = await failureOf(bus.open(id, { interfaces: [0, 1], configurationValue: 2 }));
    expect(error.kind).toBe('device-busy');
    expect(handle.drivers.get(0)).toBe('r8152');
    expect(handle.activeConfiguration).toBe(1);
  });

  test('for what is not there says so', async () => {
    const { bus, handle } = linuxBench();
    expect((await failureOf(bus.open('usb:1-9', { interfaces: [0] }))).kind).toBe('no-such-device');
    expect((await failureOf(bus.open('sim:modem', { interfaces: [0] }))).kind).toBe('no-such-device');
    expect((await failureOf(bus.open(id, { interfaces: [5] }))).kind).toBe('bad-input');
    expect((await failureOf(bus.open(id, { interfaces: [0], configurationValue: 9 }))).kind).toBe(
      'bad-input',
    );
    expect(handle.log).toEqual([]);
  });

  test('in a container without the node says that', async () => {
    const { bus, handle, sysfs } = linuxBench();
    sysfs.write('sys/bus/usb/devices/1-1/devnum', '3');
    Object.assign(handle, { deviceAddress: 3 });
    handle.openError = libusbErrors.noDevice;
    const error = await failureOf(bus.open(id, { interfaces: [0] }));
    expect(error.kind).toBe('access-denied');
    expect(error.message).toContain('/dev/bus/usb/001/003');
  });

  test('because the package cannot be loaded says why, and the list still works', async () => {
    const { sysfs } = linuxBench();
    const missing = new Error('libudev.so.1: cannot open shared object file');
    const loader: LibusbLoader = {
      load: () => Promise.reject(missing),
      loadAgain: () => Promise.reject(missing),
    };
    const bus = busOf({ usb: new FakeUsb(), platform: 'linux', sysfs, loader });
    const error = await failureOf(bus.open(id, { interfaces: [0] }));
    expect(error.kind).toBe('device-failed');
    expect(error.message).toContain('libudev.so.1');
    expect((await bus.unavailable())?.message).toBe(error.message);
    expect(await bus.list()).toHaveLength(1);
  });

  test('because libusb does not start says so', async () => {
    const usb = Object.assign(new FakeUsb(), { INIT_ERROR: -99 });
    expect((await busOf({ usb, platform: 'win32' }).unavailable())?.message).toContain('-99');
    expect(await busOf({ usb, platform: 'win32' }).list()).toEqual([]);
    expect(await busOf({ usb: new FakeUsb(), platform: 'win32' }).unavailable()).toBeUndefined();
  });
});

describe('closing', () => {
  test('awaits every callback, then sets back, releases, re-attaches, closes', async () => {
    const { bus, handle, usb } = linuxBench();
    const lease = await bus.open(id, { interfaces: [0, 1] });
    const handler = handlerOn(lease);
    lease.transport.request(
      { kind: 'set-interface', interfaceNumber: 1, alternateSetting: 1, timeoutMs: 1000 },
      0,
    );
    await vi.waitFor(() => expect(handler.results).toHaveLength(1));
    for (let i = 0; i < 3; i++) {
      const transfer = lease.transport.makeTransfer(0x81, 64, 0);
      transfer.length = 64;
      lease.transport.submit(transfer, 0);
    }
    usb.automatic = false;
    handle.log.length = 0;
    const closed = lease.close();
    await Promise.resolve();
    expect(handle.log).toEqual([]);
    usb.automatic = true;
    usb.turn();
    const report = await closed;
    expect(handle.log).toEqual(['alt 1 0', 'release 0', 'release 1', 'attach 0', 'close']);
    expect(handler.ends.map(({ status }) => status)).toEqual(['cancelled', 'cancelled', 'cancelled']);
    expect(report).toEqual({
      reattached: [
        { interfaceNumber: 0, driver: 'cdc_ncm' },
        { interfaceNumber: 1, driver: 'cdc_ncm' },
      ],
      notReturned: [],
      transfersLost: 0,
    });
    expect(await lease.close()).toBe(report);
    expect(handle.log.filter((call) => call === 'close')).toHaveLength(1);
  });

  test('of a device that vanished reports nothing missing', async () => {
    const { bus, handle, sysfs, usb } = linuxBench();
    const lease = await bus.open(id, { interfaces: [0, 1] });
    const handler = handlerOn(lease);
    const transfer = lease.transport.makeTransfer(0x81, 64, 0);
    transfer.length = 64;
    lease.transport.submit(transfer, 0);
    handle.unplug();
    sysfs.removeDevice('1-1');
    usb.emit('detach', handle);
    const report = await lease.close();
    expect(report).toEqual({ reattached: [], notReturned: [], transfersLost: 0 });
    expect(handler.ends.map(({ status }) => status)).toEqual(['gone']);
    expect(handler.goneAtUs).toHaveLength(1);
    expect(handle.isOpen).toBe(false);
  });

  test('says which kernel driver did not come back, and how to bring it back', async () => {
    const { bus, handle, lines } = linuxBench();
    const lease = await bus.open(id, { interfaces: [0, 1] });
    handle.failures.set('attach 0', libusbErrors.other);
    const report = await lease.close();
    expect(report.reattached).toEqual([]);
    expect(report.notReturned.map(({ message }) => message)).toEqual([
      'The kernel driver cdc_ncm did not come back to interface 0.',
      'The kernel driver cdc_ncm did not come back to interface 1.',
    ]);
    expect(report.notReturned[0]?.remedy).toContain('\necho 1-1:1.0 > /sys/bus/usb/drivers_probe');
    expect(lines.filter((line) => line.startsWith('warn'))).toHaveLength(2);
  });

  /** No files are read on macOS, so time can be made up there. */
  function macBench(): { readonly bus: LibusbBus; readonly handle: FakeDevice } {
    const usb = new FakeUsb();
    const handle = usb.addDevice({
      descriptor: ncmDeviceDescriptor,
      configurations: [libusbView(ncmGadgetDescriptors.subarray(18))],
      interfaces: { 1: [0, 1] },
      kernelDrivers: { 1: [cdcNcm] },
    });
    return { bus: busOf({ usb, platform: 'darwin' }), handle };
  }

  async function closeWithoutWaiting(lease: UsbLease): Promise<{ report: CloseReport; tookMs: number }> {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let report: CloseReport | undefined;
    void lease.close().then((value) => {
      report = value;
    });
    let tookMs = 0;
    while (report === undefined && tookMs < 20_000) {
      await new Promise((resolve) => setImmediate(resolve));
      await vi.advanceTimersByTimeAsync(10);
      tookMs += 10;
    }
    if (report === undefined) throw new Error('it never closed');
    return { report, tookMs };
  }

  test('gives up on a transfer that never comes back, within the limit, and still gives back the rest', async () => {
    const { bus, handle } = macBench();
    const lease = await bus.open(id, { interfaces: [0, 1] });
    const handler = handlerOn(lease);
    handle.ignoresCancel = true;
    const transfer = lease.transport.makeTransfer(0x81, 64, 0);
    transfer.length = 64;
    lease.transport.submit(transfer, 0);
    const { report, tookMs } = await closeWithoutWaiting(lease);
    expect(tookMs).toBeGreaterThanOrEqual(2000);
    expect(tookMs).toBeLessThanOrEqual(closeLimitMs);
    expect(report.transfersLost).toBe(1);
    expect(report.reattached).toHaveLength(2);
    expect(report.notReturned.map(({ message }) => message)).toEqual([
      expect.stringContaining('stays open in this program'),
    ]);
    expect(handler.ends.map(({ status }) => status)).toEqual(['gone']);
  });

  test('gets back what only the release of its interface ends (Linux)', async () => {
    const { bus, handle } = macBench();
    const lease = await bus.open(id, { interfaces: [0] });
    const handler = handlerOn(lease);
    handle.ignoresCancel = true;
    handle.releaseEndsTransfers = true;
    const transfer = lease.transport.makeTransfer(0x85, 64, 0);
    transfer.length = 64;
    lease.transport.submit(transfer, 0);
    const { report } = await closeWithoutWaiting(lease);
    expect(report).toMatchObject({ notReturned: [], transfersLost: 0 });
    expect(handler.ends.map(({ status }) => status)).toEqual(['cancelled']);
  });

  test('is not held up by calls that never answer', async () => {
    const { bus, handle } = macBench();
    const lease = await bus.open(id, { interfaces: [0, 1] });
    handle.failures.set('release 0', neverAnswers);
    handle.failures.set('release 1', neverAnswers);
    const { report, tookMs } = await closeWithoutWaiting(lease);
    expect(tookMs).toBeLessThanOrEqual(closeLimitMs);
    expect(report.notReturned.map(({ message }) => message)).toEqual(
      expect.arrayContaining([
        'Interface 0 could not be released (it took too long).',
        'Interface 1 could not be released (it took too long).',
      ]),
    );
  });

  test('all at once closes what is open and what is being opened', async () => {
    const { bus, handle, usb, sysfs } = linuxBench();
    sysfs.addDevice('1-2', 3, ncmGadgetDescriptors);
    const second = usb.addDevice({
      descriptor: ncmDeviceDescriptor,
      portNumbers: [2],
      deviceAddress: 3,
      interfaces: { 1: [0, 1] },
      sysfs,
    });
    await bus.open(id, { interfaces: [0, 1] });
    const opening = bus.open('usb:1-2', { interfaces: [0, 1] });
    const reports = await bus.closeAll();
    expect(reports).toHaveLength(2);
    await opening;
    expect([handle.isOpen, second.isOpen]).toEqual([false, false]);
    expect(await bus.closeAll()).toEqual([]);
  });
});

describe('plugging in and out', () => {
  test('with udev: events of libusb, told once when they have settled', async () => {
    const { bus, usb, handle } = linuxBench();
    let changes = 0;
    const stop = bus.onChange(() => changes++);
    await vi.waitFor(() => expect(usb.listenerCount('attach')).toBe(1));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    usb.emit('detach', handle);
    usb.emit('attach', handle);
    await vi.advanceTimersByTimeAsync(200);
    usb.emit('attach', handle);
    await vi.advanceTimersByTimeAsync(200);
    expect(changes).toBe(0);
    await vi.advanceTimersByTimeAsync(100);
    expect(changes).toBe(1);
    vi.useRealTimers();
    stop();
    await vi.waitFor(() => expect(usb.listenerCount('attach')).toBe(0));
    expect(usb.listenerCount('detach')).toBe(0);
  });

  test('without udev: sysfs is looked at, and an open device is told', async () => {
    const { bus, sysfs, handle, usb } = linuxBench({ udev: false });
    const lease = await bus.open(id, { interfaces: [0, 1] });
    const handler = handlerOn(lease);
    expect(usb.listenerCount('attach')).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    handle.unplugged = true;
    sysfs.removeDevice('1-1');
    await vi.waitFor(() => expect(handler.goneAtUs).toHaveLength(1), { timeout: 2000 });
    await lease.close();
  });

  test('without udev: devices are looked at only if the kernel has counted an event', async () => {
    const { bus, sysfs } = linuxBench({ udev: false });
    sysfs.write('sys/kernel/uevent_seqnum', '7\n');
    const lease = await bus.open(id, { interfaces: [0, 1] });
    const handler = handlerOn(lease);
    await new Promise((resolve) => setTimeout(resolve, 50));
    sysfs.removeDevice('1-1');
    await new Promise((resolve) => setTimeout(resolve, 1200));
    expect(handler.goneAtUs).toEqual([]);
    sysfs.write('sys/kernel/uevent_seqnum', '8\n');
    await vi.waitFor(() => expect(handler.goneAtUs).toHaveLength(1), { timeout: 2000 });
    await lease.close();
  });

  test('is watched while a device is open, without a listener', async () => {
    const { bus, usb } = linuxBench();
    const lease = await bus.open(id, { interfaces: [0] });
    expect(usb.listenerCount('detach')).toBe(1);
    await lease.close();
    await vi.waitFor(() => expect(usb.listenerCount('detach')).toBe(0));
  });
});

describe('giving a device back to the kernel after a crash', () => {
  test('asks for the interfaces without a driver', async () => {
    const { bus, handle, sysfs } = linuxBench();
    handle.isOpen = true;
    handle.__detachKernelDriver(0);
    handle.isOpen = false;
    sysfs.write('sys/bus/usb/drivers_probe', '');
    await bus.rebindKernelDriver(id);
    expect(readFileSync(join(sysfs.root, 'sys/bus/usb/drivers_probe'), 'utf8')).toBe('1-1:1.1');
  });

  test('goes through the node where sysfs may not be written', async () => {
    const { bus, handle, sysfs } = linuxBench();
    handle.isOpen = true;
    handle.__detachKernelDriver(0);
    handle.isOpen = false;
    expect(existsSync(join(sysfs.root, 'sys/bus/usb/drivers_probe'))).toBe(false);
    expect(await bus.rebindKernelDriver(id)).toEqual([
      { interfaceNumber: 0, driver: 'cdc_ncm' },
      { interfaceNumber: 1, driver: 'cdc_ncm' },
    ]);
    expect(handle.isOpen).toBe(false);
  });

  test('leaves a device alone that is open here or not there', async () => {
    const { bus } = linuxBench();
    const lease = await bus.open(id, { interfaces: [0, 1] });
    expect((await failureOf(bus.rebindKernelDriver(id))).kind).toBe('device-busy');
    await lease.close();
    expect((await failureOf(bus.rebindKernelDriver('usb:9-9'))).kind).toBe('no-such-device');
  });
});

describe('on other systems', () => {
  test('the list comes from libusb, names are asked of the device once', async () => {
    const usb = new FakeUsb();
    const handle = usb.addDevice({
      descriptor: ncmDeviceDescriptor,
      configurations: [libusbView(ncmGadgetDescriptors.subarray(18))],
      interfaces: { 1: [0, 1] },
      portNumbers: [1, 4],
      strings: { 1: 'lab', 2: 'ncm', 3: '0001' },
    });
    usb.addDevice({ descriptor: { ...ncmDeviceDescriptor, bDeviceClass: 9 }, portNumbers: undefined });
    const bus = busOf({ usb, platform: 'darwin' });
    const [device, ...others] = await bus.list();
    expect(others).toEqual([]);
    expect(device).toMatchObject({
      id: 'usb:1-1.4',
      manufacturer: 'lab',
      product: 'ncm',
      serialNumber: '0001',
      speed: 'high',
      activeConfiguration: 1,
      problems: [],
    });
    await bus.list();
    expect(handle.log).toEqual(['open', 'close']);
    // The same as Linux's parser makes of the device's own bytes.
    const { bus: linux } = linuxBench();
    expect(device?.configurations).toEqual((await linux.list())[0]?.configurations);
  });

  test('a device that cannot be opened is listed without names, and opening it says what Windows needs', async () => {
    const usb = new FakeUsb();
    usb.hasNoKernelDrivers = true;
    const handle = usb.addDevice({
      descriptor: ncmDeviceDescriptor,
      configurations: [libusbView(ncmGadgetDescriptors.subarray(18))],
      interfaces: { 1: [0, 1] },
    });
    const bus = busOf({ usb, platform: 'win32' });
    handle.openError = libusbErrors.notSupported;
    expect((await bus.list())[0]).toMatchObject({ product: undefined, vendorId: 0x1d6b });
    const error = await failureOf(bus.open(id, { interfaces: [0, 1] }));
    expect(error.kind).toBe('access-denied');
    expect(error.remedy).toContain('WinUSB');
    handle.openError = undefined;
    const lease = await bus.open(id, { interfaces: [0, 1] });
    expect(await lease.close()).toEqual({ reattached: [], notReturned: [], transfersLost: 0 });
  });

  test('macOS, which counts detaches, gets as many attaches', async () => {
    const usb = new FakeUsb();
    const handle = usb.addDevice({
      descriptor: ncmDeviceDescriptor,
      configurations: [libusbView(ncmGadgetDescriptors.subarray(18))],
      interfaces: { 1: [0, 1] },
      kernelDrivers: {
        1: [
          { name: 'control', interfaces: [0] },
          { name: 'data', interfaces: [1] },
        ],
      },
    });
    const bus = busOf({ usb, platform: 'darwin' });
    await (await bus.open(id, { interfaces: [0, 1] })).close();
    const count = (call: string): number => handle.log.filter((entry) => entry.startsWith(call)).length;
    expect([count('detach'), count('attach')]).toEqual([2, 2]);
    expect((await failureOf(openDenied(bus, handle))).remedy).toContain('root');
  });
});

function openDenied(bus: LibusbBus, handle: FakeDevice): Promise<UsbLease> {
  handle.failures.set('detach 0', libusbErrors.access);
  return bus.open(id, { interfaces: [0, 1] });
}

function configurationOf(value: number, interfaces: readonly number[]): ConfigurationDescriptor {
  return {
    value,
    nameIndex: 0,
    attributes: 0x80,
    maxPowerMa: 100,
    associations: [],
    extra: new Uint8Array(0),
    interfaces: interfaces.map((number) => ({
      number,
      altSettings: [
        {
          interfaceNumber: number,
          alternateSetting: 0,
          interfaceClass: 0xff,
          interfaceSubclass: 0,
          interfaceProtocol: 0,
          nameIndex: 0,
          endpoints: [],
          extra: new Uint8Array(0),
        },
      ],
    })),
  };
}

function modemDescriptors(interfaces: readonly number[]): Uint8Array {
  return Buffer.concat([
    ncmGadgetDescriptors.subarray(0, 18),
    encodeConfigurationDescriptor(configurationOf(1, interfaces), { superSpeed: false }),
  ]);
}

function twoConfigurations(): Uint8Array {
  return Buffer.concat([
    ncmGadgetDescriptors.subarray(0, 18),
    encodeConfigurationDescriptor(configurationOf(1, [0]), { superSpeed: false }),
    encodeConfigurationDescriptor(configurationOf(2, [0, 1]), { superSpeed: false }),
  ]);
}
