import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvariantError } from '../../../src/base/errors.ts';
import { parseDeviceDescriptors } from '../../../src/transports/device-descriptors.ts';
import { transfersOf } from '../../../src/transports/libusb-module.ts';
import { libusbErrors, libusbTransferStatus } from '../../../src/transports/libusb-status.ts';
import { LibusbTransport } from '../../../src/transports/libusb-transport.ts';
import type { Transfer, TransferStatus } from '../../../src/usbnet/transfer.ts';
import type { DeviceRequest, UsbDevice } from '../../../src/usbnet/transport.ts';
import { type FakeDevice, FakeUsb, ncmDeviceDescriptor, neverAnswers } from './fake-libusb.ts';
import { ncmGadgetDescriptors } from './ncm-gadget.ts';
import { RecordingHandler } from './recording-handler.ts';

const bulkIn = 0x81;
const bulkOut = 0x02;

function ncmDevice(): UsbDevice {
  const parsed = parseDeviceDescriptors(ncmGadgetDescriptors, 'high');
  const configuration = parsed?.configurations[0];
  if (parsed === undefined || configuration === undefined) throw new Error('the fixture is broken');
  return { speed: 'high', descriptor: parsed.descriptor, configuration };
}

class Bench {
  readonly usb = new FakeUsb();
  readonly handle: FakeDevice;
  readonly handler = new RecordingHandler();
  readonly handlerErrors: unknown[] = [];
  readonly transport: LibusbTransport;
  nowUs = 0;

  constructor() {
    this.usb.automatic = false;
    this.handle = this.usb.addDevice({ descriptor: ncmDeviceDescriptor });
    this.handle.__open();
    this.handle.__claimInterface(0);
    this.handle.__claimInterface(1);
    this.transport = new LibusbTransport({
      handle: this.handle,
      createTransfer: transfersOf(this.usb, this.handle),
      device: ncmDevice(),
      clock: { nowUs: () => ++this.nowUs },
      onHandlerError: (error) => this.handlerErrors.push(error),
    });
    this.transport.setHandler(this.handler);
  }

  out(length: number, options: { readonly zeroPacket?: boolean } = {}): Transfer {
    const transfer = this.transport.makeTransfer(bulkOut, 2048, 4);
    transfer.length = length;
    transfer.zeroPacket = options.zeroPacket ?? false;
    return transfer;
  }

  in(): Transfer {
    const transfer = this.transport.makeTransfer(bulkIn, 2048, 0);
    transfer.length = 2048;
    return transfer;
  }

  submitted(transfer: Transfer): Transfer {
    if (this.transport.submit(transfer, 0) !== 'ok') throw new Error('it was not taken');
    return transfer;
  }

  /** Ends the n-th transfer that is in flight, and delivers. */
  end(n: number, status: number, actualLength: number): void {
    const native = this.handle.inFlight[n];
    if (native === undefined) throw new Error('nothing in flight');
    this.handle.end(native, status, actualLength);
    this.usb.turn();
  }

  get statuses(): TransferStatus[] {
    return this.handler.ends.map(({ status }) => status);
  }

  async ask(request: DeviceRequest): Promise<void> {
    this.transport.request(request, 0);
    this.usb.turn();
    await Promise.resolve();
  }
}

/** Lets microtasks run. */
const microtasks = (): Promise<void> => Promise.resolve();

