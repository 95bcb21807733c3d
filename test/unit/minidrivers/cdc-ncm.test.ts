import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cdcNcm } from '../../../src/minidrivers/cdc-ncm.ts';
import { agreeOnNtbs } from '../../../src/minidrivers/ncm-agreement.ts';
import type { DriverBinding } from '../../../src/usbnet/minidriver.ts';
import { PacketPool } from '../../../src/usbnet/packet.ts';
import { DriverError, type Procedure } from '../../../src/usbnet/procedure.ts';
import { type NtbParameters, parseNtbParameters } from '../../../src/wire/ntb.ts';
import { NtbWriter } from '../../../src/wire/ntb-writer.ts';
import { altSetting } from '../usbnet/hand-made-device.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import {
  type Answer,
  cdcDevice,
  type CdcShape,
  contextFor,
  converse,
  frameOf,
  functional,
  ntbParameters,
  obliging,
  type Parameters,
  receivedTransfer,
  startDriver,
} from './conversation.ts';

function bind(shape: Partial<CdcShape> = {}, txTimerUs = 0): Procedure<DriverBinding> {
  return cdcNcm.bind(contextFor(cdcDevice({ subclass: 0x0d, ...shape }), 'cdc_ncm', txTimerUs));
}

/** The functional descriptors of a function with these capabilities. */
function withCapabilities(capabilities: string): string {
  return `${functional.union} ${functional.ethernet} 06 24 1a 00 01 ${capabilities}`;
}

function answering(
  parameters: Parameters,
  special: Readonly<Record<string, Answer>> = {},
): ReturnType<typeof obliging> {
  return obliging({ ...special, 'a1 80': { hex: ntbParameters(parameters) } });
}

const macSteps = ['80 06 0300 0000 <255', '80 06 0304 0409 <255'];

describe('bind (spec 3.2)', () => {
  test('a gadget as Linux makes it: the altsetting is toggled, NTB16 is chosen, nothing else is needed', () => {
    const { steps, value } = converse(bind(), obliging());
    expect(steps).toEqual([
      'interface 1 alt 1',
      'interface 1 alt 0',
      'a1 80 0000 0000 <28',
      '21 84 0000 0000',
      'sleep 15000',
      'interface 1 alt 1',
      ...macSteps,
    ]);
    expect(value).toMatchObject({
      name: 'cdc_ncm',
      controlInterface: 0,
      dataInterface: 1,
      bulkIn: 0x81,
      bulkOut: 0x02,
      statusEndpoint: 0x83,
      macAddress: Uint8Array.of(0x02, 0x00, 0x5e, 0x10, 0x00, 0x01),
      hardMtuBytes: 16_384,
      rxUrbSizeBytes: 16_384,
      mtuBytes: 1500,
      maxMtuBytes: 1500,
      maxPacketsPerTransfer: 40,
      txBufferBytes: 16_384,
      flags: { sendZlp: false, multiPacket: true, linkInterrupt: true },
    });
  });

  test('one that can do everything is told everything: format first, sizes once its data altsetting is selected', () => {
    const { steps, value } = converse(
      bind({ extra: withCapabilities('3f') }),
      answering({ inMax: 65_536, outMax: 65_536 }, { 'a1 87': { hex: '00 20' } }),
    );
    expect(steps).toEqual([
      'interface 1 alt 1',
      'interface 1 alt 0',
      'a1 80 0000 0000 <28',
      '21 8a 0000 0000',
      '21 84 0000 0000',
      'sleep 15000',
      'interface 1 alt 1',
      ...macSteps,
      '21 86 0000 0000 : 00 40 00 00',
      'a1 87 0000 0000 <2',
      '21 88 0000 0000 : ea 05',
      '21 43 000c 0000',
    ]);
    // Not the device's own maximum, so a full NTB gets one byte more than a multiple of the packet size.
    expect([value?.hardMtuBytes, value?.rxUrbSizeBytes, value?.txBufferBytes]).toEqual([
      16_385, 16_384, 16_385,
    ]);
  });

  test('a device whose datagram size is right already is not told it again', () => {
    const { steps } = converse(
      bind({ extra: withCapabilities('08') }),
      obliging({ 'a1 87': { hex: 'ea 05' } }),
    );
    expect(steps.filter((step) => step.startsWith('21 88'))).toEqual([]);
  });

  test('one that refuses all it may refuse is driven all the same', () => {
    const { value } = converse(
      bind({ extra: withCapabilities('3f') }),
      answering(
        { inMax: 65_536, outMax: 65_536 },
        {
          'interface 1 alt 1': 'completed',
          '21 8a': 'stall',
          '21 84': 'stall',
          '21 86': 'stall',
          'a1 87': 'stall',
          '21 43': 'stall',
        },
      ),
    );
    expect(value).toBeDefined();
  });

  test('the first selection of the altsetting may fail, the others may not', () => {
    for (const [failing, driven] of [
      [0, true],
      [1, false],
      [2, false],
    ] as const) {
      let selections = 0;
      const { value, error } = converse(bind(), (request, words) =>
        request.kind === 'set-interface' && selections++ === failing ? 'stall' : obliging()(request, words),
      );
      expect(value !== undefined).toBe(driven);
      if (!driven) expect(error).toBeInstanceOf(DriverError);
    }
  });

  test.each<[string, Partial<CdcShape>]>([
    ['swapped', { extra: `${functional.swappedUnion} ${functional.ethernet} ${functional.ncm}` }],
    [
      'none, but an association',
      {
        extra: `${functional.ethernet} ${functional.ncm}`,
        associations: [
          {
            firstInterface: 0,
            interfaceCount: 2,
            functionClass: 2,
            functionSubclass: 0x0d,
            functionProtocol: 0,
            nameIndex: 0,
          },
        ],
      },
    ],
    [
      'behind the endpoint',
      { extra: `${functional.ethernet} ${functional.ncm}`, behindEndpoint: functional.union },
    ],
  ])('union: %s', (_name, shape) => {
    expect(converse(bind(shape), obliging()).value).toMatchObject({ controlInterface: 0, dataInterface: 1 });
  });

  test('without an NCM descriptor it is asked for nothing that is optional', () => {
    const { steps, value } = converse(
      bind({ extra: `${functional.union} ${functional.ethernet}` }),
      obliging(),
    );
    expect(value).toBeDefined();
    expect(steps.filter((step) => /^(21 8a|a1 87|21 88|21 43)/.test(step))).toEqual([]);
  });
});

