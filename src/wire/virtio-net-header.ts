import { readUint16Le, writeUint16Le } from './byte-order.ts';

/**
 * The header that Linux's tun driver puts in front of a frame, and takes there, if asked to (`IFF_VNET_HDR`): what of its
 * checksum, or of cutting it into pieces, has been left to the other side. It is that of virtio's network device (virtio
 * 1.2, 5.1.6, without `num_buffers`), little-endian.
 */
export const virtioNetHeaderLength = 10;

/** Flag: the checksum is still to be filled in; its field holds the sum of the pseudo header. */
export const virtioNeedsChecksum = 0x01;

/** What the frame is to be cut into (`gso_type`). */
export const virtioGso = { none: 0, tcpv4: 1, tcpv6: 4, udp: 5 } as const;
/** Beside `gso_type`: the segment carries CWR, which is to stay on the first piece only. */
const gsoEcn = 0x80;

const gsoTypeOffset = 1;
const headerLengthOffset = 2;
const gsoSizeOffset = 4;
const checksumStartOffset = 6;
const checksumOffsetOffset = 8;

export function virtioFlags(bytes: Uint8Array): number {
  return bytes[0] ?? 0;
}

/** One of {@link virtioGso}, or what is none; a segment of TCP may have "congestion window reduced" beside it. */
export function virtioGsoType(bytes: Uint8Array): number {
  return (bytes[gsoTypeOffset] ?? 0) & ~gsoEcn;
}

export function virtioGsoEcn(bytes: Uint8Array): boolean {
  return ((bytes[gsoTypeOffset] ?? 0) & gsoEcn) !== 0;
}

/** Bytes of the frame that are headers, or more than that: a hint. */
export function virtioHeaderLength(bytes: Uint8Array): number {
  return readUint16Le(bytes, headerLengthOffset);
}

/** Bytes of payload that each piece but the last gets. */
export function virtioGsoSize(bytes: Uint8Array): number {
  return readUint16Le(bytes, gsoSizeOffset);
}

/** Where in the frame that begins which the checksum covers; it ends with the frame. */
export function virtioChecksumStart(bytes: Uint8Array): number {
  return readUint16Le(bytes, checksumStartOffset);
}

/** Where from there on the checksum's field is. */
export function virtioChecksumOffset(bytes: Uint8Array): number {
  return readUint16Le(bytes, checksumOffsetOffset);
}

/** Writes a header at the beginning of `bytes`. */
export function writeVirtioNetHeader(
  bytes: Uint8Array,
  flags: number,
  gsoType: number,
  headerLength: number,
  gsoSize: number,
  checksumStart: number,
  checksumOffset: number,
): void {
  bytes[0] = flags;
  bytes[gsoTypeOffset] = gsoType;
  writeUint16Le(bytes, headerLengthOffset, headerLength);
  writeUint16Le(bytes, gsoSizeOffset, gsoSize);
  writeUint16Le(bytes, checksumStartOffset, checksumStart);
  writeUint16Le(bytes, checksumOffsetOffset, checksumOffset);
}
