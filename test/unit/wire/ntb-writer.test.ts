import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bytesEqual, viewOf } from '../../../src/base/bytes.ts';
import { InvariantError } from '../../../src/base/errors.ts';
import { ipStreamSignature, ncmSignatures, ndpLengthFor, type NtbFormat } from '../../../src/wire/ntb.ts';
import { NtbReader } from '../../../src/wire/ntb-reader.ts';
import { NtbWriter, type NtbGeometry } from '../../../src/wire/ntb-writer.ts';
import { bytesOf } from './bytes-of.ts';
import { NtbCapture } from './ntb-capture.ts';

/** cdc_ncm with a gadget that asks for a divisor of 4: (0 − 14) mod 4 = 2. */
const geometry: NtbGeometry = {
  format: 'ntb16',
  ndpModulus: 4,
  modulus: 4,
  remainder: 2,
  maxDatagrams: 40,
  ndpToEnd: false,
};
const ncm0 = ncmSignatures.ntb16;

function frameOf(length: number, fill = 0xa5): Uint8Array {
  return new Uint8Array(length).fill(fill);
}

/** A buffer that shows what was not written. */
function dirtyBuffer(length = 16_384): Uint8Array {
  return new Uint8Array(length).fill(0xee);
}

describe('golden bytes', () => {
  test('one 60-byte frame: 246 bytes, NDP at 12, frame at 186 (spec section 9)', () => {
    const frame = frameOf(60);
    const buffer = dirtyBuffer();
    const writer = new NtbWriter(geometry);
    writer.begin(buffer, 16_384, 0);
    expect(writer.tryAppend(ncm0, frame, 0, 60)).toBe(true);
    expect(writer.finish()).toBe(246);

    const expected = new Uint8Array(16_384).fill(0xee, 246);
    expected.set(
      bytesOf('4E 43 4D 48 0C 00 00 00 F6 00 0C 00 | 4E 43 4D 30 10 00 00 00 BA 00 3C 00 00 00 00 00'),
    );
    expected.set(frame, 186);
    expect(buffer).toEqual(expected);
  });

  test('NTB32: the NDP has 344 bytes from 16 on, the frame is at 362', () => {
    const frame = frameOf(60);
    const buffer = dirtyBuffer();
    const writer = new NtbWriter({ ...geometry, format: 'ntb32' });
    writer.begin(buffer, 16_384, 0x10203);
    expect(writer.tryAppend(ncmSignatures.ntb32, frame, 0, 60)).toBe(true);
    expect(writer.finish()).toBe(422);

    const expected = new Uint8Array(16_384).fill(0xee, 422);
    expected.set(bytesOf('6e 63 6d 68 10 00 03 02 a6 01 00 00 10 00 00 00'));
    expected.set(bytesOf('6e 63 6d 30 20 00 00 00 00 00 00 00 00 00 00 00 | 6a 01 00 00 3c 00 00 00'), 16);
    expected.set(frame, 362);
    expect(buffer).toEqual(expected);
  });

  test('two frames, the NDP at the end and a small table', () => {
    const buffer = dirtyBuffer();
    const writer = new NtbWriter({ ...geometry, modulus: 8, remainder: 2, maxDatagrams: 3, ndpToEnd: true });
    writer.begin(buffer, 100, 7);
    // The parts of a larger buffer: 12 → 18 … 21, → 26 … 31, NDP at 32 with 8 + 4 · 4 bytes.
    const parts = bytesOf('00 11 22 33 00 44 55 66 77 88');
    expect(writer.tryAppend(ncm0, parts, 1, 3)).toBe(true);
    expect(writer.tryAppend(ncm0, parts, 5, 5)).toBe(true);
    expect(writer.finish()).toBe(56);
    expect(buffer.subarray(0, 57)).toEqual(
      bytesOf(
        '4E 43 4D 48 0C 00 07 00 38 00 20 00 | 00 00 00 00 00 00 | 11 22 33 | 00 00 00 00 00 | 44 55 66 77 88 | 00 |' +
          '4E 43 4D 30 14 00 00 00 | 12 00 03 00 1A 00 05 00 00 00 00 00 00 00 00 00 | EE',
      ),
    );
  });

  test('two MBIM sessions: an NDP each, linked in the order of their coming', () => {
    const buffer = dirtyBuffer();
    const writer = new NtbWriter({ ...geometry, remainder: 0, maxDatagrams: 2 });
    writer.begin(buffer, 16_384, 0);
    const first = ipStreamSignature('ntb16', 0);
    const second = ipStreamSignature('ntb16', 5);
    // NDP 12 … 31, datagram 32 … 36, NDP 40 … 59, datagram 60 … 61.
    expect(writer.tryAppend(first, frameOf(5, 1), 0, 5)).toBe(true);
    expect(writer.tryAppend(second, frameOf(2, 2), 0, 2)).toBe(true);
    expect(writer.finish()).toBe(62);
    expect(buffer.subarray(0, 62)).toEqual(
      bytesOf(
        '4E 43 4D 48 0C 00 00 00 3E 00 0C 00 |' +
          '49 50 53 00 10 00 28 00 20 00 05 00 00 00 00 00 00 00 00 00 | 01 01 01 01 01 00 00 00 |' +
          '49 50 53 05 10 00 00 00 3C 00 02 00 00 00 00 00 00 00 00 00 | 02 02',
      ),
    );
  });
});

