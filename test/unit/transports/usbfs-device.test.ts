import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Attendance, ReadyFiles } from '../../../src/linux/ready-files.ts';
import { parseDeviceDescriptors } from '../../../src/transports/device-descriptors.ts';
import type { LibusbError } from '../../../src/transports/libusb-module.ts';
import { libusbErrors, libusbTransferStatus } from '../../../src/transports/libusb-status.ts';
import { LibusbTransport } from '../../../src/transports/libusb-transport.ts';
import { UsbfsDevice } from '../../../src/transports/usbfs-device.ts';
import { mostUrbs } from '../../../src/transports/usbfs-urbs.ts';
import type { Transfer } from '../../../src/usbnet/transfer.ts';
import type { DeviceRequest, UsbDevice } from '../../../src/usbnet/transport.ts';
import { FakeUsbfs, nodePath, urbErrors } from './fake-usbfs.ts';
import { ncmGadgetDescriptors } from './ncm-gadget.ts';
import { RecordingHandler } from './recording-handler.ts';

const bulkIn = 0x81;
const bulkOut = 0x02;
const types = { control: 0, bulk: 2, interrupt: 3 };
const errorOf = (work: () => void): number | undefined => {
  try {
    work();
  } catch (error) {
    return (error as LibusbError).errno;
  }
  return undefined;
};

class Bench {
  readonly kernel: FakeUsbfs;
  readonly files: ReadyFiles;
  readonly device: UsbfsDevice;
  /** Ends of transfers: status (libusb's), bytes. */
  readonly ends: (readonly [number, number])[] = [];

  constructor(drivers: Readonly<Record<number, string>> = {}) {
    this.kernel = new FakeUsbfs({ interfaces: { 0: [0x85], 1: [bulkIn, bulkOut] }, drivers });
    this.files = new ReadyFiles(this.kernel, () => this.kernel.nowUs);
    this.device = new UsbfsDevice({ calls: this.kernel, files: this.files }, nodePath, {
      busNumber: 1,
      deviceAddress: 2,
    });
  }

  opened(...interfaces: number[]): this {
    this.device.__open();
    for (const each of interfaces) this.device.__claimInterface(each);
    return this;
  }

  transfer(endpoint = bulkIn, type = types.bulk, timeoutMs = 0): ReturnType<UsbfsDevice['createTransfer']> {
    return this.device.createTransfer(endpoint, type, timeoutMs, (error, _buffer, length) => {
      this.ends.push([error?.errno ?? 0, length]);
    });
  }

  /** Runs a call that answers later; its error. */
  called(start: (done: (error?: LibusbError) => void) => void): number | undefined {
    let result: number | 'nothing' | undefined = 'nothing';
    start((error) => {
      result = error?.errno;
    });
    for (let i = 0; i < 10 && result === 'nothing'; i++) this.kernel.turn();
    if (result === 'nothing') throw new Error('it was never answered');
    return result;
  }
}

function expectOrderly(bench: Bench): void {
  expect(bench.kernel.violations).toEqual([]);
}

