import { fromHex } from '../../../src/base/bytes.ts';

/** Bytes from hexadecimal text; spaces, line breaks and "|" are for the reader. Throws on anything else. */
export function bytesOf(text: string): Uint8Array {
  const bytes = fromHex(text.replaceAll('|', ''));
  if (bytes === undefined) throw new Error(`not hexadecimal: ${text}`);
  return bytes;
}

/** `bytes` in the middle of a larger buffer of ones, so that a wrong offset shows. */
export function embedded(bytes: Uint8Array, offset: number, trailing = 7): Uint8Array {
  const buffer = new Uint8Array(offset + bytes.length + trailing).fill(0xff);
  buffer.set(bytes, offset);
  return buffer;
}