describe('devices that cannot be driven', () => {
  test.each<[string, Partial<CdcShape>, Readonly<Record<string, Answer>>, string]>([
    ['no Ethernet descriptor', { extra: `${functional.union} ${functional.ncm}` }, {}, 'bind'],
    [
      'no endpoints',
      {
        settings: [
          altSetting(0, 0, [2, 0x0d, 0], [], bytesOf(`${functional.union} ${functional.ethernet}`)),
          altSetting(1, 0, [0x0a, 0, 1]),
        ],
      },
      {},
      'bind',
    ],
    ['no NTB parameters', {}, { 'a1 80': 'stall' }, 'read the NTB parameters'],
    ['27 bytes of them', {}, { 'a1 80': { hex: ntbParameters().slice(0, 54) } }, 'read the NTB parameters'],
    ['none at all', {}, { 'a1 80': { hex: '' } }, 'read the NTB parameters'],
    ['no MAC address', {}, { '80 06 0304': 'stall' }, 'read the MAC address'],
    ['gone', {}, { 'a1 80': 'gone' }, 'read the NTB parameters'],
  ])('%s', (_name, shape, special, stage) => {
    const { value, error } = converse(bind(shape), obliging(special));
    expect(value).toBeUndefined();
    expect(error).toMatchObject({ name: 'DriverError', stage });
  });
});