describe('opening and closing', () => {
  test.each([
    [13, libusbErrors.access],
    [1, libusbErrors.access],
    [2, libusbErrors.noDevice],
    [19, libusbErrors.noDevice],
    [24, libusbErrors.io],
  ])('error %i of the system is %i of libusb', (systemError, errno) => {
    const bench = new Bench();
    bench.kernel.openError = systemError;
    expect(errorOf(() => bench.device.__open())).toBe(errno);
  });

  test('closing gives all back, once no thread waits for the node; it can be opened again', () => {
    const bench = new Bench().opened(0, 1);
    bench.device.__close();
    bench.device.__close();
    bench.kernel.turn();
    expect([bench.kernel.openFiles, bench.kernel.openEvents, bench.kernel.waiting]).toEqual([0, 0, 0]);
    expect(bench.kernel.drivers.size).toBe(0);
    bench.opened(0);
    bench.device.__close();
    bench.kernel.turn();
    expect(bench.kernel.openFiles).toBe(0);
    expectOrderly(bench);
  });

  test('closing ends what is out as cancelled, and the kernel has no say in that any more', () => {
    const bench = new Bench().opened(1);
    bench.transfer().submit(Buffer.alloc(512));
    bench.transfer().submit(Buffer.alloc(512));
    const [urb] = bench.kernel.pending;
    if (urb !== undefined) bench.kernel.end(urb, 0, 5);
    bench.device.__close();
    expect(bench.ends).toEqual([
      [libusbTransferStatus.cancelled, 0],
      [libusbTransferStatus.cancelled, 0],
    ]);
    bench.kernel.turn();
    bench.kernel.turn();
    expect(bench.ends).toHaveLength(2);
    expectOrderly(bench);
  });

  test('with a call out on another thread it is busy, and closes once that has come back', () => {
    const bench = new Bench().opened(1);
    let answered = false;
    bench.device.__setInterface(1, 1, () => {
      answered = true;
    });
    expect(errorOf(() => bench.device.__close())).toBe(libusbErrors.busy);
    expect(bench.kernel.openFiles).toBe(1);
    bench.kernel.turn();
    bench.kernel.turn();
    expect(answered).toBe(true);
    expect(bench.kernel.openFiles).toBe(0);
    expectOrderly(bench);
  });

  test('what is asked of a closed device fails', () => {
    const bench = new Bench();
    expect(errorOf(() => bench.transfer().submit(Buffer.alloc(1)))).toBe(libusbErrors.io);
    expect(errorOf(() => bench.device.__claimInterface(1))).toBe(libusbErrors.io);
    expect(errorOf(() => bench.device.reset(() => {}))).toBe(libusbErrors.io);
    expect(bench.transfer().cancel()).toBe(false);
  });
});

describe('interfaces', () => {
  test('with a driver: it is found, detached, claimed over, and attached again', () => {
    const bench = new Bench({ 0: 'cdc_ncm' }).opened();
    const { device, kernel } = bench;
    kernel.ownDrivers.set(0, 'cdc_ncm');
    expect(device.__isKernelDriverActive(0)).toBe(true);
    expect(device.__isKernelDriverActive(1)).toBe(false);
    expect(errorOf(() => device.__claimInterface(0))).toBe(libusbErrors.busy);
    device.__detachKernelDriver(0);
    device.__claimInterface(0);
    expect(device.__isKernelDriverActive(0)).toBe(false);
    expect(errorOf(() => device.__attachKernelDriver(0))).toBe(libusbErrors.busy);
    expect(bench.called((done) => device.__releaseInterface(0, done))).toBeUndefined();
    device.__attachKernelDriver(0);
    expect(kernel.drivers.get(0)).toBe('cdc_ncm');
    expect(errorOf(() => device.__attachKernelDriver(1))).toBe(libusbErrors.notFound);
  });

  test('of another program are not thrown out', () => {
    const bench = new Bench({ 0: 'usbfs' }).opened();
    expect(errorOf(() => bench.device.__detachKernelDriver(0))).toBe(libusbErrors.notFound);
    expect(bench.kernel.drivers.get(0)).toBe('usbfs');
    expect(errorOf(() => bench.device.__claimInterface(0))).toBe(libusbErrors.busy);
  });

  test('that are not there, or not ours, are not found', () => {
    const bench = new Bench().opened();
    expect(errorOf(() => bench.device.__claimInterface(7))).toBe(libusbErrors.notFound);
    expect(bench.called((done) => bench.device.__releaseInterface(1, done))).toBe(libusbErrors.notFound);
    expect(bench.called((done) => bench.device.__setInterface(1, 1, done))).toBe(libusbErrors.notFound);
  });

  test('a configuration can be chosen while nobody has any', () => {
    const bench = new Bench().opened(0);
    expect(bench.called((done) => bench.device.__setConfiguration(2, done))).toBe(libusbErrors.busy);
    bench.called((done) => bench.device.__releaseInterface(0, done));
    expect(bench.called((done) => bench.device.__setConfiguration(2, done))).toBeUndefined();
  });
});

