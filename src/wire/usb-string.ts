import { readUint16Le, writeUint16Le } from './byte-order.ts';
import { descriptorTypes } from './usb-descriptor.ts';

/** String descriptors (USB 2.0 section 9.6.7): UTF-16LE behind a header of two bytes. Index 0 lists the languages. */

const headerLength = 2;
/** The length of a descriptor is one byte. */
const maxCodeUnits = 126;

export const languageEnglishUnitedStates = 0x0409;

/** The text, or undefined if this is no string descriptor. Cut off or odd, what is there counts. */
export function parseStringDescriptor(bytes: Uint8Array): string | undefined {
  const codeUnits = parseLanguageList(bytes);
  return codeUnits === undefined ? undefined : String.fromCharCode(...codeUnits);
}

/** Text beyond 126 UTF-16 code units is cut off. */
export function encodeStringDescriptor(text: string): Uint8Array {
  const codeUnits = Array.from({ length: Math.min(text.length, maxCodeUnits) }, (_, i) => text.charCodeAt(i));
  return encodeLanguageList(codeUnits);
}

/** The language ids of string descriptor 0, or undefined if this is no string descriptor. */
export function parseLanguageList(bytes: Uint8Array): readonly number[] | undefined {
  const length = Math.min(bytes[0] ?? 0, bytes.length);
  if (length < headerLength || bytes[1] !== descriptorTypes.string) return undefined;
  return Array.from({ length: (length - headerLength) >> 1 }, (_, i) =>
    readUint16Le(bytes, headerLength + 2 * i),
  );
}

/** String descriptor 0, for up to 126 language ids. */
export function encodeLanguageList(languageIds: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(headerLength + 2 * languageIds.length);
  bytes[0] = bytes.length;
  bytes[1] = descriptorTypes.string;
  languageIds.forEach((id, i) => writeUint16Le(bytes, headerLength + 2 * i, id));
  return bytes;
}
