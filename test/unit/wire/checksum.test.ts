import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { writeUint16Be, writeUint32Be } from '../../../src/wire/byte-order.ts';
import {
  internetChecksum,
  internetChecksumIsGood,
  onesComplementSum,
  rewriteUint16,
  rewriteUint32,
  updateChecksum,
  updateChecksumUint32,
} from '../../../src/wire/checksum.ts';
import { bytesOf, embedded } from './bytes-of.ts';

/** Word by word in whole numbers of any size, carried around at the very end: the definition. */
function sumByDefinition(bytes: Uint8Array): number {
  let sum = 0n;
  for (let i = 0; i < bytes.length; i += 2) sum += BigInt(((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0));
  while (sum > 0xffffn) sum = (sum >> 16n) + (sum & 0xffffn);
  return Number(sum);
}

describe('the sum', () => {
  test('is that of the example in RFC 1071, section 3', () => {
    expect(onesComplementSum(bytesOf('0001 f203 f4f5 f6f7'), 0, 8)).toBe(0xddf2);
  });

  test('is by definition, at any length and alignment', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ minLength: 240, maxLength: 2000 })),
        fc.nat(9),
        (bytes, offset) => {
          const buffer = embedded(bytes, offset);
          expect(onesComplementSum(buffer, offset, bytes.length)).toBe(sumByDefinition(bytes));
          // A view into a larger buffer has an offset of its own.
          expect(onesComplementSum(buffer.subarray(offset), 0, bytes.length)).toBe(sumByDefinition(bytes));
        },
      ),
    );
  });

  test('of the longest packet, all ones, does not overflow', () => {
    for (const length of [255, 256, 65_534, 65_535]) {
      const bytes = new Uint8Array(length).fill(0xff);
      expect(onesComplementSum(bytes, 0, length)).toBe(sumByDefinition(bytes));
    }
  });

  test('adds up over parts of even length', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 900 }), fc.nat(400), (bytes, half) => {
        const cut = Math.min(2 * half, bytes.length & ~1);
        const first = onesComplementSum(bytes, 0, cut);
        expect(onesComplementSum(bytes, cut, bytes.length - cut, first)).toBe(sumByDefinition(bytes));
      }),
    );
  });
});

describe('the checksum', () => {
  test('of a well-known IPv4 header', () => {
    const header = bytesOf('4500 0073 0000 4000 4011 0000 c0a8 0001 c0a8 00c7');
    expect(internetChecksum(header, 0, header.length)).toBe(0xb861);
    writeUint16Be(header, 10, 0xb861);
    expect(internetChecksumIsGood(header, 0, header.length)).toBe(true);
    writeUint16Be(header, 10, 0xb862);
    expect(internetChecksumIsGood(header, 0, header.length)).toBe(false);
  });

  test('of zeros alone is not zero', () => {
    expect(internetChecksum(new Uint8Array(8), 0, 8)).toBe(0xffff);
    expect(internetChecksumIsGood(new Uint8Array(8), 0, 8)).toBe(false);
  });
});

describe('the update', () => {
  test('is that of the example in RFC 1624, section 4', () => {
    expect(updateChecksum(0xdd2f, 0x5555, 0x3285)).toBe(0x0000);
  });

  test('gives what computing anew gives', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 12, maxLength: 80 }),
        fc.nat(4),
        fc.nat(0xffff_ffff),
        (bytes, word, value) => {
          // The checksum is in bytes 0-1; byte 2 keeps the range from being all zeros.
          bytes[2] = 0x45;
          const field = 4 + 2 * Math.min(word, (bytes.length - 8) >> 1);
          const anew = (): number => {
            const copy = bytes.slice();
            writeUint16Be(copy, 0, 0);
            return internetChecksum(copy, 0, copy.length);
          };
          writeUint16Be(bytes, 0, anew());

          rewriteUint16(bytes, 0, field, value & 0xffff);
          expect((((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0)) >>> 0).toBe(anew());
          rewriteUint32(bytes, 0, field, value);
          expect(((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0)).toBe(anew());
          const written = new Uint8Array(4);
          writeUint32Be(written, 0, value);
          expect(bytes.subarray(field, field + 4)).toEqual(written);
        },
      ),
    );
  });

  test('of 32 bits is that of both halves', () => {
    expect(updateChecksumUint32(0x1234, 0xaaaa_bbbb, 0x0102_0304)).toBe(
      updateChecksum(updateChecksum(0x1234, 0xbbbb, 0x0304), 0xaaaa, 0x0102),
    );
  });
});