describe('a transfer', () => {
  test.each([
    [bulkOut, types.bulk, 3],
    [0x85, types.interrupt, 1],
    [0, types.control, 2],
  ])('to endpoint %i of type %i is an URB of type %i at the buffer itself', (endpoint, type, urbType) => {
    const bench = new Bench().opened(0, 1);
    const buffer = Buffer.alloc(100).subarray(30, 80);
    bench.transfer(endpoint, type).submit(buffer);
    const [urb] = bench.kernel.pending;
    expect(urb).toMatchObject({
      endpoint,
      type: urbType,
      length: 50,
      buffer: bench.kernel.addressOf(buffer),
    });
  });

  test('brings its bytes, and how many', () => {
    const bench = new Bench().opened(1);
    const buffer = Buffer.alloc(16);
    bench.transfer().submit(buffer);
    const [urb] = bench.kernel.pending;
    if (urb !== undefined) bench.kernel.end(urb, 0, Uint8Array.of(1, 2, 3));
    bench.kernel.turn();
    expect(bench.ends).toEqual([[0, 3]]);
    expect([...buffer.subarray(0, 4)]).toEqual([1, 2, 3, 0]);
  });

  test('that is empty at first has the address of its memory later', () => {
    const bench = new Bench().opened(1);
    const memory = Buffer.alloc(512);
    const transfer = bench.transfer(bulkOut);
    for (const length of [0, 512]) {
      transfer.submit(memory.subarray(0, length));
      const [urb] = bench.kernel.pending;
      expect(urb?.buffer).toBe(length === 0 ? 0 : bench.kernel.addressOf(memory));
      if (urb !== undefined) bench.kernel.end(urb, 0, length);
      bench.kernel.turn();
    }
    expect(bench.ends).toEqual([
      [0, 0],
      [0, 512],
    ]);
  });

  test.each([
    [urbErrors.stall, libusbTransferStatus.stall],
    [urbErrors.protocol, libusbTransferStatus.error],
    [urbErrors.overflow, libusbTransferStatus.overflow],
    [urbErrors.shutdown, libusbTransferStatus.noDevice],
    [urbErrors.killed, libusbTransferStatus.cancelled],
  ])('that the kernel ends with %i ended with %i', (error, status) => {
    const bench = new Bench().opened(1);
    bench.transfer().submit(Buffer.alloc(16));
    const [urb] = bench.kernel.pending;
    if (urb !== undefined) bench.kernel.end(urb, error);
    bench.kernel.turn();
    expect(bench.ends).toEqual([[status, 0]]);
  });

  test.each([
    [12, libusbErrors.noMemory],
    [32, libusbErrors.pipe],
    [19, libusbErrors.noDevice],
    [108, libusbErrors.noDevice],
    [5, libusbErrors.io],
    [104, libusbErrors.io],
  ])('that is refused with %i is refused with %i, and can be tried again', (error, errno) => {
    const bench = new Bench().opened(1);
    const transfer = bench.transfer();
    bench.kernel.submitErrors = [error];
    expect(errorOf(() => transfer.submit(Buffer.alloc(16)))).toBe(errno);
    transfer.submit(Buffer.alloc(16));
    expect(bench.kernel.pending).toHaveLength(1);
    expect(errorOf(() => transfer.submit(Buffer.alloc(16)))).toBe(libusbErrors.busy);
  });

  test('one more than there are URBs is refused for want of memory, until one has ended', () => {
    const bench = new Bench().opened(1);
    const buffer = Buffer.alloc(4);
    // Refused ones leave theirs to others.
    bench.kernel.submitErrors = Array.from({ length: mostUrbs }, () => 5);
    for (let i = 0; i < mostUrbs; i++) errorOf(() => bench.transfer().submit(buffer));
    for (let i = 0; i < mostUrbs; i++) bench.transfer().submit(buffer);
    const last = bench.transfer();
    expect(errorOf(() => last.submit(buffer))).toBe(libusbErrors.noMemory);
    const [urb] = bench.kernel.pending;
    if (urb !== undefined) bench.kernel.end(urb);
    bench.kernel.turn();
    last.submit(buffer);
    expect(bench.kernel.pending).toHaveLength(mostUrbs);
    expectOrderly(bench);
  });

  test('is cancelled by itself; one that has ended meanwhile tells how it ended', () => {
    const bench = new Bench().opened(1);
    const [first, second] = [bench.transfer(), bench.transfer()];
    first.submit(Buffer.alloc(16));
    second.submit(Buffer.alloc(16));
    const urb = bench.kernel.pending[1];
    if (urb !== undefined) bench.kernel.end(urb, 0, 7);
    expect(first.cancel()).toBe(true);
    expect(second.cancel()).toBe(false);
    bench.kernel.turn();
    expect(bench.ends).toEqual([
      [0, 7],
      [libusbTransferStatus.cancelled, 0],
    ]);
    expect(first.cancel()).toBe(false);
  });

  test('whose cancel comes too late ended as it did, also with an unplug', () => {
    const bench = new Bench().opened(1);
    const transfer = bench.transfer();
    transfer.submit(Buffer.alloc(16));
    const [urb] = bench.kernel.pending;
    if (urb !== undefined) bench.kernel.end(urb, urbErrors.shutdown);
    expect(transfer.cancel()).toBe(false);
    bench.kernel.turn();
    expect(bench.ends).toEqual([[libusbTransferStatus.noDevice, 0]]);
  });

  test('whoever asks again from inside each report does not keep others from their turn', () => {
    const bench = new Bench().opened(1);
    const attendance = bench.files.attend();
    let ends = 0;
    const transfer = bench.device.createTransfer(bulkIn, types.bulk, 0, () => {
      ends++;
      if (ends > 10_000) return;
      transfer.submit(Buffer.alloc(16));
      const [urb] = bench.kernel.pending;
      if (urb !== undefined) bench.kernel.end(urb);
    });
    transfer.submit(Buffer.alloc(16));
    const [urb] = bench.kernel.pending;
    if (urb !== undefined) bench.kernel.end(urb);
    attendance.waitBriefly(0);
    expect(ends).toBeLessThan(1000);
    const before = ends;
    attendance.waitBriefly(0);
    expect(ends).toBeGreaterThan(before);
  });
});