describe('what host and device agree on', () => {
  function agree(parameters: Parameters, segment = 1514, packet = 512): ReturnType<typeof agreeOnNtbs> {
    const parsed = parseNtbParameters(bytesOf(ntbParameters(parameters)));
    if (parsed === undefined) throw new Error('no parameters');
    return agreeOnNtbs(parsed, segment, packet);
  }

  // dwNtbInMaxSize -> rx_max, and whether the device has to be told.
  test.each([
    [16_384, 16_384, false],
    [65_536, 16_384, true],
    [4096, 4096, false],
    [2048, 2048, false],
    [1000, 2048, true],
    [0, 2048, true],
    [0xffff_ffff, 16_384, true],
  ])('receive: of %i bytes %i', (inMax, expected, told) => {
    expect(agree({ inMax }).rxMaxBytes).toBe(expected);
    const { steps } = converse(bind(), answering({ inMax }));
    expect(steps.some((step) => step.startsWith('21 86'))).toBe(told);
  });

  // dwNtbOutMaxSize -> tx_max, min_tx_pkt.
  test.each([
    [16_384, 16_384, 14_848],
    [65_536, 16_385, 14_849],
    [0xffff_ffff, 16_385, 14_849],
    [8192, 8192, 6656],
    [4096, 4096, 2560],
    [2048, 2048, 512],
    // Less than the least that there may be: room for one frame is taken.
    [2000, 2000, 512],
    [1, 1698, 512],
    [0, 1698, 512],
  ])('transmit: of %i bytes %i, padded from %i on', (outMax, expected, minTxPacket) => {
    const agreement = agree({ outMax });
    expect([agreement.txMaxBytes, agreement.minTxPacketBytes]).toEqual([expected, minTxPacket]);
  });

  test.each([
    [0, 'ntb16'],
    [1, 'ntb16'],
    [3, 'ntb16'],
    [2, 'ntb32'],
    [0xfffe, 'ntb32'],
    [0xffff, 'ntb16'],
  ] as const)('formats %i: %s', (formats, format) => {
    expect(agree({ formats }).format).toBe(format);
  });

  test.each([
    [0, 'never told'],
    [1, 'never told'],
    [2, '21 84 0001 0000'],
    [3, '21 84 0000 0000'],
  ])('formats %i: %s', (formats, expected) => {
    const { steps } = converse(bind(), answering({ formats }));
    expect(steps.find((step) => step.startsWith('21 84')) ?? 'never told').toBe(expected);
  });

  test.each([
    [0, 40],
    [1, 1],
    [40, 40],
    [41, 40],
    [65_535, 40],
  ])('%i datagrams in an NTB: %i', (outMaxDatagrams, expected) => {
    expect(agree({ outMaxDatagrams }).geometry.maxDatagrams).toBe(expected);
  });

  test.each([
    [0, 1514],
    [1514, 1514],
    [2000, 2000],
    [8192, 8192],
    [65_535, 8192],
  ])('segments of %i bytes: datagrams of %i', (segment, expected) => {
    expect(agree({}, segment).maxDatagramBytes).toBe(expected);
  });

  // wNdpOutDivisor, wNdpOutPayloadRemainder -> modulus, remainder.
  test.each([
    [4, 0, 4, 2],
    [4, 2, 4, 0],
    [32, 0, 32, 18],
    [32, 14, 32, 0],
    [512, 0, 512, 498],
    // Out of bounds: the default of 4, and no remainder.
    [0, 0, 4, 2],
    [1, 0, 4, 2],
    [2, 1, 4, 3],
    [3, 0, 4, 2],
    [24, 5, 4, 2],
    [65_535, 0, 4, 2],
    [4, 4, 4, 2],
    [16, 65_535, 16, 2],
  ])('divisor %i, remainder %i: %i and %i', (outDivisor, outRemainder, modulus, remainder) => {
    expect(agree({ outDivisor, outRemainder }).geometry).toMatchObject({ modulus, remainder });
  });

  test.each([
    [4, 4],
    [64, 64],
    [0, 4],
    [5, 4],
    [32_768, 4],
  ])('alignment %i of the NDP: %i', (outAlignment, ndpModulus) => {
    expect(agree({ outAlignment }).geometry.ndpModulus).toBe(ndpModulus);
  });

  test('a layout in which no frame has room is not the one that is used', () => {
    expect(agree({ outDivisor: 16_384 }).geometry).toMatchObject({ ndpModulus: 4, modulus: 4, remainder: 2 });
    expect(agree({ outAlignment: 16_384 }).geometry).toMatchObject({
      ndpModulus: 4,
      modulus: 4,
      remainder: 2,
    });
    expect(agree({ outAlignment: 2048, outMax: 2048 }).geometry).toMatchObject({ ndpModulus: 4, modulus: 4 });
  });

  const u16 = fc.integer({ min: 0, max: 0xffff });
  const u32 = fc.oneof(fc.integer({ min: 0, max: 0xffff_ffff }), fc.integer({ min: 0, max: 70_000 }));
  const parameters: fc.Arbitrary<NtbParameters> = fc.record({
    formats: u16,
    inMaxSize: u32,
    inDivisor: u16,
    inPayloadRemainder: u16,
    inAlignment: u16,
    outMaxSize: u32,
    outDivisor: fc.oneof(
      u16,
      fc.integer({ min: 0, max: 15 }).map((bit) => 1 << bit),
    ),
    outPayloadRemainder: u16,
    outAlignment: fc.oneof(
      u16,
      fc.integer({ min: 0, max: 15 }).map((bit) => 1 << bit),
    ),
    outMaxDatagrams: u16,
  });

  test('whatever a device claims, a frame of the usual size can be sent, and nothing is larger than it can be', () => {
    fc.assert(
      fc.property(parameters, u16, fc.constantFrom(64, 512, 1024), (lies, segment, packet) => {
        const agreement = agreeOnNtbs(lies, segment, packet);
        expect(agreement.rxMaxBytes).toBeGreaterThanOrEqual(2048);
        expect(agreement.rxMaxBytes).toBeLessThanOrEqual(16_384);
        expect(agreement.txMaxBytes).toBeLessThanOrEqual(16_385);
        if (lies.outMaxSize < 2048) return;
        // Unless the device's own size is the limit, a full NTB ends with a short packet.
        const endsShort = agreement.txMaxBytes % packet !== 0;
        expect(endsShort || agreement.txMaxBytes === lies.outMaxSize).toBe(true);
        const writer = new NtbWriter(agreement.geometry);
        writer.begin(new Uint8Array(agreement.txMaxBytes), agreement.txMaxBytes, 0);
        expect(writer.tryAppend(0x304d_434e, new Uint8Array(1514), 0, 1514)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

describe('receiving', () => {
  // NTH16, NDP16 with one datagram of 20 bytes at 28, and it.
  const block = bytesOf(
    '4e434d48 0c00 0000 3000 0c00 | 4e434d30 1000 0000 1c00 1400 0000 0000 |' + '11'.repeat(20),
  );

  test('the frames of an NTB are handed up', () => {
    const { hooks, host } = startDriver(bind());
    expect(hooks.rxFixup(receivedTransfer(block), 0)).toBe(true);
    expect(host.received).toEqual([new Uint8Array(20).fill(0x11)]);
  });

  test('padding behind the block is fine', () => {
    const { hooks, host } = startDriver(bind());
    expect(hooks.rxFixup(receivedTransfer(block, new Uint8Array(100)), 0)).toBe(true);
    expect(host.received).toHaveLength(1);
  });

  test.each([
    ['nothing', bytesOf('')],
    ['a frame without an NTB', new Uint8Array(60).fill(0xff)],
    ['an NDP that is cut off', block.subarray(0, 27)],
  ])('%s: malformed, and nothing is handed up', (_name, bytes) => {
    const { hooks, host } = startDriver(bind());
    expect(hooks.rxFixup(receivedTransfer(bytes), 0)).toBe(false);
    expect(host.received).toEqual([]);
  });

  test('any bytes at all: no throw, and nothing from outside of them', () => {
    const { hooks } = startDriver(bind());
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (noise, asBlock) => {
        const bytes = asBlock ? Uint8Array.from([...block.subarray(0, 12), ...noise]) : noise;
        expect(typeof hooks.rxFixup(receivedTransfer(bytes), 0)).toBe('boolean');
      }),
      { numRuns: 500 },
    );
  });
});

describe('the rest', () => {
  test('the first speed is the downlink’s', () => {
    const { hooks, host } = startDriver(bind());
    hooks.status?.(bytesOf('a1 2a 0000 0000 0800 00100000 00200000'), 16, 0);
    expect(host.speeds).toEqual([[0x1000, 0x2000]]);
  });

  test('the MTU follows the datagram size; the NTBs do not follow the MTU', () => {
    const big = bind({ extra: `${functional.union} 0d 24 0f 04 00000000 d007 0000 00 ${functional.ncm}` });
    const { binding, hooks } = startDriver(big);
    expect([binding.mtuBytes, binding.maxMtuBytes]).toEqual([1500, 1986]);
    expect([hooks.changeMtu?.(1986), hooks.changeMtu?.(1987)]).toEqual([true, false]);
  });

  test('only a driver with a timer has one', () => {
    expect(startDriver(bind()).hooks.flushAtUs).toBeUndefined();
    const { hooks } = startDriver(bind({}, 400));
    expect(hooks.flushAtUs?.()).toBe(Number.POSITIVE_INFINITY);
    const packet = new PacketPool(1).take();
    if (packet === undefined) throw new Error('no packet');
    hooks.txFixup(frameOf(packet, 60), 1000);
    expect(hooks.flushAtUs?.()).toBe(1400);
  });
});