describe('what does not fit', () => {
  test('exactly full is fine, one byte more is not', () => {
    const writer = new NtbWriter(geometry);
    writer.begin(dirtyBuffer(), 246, 0);
    expect(writer.tryAppend(ncm0, frameOf(61), 0, 61)).toBe(false);
    expect([writer.datagrams, writer.length, writer.finish(), writer.isOpen]).toEqual([0, 12, 0, true]);
    expect(writer.tryAppend(ncm0, frameOf(60), 0, 60)).toBe(true);
    expect(writer.finish()).toBe(246);
  });

  test('with the NDP at the end, its place counts', () => {
    const writer = new NtbWriter({ ...geometry, ndpToEnd: true });
    // 14 + 60 = 74, NDP at 76.
    writer.begin(dirtyBuffer(), 247, 0);
    expect(writer.tryAppend(ncm0, frameOf(60), 0, 60)).toBe(false);
    writer.begin(dirtyBuffer(), 248, 0);
    expect(writer.tryAppend(ncm0, frameOf(60), 0, 60)).toBe(true);
    expect(writer.finish()).toBe(248);
  });

  test('a full NTB keeps the padding to the place of the next datagram, and takes a smaller one', () => {
    const buffer = dirtyBuffer();
    const writer = new NtbWriter(geometry);
    writer.begin(buffer, 400, 0);
    expect(writer.tryAppend(ncm0, frameOf(61), 0, 61)).toBe(true);
    expect(writer.tryAppend(ncm0, frameOf(200), 0, 200)).toBe(false);
    expect(writer.length).toBe(250);
    expect(buffer.subarray(246, 251)).toEqual(bytesOf('a5 00 00 00 ee'));
    expect(writer.tryAppend(ncm0, frameOf(150), 0, 150)).toBe(true);
    expect(writer.finish()).toBe(400);
  });

  test('such padding leaves the room for an NDP at the end', () => {
    const writer = new NtbWriter({
      ...geometry,
      modulus: 512,
      remainder: 12,
      maxDatagrams: 2,
      ndpToEnd: true,
    });
    writer.begin(dirtyBuffer(), 401, 0);
    expect(writer.tryAppend(ncm0, frameOf(14), 0, 14)).toBe(true);
    expect(writer.tryAppend(ncm0, frameOf(14), 0, 14)).toBe(false);
    expect(writer.length).toBe(380);
    expect(writer.finish()).toBe(400);
  });

  test('more datagrams than agreed on', () => {
    const writer = new NtbWriter({ ...geometry, maxDatagrams: 2 });
    writer.begin(dirtyBuffer(), 16_384, 0);
    expect(writer.tryAppend(ncm0, frameOf(20), 0, 20)).toBe(true);
    expect(writer.isFull).toBe(false);
    expect(writer.tryAppend(ncm0, frameOf(20), 0, 20)).toBe(true);
    expect(writer.isFull).toBe(true);
    expect(writer.tryAppend(ncm0, frameOf(20), 0, 20)).toBe(false);
    expect([writer.datagrams, writer.payloadBytes]).toEqual([2, 40]);
  });

  test('another signature where the only NDP comes last, and an empty datagram', () => {
    const writer = new NtbWriter({ ...geometry, ndpToEnd: true });
    writer.begin(dirtyBuffer(), 16_384, 0);
    expect(writer.tryAppend(ncm0, frameOf(20), 0, 0)).toBe(false);
    expect(writer.tryAppend(ncm0, frameOf(20), 0, 20)).toBe(true);
    expect(writer.tryAppend(ipStreamSignature('ntb16', 1), frameOf(20), 0, 20)).toBe(false);
    expect(writer.tryAppend(ncm0, frameOf(20), 0, 20)).toBe(true);
  });

  test('the buffer limits the capacity', () => {
    const writer = new NtbWriter(geometry);
    writer.begin(dirtyBuffer(246), 16_384, 0);
    expect(writer.capacity).toBe(246);
    expect(writer.tryAppend(ncm0, frameOf(61), 0, 61)).toBe(false);
    expect(writer.tryAppend(ncm0, frameOf(60), 0, 60)).toBe(true);
  });
});

