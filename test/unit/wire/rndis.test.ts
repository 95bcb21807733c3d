import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  encodeRndisMessage,
  parseRndisMessage,
  readRndisHeader,
  readRndisPackets,
  type RndisMessage,
  rndisOids,
  rndisPacketHeaderLength,
  writeRndisPacketHeader,
} from '../../../src/wire/rndis.ts';
import { bytesOf } from './bytes-of.ts';

describe('golden bytes (spec 9)', () => {
  test('INITIALIZE', () => {
    const bytes = encodeRndisMessage({ kind: 'initialize', requestId: 1, maxTransferBytes: 2048 });
    expect(bytes).toEqual(bytesOf('02000000 18000000 01000000 01000000 00000000 00080000'));
  });

  test('SET of the packet filter', () => {
    const bytes = encodeRndisMessage({
      kind: 'set',
      requestId: 3,
      oid: rndisOids.currentPacketFilter,
      information: bytesOf('2D000000'),
    });
    expect(bytes).toEqual(bytesOf('05000000 20000000 03000000 0E010100 04000000 14000000 00000000 2D000000'));
  });

  test('the header of a packet of 60 bytes', () => {
    const bytes = new Uint8Array(rndisPacketHeaderLength).fill(0xee);
    writeRndisPacketHeader(bytes, 0, 60);
    expect(bytes.slice(0, 16)).toEqual(bytesOf('01000000 68000000 24000000 3C000000'));
    expect(bytes.slice(16)).toEqual(new Uint8Array(28));
  });
});

const uint32 = fc.integer({ min: 0, max: 0xffff_ffff });
const information = fc.uint8Array({ maxLength: 64 });
const messages: fc.Arbitrary<RndisMessage> = fc.oneof(
  fc.record({ kind: fc.constant('initialize' as const), requestId: uint32, maxTransferBytes: uint32 }),
  fc.record({
    kind: fc.constant('initialize-complete' as const),
    requestId: uint32,
    status: uint32,
    maxPacketsPerMessage: uint32,
    maxTransferBytes: uint32,
    alignmentExponent: uint32,
  }),
  fc.record({ kind: fc.constant('halt' as const), requestId: uint32 }),
  fc.record({ kind: fc.constant('query' as const), requestId: uint32, oid: uint32, information }),
  fc.record({ kind: fc.constant('set' as const), requestId: uint32, oid: uint32, information }),
  fc.record({ kind: fc.constant('query-complete' as const), requestId: uint32, status: uint32, information }),
  fc.record({ kind: fc.constant('set-complete' as const), requestId: uint32, status: uint32 }),
  fc.record({ kind: fc.constant('reset' as const) }),
  fc.record({ kind: fc.constant('reset-complete' as const), status: uint32, addressingReset: fc.boolean() }),
  fc.record({ kind: fc.constant('indicate' as const), status: uint32 }),
  fc.record({ kind: fc.constant('keep-alive' as const), requestId: uint32 }),
  fc.record({ kind: fc.constant('keep-alive-complete' as const), requestId: uint32, status: uint32 }),
);

test('every message is read as it was written, and says how long it is', () => {
  fc.assert(
    fc.property(messages, (message) => {
      const bytes = encodeRndisMessage(message);
      expect(parseRndisMessage(bytes)).toEqual(message);
      expect(readRndisHeader(bytes)).toEqual({ kind: message.kind, length: bytes.length });
    }),
  );
});

