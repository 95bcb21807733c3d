/** The client over real sockets: against our own server, and against servers that do what they should not. */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import type { AppError } from '../../../src/base/errors.ts';
import { monotonicClock } from '../../../src/engine/monotonic-clock.ts';
import type { UsbipEvent } from '../../../src/hosts/usbip/usbip-connection.ts';
import { startUsbipHost, type UsbipHost } from '../../../src/hosts/usbip/usbip-host.ts';
import { cdcCatalogue } from '../sim/sim-setup.ts';
import { SimUsbipExports } from '../../../src/sim/usbip-exports.ts';
import {
  formatUsbipDeviceId,
  formatUsbipServer,
  parseUsbipDeviceId,
  parseUsbipServer,
  type UsbipServer,
} from '../../../src/transports/usbip-address.ts';
import { UsbipBus } from '../../../src/transports/usbip-bus.ts';
import type { UsbBusDevice, UsbLease } from '../../../src/transports/usb-bus.ts';
import type { Transfer } from '../../../src/usbnet/transfer.ts';
import type { DeviceRequest, RequestResult } from '../../../src/usbnet/transport.ts';
import { etherTypeArp, writeEthernet } from '../../../src/wire/ethernet.ts';
import { encodeOpHeader, opCodes, opStatuses } from '../../../src/wire/usbip.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { RecordingHandler } from './recording-handler.ts';

const closers: (() => Promise<unknown> | void)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

interface Served {
  readonly host: UsbipHost;
  readonly server: UsbipServer;
  readonly events: UsbipEvent[];
  idOf(busId: string): string;
}

async function serve(port = 0): Promise<Served> {
  const events: UsbipEvent[] = [];
  const host = await startUsbipHost({
    exports: new SimUsbipExports(cdcCatalogue, 1),
    host: '127.0.0.1',
    port,
    clock: monotonicClock,
    log: silentLog,
    onEvent: (event) => events.push(event),
  });
  closers.push(() => host.close());
  const server = { host: '127.0.0.1', port: host.port };
  return { host, server, events, idOf: (busId) => formatUsbipDeviceId(server, busId) };
}

function busOf(
  server: UsbipServer,
  options: Partial<ConstructorParameters<typeof UsbipBus>[0]> = {},
): UsbipBus {
  const bus = new UsbipBus({ server, clock: monotonicClock, log: silentLog, ...options });
  closers.push(() => bus.closeAll());
  return bus;
}