describe('padding', () => {
  test('zeros up to the capacity at most, and the block length follows', () => {
    const buffer = dirtyBuffer();
    const writer = new NtbWriter(geometry);
    writer.begin(buffer, 512, 0);
    writer.tryAppend(ncm0, frameOf(60), 0, 60);
    writer.finish();
    expect(writer.padTo(247)).toBe(247);
    expect(viewOf(buffer).getUint16(8, true)).toBe(247);
    expect(writer.padTo(10)).toBe(247);
    expect(writer.padTo(600)).toBe(512);
    expect(viewOf(buffer).getUint16(8, true)).toBe(512);
    expect(buffer.subarray(246, 513)).toEqual(Uint8Array.of(...new Uint8Array(266), 0xee));
  });

  test('65,536 bytes are a length of 0 in 16 bits; there is no longer NTB16', () => {
    const buffer = new Uint8Array(70_000);
    const writer = new NtbWriter(geometry);
    writer.begin(buffer, 70_000, 0);
    expect(writer.capacity).toBe(65_536);
    writer.tryAppend(ncm0, frameOf(60), 0, 60);
    writer.finish();
    expect(writer.padTo(70_000)).toBe(65_536);
    expect(viewOf(buffer).getUint16(8, true)).toBe(0);
  });
});

test('wrong use is a fault of ours', () => {
  const writer = new NtbWriter(geometry);
  expect(() => writer.tryAppend(ncm0, frameOf(20), 0, 20)).toThrow(InvariantError);
  expect(() => writer.finish()).toThrow(InvariantError);
  expect(() => writer.begin(new Uint8Array(11), 16_384, 0)).toThrow(InvariantError);
  writer.begin(dirtyBuffer(), 16_384, 0);
  expect(() => writer.padTo(100)).toThrow(InvariantError);
});