describe('answers that are not what they should be', () => {
  test('one that ends early is read as far as it goes', () => {
    const whole = encodeRndisMessage({
      kind: 'initialize-complete',
      requestId: 7,
      status: 0,
      maxPacketsPerMessage: 1,
      maxTransferBytes: 1580,
      alignmentExponent: 3,
    });
    expect(parseRndisMessage(whole.subarray(0, 40))).toMatchObject({
      maxTransferBytes: 1580,
      alignmentExponent: 0,
    });
    expect(parseRndisMessage(whole.subarray(0, 16))).toMatchObject({ requestId: 7, maxTransferBytes: 0 });
    expect(parseRndisMessage(whole.subarray(0, 15))).toBeUndefined();
  });

  test.each([
    ['nothing', ''],
    ['half a header', '02000080 34'],
    ['no type that there is', '09000000 0C000000 01000000'],
    ['a packet', '01000000 2C000000 24000000'],
  ])('%s', (_name, hex) => {
    expect(parseRndisMessage(bytesOf(hex))).toBeUndefined();
  });

  test('information outside of the message is none', () => {
    const bytes = bytesOf('04000080 1C000000 01000000 00000000 06000000 10000000 01020304');
    expect(parseRndisMessage(bytes)).toMatchObject({ kind: 'query-complete', information: undefined });
    expect(parseRndisMessage(bytesOf('04000080 18000000 01000000 00000000 FFFFFFFF FFFFFFFF'))).toMatchObject(
      {
        information: undefined,
      },
    );
  });

  test.each([
    ['a length below that of a header', '02000080 07000000'],
    ['one beyond what a message can have', '02000080 01040000'],
    ['another type', '0A000000 10000000'],
  ])('a header with %s is none', (_name, hex) => {
    expect(readRndisHeader(bytesOf(hex))).toBeUndefined();
  });
});

// ---- packets ----

/** A packet with `gap` bytes before its data and `tail` behind. */
function packet(data: Uint8Array, gap = 0, tail = 0): Uint8Array {
  const bytes = new Uint8Array(rndisPacketHeaderLength + gap + data.length + tail).fill(0xcc);
  writeRndisPacketHeader(bytes, 0, data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(4, bytes.length, true);
  view.setUint32(8, rndisPacketHeaderLength - 8 + gap, true);
  bytes.set(data, rndisPacketHeaderLength + gap);
  return bytes;
}

function read(...parts: readonly Uint8Array[]): { result: string; packets: Uint8Array[] } {
  const bytes = Uint8Array.from(parts.flatMap((part) => [...part]));
  const packets: Uint8Array[] = [];
  const result = readRndisPackets(bytes, bytes.length, (from, offset, length) => {
    expect(offset + length).toBeLessThanOrEqual(bytes.length);
    packets.push(from.slice(offset, offset + length));
  });
  return { result, packets };
}

describe('packets of a transfer', () => {
  test('as many as there are, with headers of any length, out-of-band data, gaps and padding', () => {
    const shape = fc.record({
      data: fc.uint8Array({ minLength: 1, maxLength: 200 }),
      gap: fc.integer({ min: 0, max: 60 }),
      tail: fc.integer({ min: 0, max: 30 }),
    });
    fc.assert(
      fc.property(fc.array(shape, { minLength: 1, maxLength: 6 }), fc.nat(100), (shapes, padding) => {
        const parts = shapes.map(({ data, gap, tail }) => packet(data, gap, tail));
        const { result, packets } = read(...parts, new Uint8Array(padding));
        expect(result).toBe('ok');
        expect(packets).toEqual(shapes.map(({ data }) => data));
      }),
    );
  });

  const good = packet(Uint8Array.of(1, 2, 3));
  function changed(offset: number, value: number): Uint8Array {
    const bytes = good.slice();
    new DataView(bytes.buffer).setUint32(offset, value, true);
    return bytes;
  }

  test.each<[string, string, Uint8Array]>([
    ['nothing', 'short', new Uint8Array(0)],
    ['less than a header', 'short', good.subarray(0, 43)],
    ['zeros', 'not-a-packet', new Uint8Array(60)],
    ['another message', 'not-a-packet', changed(0, 2)],
    ['a message shorter than its header', 'bad-length', changed(4, 43)],
    ['one longer than the transfer', 'bad-length', changed(4, good.length + 1)],
    ['one longer than anything', 'bad-length', changed(4, 0xffff_ffff)],
    ['data beyond the message', 'bad-data', changed(8, 37)],
    ['data at an offset that wraps', 'bad-data', changed(8, 0xffff_fffc)],
    ['data of a length that wraps', 'bad-data', changed(12, 0xffff_ffff)],
  ])('%s', (_name, result, bytes) => {
    expect(read(bytes)).toEqual({ result, packets: [] });
    // What was before the fault has been handed out.
    if (bytes.some((byte) => byte !== 0)) {
      expect(read(good, bytes)).toEqual({ result, packets: [Uint8Array.of(1, 2, 3)] });
    }
  });
});
