import { readUint16Be, readUint32Be, writeUint16Be, writeUint32Be } from './byte-order.ts';
import { complementSum, onesComplementSum, updateChecksumUint32 } from './checksum.ts';
import { ipProtocolUdp, ipv4PseudoHeaderSum } from './ipv4.ts';

/** UDP over IPv4 (RFC 768). */
export const udpHeaderLength = 8;

const destinationPortOffset = 2;
/** Where in the header these fields are. */
export const udpLengthOffset = 4;
export const udpChecksumOffset = 6;
const noChecksum = 0;

/**
 * The length of the header, 8, or -1 if the datagram is shorter, or its length field is less than 8 or more than
 * `length`. The checksum is {@link udpChecksumIsGood}'s business.
 */
export function checkUdp(bytes: Uint8Array, offset: number, length: number): number {
  if (length < udpHeaderLength || offset < 0 || offset + length > bytes.length) return -1;
  const udpBytes = udpLength(bytes, offset);
  return udpBytes < udpHeaderLength || udpBytes > length ? -1 : udpHeaderLength;
}

/** True too if the sender computed none. `source` and `destination` are the IPv4 addresses. */
export function udpChecksumIsGood(
  bytes: Uint8Array,
  offset: number,
  source: number,
  destination: number,
): boolean {
  if (readUint16Be(bytes, offset + udpChecksumOffset) === noChecksum) return true;
  const length = udpLength(bytes, offset);
  const pseudoHeaderSum = ipv4PseudoHeaderSum(source, destination, ipProtocolUdp, length);
  return onesComplementSum(bytes, offset, length, pseudoHeaderSum) === 0xffff;
}

export function udpSourcePort(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset);
}

export function udpDestinationPort(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + destinationPortOffset);
}

/** Bytes, header included. */
export function udpLength(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + udpLengthOffset);
}

/**
 * Writes the header and returns its length, 8. The payload must be in place behind it: the checksum covers it, and the
 * IPv4 addresses.
 */
export function writeUdp(
  bytes: Uint8Array,
  offset: number,
  sourcePort: number,
  destinationPort: number,
  payloadLength: number,
  source: number,
  destination: number,
): number {
  const length = writeUdpWithoutChecksum(bytes, offset, sourcePort, destinationPort, payloadLength);
  const datagramLength = length + payloadLength;
  const pseudoHeaderSum = ipv4PseudoHeaderSum(source, destination, ipProtocolUdp, datagramLength);
  const checksum = complementSum(onesComplementSum(bytes, offset, datagramLength, pseudoHeaderSum));
  writeUint16Be(bytes, offset + udpChecksumOffset, asSent(checksum));
  return length;
}

/** As {@link writeUdp}, with a checksum of zero: "none". */
export function writeUdpWithoutChecksum(
  bytes: Uint8Array,
  offset: number,
  sourcePort: number,
  destinationPort: number,
  payloadLength: number,
): number {
  writeUint16Be(bytes, offset, sourcePort);
  writeUint16Be(bytes, offset + destinationPortOffset, destinationPort);
  writeUint16Be(bytes, offset + udpLengthOffset, udpHeaderLength + payloadLength);
  writeUint16Be(bytes, offset + udpChecksumOffset, noChecksum);
  return udpHeaderLength;
}

/** Changes 32 bits of the payload, at an even `payloadOffset`; the checksum follows if there is one. */
export function setUdpPayloadUint32(
  bytes: Uint8Array,
  offset: number,
  payloadOffset: number,
  value: number,
): void {
  const fieldOffset = offset + udpHeaderLength + payloadOffset;
  const checksum = readUint16Be(bytes, offset + udpChecksumOffset);
  if (checksum !== noChecksum) {
    const updated = updateChecksumUint32(checksum, readUint32Be(bytes, fieldOffset), value);
    writeUint16Be(bytes, offset + udpChecksumOffset, asSent(updated));
  }
  writeUint32Be(bytes, fieldOffset, value);
}

/** A checksum that happens to be 0 is sent as 0xffff, since 0 says that there is none. */
function asSent(checksum: number): number {
  return checksum === 0 ? 0xffff : checksum;
}
