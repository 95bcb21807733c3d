import type { Packet } from '../usbnet/packet.ts';
import { readUint16Be, readUint32Be } from '../wire/byte-order.ts';
import { ethernetHeaderLength, etherTypeIpv4, etherTypeIpv6 } from '../wire/ethernet.ts';
import {
  checkIpv4Header,
  ipProtocolUdp,
  ipv4Destination,
  ipv4IsFragment,
  ipv4Protocol,
  ipv4Source,
} from '../wire/ipv4.ts';
import { ipv6HeaderLength, ipv6Payload } from '../wire/ipv6.ts';
import { ipProtocolTcp } from '../wire/tcp.ts';
import { networkHeaderOffset } from './network-header.ts';

const ipProtocolDccp = 33;
const ipProtocolSctp = 132;
const ipProtocolUdpLite = 136;

const ipv6AddressWords = 8;
const ipv6FlowLabelMask = 0xfffff;

function mix(hash: number, word: number): number {
  let k = Math.imul(word, 0xcc9e2d51);
  k = (k << 15) | (k >>> 17);
  const h = hash ^ Math.imul(k, 0x1b873593);
  return (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
}

/** Every bit of the words shows in every bit of the hash (the finish of MurmurHash3, whose mixing this is). */
function finish(hash: number): number {
  let h = hash ^ (hash >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

function hasPorts(protocol: number): boolean {
  return (
    protocol === ipProtocolUdp ||
    protocol === ipProtocolTcp ||
    protocol === ipProtocolSctp ||
    protocol === ipProtocolUdpLite ||
    protocol === ipProtocolDccp
  );
}

function mixPorts(hash: number, bytes: Uint8Array, offset: number, end: number): number {
  return offset + 4 <= end ? mix(hash, readUint32Be(bytes, offset)) : hash;
}

function mixIpv4(hash: number, bytes: Uint8Array, offset: number, end: number): number {
  const headerLength = checkIpv4Header(bytes, offset, end - offset);
  if (headerLength < 0) return hash;
  const protocol = ipv4Protocol(bytes, offset);
  const mixed = mix(mix(mix(hash, ipv4Source(bytes, offset)), ipv4Destination(bytes, offset)), protocol);
  // Only the first fragment has ports: all of them are one flow without.
  if (!hasPorts(protocol) || ipv4IsFragment(bytes, offset)) return mixed;
  return mixPorts(mixed, bytes, offset + headerLength, end);
}

function mixIpv6(hash: number, bytes: Uint8Array, offset: number, end: number): number {
  if (end - offset < ipv6HeaderLength) return hash;
  let mixed = hash;
  for (let i = 0; i < ipv6AddressWords; i++) mixed = mix(mixed, readUint32Be(bytes, offset + 8 + 4 * i));
  // A sender that labels its flows has said what one is.
  const label = readUint32Be(bytes, offset) & ipv6FlowLabelMask;
  if (label !== 0) return mix(mixed, label);
  const payload = ipv6Payload(bytes, offset, end);
  const protocol = payload & 0xff;
  mixed = mix(mixed, protocol);
  return hasPorts(protocol) ? mixPorts(mixed, bytes, payload >>> 8, end) : mixed;
}

/**
 * 32 bits that are the same for all packets of a flow: addresses, protocol and ports behind any VLAN tags; what is not IP
 * is one flow for each EtherType. What is cut short or malformed belongs to the flow of what is left.
 */
export function flowHash(packet: Packet, seed: number): number {
  const { bytes, length } = packet;
  const offset = networkHeaderOffset(bytes, length);
  if (offset < ethernetHeaderLength) return finish(seed);
  const type = readUint16Be(bytes, offset - 2);
  let hash = mix(seed, type);
  for (let tag = ethernetHeaderLength; tag < offset; tag += 4) {
    hash = mix(hash, readUint16Be(bytes, tag) & 0x0fff);
  }
  if (type === etherTypeIpv4) hash = mixIpv4(hash, bytes, offset, length);
  else if (type === etherTypeIpv6) hash = mixIpv6(hash, bytes, offset, length);
  return finish(hash);
}