describe('a transfer', () => {
  test('is handed over without a copy and reported with what went over', () => {
    const bench = new Bench();
    const transfer = bench.submitted(bench.in());
    bench.handle.inFlight[0]?.buffer?.set([1, 2, 3]);
    bench.end(0, libusbTransferStatus.completed, 3);
    expect(bench.statuses).toEqual(['completed']);
    expect(transfer.actualLength).toBe(3);
    expect([...transfer.buffer.subarray(0, 4)]).toEqual([1, 2, 3, 0]);
  });

  test('has the type of its endpoint, and no time limit', () => {
    const bench = new Bench();
    bench.submitted(bench.out(1));
    const status = bench.transport.makeTransfer(0x85, 16, 0);
    status.length = 16;
    bench.submitted(status);
    expect(bench.handle.inFlight.map(({ type, timeoutMs }) => [type, timeoutMs])).toEqual([
      [2, 0],
      [3, 0],
    ]);
  });

  test('of a length that comes again submits the same view', () => {
    const bench = new Bench();
    const transfer = bench.out(1000);
    const views = [1000, 1000, 900, 2048, 2048].map((length) => {
      transfer.length = length;
      bench.submitted(transfer);
      const view = bench.handle.inFlight[0]?.buffer;
      bench.end(0, libusbTransferStatus.completed, length);
      return view;
    });
    expect(views.map((view) => view?.length)).toEqual([1000, 1000, 900, 2048, 2048]);
    expect(views[1]).toBe(views[0]);
    expect(views[4]).toBe(views[3]);
    expect(new Set(views.map((view) => view?.byteOffset)).size).toBe(1);
  });

  test.each([
    [libusbTransferStatus.completed, 'completed'],
    [libusbTransferStatus.error, 'protocol-error'],
    [libusbTransferStatus.timedOut, 'timed-out'],
    [libusbTransferStatus.cancelled, 'cancelled'],
    [libusbTransferStatus.stall, 'stall'],
    [libusbTransferStatus.noDevice, 'gone'],
    [libusbTransferStatus.overflow, 'overflow'],
    [77, 'failed'],
  ])('that libusb ends with %i ended with %s', (errno, status) => {
    const bench = new Bench();
    bench.submitted(bench.out(10));
    bench.end(0, errno, 0);
    expect(bench.statuses).toEqual([status]);
  });

  test('is stamped with the time at which its callback ran, before the driver does anything', () => {
    const bench = new Bench();
    bench.submitted(bench.out(10));
    bench.submitted(bench.out(10));
    for (const native of bench.handle.inFlight.slice()) bench.handle.end(native, 0, 10);
    bench.handler.onEnd = () => {
      bench.nowUs += 1000;
    };
    bench.usb.turn();
    expect(bench.handler.ends.map(({ nowUs }) => nowUs)).toEqual([1, 1002]);
  });

  test('can be submitted again from inside its report', () => {
    const bench = new Bench();
    bench.handler.onEnd = (transfer) => {
      if (bench.handler.ends.length < 100) bench.submitted(transfer);
    };
    bench.submitted(bench.out(10));
    while (bench.handle.inFlight.length > 0) bench.end(0, 0, 10);
    expect(bench.handler.ends).toHaveLength(100);
    expect(bench.usb.transfersMade).toBe(1);
    expect(bench.transport.outstanding).toBe(0);
  });

  test('that is out, of another transport or too long is an error of ours', () => {
    const bench = new Bench();
    const transfer = bench.submitted(bench.out(10));
    expect(() => bench.transport.submit(transfer, 0)).toThrow(InvariantError);
    expect(() => bench.transport.submit(new Bench().out(1), 0)).toThrow(InvariantError);
    expect(() => bench.transport.submit(bench.out(2049), 0)).toThrow(InvariantError);
    expect(() => bench.transport.makeTransfer(0x83, 64, 0)).toThrow(InvariantError);
  });

  test('whose handler throws is not lost: the error goes to the sink, the others go on', () => {
    const bench = new Bench();
    bench.submitted(bench.out(1));
    bench.submitted(bench.out(2));
    bench.handler.onEnd = (transfer) => {
      if (transfer.length === 1) throw new Error('a fault of the driver');
    };
    bench.end(0, 0, 1);
    bench.end(0, 0, 2);
    expect(bench.handlerErrors).toEqual([new Error('a fault of the driver')]);
    expect(bench.usb.vanishedExceptions).toEqual([]);
    expect(bench.handler.ends).toHaveLength(2);
    expect(bench.transport.outstanding).toBe(0);
  });
});

