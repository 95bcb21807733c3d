import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readUint16Be } from '../../../src/wire/byte-order.ts';
import {
  checkIcmp,
  icmpChecksumIsGood,
  icmpCode,
  icmpDestinationUnreachable,
  icmpEchoReply,
  icmpEchoRequest,
  icmpFragmentationNeeded,
  icmpIdentifier,
  icmpNextHopMtu,
  icmpPortUnreachable,
  icmpQuotedPacketOffset,
  icmpSequence,
  icmpTimeExceeded,
  icmpType,
  setIcmpSequence,
  turnIcmpEchoIntoReply,
  writeIcmpEcho,
  writeIcmpError,
} from '../../../src/wire/icmp.ts';
import { ipProtocolUdp, writeIpv4 } from '../../../src/wire/ipv4.ts';
import { udpDestinationPort, writeUdpWithoutChecksum } from '../../../src/wire/udp.ts';
import { bytesOf, embedded } from './bytes-of.ts';

/** What the ping of Windows sends first: 32 letters. */
const ping = bytesOf(
  '08 00 4d 5a 00 01 00 01 6162636465666768696a6b6c6d6e6f70 7172737475767761 6263646566676869',
);

describe('echo', () => {
  test('writes a well-known request around a payload in place', () => {
    const bytes = embedded(ping, 34);
    bytes.fill(0xaa, 34, 42);
    expect(writeIcmpEcho(bytes, 34, icmpEchoRequest, 1, 1, 32)).toBe(8);
    expect(bytes).toEqual(embedded(ping, 34));
  });

  test('reads it', () => {
    const bytes = embedded(ping, 34);
    expect(checkIcmp(bytes, 34, 40)).toBe(8);
    expect(icmpChecksumIsGood(bytes, 34, 40)).toBe(true);
    expect([icmpType(bytes, 34), icmpCode(bytes, 34)]).toEqual([icmpEchoRequest, 0]);
    expect([icmpIdentifier(bytes, 34), icmpSequence(bytes, 34)]).toEqual([1, 1]);
    bytes[60] = 0;
    expect(icmpChecksumIsGood(bytes, 34, 40)).toBe(false);
    expect(checkIcmp(bytes, 34, 7)).toBe(-1);
    expect(checkIcmp(bytes, bytes.length - 7, 8)).toBe(-1);
  });

  test('the reply to the well-known request', () => {
    const bytes = ping.slice();
    turnIcmpEchoIntoReply(bytes, 0, bytes.length);
    expect(bytes).toEqual(Uint8Array.of(0x00, 0x00, 0x55, 0x5a, ...ping.subarray(4)));
  });

  test('a changed request and its reply are as if written anew', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 300 }),
          fc.nat(40).map((length) => new Uint8Array(length)),
        ),
        fc.nat(0xffff),
        fc.nat(3),
        fc.nat(0xffff),
        (payload, identifier, firstSequence, sequence) => {
          const length = 8 + payload.length;
          const changed = embedded(payload, 8, 0);
          writeIcmpEcho(changed, 0, icmpEchoRequest, identifier, firstSequence, payload.length);
          const anew = changed.slice();
          setIcmpSequence(changed, 0, sequence);
          writeIcmpEcho(anew, 0, icmpEchoRequest, identifier, sequence, payload.length);
          expect(changed).toEqual(anew);
          turnIcmpEchoIntoReply(changed, 0, length);
          writeIcmpEcho(anew, 0, icmpEchoReply, identifier, sequence, payload.length);
          expect(changed).toEqual(anew);
          expect(icmpChecksumIsGood(changed, 0, length)).toBe(true);
        },
      ),
    );
  });

  test('a reply of nothing but zeros has the checksum 0xffff', () => {
    const bytes = new Uint8Array(16);
    writeIcmpEcho(bytes, 0, icmpEchoRequest, 0, 0, 8);
    turnIcmpEchoIntoReply(bytes, 0, 16);
    expect(readUint16Be(bytes, 2)).toBe(0xffff);
  });
});

describe('errors', () => {
  /** An IPv4 packet of ours, to UDP port 7. */
  const packet = new Uint8Array(100);
  writeIpv4(packet, 0, 0, 80, 5, true, 1, ipProtocolUdp, 0x0a090002, 0x0a090001);
  writeUdpWithoutChecksum(packet, 20, 4000, 7, 72);

  test('a port unreachable leads back to the packet', () => {
    const bytes = embedded(new Uint8Array(36), 34);
    const length = writeIcmpError(
      bytes,
      34,
      icmpDestinationUnreachable,
      icmpPortUnreachable,
      0,
      packet,
      0,
      28,
    );
    expect(length).toBe(36);
    expect(icmpChecksumIsGood(bytes, 34, length)).toBe(true);
    expect(icmpCode(bytes, 34)).toBe(icmpPortUnreachable);
    const quoted = icmpQuotedPacketOffset(bytes, 34, length);
    expect(quoted).toBe(42);
    expect(udpDestinationPort(bytes, quoted + 20)).toBe(7);
  });

  test('fragmentation needed tells the MTU', () => {
    const bytes = new Uint8Array(36);
    writeIcmpError(bytes, 0, icmpDestinationUnreachable, icmpFragmentationNeeded, 1430, packet, 0, 28);
    expect(icmpNextHopMtu(bytes, 0)).toBe(1430);
    expect(icmpChecksumIsGood(bytes, 0, 36)).toBe(true);
  });

  test('only destination unreachable and time exceeded, with enough quoted', () => {
    const bytes = new Uint8Array(36);
    writeIcmpError(bytes, 0, icmpTimeExceeded, 0, 0, packet, 0, 28);
    expect(icmpQuotedPacketOffset(bytes, 0, 36)).toBe(8);
    expect(icmpQuotedPacketOffset(bytes, 0, 35)).toBe(-1);
    expect(icmpQuotedPacketOffset(bytes, 0, 7)).toBe(-1);
    bytes[8] = 0x46;
    expect(icmpQuotedPacketOffset(bytes, 0, 36)).toBe(-1);
    bytes[8] = 0x45;
    bytes[0] = icmpEchoRequest;
    expect(icmpQuotedPacketOffset(bytes, 0, 36)).toBe(-1);
  });

  test('quotes from the middle of a frame', () => {
    const frame = embedded(packet, 14);
    const bytes = new Uint8Array(36);
    writeIcmpError(bytes, 0, icmpTimeExceeded, 0, 0, frame, 14, 28);
    expect(bytes.subarray(8)).toEqual(packet.subarray(0, 28));
  });
});
