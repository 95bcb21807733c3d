import type { Packet } from '../usbnet/packet.ts';
import { readUint16Be } from '../wire/byte-order.ts';
import { ethernetHeaderLength, etherTypeIpv4, etherTypeIpv6 } from '../wire/ethernet.ts';
import { checkIpv4Header, markIpv4CongestionExperienced } from '../wire/ipv4.ts';
import { ipv6HeaderLength } from '../wire/ipv6.ts';
import { networkHeaderOffset } from './network-header.ts';

/** ECN is bits 4 and 5 of an IPv6 header's second byte, the lower end of its traffic class. */
const ipv6EcnBits = 0x30;

/**
 * Marks a frame with "congestion experienced" (RFC 3168), IPv4's checksum included. False, and nothing done, for a sender
 * that does not speak ECN and for what is not IP. True also for a packet that is marked already, as in Linux.
 */
export function markCongestionExperienced(packet: Packet): boolean {
  const { bytes, length } = packet;
  const offset = networkHeaderOffset(bytes, length);
  if (offset < ethernetHeaderLength) return false;
  switch (readUint16Be(bytes, offset - 2)) {
    case etherTypeIpv4:
      if (checkIpv4Header(bytes, offset, length - offset) < 0) return false;
      return markIpv4CongestionExperienced(bytes, offset);
    case etherTypeIpv6: {
      const second = bytes[offset + 1] ?? 0;
      if (length - offset < ipv6HeaderLength || (second & ipv6EcnBits) === 0) return false;
      bytes[offset + 1] = second | ipv6EcnBits;
      return true;
    }
    default:
      return false;
  }
}
