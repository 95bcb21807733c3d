import { readUint16Be, readUint32Be, writeUint16Be, writeUint32Be } from './byte-order.ts';
import { foldSum, internetChecksum, internetChecksumIsGood, rewriteUint16 } from './checksum.ts';

/** IPv4 (RFC 791). `offset` is always that of the header's first byte. */
export const ipv4MinHeaderLength = 20;

export const ipProtocolIcmp = 1;
export const ipProtocolUdp = 17;

const typeOfServiceOffset = 1;
/** Where in the header these fields are. */
export const ipv4TotalLengthOffset = 2;
export const ipv4IdentificationOffset = 4;
const fragmentOffset = 6;
const timeToLiveOffset = 8;
const protocolOffset = 9;
export const ipv4ChecksumOffset = 10;
const sourceOffset = 12;
const destinationOffset = 16;

const dontFragmentBit = 0x4000;
const moreFragmentsBit = 0x2000;
const ecnMask = 0x03;
const ecnNotCapable = 0;
const ecnCongestionExperienced = 3;

/**
 * The length of the header (20 … 60), or -1 if the version is not 4, the header's length is impossible or not all there,
 * or the total length is less than the header. The total length may exceed what is there: so it is with the packet that
 * an ICMP error quotes.
 */
export function checkIpv4Header(bytes: Uint8Array, offset: number, length: number): number {
  if (length < ipv4MinHeaderLength || offset < 0 || offset + length > bytes.length) return -1;
  if ((bytes[offset] ?? 0) >>> 4 !== 4) return -1;
  const headerLength = ipv4HeaderLength(bytes, offset);
  if (headerLength < ipv4MinHeaderLength || headerLength > length) return -1;
  if (ipv4TotalLength(bytes, offset) < headerLength) return -1;
  return headerLength;
}

/**
 * The length of the header of a whole packet, or -1: as {@link checkIpv4Header}, and the total length must be there too
 * (bytes behind it, such as Ethernet's padding, are fine). The checksum is {@link ipv4ChecksumIsGood}'s business.
 */
export function checkIpv4(bytes: Uint8Array, offset: number, length: number): number {
  const headerLength = checkIpv4Header(bytes, offset, length);
  return headerLength > 0 && ipv4TotalLength(bytes, offset) > length ? -1 : headerLength;
}

export function ipv4ChecksumIsGood(bytes: Uint8Array, offset: number): boolean {
  return internetChecksumIsGood(bytes, offset, ipv4HeaderLength(bytes, offset));
}

/** Bytes, options included. */
export function ipv4HeaderLength(bytes: Uint8Array, offset: number): number {
  return ((bytes[offset] ?? 0) & 0x0f) * 4;
}

/** The former TOS byte: DSCP in the upper six bits, ECN in the lower two. */
export function ipv4TypeOfService(bytes: Uint8Array, offset: number): number {
  return bytes[offset + typeOfServiceOffset] ?? 0;
}

/** Bytes, header included. */
export function ipv4TotalLength(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + ipv4TotalLengthOffset);
}

export function ipv4Identification(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + ipv4IdentificationOffset);
}

export function ipv4DontFragment(bytes: Uint8Array, offset: number): boolean {
  return (readUint16Be(bytes, offset + fragmentOffset) & dontFragmentBit) !== 0;
}

/** True for any part of a fragmented packet, the first and the last included. */
export function ipv4IsFragment(bytes: Uint8Array, offset: number): boolean {
  return (readUint16Be(bytes, offset + fragmentOffset) & (moreFragmentsBit | 0x1fff)) !== 0;
}

/** Where this fragment's payload belongs, in bytes. */
export function ipv4FragmentOffsetBytes(bytes: Uint8Array, offset: number): number {
  return (readUint16Be(bytes, offset + fragmentOffset) & 0x1fff) * 8;
}

export function ipv4TimeToLive(bytes: Uint8Array, offset: number): number {
  return bytes[offset + timeToLiveOffset] ?? 0;
}

export function ipv4Protocol(bytes: Uint8Array, offset: number): number {
  return bytes[offset + protocolOffset] ?? 0;
}

export function ipv4Source(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + sourceOffset);
}

export function ipv4Destination(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + destinationOffset);
}

/** Writes a header without options for `payloadLength` bytes, with its checksum, and returns its length, 20. */
export function writeIpv4(
  bytes: Uint8Array,
  offset: number,
  typeOfService: number,
  payloadLength: number,
  identification: number,
  dontFragment: boolean,
  timeToLive: number,
  protocol: number,
  source: number,
  destination: number,
): number {
  bytes[offset] = 0x45;
  bytes[offset + typeOfServiceOffset] = typeOfService;
  writeUint16Be(bytes, offset + ipv4TotalLengthOffset, ipv4MinHeaderLength + payloadLength);
  writeUint16Be(bytes, offset + ipv4IdentificationOffset, identification);
  writeUint16Be(bytes, offset + fragmentOffset, dontFragment ? dontFragmentBit : 0);
  bytes[offset + timeToLiveOffset] = timeToLive;
  bytes[offset + protocolOffset] = protocol;
  writeUint16Be(bytes, offset + ipv4ChecksumOffset, 0);
  writeUint32Be(bytes, offset + sourceOffset, source);
  writeUint32Be(bytes, offset + destinationOffset, destination);
  writeUint16Be(bytes, offset + ipv4ChecksumOffset, internetChecksum(bytes, offset, ipv4MinHeaderLength));
  return ipv4MinHeaderLength;
}

/** Changes the identification of a packet; the checksum follows. */
export function setIpv4Identification(bytes: Uint8Array, offset: number, identification: number): void {
  rewriteUint16(bytes, offset + ipv4ChecksumOffset, offset + ipv4IdentificationOffset, identification);
}

/** Changes the time to live of a packet; the checksum follows. */
export function setIpv4TimeToLive(bytes: Uint8Array, offset: number, timeToLive: number): void {
  const protocol = ipv4Protocol(bytes, offset);
  rewriteUint16(bytes, offset + ipv4ChecksumOffset, offset + timeToLiveOffset, (timeToLive << 8) | protocol);
}

/** Changes DSCP and ECN of a packet; the checksum follows. */
export function setIpv4TypeOfService(bytes: Uint8Array, offset: number, typeOfService: number): void {
  rewriteUint16(bytes, offset + ipv4ChecksumOffset, offset, ((bytes[offset] ?? 0) << 8) | typeOfService);
}

/**
 * Marks a packet with "congestion experienced" (RFC 3168). False, and nothing done, if its sender does not speak ECN;
 * such a packet has to be dropped instead.
 */
export function markIpv4CongestionExperienced(bytes: Uint8Array, offset: number): boolean {
  const typeOfService = ipv4TypeOfService(bytes, offset);
  if ((typeOfService & ecnMask) === ecnNotCapable) return false;
  setIpv4TypeOfService(bytes, offset, typeOfService | ecnCongestionExperienced);
  return true;
}

/** The folded sum of the pseudo header of UDP and TCP (RFC 768): addresses, protocol and length of the segment. */
export function ipv4PseudoHeaderSum(
  source: number,
  destination: number,
  protocol: number,
  segmentLength: number,
): number {
  return foldSum(
    (source >>> 16) +
      (source & 0xffff) +
      (destination >>> 16) +
      (destination & 0xffff) +
      protocol +
      segmentLength,
  );
}