describe('what is written is read again', () => {
  const arbitraryGeometry = fc.record({
    format: fc.constantFrom<NtbFormat>('ntb16', 'ntb32'),
    ndpModulus: fc.constantFrom(4, 8, 16, 64),
    modulus: fc.constantFrom(1, 4, 8, 32, 512),
    remainder: fc.nat(511),
    maxDatagrams: fc.integer({ min: 1, max: 40 }),
    ndpToEnd: fc.boolean(),
  });
  const arbitraryDatagrams = fc.array(
    fc.record({ session: fc.nat(2), length: fc.integer({ min: 14, max: 1600 }), fill: fc.nat(255) }),
    { maxLength: 60 },
  );

  test('in any geometry, one writer and one buffer for all NTBs', () => {
    fc.assert(
      fc.property(
        arbitraryGeometry,
        fc.integer({ min: 400, max: 20_000 }),
        arbitraryDatagrams,
        (drawn, capacity, datagrams) => {
          const drawnGeometry = { ...drawn, remainder: drawn.remainder % drawn.modulus };
          const { format, modulus, remainder, ndpModulus, maxDatagrams, ndpToEnd } = drawnGeometry;
          const buffer = dirtyBuffer(20_000);
          const writer = new NtbWriter(drawnGeometry);
          const capture = new NtbCapture();
          const reader = new NtbReader({
            format,
            maxNtbBytes: 20_000,
            acceptsSignature: () => true,
            sink: capture,
          });

          // Within an NTB the datagrams come out by NDP, so in the order of each signature.
          const sent: { readonly signature: number; readonly bytes: Uint8Array }[] = [];
          let inNtb: { readonly signature: number; readonly bytes: Uint8Array }[] = [];
          let sequence = 0;
          const flush = (): void => {
            const length = writer.finish();
            if (length === 0) return;
            expect(length).toBeLessThanOrEqual(capacity);
            expect(reader.read(buffer, 0, length)).toBe('ok');
            const signatures = [...new Set(inNtb.map((one) => one.signature))];
            expect(signatures.length === 1 || !ndpToEnd).toBe(true);
            for (const signature of signatures) {
              sent.push(...inNtb.filter((one) => one.signature === signature));
            }
            checkPlaces(buffer, format, signatures.length, ndpModulus, modulus, remainder, maxDatagrams);
            inNtb = [];
          };

          writer.begin(buffer, capacity, ++sequence);
          for (const { session, length, fill } of datagrams) {
            const signature = ipStreamSignature(format, session);
            const bytes = frameOf(length, fill);
            if (!writer.tryAppend(signature, bytes, 0, length)) {
              flush();
              writer.begin(buffer, capacity, ++sequence);
              if (!writer.tryAppend(signature, bytes, 0, length)) {
                expect(writer.datagrams).toBe(0);
                continue;
              }
            }
            inNtb.push({ signature, bytes });
          }
          flush();
          // Compared by hand: a matcher takes a hundred times as long over so many bytes.
          expect(capture.datagrams.map((one) => one.signature)).toEqual(sent.map((one) => one.signature));
          const areEqual = sent.map((one, i) =>
            bytesEqual(one.bytes, capture.datagrams[i]?.bytes ?? new Uint8Array(0)),
          );
          expect(areEqual).not.toContain(false);
          expect([reader.badDatagrams, reader.skippedNdps]).toEqual([0, 0]);
        },
      ),
      { numRuns: 300 },
    );
  });
});

/** Walks the NDPs by hand and checks where they and their datagrams lie. */
function checkPlaces(
  buffer: Uint8Array,
  format: NtbFormat,
  ndps: number,
  ndpModulus: number,
  modulus: number,
  remainder: number,
  maxDatagrams: number,
): void {
  const view = viewOf(buffer);
  const is16 = format === 'ntb16';
  const field = (offset: number): number =>
    is16 ? view.getUint16(offset, true) : view.getUint32(offset, true);
  const blockLength = field(8);
  let ndp = field(is16 ? 10 : 12);
  for (let i = 0; i < ndps; i++) {
    expect(ndp % ndpModulus).toBe(0);
    // The whole table is reserved.
    expect(ndp + ndpLengthFor(format, maxDatagrams)).toBeLessThanOrEqual(blockLength);
    const entries = (view.getUint16(ndp + 4, true) - (is16 ? 8 : 16)) / (is16 ? 4 : 8);
    for (let entry = 0; entry < entries; entry++) {
      const place = field(ndp + (is16 ? 8 + 4 * entry : 16 + 8 * entry));
      if (entry === entries - 1) expect(place).toBe(0);
      else expect(place % modulus).toBe(remainder);
    }
    ndp = field(ndp + (is16 ? 6 : 8));
  }
  expect(ndp).toBe(0);
}