describe('a time limit', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  test('ends the transfer as timed out', () => {
    const bench = new Bench().opened();
    bench.transfer(0, types.control, 100).submit(Buffer.alloc(8));
    vi.advanceTimersByTime(99);
    expect(bench.kernel.pending).toHaveLength(1);
    vi.advanceTimersByTime(1);
    bench.kernel.turn();
    expect(bench.ends).toEqual([[libusbTransferStatus.timedOut, 0]]);
  });

  test('is over with the end of its transfer, and with the device', () => {
    const bench = new Bench().opened();
    bench.transfer(0, types.control, 100).submit(Buffer.alloc(8));
    const [urb] = bench.kernel.pending;
    if (urb !== undefined) bench.kernel.end(urb, 0, 4);
    bench.kernel.turn();
    expect(vi.getTimerCount()).toBe(0);
    bench.transfer(0, types.control, 100).submit(Buffer.alloc(8));
    bench.device.__close();
    expect(vi.getTimerCount()).toBe(0);
    expect(bench.ends).toEqual([
      [0, 4],
      [libusbTransferStatus.cancelled, 0],
    ]);
  });

  test('that comes with an unplug throws nothing at anybody', () => {
    const bench = new Bench().opened();
    bench.transfer(0, types.control, 100).submit(Buffer.alloc(8));
    bench.kernel.unplug();
    vi.advanceTimersByTime(200);
    bench.kernel.turn();
    expect(bench.ends).toHaveLength(1);
  });
});