/** A server that does this with each connection. */
async function misbehave(handle: (socket: Socket) => void): Promise<UsbipServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    handle(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

async function failureOf(action: Promise<unknown>): Promise<AppError> {
  try {
    await action;
  } catch (error) {
    return error as AppError;
  }
  throw new Error('it did not fail');
}

async function until(condition: () => boolean, limitMs = 5000): Promise<void> {
  const endMs = performance.now() + limitMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`not within ${limitMs} ms: ${condition.toString()}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}

/** A driver on a lease that waits for what it asks. */
class Driver {
  readonly handler = new RecordingHandler();
  readonly lease: UsbLease;

  constructor(lease: UsbLease) {
    this.lease = lease;
    lease.transport.setHandler(this.handler);
  }

  async request(request: DeviceRequest): Promise<RequestResult> {
    const before = this.handler.results.length;
    this.lease.transport.request(request, 0);
    await until(() => this.handler.results.length > before);
    const done = this.handler.results[before];
    if (done === undefined) throw new Error('no result');
    return done.result;
  }

  ask(length: number): Transfer {
    const transfer = this.lease.transport.makeTransfer(0x81, length, 0);
    transfer.length = length;
    this.#submit(transfer);
    return transfer;
  }

  send(bytes: Uint8Array, zeroPacket = false): Transfer {
    const transfer = this.lease.transport.makeTransfer(0x01, bytes.length, 0);
    transfer.buffer.set(bytes);
    transfer.length = bytes.length;
    transfer.zeroPacket = zeroPacket;
    this.#submit(transfer);
    return transfer;
  }

  #submit(transfer: Transfer): void {
    const result = this.lease.transport.submit(transfer, 0);
    if (result !== 'ok') throw new Error(`a transfer was not taken: ${result}`);
  }

  async endOf(transfer: Transfer): Promise<string> {
    await until(() => this.handler.ends.some((end) => end.transfer === transfer));
    return transfer.status;
  }
}

const openData: DeviceRequest = {
  kind: 'set-interface',
  interfaceNumber: 1,
  alternateSetting: 1,
  timeoutMs: 2000,
};
const bothInterfaces = { interfaces: [0, 1] };

/** An ARP request from the address that the far host leases, which it answers. */
function arpRequest(mac: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(42);
  writeEthernet(bytes, 0, new Uint8Array(6).fill(0xff), mac, etherTypeArp);
  bytes.set(bytesOf('0001 0800 06 04 0001'), 14);
  bytes.set(mac, 22);
  bytes.set([10, 64, 0, 2], 28);
  bytes.set([10, 64, 0, 1], 38);
  return bytes;
}

describe('names', () => {
  test.each([
    ['modem.local', { host: 'modem.local', port: 3240 }, 'modem.local'],
    ['10.0.2.2:4000', { host: '10.0.2.2', port: 4000 }, '10.0.2.2:4000'],
    ['usbip://pi:3240/', { host: 'pi', port: 3240 }, 'pi'],
    ['[fe80::1%eth0]:7', { host: 'fe80::1%eth0', port: 7 }, '[fe80::1%eth0]:7'],
    ['[::1]', { host: '::1', port: 3240 }, '[::1]'],
  ])('%s', (text, server, written) => {
    expect(parseUsbipServer(text)).toEqual(server);
    expect(formatUsbipServer(server)).toBe(written);
    const id = formatUsbipDeviceId(server, '3-1.4');
    expect(parseUsbipDeviceId(id)).toEqual({ server, busId: '3-1.4' });
  });

  test.each([
    '',
    'a b',
    'host:',
    'host:0',
    'host:65536',
    'host:99999999',
    '::1',
    '[::1',
    'host/x',
    'usbip://',
    'a:1:2',
  ])('"%s" is no server', (text) => expect(parseUsbipServer(text)).toBeUndefined());

  test.each([
    'usb:1-1',
    'usbip://host',
    'usbip://host/',
    'usbip:///1-1',
    'usbip://host/1-1/',
    `usbip://h/${'1'.repeat(32)}`,
  ])('"%s" is no device', (id) => expect(parseUsbipDeviceId(id)).toBeUndefined());
});

