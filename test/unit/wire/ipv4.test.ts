import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readUint16Be, writeUint16Be } from '../../../src/wire/byte-order.ts';
import { internetChecksum } from '../../../src/wire/checksum.ts';
import {
  checkIpv4,
  checkIpv4Header,
  ipProtocolUdp,
  ipv4ChecksumIsGood,
  ipv4Destination,
  ipv4DontFragment,
  ipv4FragmentOffsetBytes,
  ipv4HeaderLength,
  ipv4Identification,
  ipv4IsFragment,
  ipv4Protocol,
  ipv4PseudoHeaderSum,
  ipv4Source,
  ipv4TimeToLive,
  ipv4TotalLength,
  ipv4TypeOfService,
  markIpv4CongestionExperienced,
  setIpv4Identification,
  setIpv4TimeToLive,
  setIpv4TypeOfService,
  writeIpv4,
} from '../../../src/wire/ipv4.ts';
import { bytesOf, embedded } from './bytes-of.ts';

const header = bytesOf('4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8 00c7');
/** The header with the 95 bytes of payload that it speaks of. */
const packet = embedded(header, 0, 95);

function changed(offset: number, ...values: readonly number[]): Uint8Array {
  const bytes = packet.slice();
  bytes.set(values, offset);
  return bytes;
}

test('writes a well-known header', () => {
  const bytes = embedded(new Uint8Array(20), 14);
  expect(writeIpv4(bytes, 14, 0, 95, 0, true, 64, ipProtocolUdp, 0xc0a80001, 0xc0a800c7)).toBe(20);
  expect(bytes).toEqual(embedded(header, 14));
});

test('reads it', () => {
  const bytes = embedded(packet, 14);
  expect(checkIpv4(bytes, 14, packet.length)).toBe(20);
  expect(ipv4ChecksumIsGood(bytes, 14)).toBe(true);
  expect(ipv4HeaderLength(bytes, 14)).toBe(20);
  expect(ipv4TypeOfService(bytes, 14)).toBe(0);
  expect(ipv4TotalLength(bytes, 14)).toBe(115);
  expect(ipv4Identification(bytes, 14)).toBe(0);
  expect(ipv4DontFragment(bytes, 14)).toBe(true);
  expect(ipv4IsFragment(bytes, 14)).toBe(false);
  expect(ipv4TimeToLive(bytes, 14)).toBe(64);
  expect(ipv4Protocol(bytes, 14)).toBe(17);
  expect(ipv4Source(bytes, 14)).toBe(0xc0a80001);
  expect(ipv4Destination(bytes, 14)).toBe(0xc0a800c7);
});

describe('checkIpv4', () => {
  test('takes padding behind the packet, and options in the header', () => {
    expect(checkIpv4(embedded(packet, 0, 20), 0, packet.length + 20)).toBe(20);
    expect(checkIpv4(changed(0, 0x4f), 0, packet.length)).toBe(60);
  });

  test.each([
    ['no packet', new Uint8Array(0)],
    ['19 bytes', header.subarray(0, 19)],
    ['version 6', changed(0, 0x65)],
    ['a header of 16 bytes', changed(0, 0x44)],
    ['a header that is longer than what is there', changed(0, 0x46).subarray(0, 20)],
    ['a total length below the header', changed(2, 0, 19)],
    ['a total length beyond what is there', changed(2, 0, 116)],
  ])('refuses %s', (_name, bytes) => {
    expect(checkIpv4(bytes, 0, bytes.length)).toBe(-1);
  });

  test('refuses a range outside of the buffer', () => {
    expect(checkIpv4(packet, 1, packet.length)).toBe(-1);
    expect(checkIpv4(packet, -1, packet.length)).toBe(-1);
  });

  test('a quoted header may speak of more than was quoted', () => {
    expect(checkIpv4Header(packet, 0, 28)).toBe(20);
    expect(checkIpv4(packet, 0, 28)).toBe(-1);
    expect(checkIpv4Header(changed(0, 0x46), 0, 24)).toBe(24);
    expect(checkIpv4Header(changed(0, 0x46), 0, 23)).toBe(-1);
  });
});

test('fragments are known by offset or by the "more" bit', () => {
  expect(ipv4IsFragment(changed(6, 0x20, 0x00), 0)).toBe(true);
  expect(ipv4IsFragment(changed(6, 0x00, 0xb9), 0)).toBe(true);
  expect(ipv4FragmentOffsetBytes(changed(6, 0x00, 0xb9), 0)).toBe(1480);
  expect(ipv4IsFragment(changed(6, 0x40, 0x00), 0)).toBe(false);
});

describe('changing a field', () => {
  test('leaves a checksum as if computed anew', () => {
    fc.assert(
      fc.property(
        fc.nat(0xffff),
        fc.nat(255),
        fc.nat(255),
        fc.nat(0xffff_ffff),
        (identification, timeToLive, typeOfService, source) => {
          const bytes = new Uint8Array(20);
          writeIpv4(bytes, 0, 0x12, 1000, 77, false, 64, 1, source, 0x0a090001);
          setIpv4Identification(bytes, 0, identification);
          setIpv4TimeToLive(bytes, 0, timeToLive);
          setIpv4TypeOfService(bytes, 0, typeOfService);
          expect(ipv4Identification(bytes, 0)).toBe(identification);
          expect(ipv4TimeToLive(bytes, 0)).toBe(timeToLive);
          expect(ipv4TypeOfService(bytes, 0)).toBe(typeOfService);
          expect(ipv4Protocol(bytes, 0)).toBe(1);
          expect(ipv4HeaderLength(bytes, 0)).toBe(20);
          expect(ipv4ChecksumIsGood(bytes, 0)).toBe(true);
          const checksum = readUint16Be(bytes, 10);
          writeUint16Be(bytes, 10, 0);
          expect(internetChecksum(bytes, 0, 20)).toBe(checksum);
        },
      ),
    );
  });

  test('marks congestion only for those who understand it', () => {
    const bytes = new Uint8Array(20);
    for (const [before, marked, after] of [
      [0xb8, false, 0xb8],
      [0xb9, true, 0xbb],
      [0xba, true, 0xbb],
      [0xbb, true, 0xbb],
    ] as const) {
      writeIpv4(bytes, 0, before, 0, 0, true, 64, 6, 1, 2);
      expect(markIpv4CongestionExperienced(bytes, 0)).toBe(marked);
      expect(ipv4TypeOfService(bytes, 0)).toBe(after);
      expect(ipv4ChecksumIsGood(bytes, 0)).toBe(true);
    }
  });
});

test('the pseudo header sums up addresses, protocol and length', () => {
  // c0a8 + 0001 + c0a8 + 00c7 + 0011 + 0008
  expect(ipv4PseudoHeaderSum(0xc0a80001, 0xc0a800c7, 17, 8)).toBe(0x8232);
  expect(ipv4PseudoHeaderSum(0xffffffff, 0xffffffff, 255, 65_535)).toBe(255);
});