describe('a submit that is refused', () => {
  test.each([
    [libusbErrors.noMemory, 'no-memory'],
    [libusbErrors.pipe, 'stall'],
    [libusbErrors.io, 'failed'],
    [libusbErrors.busy, 'failed'],
    [libusbErrors.noDevice, 'gone'],
  ])('with %i is %s', (errno, result) => {
    const bench = new Bench();
    bench.handle.submitErrors = [errno];
    expect(bench.transport.submit(bench.out(10), 0)).toBe(result);
    expect(bench.transport.outstanding).toBe(0);
  });

  test('leaves a transfer that works: the poisoned native one was replaced', () => {
    const bench = new Bench();
    const transfer = bench.out(10);
    bench.handle.submitErrors = [libusbErrors.noMemory, libusbErrors.io];
    expect(bench.transport.submit(transfer, 0)).toBe('no-memory');
    expect(bench.transport.submit(transfer, 0)).toBe('failed');
    bench.submitted(transfer);
    bench.end(0, 0, 10);
    expect(bench.statuses).toEqual(['completed']);
    expect(bench.handle.inFlight.some(({ poisoned }) => poisoned)).toBe(false);
  });
});

describe('a zero-length packet', () => {
  test.each([
    [511, 1],
    [512, 2],
    [1024, 2],
    [0, 1],
  ])('behind %i bytes: %i native transfers', (length, natives) => {
    const bench = new Bench();
    bench.submitted(bench.out(length, { zeroPacket: true }));
    expect(bench.handle.inFlight.map(({ buffer }) => buffer?.length)).toEqual(
      natives === 1 ? [length] : [length, 0],
    );
    expect(bench.transport.outstanding).toBe(natives);
  });

  test('is sent only where it is asked for, and never for IN', () => {
    const bench = new Bench();
    bench.submitted(bench.out(512));
    const transfer = bench.in();
    transfer.zeroPacket = true;
    bench.submitted(transfer);
    expect(bench.handle.inFlight).toHaveLength(2);
  });

  test('delays the report until both have ended, whichever comes first', () => {
    for (const order of [
      [0, 0],
      [1, 0],
    ]) {
      const bench = new Bench();
      const transfer = bench.submitted(bench.out(512, { zeroPacket: true }));
      bench.end(order[0] ?? 0, 0, order[0] === 0 ? 512 : 0);
      expect(bench.handler.ends).toHaveLength(0);
      bench.end(order[1] ?? 0, 0, order[0] === 0 ? 0 : 512);
      expect(bench.statuses).toEqual(['completed']);
      expect(transfer.actualLength).toBe(512);
    }
  });

  test.each([
    [libusbTransferStatus.completed, libusbTransferStatus.error, 'protocol-error'],
    [libusbTransferStatus.stall, libusbTransferStatus.cancelled, 'stall'],
    [libusbTransferStatus.cancelled, libusbTransferStatus.completed, 'cancelled'],
  ])('statuses %i and %i make %s', (first, second, status) => {
    const bench = new Bench();
    bench.submitted(bench.out(512, { zeroPacket: true }));
    bench.end(0, first, 0);
    bench.end(0, second, 0);
    expect(bench.statuses).toEqual([status]);
  });

  test('that is refused makes the transfer fail, since its end is missing', () => {
    const bench = new Bench();
    bench.handle.submitErrors = [0, libusbErrors.noMemory];
    bench.submitted(bench.out(512, { zeroPacket: true }));
    expect(bench.transport.outstanding).toBe(1);
    bench.end(0, 0, 512);
    expect(bench.statuses).toEqual(['failed']);
    // That is over with the next one.
    const transfer = bench.handler.ends[0]?.transfer;
    if (transfer === undefined) throw new Error('there is one');
    transfer.zeroPacket = false;
    bench.submitted(transfer);
    bench.end(0, 0, 512);
    expect(bench.statuses).toEqual(['failed', 'completed']);
  });

  test('is cancelled with its transfer', () => {
    const bench = new Bench();
    const transfer = bench.submitted(bench.out(512, { zeroPacket: true }));
    bench.transport.cancel(transfer, 0);
    bench.usb.turn();
    expect(bench.statuses).toEqual(['cancelled']);
    expect(bench.handle.pending).toBe(0);
  });

  test('comes from a pool that is as large as what is out at once', () => {
    const bench = new Bench();
    const transfers = Array.from({ length: 3 }, () => bench.out(512, { zeroPacket: true }));
    for (let round = 0; round < 10; round++) {
      for (const transfer of transfers) bench.submitted(transfer);
      while (bench.handle.inFlight.length > 0) bench.end(0, 0, 0);
    }
    expect(bench.handler.ends).toHaveLength(30);
    expect(bench.usb.transfersMade).toBe(6);
  });
});