describe('our own server', () => {
  test('lists its devices with what a list can tell', async () => {
    const { server, idOf } = await serve();
    const devices = await busOf(server).list();
    expect(devices.map(({ id, speed, productId }) => [id, speed, productId])).toEqual([
      [idOf('1-1'), 'super', 1],
      [idOf('1-2'), 'super', 2],
      [idOf('1-3'), 'high', 3],
      [idOf('1-4'), 'high', 4],
    ]);
    expect(devices[1]?.configurations[0]?.interfaces.map(({ altSettings }) => altSettings[0])).toMatchObject([
      { interfaceClass: 2, interfaceSubclass: 13, interfaceProtocol: 0 },
      { interfaceClass: 10, interfaceSubclass: 0, interfaceProtocol: 1 },
    ]);
  });

  test.each(
    cdcCatalogue.map(({ name, product, speed }, i) => ({ name, product, speed, busId: `1-${i + 1}` })),
  )('$name: says who it is once it was handed out', async ({ busId, product, speed }) => {
    const { server, idOf } = await serve();
    const imported = await busOf(server).import(idOf(busId));
    const device: UsbBusDevice = imported.device;
    expect(device).toMatchObject({
      manufacturer: 'Queuescope',
      product,
      serialNumber: `SIM00000${busId.slice(2)}`,
      speed,
      activeConfiguration: 1,
      problems: [],
    });
    const endpoints = device.configurations[0]?.interfaces[1]?.altSettings[1]?.endpoints ?? [];
    expect(endpoints.map(({ address }) => address)).toEqual([0x81, 0x01]);
    expect(endpoints[0]?.companion?.maxBurst).toBe(speed === 'super' ? 15 : undefined);
    await imported.close();
  });

  test('control, bulk and interrupt transfers, and cancelling', async () => {
    const { server, idOf, events } = await serve();
    const driver = new Driver(await busOf(server).open(idOf('1-1'), bothInterfaces));
    expect(await driver.request(openData)).toMatchObject({ status: 'completed' });
    const notification = driver.lease.transport.makeTransfer(0x82, 16, 0);
    notification.length = 16;
    driver.lease.transport.submit(notification, 0);
    expect(await driver.endOf(notification)).toBe('completed');
    expect(notification.actualLength).toBe(16);

    const received = driver.ask(2048);
    const waiting = driver.ask(2048);
    const sent = driver.send(arpRequest(Uint8Array.of(2, 0x51, 0x53, 0, 0, 1)), true);
    expect(await driver.endOf(sent)).toBe('completed');
    expect(await driver.endOf(received)).toBe('completed');
    expect(received.buffer.subarray(12, 22)).toEqual(bytesOf('0806 0001 0800 06 04 0002'));

    driver.lease.transport.cancel(waiting, 0);
    expect(await driver.endOf(waiting)).toBe('cancelled');
    expect(
      await driver.request({ kind: 'clear-halt', endpointAddress: 0x81, timeoutMs: 1000 }),
    ).toMatchObject({ status: 'completed' });
    expect(
      await driver.request({
        kind: 'control-in',
        requestType: 0xc0,
        request: 0x99,
        value: 0,
        index: 0,
        length: 4,
        timeoutMs: 1000,
      }),
    ).toMatchObject({ status: 'stall' });
    expect(await driver.request({ kind: 'reset', timeoutMs: 1000 })).toMatchObject({ status: 'completed' });

    driver.ask(2048);
    expect(await driver.lease.close()).toEqual({ reattached: [], notReturned: [], transfersLost: 0 });
    await until(() => events.some(({ type }) => type === 'detached'));
    expect(events).toMatchObject([
      { type: 'attached', busId: '1-1' },
      { type: 'detached', busId: '1-1', refused: 0 },
    ]);
  });

  test('300 transfers at once all come back, in order', async () => {
    const { server, idOf } = await serve();
    const driver = new Driver(await busOf(server).open(idOf('1-2'), bothInterfaces));
    await driver.request(openData);
    const sent = Array.from({ length: 300 }, () => driver.send(new Uint8Array(1000), true));
    await until(() => driver.handler.ends.length === 300);
    expect(driver.handler.ends.map(({ transfer }) => transfer)).toEqual(sent);
    expect(new Set(driver.handler.ends.map(({ status }) => status))).toEqual(new Set(['completed']));
    await driver.lease.close();
  });

  test('a device that another client has, and one that there is not', async () => {
    const { server, idOf } = await serve();
    const lease = await busOf(server).open(idOf('1-1'), bothInterfaces);
    const busy = await failureOf(busOf(server).open(idOf('1-1'), bothInterfaces));
    expect(busy).toMatchObject({
      kind: 'device-busy',
      remedy: expect.stringMatching(/usbip unbind --busid 1-1/),
    });
    const missing = await failureOf(busOf(server).open(idOf('9-9'), bothInterfaces));
    expect(missing).toMatchObject({
      kind: 'no-such-device',
      remedy: expect.stringMatching(/usbip bind --busid 9-9/),
    });
    await lease.close();
    // Given back, it can be had again.
    await (await busOf(server).open(idOf('1-1'), bothInterfaces)).close();
  });

  test('twice from here: busy, without a word to the server', async () => {
    const { server, idOf } = await serve();
    const bus = busOf(server);
    const [first, second] = await Promise.allSettled([
      bus.open(idOf('1-1'), bothInterfaces),
      bus.open(idOf('1-1'), bothInterfaces),
    ]);
    expect(first.status).toBe('fulfilled');
    expect(second).toMatchObject({ status: 'rejected', reason: { kind: 'device-busy' } });
  });

  test.each([
    ['an interface', { interfaces: [7] }],
    ['a configuration', { interfaces: [0], configurationValue: 4 }],
  ])('%s that the device has not: the device is given back', async (_name, request) => {
    const { server, idOf } = await serve();
    const bus = busOf(server);
    expect(await failureOf(bus.open(idOf('1-1'), request))).toMatchObject({ kind: 'bad-input' });
    await (await bus.open(idOf('1-1'), bothInterfaces)).close();
  });

  test('the server ends: everything that is out is gone, and the reason is known', async () => {
    const { host, server, idOf } = await serve();
    const imported = await busOf(server).import(idOf('1-1'));
    const driver = new Driver(await imported.lease(bothInterfaces));
    await driver.request(openData);
    const waiting = driver.ask(64);
    await host.close();
    expect(await driver.endOf(waiting)).toBe('gone');
    await until(() => driver.handler.goneAtUs.length === 1);
    expect(imported.lossReason).toMatchObject({
      kind: 'device-gone',
      message: expect.stringMatching(/closed the connection|connection broke/),
    });
    expect(driver.lease.transport.submit(waiting, 0)).toBe('gone');
    expect(await driver.lease.close()).toMatchObject({ transfersLost: 0 });
  });

  test('a change of what there is, is noticed', async () => {
    const first = await serve();
    const bus = busOf(first.server, { pace: { pollMs: 20, longestWaitMs: 40 } });
    let changes = 0;
    const dispose = bus.onChange(() => changes++);
    await until(() => bus.failure === undefined);
    await new Promise((resolve) => {
      setTimeout(resolve, 100);
    });
    expect(changes).toBe(0);
    await first.host.close();
    await until(() => changes === 1);
    expect(bus.failure).toMatchObject({ kind: 'no-such-device' });
    await serve(first.server.port);
    await until(() => changes === 2);
    expect(bus.failure).toBeUndefined();
    dispose();
  });
});

