import { readUint16Be, writeUint16Be } from './byte-order.ts';
import { internetChecksum, internetChecksumIsGood, rewriteUint16, updateChecksum } from './checksum.ts';
import { checkIpv4Header } from './ipv4.ts';

/** ICMP for IPv4 (RFC 792): echo, and the errors that answer a packet of ours. */
export const icmpHeaderLength = 8;

export const icmpEchoReply = 0;
export const icmpDestinationUnreachable = 3;
export const icmpEchoRequest = 8;
export const icmpTimeExceeded = 11;

/** Codes of {@link icmpDestinationUnreachable}. */
export const icmpPortUnreachable = 3;
export const icmpFragmentationNeeded = 4;

/** What an error quotes behind the IPv4 header of the packet it answers, at least. */
export const icmpMinQuotedPayload = 8;

const codeOffset = 1;
const checksumOffset = 2;
const identifierOffset = 4;
const sequenceOffset = 6;
const nextHopMtuOffset = 6;

/** The length of the header, 8, or -1 if the message is shorter. Any type is accepted; the checksum is not looked at. */
export function checkIcmp(bytes: Uint8Array, offset: number, length: number): number {
  if (length < icmpHeaderLength || offset < 0 || offset + length > bytes.length) return -1;
  return icmpHeaderLength;
}

/** `length` is that of the whole message: what IPv4's total length leaves behind its header. */
export function icmpChecksumIsGood(bytes: Uint8Array, offset: number, length: number): boolean {
  return internetChecksumIsGood(bytes, offset, length);
}

export function icmpType(bytes: Uint8Array, offset: number): number {
  return bytes[offset] ?? 0;
}

export function icmpCode(bytes: Uint8Array, offset: number): number {
  return bytes[offset + codeOffset] ?? 0;
}

/** The identifier of an echo request or reply. */
export function icmpIdentifier(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + identifierOffset);
}

/** The sequence number of an echo request or reply. */
export function icmpSequence(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + sequenceOffset);
}

/**
 * The offset in `bytes` of the IPv4 header that an error quotes, or -1 if the message is no such error (destination
 * unreachable, time exceeded) or does not quote a whole header and the eight bytes behind it (a UDP header, or an echo's
 * identifier and sequence). What is quoted passed `checkIpv4Header`, and is cut off as a rule.
 */
export function icmpQuotedPacketOffset(bytes: Uint8Array, offset: number, length: number): number {
  if (checkIcmp(bytes, offset, length) < 0) return -1;
  const type = icmpType(bytes, offset);
  if (type !== icmpDestinationUnreachable && type !== icmpTimeExceeded) return -1;
  const quotedOffset = offset + icmpHeaderLength;
  const quotedLength = length - icmpHeaderLength;
  const headerLength = checkIpv4Header(bytes, quotedOffset, quotedLength);
  return headerLength < 0 || quotedLength < headerLength + icmpMinQuotedPayload ? -1 : quotedOffset;
}

/** The MTU in bytes that {@link icmpFragmentationNeeded} reports (RFC 1191); 0 from a router that does not know. */
export function icmpNextHopMtu(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + nextHopMtuOffset);
}

/**
 * Writes the header of an echo request or reply and returns its length, 8. The payload must be in place behind it: the
 * checksum covers it.
 */
export function writeIcmpEcho(
  bytes: Uint8Array,
  offset: number,
  type: typeof icmpEchoRequest | typeof icmpEchoReply,
  identifier: number,
  sequence: number,
  payloadLength: number,
): number {
  bytes[offset] = type;
  bytes[offset + codeOffset] = 0;
  writeUint16Be(bytes, offset + identifierOffset, identifier);
  writeUint16Be(bytes, offset + sequenceOffset, sequence);
  writeIcmpChecksum(bytes, offset, icmpHeaderLength + payloadLength);
  return icmpHeaderLength;
}

/** Changes the sequence number of an echo request; the checksum follows. */
export function setIcmpSequence(bytes: Uint8Array, offset: number, sequence: number): void {
  rewriteUint16(bytes, offset + checksumOffset, offset + sequenceOffset, sequence);
}

/** Makes an echo request of `length` bytes its own reply. */
export function turnIcmpEchoIntoReply(bytes: Uint8Array, offset: number, length: number): void {
  const checksum = updateChecksum(readUint16Be(bytes, offset + checksumOffset), icmpEchoRequest << 8, 0);
  bytes[offset] = icmpEchoReply;
  writeUint16Be(bytes, offset + checksumOffset, checksum);
  // 0 may mean that all the rest is zero as well, and that has another checksum.
  if (checksum === 0) writeIcmpChecksum(bytes, offset, length);
}

/**
 * Writes an error that quotes `quotedLength` bytes of a packet, beginning with its IPv4 header, and returns the length
 * of the whole message. `nextHopMtu` in bytes is 0 unless the code is {@link icmpFragmentationNeeded}.
 */
export function writeIcmpError(
  bytes: Uint8Array,
  offset: number,
  type: typeof icmpDestinationUnreachable | typeof icmpTimeExceeded,
  code: number,
  nextHopMtu: number,
  quoted: Uint8Array,
  quotedOffset: number,
  quotedLength: number,
): number {
  const length = icmpHeaderLength + quotedLength;
  bytes[offset] = type;
  bytes[offset + codeOffset] = code;
  writeUint16Be(bytes, offset + identifierOffset, 0);
  writeUint16Be(bytes, offset + nextHopMtuOffset, nextHopMtu);
  bytes.set(quoted.subarray(quotedOffset, quotedOffset + quotedLength), offset + icmpHeaderLength);
  writeIcmpChecksum(bytes, offset, length);
  return length;
}

function writeIcmpChecksum(bytes: Uint8Array, offset: number, length: number): void {
  writeUint16Be(bytes, offset + checksumOffset, 0);
  writeUint16Be(bytes, offset + checksumOffset, internetChecksum(bytes, offset, length));
}
