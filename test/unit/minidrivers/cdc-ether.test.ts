import { describe, expect, test } from 'vitest';
import { cdcEther } from '../../../src/minidrivers/cdc-ether.ts';
import type { DriverBinding } from '../../../src/usbnet/minidriver.ts';
import { PacketPool } from '../../../src/usbnet/packet.ts';
import { DriverError, type Procedure } from '../../../src/usbnet/procedure.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { altSetting, endpoint } from '../usbnet/hand-made-device.ts';
import {
  type Answer,
  cdcDevice,
  type CdcShape,
  contextFor,
  converse,
  describeStep,
  frameOf,
  functional,
  obliging,
  receivedTransfer,
  startDriver,
  stringDescriptor,
} from './conversation.ts';

function bind(shape: Partial<CdcShape> = {}): Procedure<DriverBinding> {
  return cdcEther.bind(contextFor(cdcDevice({ subclass: 0x06, ...shape }), 'cdc_ether'));
}

const usualSteps = ['interface 1 alt 1', '21 43 000c 0000', '80 06 0300 0000 <255', '80 06 0304 0409 <255'];

describe('bind (spec 3.1)', () => {
  test('altsetting, packet filter, MAC address, in this order and no more', () => {
    const { steps, value } = converse(bind(), obliging());
    expect(steps).toEqual(usualSteps);
    expect(value).toMatchObject({
      name: 'cdc_ether',
      controlInterface: 0,
      dataInterface: 1,
      bulkIn: 0x81,
      bulkOut: 0x02,
      statusEndpoint: 0x83,
      macAddress: Uint8Array.of(0x02, 0x00, 0x5e, 0x10, 0x00, 0x01),
      hardMtuBytes: 1514,
      hardHeaderBytes: 14,
      rxUrbSizeBytes: undefined,
      mtuBytes: 1500,
      maxMtuBytes: 1500,
      maxPacketsPerTransfer: 1,
      flags: { sendZlp: false, multiPacket: false, linkInterrupt: false },
    });
  });

  test('a device that refuses the packet filter is driven all the same', () => {
    const { steps, value } = converse(bind(), obliging({ '21 43': 'stall' }));
    expect(steps).toEqual(usualSteps);
    expect(value).toBeDefined();
  });

  const all = `${functional.header} ${functional.union} ${functional.ethernet}`;
  test.each<[string, Partial<CdcShape>]>([
    ['behind the interrupt endpoint', { extra: '', behindEndpoint: all }],
    ['in the configuration', { extra: '', ofConfiguration: all }],
    ['with a swapped union', { extra: `${functional.swappedUnion} ${functional.ethernet}` }],
    ['without a union: the next interface', { extra: functional.ethernet }],
    [
      'spread over all three places',
      {
        extra: functional.header,
        behindEndpoint: functional.union,
        ofConfiguration: functional.ethernet,
      },
    ],
  ])('functional descriptors %s', (_name, shape) => {
    const { steps, value } = converse(bind(shape), obliging());
    expect(steps).toEqual(usualSteps);
    expect([value?.controlInterface, value?.dataInterface]).toEqual([0, 1]);
  });

  test('the endpoints in altsetting 0', () => {
    const settings = [
      altSetting(0, 0, [0x02, 0x06, 0x00], [], bytesOf(all)),
      altSetting(1, 0, [0x0a, 0, 0], [endpoint(0x84, 'bulk', 512), endpoint(0x05, 'bulk', 512)]),
    ];
    const { steps, value } = converse(bind({ settings }), obliging());
    expect(steps[0]).toBe('interface 1 alt 0');
    expect([value?.bulkIn, value?.bulkOut, value?.statusEndpoint]).toEqual([0x84, 0x05, undefined]);
  });

  test.each([
    ['none', undefined, undefined],
    ['one whose packets hold no notification', [7, 9], undefined],
    ['one that is never polled', [16, 0], undefined],
    ['one with room for just the header', [8, 9], 0x83],
  ] as const)('interrupt endpoint: %s', (_name, interrupt, expected) => {
    expect(converse(bind({ interrupt }), obliging()).value?.statusEndpoint).toBe(expected);
  });

  // wMaxSegmentSize; then hard_mtu, MTU, largest MTU.
  test.each([
    [1514, 1514, 1500, 1500],
    [1414, 1414, 1400, 1400],
    [2048, 2048, 1500, 2034],
    [9014, 9014, 1500, 2034],
    [0, 1514, 1500, 1500],
    // Nothing that a device could mean: with these there would be thousands of transfers.
    [1, 1514, 1500, 1500],
    [81, 1514, 1500, 1500],
    [82, 82, 68, 68],
  ])('segments of %i bytes', (segment, hardMtu, mtu, maxMtu) => {
    const low = (segment & 0xff).toString(16).padStart(2, '0');
    const high = (segment >> 8).toString(16).padStart(2, '0');
    const extra = `${functional.union} 0d 24 0f 04 00000000 ${low}${high} 0000 00`;
    const { value } = converse(bind({ extra }), obliging());
    expect([value?.hardMtuBytes, value?.mtuBytes, value?.maxMtuBytes]).toEqual([hardMtu, mtu, maxMtu]);
  });
});

