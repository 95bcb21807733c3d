import { readUint16Be, readUint32Be } from './byte-order.ts';

/** TCP (RFC 9293). `offset` is always that of the header's first byte. */
export const tcpMinHeaderLength = 20;
export const ipProtocolTcp = 6;

export const tcpFlags = { fin: 0x01, psh: 0x08, ack: 0x10, cwr: 0x80 } as const;

/** Where in the header these fields are. */
export const tcpSequenceOffset = 4;
export const tcpFlagsOffset = 13;
export const tcpChecksumOffset = 16;

const acknowledgmentOffset = 8;
const dataOffsetOffset = 12;
const windowOffset = 14;

/** The length of the header, options included (20 … 60), or -1 if it is impossible or not all there. */
export function checkTcp(bytes: Uint8Array, offset: number, length: number): number {
  if (length < tcpMinHeaderLength || offset < 0 || offset + length > bytes.length) return -1;
  const headerLength = tcpHeaderLength(bytes, offset);
  return headerLength < tcpMinHeaderLength || headerLength > length ? -1 : headerLength;
}

/** Bytes, options included. */
export function tcpHeaderLength(bytes: Uint8Array, offset: number): number {
  return ((bytes[offset + dataOffsetOffset] ?? 0) >>> 4) * 4;
}

export function tcpSequence(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + tcpSequenceOffset);
}

export function tcpAcknowledgment(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + acknowledgmentOffset);
}

/** The eight flags, CWR to FIN. */
export function tcpFlagsOf(bytes: Uint8Array, offset: number): number {
  return bytes[offset + tcpFlagsOffset] ?? 0;
}

/** As it is in the header, not scaled. */
export function tcpWindow(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + windowOffset);
}