describe('cancel', () => {
  test('ends the one, the others stay', () => {
    const bench = new Bench();
    const transfers = [bench.out(1), bench.out(2), bench.out(3)].map((transfer) => bench.submitted(transfer));
    bench.transport.cancel(transfers[1] ?? bench.out(1), 0);
    bench.transport.cancel(transfers[1] ?? bench.out(1), 0);
    bench.usb.turn();
    expect(bench.handler.ends.map(({ transfer }) => transfer.length)).toEqual([2]);
    expect(bench.transport.outstanding).toBe(2);
  });

  test('of what is not out does nothing', () => {
    const bench = new Bench();
    const transfer = bench.out(1);
    bench.transport.cancel(transfer, 0);
    bench.submitted(transfer);
    bench.end(0, 0, 1);
    bench.transport.cancel(transfer, 0);
    bench.usb.turn();
    expect(bench.handle.cancels).toBe(0);
    expect(bench.handler.ends).toHaveLength(1);
  });

  test('that has to wait for each transfer lets others have their turn', async () => {
    const bench = new Bench();
    const transfers = Array.from({ length: 20 }, () => bench.submitted(bench.in()));
    bench.handle.onCancel = () => {
      bench.nowUs += 4000;
    };
    bench.transport.startClosing();
    expect(bench.handle.cancels).toBe(5);
    // One of those that wait their turn ends by itself; one is cancelled again.
    bench.end(bench.handle.inFlight.length - 1, 0, 7);
    bench.transport.cancel(transfers[18] ?? bench.in(), 0);
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
    bench.usb.turn();
    expect(bench.handle.cancels).toBe(19);
    expect(bench.handler.ends).toHaveLength(20);
    expect(bench.transport.outstanding).toBe(0);
  });

  test('that waits for its turn does not strike what was submitted anew', async () => {
    const bench = new Bench();
    const transfers = Array.from({ length: 3 }, () => bench.submitted(bench.in()));
    bench.handle.onCancel = () => {
      bench.nowUs += 30_000;
    };
    for (const transfer of transfers) bench.transport.cancel(transfer, 0);
    expect(bench.handle.cancels).toBe(1);
    bench.end(1, 0, 7);
    bench.submitted(transfers[2] ?? bench.in());
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
    bench.usb.turn();
    expect(bench.handle.cancels).toBe(2);
    expect(bench.transport.outstanding).toBe(1);
  });

  test('on macOS ends all of the endpoint, each reported once', () => {
    const bench = new Bench();
    bench.usb.abortsWholePipes = true;
    const transfers = [bench.out(1), bench.out(2), bench.out(3)].map((transfer) => bench.submitted(transfer));
    bench.submitted(bench.in());
    for (const transfer of transfers) bench.transport.cancel(transfer, 0);
    bench.usb.turn();
    expect(bench.statuses).toEqual(['cancelled', 'cancelled', 'cancelled']);
    expect(bench.transport.outstanding).toBe(1);
  });
});