describe('devices that cannot be driven', () => {
  const stage = (error: unknown): string | undefined =>
    error instanceof DriverError ? error.stage : undefined;

  test.each<[string, Partial<CdcShape>, Readonly<Record<string, Answer>>, string]>([
    ['no Ethernet descriptor', { extra: functional.union }, {}, 'bind'],
    ['one that is cut off', { extra: `${functional.union} 0c 24 0f 04 00000000 ea05 0000` }, {}, 'bind'],
    [
      'no altsetting with endpoints',
      {
        settings: [
          altSetting(0, 0, [0x02, 0x06, 0], [], bytesOf(functional.ethernet)),
          altSetting(1, 0, [0x0a, 0, 0]),
        ],
      },
      {},
      'bind',
    ],
    ['the altsetting is refused', {}, { 'interface 1 alt 1': 'stall' }, 'select the data altsetting'],
    [
      'no MAC address string',
      { extra: `${functional.union} 0d 24 0f 00 00000000 ea05 0000 00` },
      {},
      'read the MAC address',
    ],
    ['its string is refused', {}, { '80 06 0304': 'stall' }, 'read the MAC address'],
    ['its string is no string', {}, { '80 06 0304': { hex: '04 02 30 00' } }, 'read the MAC address'],
    ['its string is empty', {}, { '80 06 0304': { hex: '' } }, 'read the MAC address'],
    ['eleven digits', {}, { '80 06 0304': stringDescriptor('02005e10000') }, 'read the MAC address'],
    ['thirteen digits', {}, { '80 06 0304': stringDescriptor('02005e1000012') }, 'read the MAC address'],
    ['twelve letters', {}, { '80 06 0304': stringDescriptor('not-a-number') }, 'read the MAC address'],
    ['with colons', {}, { '80 06 0304': stringDescriptor('02:00:5e:10:00:01') }, 'read the MAC address'],
    ['gone while it is being bound', {}, { '80 06': 'gone' }, 'read the MAC address'],
  ])('%s', (_name, shape, special, expected) => {
    const { value, error } = converse(bind(shape), obliging(special));
    expect([value, stage(error)]).toEqual([undefined, expected]);
  });

  test('a refused altsetting says how it was refused', () => {
    const { error } = converse(bind(), obliging({ 'interface 1': 'timed-out' }));
    expect(error).toMatchObject({ status: 'timed-out' });
  });
});

describe('the MAC address', () => {
  test('is read in the device’s own language, and in English if it names none', () => {
    const german = converse(bind(), obliging({ '80 06 0300': { hex: '06 03 07 04 09 04' } }));
    expect(german.steps.at(-1)).toBe('80 06 0304 0407 <255');
    const none = converse(bind(), obliging({ '80 06 0300': 'stall' }));
    expect(none.steps.at(-1)).toBe('80 06 0304 0409 <255');
  });

  test.each(['000000000000', 'ffffffffffff', '0100005e0001'])('%s is none: one is made up', (text) => {
    const { value } = converse(bind(), obliging({ '80 06 0304': stringDescriptor(text) }));
    expect(value).toBeDefined();
    expect(value?.macAddress).toBeUndefined();
  });

  test('capital letters will do', () => {
    const { value } = converse(bind(), obliging({ '80 06 0304': stringDescriptor('02005E1000AB') }));
    expect(value?.macAddress).toEqual(Uint8Array.of(0x02, 0x00, 0x5e, 0x10, 0x00, 0xab));
  });
});

