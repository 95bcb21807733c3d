import { readUint16Be, readUint32Be, writeUint16Be, writeUint32Be } from './byte-order.ts';

/**
 * The Internet checksum (RFC 1071): the complement of the one's complement sum of big-endian 16-bit words, an odd last
 * byte taken as the high byte of a word. Sums are kept folded to 16 bits (0 … 0xffff), so they can be added up.
 *
 * A sum is 0 only if every byte of it is zero; any other multiple of 0xffff comes out as 0xffff.
 */

/** From here on a view with 32-bit reads pays for its making; below, bytes are faster (measured, V8 of Node 20). */
const viewThresholdBytes = 256;

/** Folds a sum of 16-bit words (below 2^32) to 16 bits. */
export function foldSum(sum: number): number {
  const once = (sum & 0xffff) + (sum >>> 16);
  return (once & 0xffff) + (once >>> 16);
}

function sumBytes(bytes: Uint8Array, offset: number, length: number, initialSum: number): number {
  let sum = initialSum | 0;
  const end = (offset + length) | 0;
  let i = offset | 0;
  for (const lastOctet = (end - 8) | 0; i <= lastOctet; i = (i + 8) | 0) {
    sum =
      (sum +
        (((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0)) +
        (((bytes[i + 2] ?? 0) << 8) | (bytes[i + 3] ?? 0)) +
        (((bytes[i + 4] ?? 0) << 8) | (bytes[i + 5] ?? 0)) +
        (((bytes[i + 6] ?? 0) << 8) | (bytes[i + 7] ?? 0))) |
      0;
  }
  for (; i < end - 1; i = (i + 2) | 0) sum = (sum + (((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0))) | 0;
  if (i < end) sum = (sum + ((bytes[i] ?? 0) << 8)) | 0;
  return foldSum(sum);
}

/**
 * The folded one's complement sum of `length` bytes (at most 65,535, all of them within `bytes`), any alignment, added
 * to `initialSum` (folded, 0 to begin with). Parts may be added up if all but the last have an even length.
 */
export function onesComplementSum(bytes: Uint8Array, offset: number, length: number, initialSum = 0): number {
  if (length < viewThresholdBytes) return sumBytes(bytes, offset, length, initialSum);
  // Little-endian words save a byte swap each: the sum is the same but for the order of its own two bytes.
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, length);
  let high = 0;
  let low = 0;
  let i = 0;
  for (const lastBlock = length - 16; i <= lastBlock; i += 16) {
    const a = view.getInt32(i, true);
    const b = view.getInt32(i + 4, true);
    const c = view.getInt32(i + 8, true);
    const d = view.getInt32(i + 12, true);
    high = (high + (a >>> 16) + (b >>> 16) + (c >>> 16) + (d >>> 16)) | 0;
    low = (low + (a & 0xffff) + (b & 0xffff) + (c & 0xffff) + (d & 0xffff)) | 0;
  }
  const sum = foldSum(high + low);
  const swapped = ((sum & 0xff) << 8) | (sum >>> 8);
  return sumBytes(bytes, offset + i, length - i, initialSum + swapped);
}

/** The checksum field of a folded sum: its complement. */
export function complementSum(sum: number): number {
  return ~sum & 0xffff;
}

/** The checksum of a range whose own checksum field is zero. */
export function internetChecksum(bytes: Uint8Array, offset: number, length: number): number {
  return complementSum(onesComplementSum(bytes, offset, length));
}

/** True if a range that contains its checksum field adds up. A range of zeros alone does not. */
export function internetChecksumIsGood(bytes: Uint8Array, offset: number, length: number): boolean {
  return onesComplementSum(bytes, offset, length) === 0xffff;
}

/**
 * The checksum after one 16-bit word of what it covers has changed (RFC 1624, equation 3). Equal to computing it anew,
 * except where the change leaves nothing but zeros: then 0 instead of 0xffff.
 */
export function updateChecksum(checksum: number, oldWord: number, newWord: number): number {
  return complementSum(foldSum((~checksum & 0xffff) + (~oldWord & 0xffff) + (newWord & 0xffff)));
}

/** {@link updateChecksum} for a 32-bit value at an even distance from the start of what is covered. */
export function updateChecksumUint32(checksum: number, oldValue: number, newValue: number): number {
  return updateChecksum(
    updateChecksum(checksum, oldValue >>> 16, newValue >>> 16),
    oldValue & 0xffff,
    newValue & 0xffff,
  );
}

/** Writes a 16-bit field and puts the checksum at `checksumOffset` right; the field lies at an even distance. */
export function rewriteUint16(
  bytes: Uint8Array,
  checksumOffset: number,
  fieldOffset: number,
  value: number,
): void {
  const checksum = readUint16Be(bytes, checksumOffset);
  writeUint16Be(bytes, checksumOffset, updateChecksum(checksum, readUint16Be(bytes, fieldOffset), value));
  writeUint16Be(bytes, fieldOffset, value);
}

/** {@link rewriteUint16} for a 32-bit field. */
export function rewriteUint32(
  bytes: Uint8Array,
  checksumOffset: number,
  fieldOffset: number,
  value: number,
): void {
  const checksum = readUint16Be(bytes, checksumOffset);
  writeUint16Be(
    bytes,
    checksumOffset,
    updateChecksumUint32(checksum, readUint32Be(bytes, fieldOffset), value),
  );
  writeUint32Be(bytes, fieldOffset, value);
}