describe('an unplug', () => {
  test('found by a submit is told once, not from inside the submit', async () => {
    const bench = new Bench();
    bench.submitted(bench.in());
    bench.handle.unplugged = true;
    const transfer = bench.out(1);
    expect(bench.transport.submit(transfer, 0)).toBe('gone');
    expect(bench.transport.submit(transfer, 0)).toBe('gone');
    expect(bench.handler.goneAtUs).toHaveLength(0);
    await microtasks();
    expect(bench.handler.goneAtUs).toHaveLength(1);
    bench.handle.unplug();
    bench.usb.turn();
    bench.transport.handleDetach();
    await microtasks();
    expect(bench.statuses).toEqual(['gone']);
    expect(bench.handler.goneAtUs).toHaveLength(1);
  });

  test('found by an end is told after that end, and nothing is taken in between', async () => {
    const bench = new Bench();
    const events: string[] = [];
    bench.handler.onEnd = (transfer) => {
      events.push(transfer.status, bench.transport.submit(transfer, 0));
    };
    bench.submitted(bench.in());
    bench.handle.unplug();
    bench.usb.turn();
    expect(events).toEqual(['gone', 'gone']);
    await microtasks();
    expect(bench.handler.goneAtUs).toHaveLength(1);
  });

  test('seen by the bus while nothing is out is told, too', async () => {
    const bench = new Bench();
    bench.transport.handleDetach();
    expect(bench.handler.goneAtUs).toHaveLength(0);
    await microtasks();
    expect(bench.handler.goneAtUs).toHaveLength(1);
    expect(bench.transport.gone).toBe(true);
  });

  test('before there is a handler is told to it once it is there', async () => {
    const bench = new Bench();
    const transport = new LibusbTransport({
      handle: bench.handle,
      createTransfer: transfersOf(bench.usb, bench.handle),
      device: ncmDevice(),
      clock: { nowUs: () => 5 },
      onHandlerError: () => {},
    });
    transport.handleDetach();
    await microtasks();
    const handler = new RecordingHandler();
    transport.setHandler(handler);
    await microtasks();
    expect(handler.goneAtUs).toEqual([5]);
  });

  test('at the very moment at which the handler comes is told once', async () => {
    const bench = new Bench();
    const transport = new LibusbTransport({
      handle: bench.handle,
      createTransfer: transfersOf(bench.usb, bench.handle),
      device: ncmDevice(),
      clock: { nowUs: () => 5 },
      onHandlerError: () => {},
    });
    transport.handleDetach();
    const handler = new RecordingHandler();
    transport.setHandler(handler);
    await microtasks();
    await microtasks();
    expect(handler.goneAtUs).toEqual([5]);
  });

  test('makes what still comes back end as gone, whatever the host controller calls it', async () => {
    const bench = new Bench();
    for (let i = 0; i < 4; i++) bench.submitted(bench.in());
    bench.transport.handleDetach();
    await microtasks();
    // They were cancelled. Now as if the bus had been faster:
    expect(bench.handle.cancels).toBe(4);
    bench.usb.turn();
    expect(bench.statuses).toEqual(['cancelled', 'cancelled', 'cancelled', 'cancelled']);

    const other = new Bench();
    other.handle.ignoresCancel = true;
    for (let i = 0; i < 2; i++) other.submitted(other.in());
    other.transport.handleDetach();
    await microtasks();
    other.end(0, libusbTransferStatus.error, 0);
    other.end(0, libusbTransferStatus.completed, 7);
    expect(other.statuses).toEqual(['gone', 'completed']);
  });
});