describe('framing', () => {
  test('a transfer is a frame, nothing around it', () => {
    const { hooks } = startDriver(bind());
    const pool = new PacketPool(1);
    const packet = pool.take();
    if (packet === undefined) throw new Error('no packet');
    packet.tag = 77;
    const transfer = hooks.txFixup(frameOf(packet, 100), 5);
    expect(transfer).toMatchObject({ length: 100, payloadBytes: 100, packetCount: 1 });
    expect([transfer?.packetTags[0], transfer?.packetStartUs[0]]).toEqual([77, 5]);
    expect([...(transfer?.buffer.subarray(0, 101) ?? [])]).toEqual([
      ...Array.from({ length: 100 }, () => 0xa5),
      0xee,
    ]);
    expect(pool.inUse).toBe(0);
  });

  test('the longest packet fits, with the byte that may have to follow it', () => {
    const { hooks } = startDriver(bind());
    const packet = new PacketPool(1).take();
    if (packet === undefined) throw new Error('no packet');
    const transfer = hooks.txFixup(frameOf(packet, packet.bytes.length), 0);
    expect(transfer?.length).toBe(packet.bytes.length);
    expect(transfer?.buffer.length).toBeGreaterThan(packet.bytes.length);
  });

  test('without a transfer to be had the packet is given up, and given back', () => {
    const { hooks, host } = startDriver(bind());
    host.transfersLeft = 0;
    const pool = new PacketPool(1);
    const packet = pool.take();
    if (packet === undefined) throw new Error('no packet');
    expect(hooks.txFixup(frameOf(packet, 100), 0)).toBeUndefined();
    expect(pool.inUse).toBe(0);
    expect(hooks.txFixup(null, 0)).toBeUndefined();
  });

  test('what comes in is handed up as it is', () => {
    const { hooks, host } = startDriver(bind());
    const frame = new Uint8Array(64).fill(3);
    expect(hooks.rxFixup(receivedTransfer(frame), 0)).toBe(true);
    expect(host.received).toEqual([frame]);
  });
});

describe('settings and notifications', () => {
  test.each([
    [false, false, '000c'],
    [true, false, '000d'],
    [false, true, '000e'],
    [true, true, '000f'],
  ])('promiscuous %s, multicast %s: filter %s', (promiscuous, multicast, filter) => {
    const { hooks } = startDriver(bind());
    const procedure = hooks.setRxMode?.({ promiscuous, multicast });
    if (procedure === undefined) throw new Error('there is no setRxMode');
    expect(converse(procedure, () => 'stall')).toMatchObject({
      steps: [`21 43 ${filter} 0000`],
      error: undefined,
    });
  });

  test('the first speed is taken for the uplink, as Linux does here', () => {
    const { hooks, host } = startDriver(bind());
    const notification = bytesOf('a1 2a 0000 0000 0800 00100000 00200000');
    hooks.status?.(notification, 16, 0);
    expect(host.speeds).toEqual([[0x2000, 0x1000]]);
  });

  test('the link goes up and down', () => {
    const { hooks, host } = startDriver(bind());
    hooks.status?.(Uint8Array.of(0xa1, 0, 1, 0, 0, 0, 0, 0), 8, 0);
    hooks.status?.(Uint8Array.of(0xa1, 0, 0, 0, 0, 0, 0, 0), 8, 0);
    expect(host.links).toEqual([
      [true, false],
      [false, false],
    ]);
  });
});

test('every request has a time limit of five seconds', () => {
  const limits = new Set<number>();
  converse(bind(), (request, words) => {
    limits.add(request.timeoutMs);
    expect(describeStep(request)).toBe(words);
    return obliging()(request, words);
  });
  expect([...limits]).toEqual([5000]);
});
