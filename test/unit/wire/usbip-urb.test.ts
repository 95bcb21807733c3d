import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { UrbReader, type UrbSink } from '../../../src/wire/usbip-reader.ts';
import {
  deviceIdOf,
  urbActualLength,
  urbBufferLength,
  urbCommand,
  urbCommands,
  urbDeviceId,
  urbEndpointAddress,
  urbHeaderLength,
  urbInterval,
  urbIsIsochronous,
  urbPacketCount,
  urbSeqnum,
  urbStatus,
  urbTransferFlags,
  urbUnlinkSeqnum,
  writeUrbSetup,
  writeUrbSubmit,
  writeUrbSubmitReply,
  writeUrbUnlink,
  writeUrbUnlinkReply,
} from '../../../src/wire/usbip-urb.ts';
import { bytesOf, embedded } from './bytes-of.ts';
import { mutated, randomBytes } from './mutation.ts';

describe('byte for byte', () => {
  test('SUBMIT of GET_DESCRIPTOR(device), 18 bytes, seqnum 13, device 1/15 (spec 9)', () => {
    const bytes = new Uint8Array(urbHeaderLength).fill(0xee);
    writeUrbSubmit(bytes, 0, 13, deviceIdOf(1, 15), 0x80, 0x200, 18, 0);
    // The spec's example has the kernel's own direction flag, which is none of the protocol's.
    writeUrbSetup(bytes, 0, 0x80, 6, 0x0100, 0, 18);
    expect(bytes).toEqual(
      bytesOf(
        `00000001 0000000d 0001000f 00000001 00000000 00000200 00000012 00000000 ffffffff 00000000
         8006000100001200`,
      ),
    );
  });

  test('SUBMIT of a bulk transfer OUT, of an interrupt transfer IN', () => {
    const bytes = new Uint8Array(2 * urbHeaderLength);
    writeUrbSubmit(bytes, 0, 0x01020304, deviceIdOf(2, 3), 0x03, 0x40, 1514, 0);
    writeUrbSubmit(bytes, 48, 5, deviceIdOf(2, 3), 0x82, 0, 16, 256);
    expect(bytes).toEqual(
      bytesOf(
        `00000001 01020304 00020003 00000000 00000003 00000040 000005ea 00000000 ffffffff 00000000 ${'00'.repeat(8)}
         00000001 00000005 00020003 00000001 00000002 00000000 00000010 00000000 ffffffff 00000100 ${'00'.repeat(8)}`,
      ),
    );
  });

  test('UNLINK and the replies', () => {
    const bytes = new Uint8Array(3 * urbHeaderLength);
    writeUrbUnlink(bytes, 0, 20, deviceIdOf(1, 2), 0x81, 13);
    writeUrbSubmitReply(bytes, 48, 13, -32, 7, 0);
    writeUrbUnlinkReply(bytes, 96, 20, -104);
    expect(bytes).toEqual(
      bytesOf(
        `00000002 00000014 00010002 00000001 00000001 0000000d ${'00'.repeat(24)}
         00000003 0000000d 00000000 00000000 00000000 ffffffe0 00000007 00000000 00000000 00000000 ${'00'.repeat(8)}
         00000004 00000014 00000000 00000000 00000000 ffffff98 ${'00'.repeat(24)}`,
      ),
    );
  });
});

test('what is written is read, at any offset', () => {
  const uint32 = fc.integer({ min: 0, max: 0xffff_ffff });
  fc.assert(
    fc.property(
      uint32,
      uint32,
      fc.integer({ min: 0, max: 15 }),
      fc.boolean(),
      uint32,
      uint32,
      fc.integer({ min: -(2 ** 31), max: 0 }),
      (seqnum, deviceId, endpoint, isIn, flags, length, status) => {
        const address = endpoint | (isIn ? 0x80 : 0);
        const header = new Uint8Array(urbHeaderLength);
        const bytes = embedded(header, 9);
        writeUrbSubmit(bytes, 9, seqnum, deviceId, address, flags, length, 8);
        expect([urbCommand(bytes, 9), urbSeqnum(bytes, 9), urbDeviceId(bytes, 9)]).toEqual([
          urbCommands.submit,
          seqnum,
          deviceId,
        ]);
        expect([urbEndpointAddress(bytes, 9), urbTransferFlags(bytes, 9), urbBufferLength(bytes, 9)]).toEqual(
          [address, flags, length],
        );
        expect([urbInterval(bytes, 9), urbIsIsochronous(bytes, 9)]).toEqual([8, false]);
        writeUrbUnlink(bytes, 9, seqnum, deviceId, address, flags);
        expect([urbCommand(bytes, 9), urbUnlinkSeqnum(bytes, 9), urbEndpointAddress(bytes, 9)]).toEqual([
          urbCommands.unlink,
          flags,
          address,
        ]);
        writeUrbSubmitReply(bytes, 9, seqnum, status, length, 0);
        expect([urbStatus(bytes, 9), urbActualLength(bytes, 9), urbPacketCount(bytes, 9)]).toEqual([
          status,
          length,
          0,
        ]);
        writeUrbUnlinkReply(bytes, 9, seqnum, status);
        expect([urbCommand(bytes, 9), urbStatus(bytes, 9)]).toEqual([urbCommands.unlinkReply, status]);
        // The surroundings are as they were.
        expect(bytes.subarray(0, 9)).toEqual(new Uint8Array(9).fill(0xff));
        expect(bytes.subarray(9 + urbHeaderLength)).toEqual(new Uint8Array(7).fill(0xff));
      },
    ),
  );
});