describe('a request', () => {
  const readNtbParameters: DeviceRequest = {
    kind: 'control-in',
    requestType: 0xa1,
    request: 0x80,
    value: 0,
    index: 0x0102,
    length: 28,
    timeoutMs: 1234,
  };

  test('control-in: setup packet out, data back', async () => {
    const bench = new Bench();
    let setup = '';
    let timeoutMs = 0;
    bench.handle.onControl = (bytes) => {
      setup = bytes.subarray(0, 8).toString('hex');
      timeoutMs = bench.handle.inFlight[0]?.timeoutMs ?? 0;
      return Uint8Array.of(28, 0, 3);
    };
    await bench.ask(readNtbParameters);
    expect(setup).toBe('a180000002011c00');
    expect(timeoutMs).toBe(1234);
    const result = bench.handler.results[0]?.result;
    expect(result?.status).toBe('completed');
    expect([...(result?.data ?? [])]).toEqual([28, 0, 3]);
  });

  test('control-out: setup packet and data out', async () => {
    const bench = new Bench();
    let message = '';
    bench.handle.onControl = (bytes) => {
      message = bytes.toString('hex');
      return new Uint8Array(0);
    };
    await bench.ask({
      kind: 'control-out',
      requestType: 0x21,
      request: 0x86,
      value: 1,
      index: 2,
      data: Uint8Array.of(0, 64, 0, 0),
      timeoutMs: 1000,
    });
    expect(message).toBe('218601000200040000400000');
    expect(bench.handler.results[0]?.result).toEqual({ status: 'completed', data: new Uint8Array(0) });
  });

  test.each([
    [libusbTransferStatus.stall, 'stall'],
    [libusbTransferStatus.timedOut, 'timed-out'],
  ])('that ends with %i has status %s and no data', async (errno, status) => {
    const bench = new Bench();
    bench.handle.onControl = () => errno;
    await bench.ask(readNtbParameters);
    expect(bench.handler.results.map(({ result }) => result)).toEqual([{ status, data: new Uint8Array(0) }]);
  });

  test('set-interface, clear-halt and reset reach the host and the device', async () => {
    const bench = new Bench();
    bench.handle.log.length = 0;
    await bench.ask({ kind: 'set-interface', interfaceNumber: 1, alternateSetting: 1, timeoutMs: 1000 });
    expect([...bench.transport.altSettings]).toEqual([[1, 1]]);
    await bench.ask({ kind: 'clear-halt', endpointAddress: bulkIn, timeoutMs: 1000 });
    await bench.ask({ kind: 'reset', timeoutMs: 1000 });
    expect(bench.handle.log).toEqual(['alt 1 1', `clear-halt ${bulkIn}`, 'reset']);
    expect(bench.handler.results.map(({ result }) => result.status)).toEqual([
      'completed',
      'completed',
      'completed',
    ]);
    expect(bench.transport.altSettings.size).toBe(0);
  });

  test('set-interface that fails is not taken for done', async () => {
    const bench = new Bench();
    bench.handle.failures.set('alt 1 1', libusbErrors.pipe);
    await bench.ask({ kind: 'set-interface', interfaceNumber: 1, alternateSetting: 1, timeoutMs: 1000 });
    expect(bench.handler.results[0]?.result.status).toBe('stall');
    expect(bench.transport.altSettings.size).toBe(0);
  });

  test('that ends what is queued does not look like an unplug', async () => {
    const bench = new Bench();
    for (const request of [
      { kind: 'reset', timeoutMs: 1000 },
      { kind: 'set-interface', interfaceNumber: 1, alternateSetting: 1, timeoutMs: 1000 },
    ] as const) {
      const transfer = bench.submitted(bench.in());
      await bench.ask(request);
      expect(bench.statuses).toEqual(['cancelled']);
      bench.submitted(transfer);
      bench.end(0, 0, 5);
      expect(bench.statuses).toEqual(['cancelled', 'completed']);
      bench.handler.ends.length = 0;
    }
    expect(bench.transport.gone).toBe(false);
    // The kernel has two ways to say it; neither bytes that came nor all that was sent are one of them.
    for (const [transfer, actualLength, status] of [
      [bench.in(), 0, 'cancelled'],
      [bench.in(), 7, 'completed'],
      [bench.out(512), 0, 'cancelled'],
      [bench.out(512), 512, 'completed'],
    ] as const) {
      bench.submitted(transfer);
      bench.handle.flushStatus = { status: 0, actualLength };
      await bench.ask({ kind: 'reset', timeoutMs: 1000 });
      expect(bench.statuses).toEqual([status]);
      bench.handler.ends.length = 0;
    }
    bench.handle.flushStatus = { status: libusbTransferStatus.noDevice, actualLength: 0 };
    // The endpoints of other interfaces are not touched by that.
    const status = bench.transport.makeTransfer(0x85, 16, 0);
    status.length = 16;
    bench.submitted(status);
    await bench.ask({ kind: 'set-interface', interfaceNumber: 1, alternateSetting: 0, timeoutMs: 1000 });
    expect(bench.handler.ends).toHaveLength(0);
    bench.end(0, 0, 8);
    bench.handler.ends.length = 0;
    // One that was submitted afterwards and comes back so is an unplug.
    bench.submitted(bench.in());
    bench.end(0, libusbTransferStatus.noDevice, 0);
    expect(bench.statuses).toEqual(['gone']);
    expect(bench.transport.gone).toBe(true);
  });

  test('reset after which the device is another one: gone', async () => {
    const bench = new Bench();
    bench.handle.failures.set('reset', libusbErrors.notFound);
    await bench.ask({ kind: 'reset', timeoutMs: 1000 });
    expect(bench.handler.results[0]?.result.status).toBe('gone');
    expect(bench.handler.goneAtUs).toHaveLength(1);
  });

  test('that cannot even start is answered, later', async () => {
    const bench = new Bench();
    bench.handle.submitErrors = [libusbErrors.io];
    bench.transport.request(readNtbParameters, 0);
    expect(bench.handler.results).toHaveLength(0);
    await microtasks();
    expect(bench.handler.results[0]?.result.status).toBe('protocol-error');

    bench.handle.unplugged = true;
    bench.transport.request(readNtbParameters, 0);
    await microtasks();
    await microtasks();
    expect(bench.handler.results[1]?.result.status).toBe('gone');
    expect(bench.handler.goneAtUs).toHaveLength(1);
    bench.transport.request(readNtbParameters, 0);
    await microtasks();
    expect(bench.handler.results[2]?.result.status).toBe('gone');
    expect(bench.transport.outstanding).toBe(0);
  });

  test('a second one while one is out is an error of ours', () => {
    const bench = new Bench();
    bench.transport.request(readNtbParameters, 0);
    expect(() => bench.transport.request(readNtbParameters, 0)).toThrow(InvariantError);
  });

  test('can be followed by the next from inside its report', async () => {
    const bench = new Bench();
    bench.handle.onControl = () => Uint8Array.of(1);
    bench.handler.onResult = () => {
      if (bench.handler.results.length < 3) bench.transport.request(readNtbParameters, 0);
    };
    await bench.ask(readNtbParameters);
    expect(bench.handler.results).toHaveLength(3);
  });
});