describe('an unplug', () => {
  test.each(['unplug', 'unplugLate'] as const)(
    '(%s) ends all that is out, and is waited for no more',
    (how) => {
      const bench = new Bench().opened(1);
      for (let i = 0; i < 3; i++) bench.transfer().submit(Buffer.alloc(16));
      bench.kernel[how]();
      bench.kernel.turn();
      const status = how === 'unplug' ? libusbTransferStatus.cancelled : libusbTransferStatus.noDevice;
      expect(bench.ends).toEqual(Array.from({ length: 3 }, () => [status, 0]));
      expect(bench.kernel.waiting).toBe(0);
      expect(errorOf(() => bench.transfer().submit(Buffer.alloc(1)))).toBe(libusbErrors.noDevice);
      bench.device.__close();
      expect([bench.kernel.openFiles, bench.kernel.openEvents]).toEqual([0, 0]);
      expectOrderly(bench);
    },
  );

  test('with nothing out keeps nobody busy', () => {
    const bench = new Bench().opened(1);
    const attendance = bench.files.attend();
    bench.kernel.unplug();
    bench.kernel.turn();
    expect(bench.kernel.waiting).toBe(0);
    expect(attendance.waitBriefly(500)).toBe(false);
    expect(bench.kernel.nowUs).toBe(500);
  });

  test('that takes an interface only is no unplug', () => {
    const bench = new Bench().opened(1);
    const transfer = bench.transfer();
    transfer.submit(Buffer.alloc(16));
    bench.kernel.stealInterface(1, 'cdc_ncm');
    bench.kernel.turn();
    expect(bench.ends).toEqual([[libusbTransferStatus.cancelled, 0]]);
    expect(errorOf(() => transfer.submit(Buffer.alloc(16)))).toBe(libusbErrors.busy);
  });
});

describe('a call on another thread', () => {
  test('has the device locked: nothing is taken back before it is done, and all of it then', () => {
    const bench = new Bench().opened(1);
    bench.transfer().submit(Buffer.alloc(16));
    const attendance = bench.files.attend();
    attendance.waitBriefly(0);
    let isDone = false;
    bench.device.__clearHalt(bulkIn, () => (isDone = true));
    const [urb] = bench.kernel.pending;
    if (urb !== undefined) bench.kernel.end(urb, 0, 5);
    expect(attendance.waitBriefly(100)).toBe(false);
    expect(bench.ends).toEqual([]);
    bench.kernel.turn();
    expect(isDone).toBe(true);
    attendance.waitBriefly(0);
    expect(bench.ends).toEqual([[0, 5]]);
  });
});

