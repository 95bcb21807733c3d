import { readUint16Be } from './byte-order.ts';

/** IPv6 (RFC 8200). `offset` is always that of the header's first byte. */
export const ipv6HeaderLength = 40;

/** Where in the header these fields are. */
export const ipv6PayloadLengthOffset = 4;

const nextHeaderOffset = 6;
/** Extension headers that merely stand in front of the payload: hop-by-hop options, routing, destination options. */
const passedOver: ReadonlySet<number> = new Set([0, 43, 60]);
const extensionUnit = 8;
const extensionLimit = 8;

/**
 * The length of the header, 40, or -1 if the version is not 6 or the payload is not all there; bytes behind it, such as
 * Ethernet's padding, are fine.
 */
export function checkIpv6(bytes: Uint8Array, offset: number, length: number): number {
  if (length < ipv6HeaderLength || offset < 0 || offset + length > bytes.length) return -1;
  if ((bytes[offset] ?? 0) >>> 4 !== 6) return -1;
  return ipv6HeaderLength + ipv6PayloadLength(bytes, offset) > length ? -1 : ipv6HeaderLength;
}

/** Bytes behind the header, extension headers included. */
export function ipv6PayloadLength(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + ipv6PayloadLengthOffset);
}

export function ipv6NextHeader(bytes: Uint8Array, offset: number): number {
  return bytes[offset + nextHeaderOffset] ?? 0;
}

/**
 * What stands behind a header and the extension headers in front of its payload: the protocol in the low eight bits, where it
 * begins in those above (one number, since this is asked of every packet). What is cut short ends the search where it is.
 * @param end of the bytes that may be looked at
 */
export function ipv6Payload(bytes: Uint8Array, offset: number, end: number): number {
  let next = ipv6NextHeader(bytes, offset);
  let at = offset + ipv6HeaderLength;
  for (let i = 0; i < extensionLimit && passedOver.has(next) && at + extensionUnit <= end; i++) {
    next = bytes[at] ?? 0;
    at += extensionUnit * ((bytes[at + 1] ?? 0) + 1);
  }
  return (at << 8) | next;
}

/**
 * Where the payload of that protocol begins, behind extension headers that merely stand in front of it; -1 if it is of
 * another protocol, a fragment, or not all there. The packet must have passed {@link checkIpv6}.
 */
export function ipv6PayloadOffset(bytes: Uint8Array, offset: number, protocol: number): number {
  const end = offset + ipv6HeaderLength + ipv6PayloadLength(bytes, offset);
  const payload = ipv6Payload(bytes, offset, end);
  const at = payload >>> 8;
  return (payload & 0xff) === protocol && at <= end ? at : -1;
}