describe('closing', () => {
  test('takes nothing more, cancels all, and waits for the last callback', async () => {
    const bench = new Bench();
    for (let i = 0; i < 5; i++) bench.submitted(bench.in());
    bench.handle.onControl = () => neverAnswers;
    bench.transport.request(
      { kind: 'control-in', requestType: 0xa1, request: 1, value: 0, index: 0, length: 4, timeoutMs: 5000 },
      0,
    );
    bench.transport.startClosing();
    expect(bench.transport.submit(bench.out(1), 0)).toBe('gone');
    let idle: boolean | undefined;
    const waited = bench.transport.waitUntilIdle(10_000).then((value) => {
      idle = value;
    });
    bench.usb.turn(5);
    await microtasks();
    expect(idle).toBeUndefined();
    bench.usb.turn(1);
    await waited;
    expect(idle).toBe(true);
    expect(bench.statuses).toEqual(['cancelled', 'cancelled', 'cancelled', 'cancelled', 'cancelled']);
    expect(bench.handler.results[0]?.result.status).toBe('cancelled');
    expect(bench.transport.dispose()).toBe(0);
    expect(bench.handler.goneAtUs).toHaveLength(0);
  });

  test('reports what never comes back as gone, and ignores it if it comes later', async () => {
    const bench = new Bench();
    bench.handle.ignoresCancel = true;
    bench.submitted(bench.in());
    bench.submitted(bench.out(512, { zeroPacket: true }));
    bench.transport.startClosing();
    expect(await bench.transport.waitUntilIdle(5)).toBe(false);
    expect(bench.transport.dispose()).toBe(2);
    expect(bench.statuses).toEqual(['gone', 'gone']);
    expect(bench.transport.outstanding).toBe(0);
    while (bench.handle.inFlight.length > 0) bench.end(0, 0, 0);
    expect(bench.handler.ends).toHaveLength(2);
    expect(bench.transport.outstanding).toBe(0);
  });
});

// ---- any order of events ----

type Step =
  | { readonly kind: 'submit'; readonly index: number }
  | { readonly kind: 'cancel'; readonly index: number }
  | { readonly kind: 'end'; readonly position: number; readonly status: number }
  | { readonly kind: 'fail-submits'; readonly errors: readonly number[] }
  | { readonly kind: 'turn'; readonly count: number }
  | { readonly kind: 'throw' }
  | { readonly kind: 'request'; readonly request: DeviceRequest }
  | { readonly kind: 'detach' }
  | { readonly kind: 'unplug'; readonly status: number };

