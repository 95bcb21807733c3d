/** Lower-case hexadecimal digits, two a byte, with an optional separator ("02:00:…"). */
export function toHex(bytes: Uint8Array, separator = ''): string {
  let text = '';
  for (let i = 0; i < bytes.length; i++) {
    if (i > 0) text += separator;
    text += (bytes[i] ?? 0).toString(16).padStart(2, '0');
  }
  return text;
}

/** Bytes of a text of hexadecimal digits; spaces, colons and dashes between them are skipped.
 *  Undefined if anything else is in it or a digit is left over. */
export function fromHex(text: string): Uint8Array | undefined {
  const digits = text.replaceAll(/[\s:-]/g, '');
  if (digits.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(digits)) return undefined;
  const bytes = new Uint8Array(digits.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/** A DataView over exactly the bytes of `bytes`. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function bytesEqual(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** The smallest multiple of `step` that is at least `value`. */
export function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}