test.each([
  [0, false],
  [0xffff_ffff, false],
  [1, true],
  [0xffff_fffe, true],
])('packet count %i: isochronous %s', (count, isochronous) => {
  const bytes = new Uint8Array(urbHeaderLength);
  writeUrbSubmitReply(bytes, 0, 1, 0, 0, count);
  expect(urbIsIsochronous(bytes, 0)).toBe(isochronous);
});

test('an endpoint beyond 15 is none', () => {
  const bytes = new Uint8Array(urbHeaderLength);
  bytes[19] = 16;
  expect(urbEndpointAddress(bytes, 0)).toBe(-1);
});

/** Notes messages; as data it takes what a SUBMIT OUT announces, up to a limit. */
class Collector implements UrbSink {
  readonly messages: { header: Uint8Array; data: number[]; atUs: number }[] = [];
  readonly limit: number;
  #header: Uint8Array | undefined;
  #data: number[] = [];

  constructor(limit = 1 << 20) {
    this.limit = limit;
  }

  handleUrbHeader(bytes: Uint8Array, offset: number): number {
    if (this.#header !== undefined) throw new Error('a header inside of a message');
    this.#header = bytes.slice(offset, offset + urbHeaderLength);
    this.#data = [];
    if (urbCommand(bytes, offset) !== urbCommands.submit) {
      return urbCommand(bytes, offset) === urbCommands.unlink ? 0 : -1;
    }
    const length = urbBufferLength(bytes, offset);
    if (length > this.limit) return -1;
    return urbEndpointAddress(bytes, offset) >= 0x80 ? 0 : length;
  }

  handleUrbData(bytes: Uint8Array, offset: number, length: number): void {
    if (length <= 0 || offset < 0 || offset + length > bytes.length) throw new Error('data out of bounds');
    this.#data.push(...bytes.subarray(offset, offset + length));
  }

  handleUrbEnd(nowUs: number): void {
    if (this.#header === undefined) throw new Error('an end without a header');
    this.messages.push({ header: this.#header, data: this.#data, atUs: nowUs });
    this.#header = undefined;
  }
}

/** A stream of messages with data of these lengths (-1: an UNLINK). */
function streamOf(lengths: readonly number[]): Uint8Array {
  const parts = lengths.map((length, i) => {
    const bytes = new Uint8Array(urbHeaderLength + Math.max(0, length)).fill(i);
    if (length < 0) writeUrbUnlink(bytes, 0, i, 1, 1, 2);
    else writeUrbSubmit(bytes, 0, i, 1, 1, 0, length, 0);
    return bytes;
  });
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

describe('framing', () => {
  test('gives the same messages however the stream is cut', () => {
    const lengths = [0, 1, -1, 47, 48, 1514, -1, 0, 5000];
    const stream = streamOf(lengths);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 10 }), (sizes) => {
        const collector = new Collector();
        const reader = new UrbReader(collector);
        let position = 0;
        for (let turn = 0; position < stream.length; turn++) {
          const end = Math.min(stream.length, position + (sizes[turn % sizes.length] ?? 1));
          expect(reader.read(stream, position, end, turn)).toBe(true);
          position = end;
        }
        expect(collector.messages.map(({ data }) => data.length)).toEqual(
          lengths.map((length) => Math.max(0, length)),
        );
        for (const [i, { header, data }] of collector.messages.entries()) {
          expect(urbSeqnum(header, 0)).toBe(i);
          expect(data.every((byte) => byte === i)).toBe(true);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('a message is handed over with its last byte, not with the next one', () => {
    const collector = new Collector();
    const reader = new UrbReader(collector);
    const stream = streamOf([3]);
    reader.read(stream, 0, stream.length - 1, 1);
    expect(collector.messages).toHaveLength(0);
    reader.read(stream, stream.length - 1, stream.length, 2);
    expect(collector.messages.map(({ atUs }) => atUs)).toEqual([2]);
  });

  test('after nonsense nothing is read any more', () => {
    const collector = new Collector(100);
    const reader = new UrbReader(collector);
    const stream = streamOf([3, 101, 5]);
    expect(reader.read(stream, 0, stream.length, 0)).toBe(false);
    expect(collector.messages).toHaveLength(1);
    expect(reader.read(streamOf([1]), 0, 49, 0)).toBe(false);
    expect(collector.messages).toHaveLength(1);
  });

  test('60,000 broken streams: no throw, nothing out of bounds', () => {
    const random = new Random(7);
    const original = streamOf([0, 20, -1, 60, 3]);
    let messages = 0;
    for (let run = 0; run < 60_000; run++) {
      const bytes = random.chance(0.2) ? randomBytes(random, 300) : mutated(random, original);
      const collector = new Collector(500);
      const reader = new UrbReader(collector);
      let position = 0;
      while (position < bytes.length) {
        const end = Math.min(bytes.length, position + random.integer(1, 120));
        if (!reader.read(bytes, position, end, 0)) break;
        position = end;
      }
      messages += collector.messages.length;
    }
    // Most of them get somewhere before they go wrong.
    expect(messages).toBeGreaterThan(60_000);
  });
});