const poolSize = 6;
const transferStatus = fc
  .integer({ min: 0, max: 6 })
  .filter((status) => status !== libusbTransferStatus.noDevice);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('submit' as const), index: fc.nat(poolSize - 1) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('cancel' as const), index: fc.nat(poolSize - 1) }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('end' as const), position: fc.nat(20), status: transferStatus }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('fail-submits' as const),
      errors: fc.array(fc.constantFrom(0, libusbErrors.io, libusbErrors.noMemory, libusbErrors.pipe), {
        maxLength: 3,
      }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('turn' as const), count: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('throw' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('request' as const),
      request: fc.constantFrom<DeviceRequest>(
        { kind: 'clear-halt', endpointAddress: bulkIn, timeoutMs: 100 },
        { kind: 'set-interface', interfaceNumber: 1, alternateSetting: 1, timeoutMs: 100 },
        { kind: 'reset', timeoutMs: 100 },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('detach' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('unplug' as const),
      status: fc.constantFrom(libusbTransferStatus.noDevice, libusbTransferStatus.error),
    }),
  },
);

test('whatever happens, each transfer that was taken is reported exactly once and the unplug at most once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 60 }),
      fc.boolean(),
      fc.boolean(),
      async (steps, resubmits, abortsWholePipes) => {
        const bench = new Bench();
        const { transport, handler, handle, usb } = bench;
        usb.abortsWholePipes = abortsWholePipes;
        const pool = [bench.in(), bench.in(), bench.out(100), bench.out(100)];
        pool.push(bench.out(512, { zeroPacket: true }), bench.out(1024, { zeroPacket: true }));
        const out = new Set<Transfer>();
        let taken = 0;
        let inside = false;
        let throwNext = false;
        let requests = 0;

        const submit = (transfer: Transfer): void => {
          if (out.has(transfer)) return;
          inside = true;
          const result = transport.submit(transfer, 0);
          inside = false;
          if (result !== 'ok') return;
          out.add(transfer);
          taken++;
        };
        handler.onEnd = (transfer) => {
          expect(inside).toBe(false);
          expect(out.delete(transfer)).toBe(true);
          if (throwNext) {
            throwNext = false;
            throw new Error('a fault of the driver');
          }
          if (resubmits && handler.ends.length % 3 !== 0 && transfer.status === 'completed') submit(transfer);
        };

        let unplugged = false;
        let threw = 0;
        for (const event of steps) {
          switch (event.kind) {
            case 'submit':
              submit(pool[event.index] ?? bench.in());
              break;
            case 'cancel':
              inside = true;
              transport.cancel(pool[event.index] ?? bench.in(), 0);
              inside = false;
              break;
            case 'end': {
              const native = handle.inFlight[event.position];
              if (native !== undefined) handle.end(native, event.status, 0);
              break;
            }
            case 'fail-submits':
              handle.submitErrors = [...event.errors];
              break;
            case 'turn':
              usb.turn(event.count);
              break;
            case 'throw':
              if (!throwNext) threw++;
              throwNext = true;
              break;
            case 'request':
              if (requests === handler.results.length) {
                requests++;
                transport.request(event.request, 0);
              }
              break;
            case 'detach':
              unplugged = true;
              transport.handleDetach();
              break;
            case 'unplug':
              if (!handle.unplugged) handle.unplug(event.status);
              break;
          }
          await microtasks();
        }
        if (throwNext) threw--;
        throwNext = false;
        resubmits = false;
        if (!handle.unplugged && handler.goneAtUs.length === 0) expect(unplugged).toBe(false);

        transport.startClosing();
        usb.turn();
        await microtasks();
        expect(usb.queued).toBe(0);
        expect(out.size).toBe(0);
        expect(handler.ends).toHaveLength(taken);
        expect(handler.results).toHaveLength(requests);
        expect(transport.outstanding).toBe(0);
        expect(handle.pending).toBe(0);
        expect(handler.goneAtUs.length).toBe(transport.gone ? 1 : 0);
        expect(bench.handlerErrors).toHaveLength(threw);
        expect(usb.vanishedExceptions).toEqual([]);
        expect(transport.dispose()).toBe(0);
        handle.__close();
      },
    ),
    { numRuns: 500 },
  );
});
