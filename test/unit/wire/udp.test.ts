import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readUint16Be, readUint32Be, writeUint16Be, writeUint32Be } from '../../../src/wire/byte-order.ts';
import {
  checkUdp,
  setUdpPayloadUint32,
  udpChecksumIsGood,
  udpDestinationPort,
  udpLength,
  udpSourcePort,
  writeUdp,
  writeUdpWithoutChecksum,
} from '../../../src/wire/udp.ts';
import { bytesOf, embedded } from './bytes-of.ts';

const source = 0x98015133;
const destination = 0x98015e64;

/** The checksum over a pseudo header that is really laid out in front of the datagram. */
function checksumByDefinition(datagram: Uint8Array, from: number, to: number): number {
  const bytes = new Uint8Array(12 + datagram.length + (datagram.length % 2));
  writeUint32Be(bytes, 0, from);
  writeUint32Be(bytes, 4, to);
  bytes[9] = 17;
  writeUint16Be(bytes, 10, datagram.length);
  bytes.set(datagram, 12);
  writeUint16Be(bytes, 12 + 6, 0);
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 2) sum += readUint16Be(bytes, i);
  const remainder = sum % 0xffff;
  // Never all zeros, so the sum is 1 … 0xffff; a checksum of 0 goes out as 0xffff.
  const checksum = 0xffff - (remainder === 0 ? 0xffff : remainder);
  return checksum === 0 ? 0xffff : checksum;
}

test('writes a datagram whose checksum was computed by hand', () => {
  // 9801 + 5133 + 9801 + 5e64 + 0011 + 000a, then 04d2 + 0035 + 000a + 6869: 24d2e, folded 4d30, complement b2cf.
  const bytes = bytesOf('ffff ffff ffff ffff 6869');
  expect(writeUdp(bytes, 0, 1234, 53, 2, source, destination)).toBe(8);
  expect(bytes).toEqual(bytesOf('04d2 0035 000a b2cf 6869'));
});

test('a checksum that comes out as 0 is sent as 0xffff, computed or updated', () => {
  // The sum of all but the payload is e4c6, and e4c6 + 1b39 = ffff.
  const bytes = bytesOf('ffff ffff ffff ffff 1b39');
  writeUdp(bytes, 0, 1234, 53, 2, source, destination);
  expect(bytes).toEqual(bytesOf('04d2 0035 000a ffff 1b39'));
  expect(udpChecksumIsGood(bytes, 0, source, destination)).toBe(true);

  // With four bytes of payload both lengths are two more, which the payload makes up for.
  const longer = bytesOf('ffff ffff ffff ffff 0000 0000');
  writeUdp(longer, 0, 1234, 53, 4, source, destination);
  setUdpPayloadUint32(longer, 0, 0, 0x0000_1b35);
  expect(longer).toEqual(bytesOf('04d2 0035 000c ffff 0000 1b35'));
  expect(udpChecksumIsGood(longer, 0, source, destination)).toBe(true);
});

test('written datagrams are good, and one flipped bit is not', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 600 }),
      fc.nat(0xffff_ffff),
      fc.nat(0xffff_ffff),
      fc.nat(20),
      fc.nat(),
      (payload, from, to, offset, flip) => {
        const length = 8 + payload.length;
        const bytes = embedded(payload, offset + 8);
        writeUdp(bytes, offset, 40_000, 7, payload.length, from, to);
        expect(checkUdp(bytes, offset, length)).toBe(8);
        expect(readUint16Be(bytes, offset + 6)).toBe(
          checksumByDefinition(bytes.subarray(offset, offset + length), from, to),
        );
        expect(udpChecksumIsGood(bytes, offset, from, to)).toBe(true);
        expect(udpChecksumIsGood(bytes, offset, to ^ 1, from)).toBe(false);
        if (payload.length === 0) return;
        const position = offset + 8 + (flip % payload.length);
        bytes[position] = (bytes[position] ?? 0) ^ 0x10;
        expect(udpChecksumIsGood(bytes, offset, from, to)).toBe(false);
      },
    ),
  );
});

describe('fields', () => {
  const bytes = embedded(bytesOf('04d2 0035 000a 0000 6869'), 34);

  test('are read, and "no checksum" is good', () => {
    expect(checkUdp(bytes, 34, 10)).toBe(8);
    expect([udpSourcePort(bytes, 34), udpDestinationPort(bytes, 34), udpLength(bytes, 34)]).toEqual([
      1234, 53, 10,
    ]);
    expect(udpChecksumIsGood(bytes, 34, source, destination)).toBe(true);
  });

  test.each([
    ['too short', bytesOf('04d2 0035 0008 00'), 7],
    ['a length below 8', bytesOf('04d2 0035 0007 0000'), 8],
    ['a length beyond what is there', bytesOf('04d2 0035 0009 0000'), 8],
    ['a range outside of the buffer', bytesOf('04d2 0035 0008 0000'), 9],
  ])('refuses %s', (_name, datagram, length) => {
    expect(checkUdp(datagram, 0, length)).toBe(-1);
  });

  test('a length below what is there is fine', () => {
    expect(checkUdp(embedded(bytesOf('04d2 0035 0008 0000'), 0), 0, 15)).toBe(8);
  });
});

test('changing the payload is as writing it anew', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 12, maxLength: 64 }),
      fc.constantFrom(0, 2, 4, 8),
      fc.oneof(fc.nat(0xffff_ffff), fc.constantFrom(0, 0xffffffff)),
      (payload, payloadOffset, value) => {
        const changed = embedded(payload, 8, 0);
        writeUdp(changed, 0, 5, 6, payload.length, source, destination);
        const anew = changed.slice();
        setUdpPayloadUint32(changed, 0, payloadOffset, value);
        writeUint32Be(anew, 8 + payloadOffset, value);
        writeUdp(anew, 0, 5, 6, payload.length, source, destination);
        expect(changed).toEqual(anew);
      },
    ),
  );
});

test('without a checksum, changing the payload makes none', () => {
  const bytes = new Uint8Array(16);
  expect(writeUdpWithoutChecksum(bytes, 0, 1, 2, 8)).toBe(8);
  setUdpPayloadUint32(bytes, 0, 4, 0xdeadbeef);
  expect(bytes).toEqual(bytesOf('0001 0002 0010 0000 0000 0000 dead beef'));
  expect(readUint32Be(bytes, 12)).toBe(0xdeadbeef);
});