describe('a reset', () => {
  test('lets go of the interfaces before, takes them again after, also from drivers that came in between', () => {
    const bench = new Bench().opened(0, 1);
    bench.kernel.ownDrivers.set(0, 'cdc_ncm');
    bench.transfer().submit(Buffer.alloc(16));
    expect(bench.called((done) => bench.device.reset(done))).toBeUndefined();
    expect(bench.kernel.log).toEqual([
      'claim 0',
      'claim 1',
      'release 0',
      'release 1',
      'reset',
      'detach 0',
      'claim 0',
      'claim 1',
    ]);
    bench.kernel.turn();
    expect(bench.ends).toEqual([[libusbTransferStatus.cancelled, 0]]);
    expectOrderly(bench);
  });

  test('takes nothing meanwhile: the kernel would claim interfaces for it', () => {
    const bench = new Bench().opened(1);
    const transfer = bench.transfer();
    const results: (number | undefined)[] = [];
    const tryOne = (): void => void results.push(errorOf(() => transfer.submit(Buffer.alloc(16))));
    bench.device.reset(tryOne);
    for (let i = 0; i < 3; i++) {
      tryOne();
      bench.kernel.turn();
    }
    expect(results).toEqual([libusbErrors.busy, libusbErrors.busy, undefined, libusbErrors.busy]);
    expectOrderly(bench);
  });

  test('that fails leaves the interfaces ours', () => {
    const bench = new Bench().opened(0, 1);
    bench.kernel.failures.set('reset', 110);
    expect(bench.called((done) => bench.device.reset(done))).toBe(libusbErrors.other);
    expect([...bench.kernel.drivers]).toEqual([
      [0, 'usbfs'],
      [1, 'usbfs'],
    ]);
  });

  test('after which the device is another one, or has lost an interface, does not find it', () => {
    const gone = new Bench().opened(1);
    gone.kernel.failures.set('reset', 19);
    expect(gone.called((done) => gone.device.reset(done))).toBe(libusbErrors.notFound);

    const other = new Bench().opened(0, 1);
    let answer: number | undefined;
    other.device.reset((error) => (answer = error?.errno));
    other.kernel.interfaces.delete(0);
    for (let i = 0; i < 5; i++) other.kernel.turn();
    expect(answer).toBe(libusbErrors.notFound);
    // The other one is ours all the same.
    expect(other.kernel.drivers.get(1)).toBe('usbfs');
  });

  test('during which an interface is given back does not take that one again', () => {
    const bench = new Bench().opened(0, 1);
    let isDone = false;
    bench.device.reset(() => (isDone = true));
    bench.device.__releaseInterface(0, () => {});
    for (let i = 0; i < 6; i++) bench.kernel.turn();
    expect(isDone).toBe(true);
    expect([...bench.kernel.drivers]).toEqual([[1, 'usbfs']]);
  });
});

// ---- any order of events, with the transport on top ----

type Step =
  | { readonly kind: 'submit' | 'cancel'; readonly index: number }
  | { readonly kind: 'end'; readonly position: number; readonly error: number }
  | { readonly kind: 'refuse'; readonly errors: readonly number[] }
  | { readonly kind: 'request'; readonly request: DeviceRequest }
  | { readonly kind: 'look' | 'turn' | 'expire' | 'behind' | 'unplug' | 'unplug-late' | 'steal' };

const poolSize = 6;
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('submit' as const), index: fc.nat(poolSize - 1) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('cancel' as const), index: fc.nat(poolSize - 1) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      position: fc.nat(10),
      error: fc.constantFrom(0, 0, 0, urbErrors.stall, urbErrors.protocol, urbErrors.overflow),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('refuse' as const),
      errors: fc.array(fc.constantFrom(0, 12, 32, 5), { maxLength: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('request' as const),
      request: fc.constantFrom<DeviceRequest>(
        { kind: 'clear-halt', endpointAddress: bulkIn, timeoutMs: 100 },
        { kind: 'set-interface', interfaceNumber: 1, alternateSetting: 1, timeoutMs: 100 },
        { kind: 'reset', timeoutMs: 100 },
        {
          kind: 'control-in',
          requestType: 0xa1,
          request: 1,
          value: 0,
          index: 0,
          length: 8,
          timeoutMs: 60_000,
        },
      ),
    }),
  },
  { weight: 4, arbitrary: fc.constant<Step>({ kind: 'look' }) },
  { weight: 4, arbitrary: fc.constant<Step>({ kind: 'turn' }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'expire' }) },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: 'behind' }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Step>({ kind: 'unplug' }, { kind: 'unplug-late' }, { kind: 'steal' }),
  },
);

function ncmDevice(): UsbDevice {
  const parsed = parseDeviceDescriptors(ncmGadgetDescriptors, 'high');
  const configuration = parsed?.configurations[0];
  if (parsed === undefined || configuration === undefined) throw new Error('the fixture is broken');
  return { speed: 'high', descriptor: parsed.descriptor, configuration };
}