describe('servers that fail', () => {
  const limits = { connectMs: 500, answerMs: 200 };

  test.each<[string, (socket: Socket) => void, string, RegExp, RegExp]>([
    [
      'hangs up',
      (socket) => socket.destroy(),
      'device-failed',
      /closed the connection without an answer/,
      /another version of USB\/IP than 1\.1\.1/,
    ],
    [
      'resets the connection',
      (socket) => socket.once('data', () => socket.resetAndDestroy()),
      'device-failed',
      /closed the connection/,
      /usbipd -d/,
    ],
    ['says nothing', () => undefined, 'timed-out', /does not answer/, /usbipd anew/],
    [
      'speaks another version',
      (socket) => socket.write(bytesOf('0106 0003 00000000')),
      'device-failed',
      /speaks version 1\.0\.6, and only 1\.1\.1/,
      /usbip tools/,
    ],
    [
      'is a web server',
      (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
      'device-failed',
      /is no USB\/IP server/,
      /3240/,
    ],
    [
      'stops in the middle of its answer',
      (socket) => {
        socket.end(new Uint8Array([...encodeOpHeader(opCodes.replyImport), 1, 2, 3]));
      },
      'device-failed',
      /closed the connection/,
      /version/,
    ],
    [
      'has the device in an error state',
      (socket) => socket.write(encodeOpHeader(opCodes.replyImport, opStatuses.deviceError)),
      'device-failed',
      /cannot hand out/,
      /usbip unbind/,
    ],
  ])('one that %s', async (_name, handle, kind, message, remedy) => {
    const server = await misbehave(handle);
    const failure = await failureOf(
      busOf(server, { limits }).open(formatUsbipDeviceId(server, '1-1'), bothInterfaces),
    );
    expect(failure).toMatchObject({
      kind,
      message: expect.stringMatching(message),
      remedy: expect.stringMatching(remedy),
    });
  });

  test('nobody listens: said so, with what to do, and the list is empty', async () => {
    const server = await misbehave(() => undefined);
    await closers.pop()?.();
    const bus = busOf(server, { limits });
    expect(await bus.list()).toEqual([]);
    expect(bus.failure).toMatchObject({
      kind: 'no-such-device',
      message: expect.stringMatching(/no USB\/IP server listens/),
      remedy: expect.stringMatching(/usbipd -D/),
    });
    expect(await bus.unavailable()).toMatchObject({ kind: 'no-such-device' });
  });

  test('a name that there is not', async () => {
    const bus = busOf({ host: 'no-such-machine.invalid', port: 3240 }, { limits });
    expect(await bus.list()).toEqual([]);
    expect(bus.failure?.kind).toMatch(/no-such-device|timed-out/);
  });

  test('one that hands out a device and then talks nonsense', async () => {
    const server = await misbehave((socket) =>
      socket.once('data', () => {
        const record = new Uint8Array(312);
        record.set(new TextEncoder().encode('1-1'), 256);
        socket.write(Uint8Array.from([...encodeOpHeader(opCodes.replyImport), ...record]));
        socket.once('data', () => socket.write('x'.repeat(48)));
      }),
    );
    const failure = await failureOf(
      busOf(server, { limits }).open(formatUsbipDeviceId(server, '1-1'), bothInterfaces),
    );
    expect(failure).toMatchObject({ kind: 'device-gone', message: expect.stringMatching(/makes no sense/) });
  });
});
