import { readUint16Be, readUint32Be, writeUint16Be, writeUint32Be } from './byte-order.ts';

/**
 * The request to a far end to send UDP to whoever asks: a datagram to port 5209, renewed while it is wanted. A far end
 * that is no longer asked stops by itself.
 *
 * Layout: magic "QSUD", version 1, 3 bytes 0, kbit/s (0: as fast as it can), payload bytes of each datagram, milliseconds
 * that it goes on for without another request (0: stop now).
 */
export const udpSourcePort = 5209;
export const udpSourceRequestLength = 16;

const magic = 0x51535544;
const version = 1;
const versionOffset = 4;
const rateOffset = 8;
const payloadOffset = 12;
const lifetimeOffset = 14;

export interface UdpSourceRequest {
  /** Of IP packets, bits per second, in steps of 1,000; 0: as fast as it goes. */
  readonly rateBitsPerSecond: number;
  readonly payloadBytes: number;
  readonly lifetimeMs: number;
}

/** Writes {@link udpSourceRequestLength} bytes. */
export function writeUdpSourceRequest(bytes: Uint8Array, offset: number, request: UdpSourceRequest): void {
  writeUint32Be(bytes, offset, magic);
  writeUint32Be(bytes, offset + versionOffset, version << 24);
  writeUint32Be(bytes, offset + rateOffset, Math.ceil(request.rateBitsPerSecond / 1000));
  writeUint16Be(bytes, offset + payloadOffset, request.payloadBytes);
  writeUint16Be(bytes, offset + lifetimeOffset, request.lifetimeMs);
}

/** The request in a datagram's payload, or undefined if it is none. */
export function readUdpSourceRequest(
  bytes: Uint8Array,
  offset: number,
  length: number,
): UdpSourceRequest | undefined {
  if (length < udpSourceRequestLength || readUint32Be(bytes, offset) !== magic) return undefined;
  if (readUint32Be(bytes, offset + versionOffset) >>> 24 !== version) return undefined;
  return {
    rateBitsPerSecond: readUint32Be(bytes, offset + rateOffset) * 1000,
    payloadBytes: readUint16Be(bytes, offset + payloadOffset),
    lifetimeMs: readUint16Be(bytes, offset + lifetimeOffset),
  };
}