async function run(steps: readonly Step[], resubmits: boolean, closesHard: boolean): Promise<void> {
  const bench = new Bench().opened(0, 1);
  const { kernel, device, files } = bench;
  const handler = new RecordingHandler();
  const failures: unknown[] = [];
  const transport = new LibusbTransport({
    handle: device,
    createTransfer: device.createTransfer.bind(device),
    device: ncmDevice(),
    clock: { nowUs: () => kernel.nowUs++ },
    onHandlerError: (error) => failures.push(error),
  });
  transport.setHandler(handler);
  const attendance: Attendance = files.attend();
  const make = (endpoint: number, length: number, zeroPacket = false): Transfer => {
    const transfer = transport.makeTransfer(endpoint, 2048, 4);
    transfer.length = length;
    transfer.zeroPacket = zeroPacket;
    return transfer;
  };
  const pool = [
    make(bulkIn, 2048),
    make(bulkIn, 2048),
    make(bulkOut, 100),
    make(bulkOut, 0),
    make(bulkOut, 512, true),
    make(bulkOut, 1024, true),
  ];
  const out = new Set<Transfer>();
  let taken = 0;
  let requests = 0;
  let goesOn = resubmits;
  const submit = (transfer: Transfer | undefined): void => {
    if (transfer === undefined || out.has(transfer) || transport.submit(transfer, 0) !== 'ok') return;
    out.add(transfer);
    taken++;
  };
  handler.onEnd = (transfer) => {
    if (!out.delete(transfer)) throw new Error('an end of what is not out');
    if (goesOn && transfer.status === 'completed') submit(transfer);
  };
  const act = (event: Step): void => {
    switch (event.kind) {
      case 'submit':
        submit(pool[event.index]);
        break;
      case 'cancel': {
        const transfer = pool[event.index];
        if (transfer !== undefined) transport.cancel(transfer, 0);
        break;
      }
      case 'end': {
        const urb = kernel.pending[event.position];
        if (urb !== undefined) kernel.end(urb, event.error, 0);
        break;
      }
      case 'refuse':
        kernel.submitErrors = [...event.errors];
        break;
      case 'request':
        if (requests > handler.results.length) break;
        requests++;
        transport.request(event.request, 0);
        break;
      case 'look':
        attendance.waitBriefly(10);
        break;
      case 'behind':
        attendance.waitBehind();
        break;
      case 'turn':
        kernel.turn();
        break;
      case 'expire':
        kernel.expire();
        break;
      case 'unplug':
        kernel.unplug();
        break;
      case 'unplug-late':
        kernel.unplugLate();
        break;
      case 'steal':
        kernel.stealInterface(1, 'cdc_ncm');
        break;
    }
  };
  for (const event of steps) {
    act(event);
    await Promise.resolve();
  }
  goesOn = false;
  attendance.close();
  // What other threads had begun comes to its end, and so does all that is out: without anybody's help.
  if (!closesHard) transport.startClosing();
  for (let i = 0; i < 12; i++) {
    kernel.turn();
    await Promise.resolve();
  }
  if (!closesHard) expect(transport.outstanding).toBe(0);
  const lost = transport.dispose();
  if (!closesHard) expect(lost).toBe(0);
  device.__close();
  for (let i = 0; i < 3; i++) kernel.turn();

  expect(failures).toEqual([]);
  expect(out.size).toBe(0);
  expect(handler.ends).toHaveLength(taken);
  expect(handler.results).toHaveLength(requests);
  expect(transport.outstanding).toBe(0);
  expect(handler.goneAtUs.length).toBeLessThanOrEqual(1);
  expect([kernel.openFiles, kernel.openEvents, kernel.waiting]).toEqual([0, 0, 0]);
  expect(kernel.violations).toEqual([]);
}

test('whatever happens, each transfer that was taken ends exactly once, and nothing stays open', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), fc.boolean(), fc.boolean(), run),
    { numRuns: 1000 },
  );
});
