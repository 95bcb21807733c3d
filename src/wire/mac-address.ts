import { fromHex, toHex } from '../base/bytes.ts';

/** MAC addresses are {@link macAddressLength} bytes in wire order. */
export const macAddressLength = 6;

/** ff:ff:ff:ff:ff:ff. Shared: not to be written to. */
export const broadcastMacAddress: Uint8Array = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff);

/** 00:00:00:00:00:00. Shared: not to be written to. */
export const zeroMacAddress: Uint8Array = new Uint8Array(macAddressLength);

/** "02:00:5e:10:00:01". */
export function formatMacAddress(bytes: Uint8Array, offset = 0): string {
  return toHex(bytes.subarray(offset, offset + macAddressLength), ':');
}

/** Twelve hexadecimal digits: bare (as in the string of CDC's iMACAddress), or in pairs with colons or dashes. */
export function parseMacAddress(text: string): Uint8Array | undefined {
  const isMacAddress = /^(?:[0-9a-f]{12}|[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]{2}(?:-[0-9a-f]{2}){5})$/i;
  return isMacAddress.test(text) ? fromHex(text) : undefined;
}

/** Compares six bytes of each buffer. */
export function macAddressesEqual(a: Uint8Array, aOffset: number, b: Uint8Array, bOffset: number): boolean {
  for (let i = 0; i < macAddressLength; i++) if (a[aOffset + i] !== b[bOffset + i]) return false;
  return true;
}

/** Copies six bytes from one buffer to another. */
export function copyMacAddress(from: Uint8Array, fromOffset: number, to: Uint8Array, toOffset: number): void {
  for (let i = 0; i < macAddressLength; i++) to[toOffset + i] = from[fromOffset + i] ?? 0;
}

/** A group address; the broadcast address is one too. */
export function macAddressIsMulticast(bytes: Uint8Array, offset = 0): boolean {
  return ((bytes[offset] ?? 0) & 0x01) !== 0;
}

export function macAddressIsBroadcast(bytes: Uint8Array, offset = 0): boolean {
  return macAddressesEqual(bytes, offset, broadcastMacAddress, 0);
}

export function macAddressIsLocallyAdministered(bytes: Uint8Array, offset = 0): boolean {
  return ((bytes[offset] ?? 0) & 0x02) !== 0;
}

/** An address that a station may have: not a group, not all zeros. */
export function macAddressIsUsable(bytes: Uint8Array, offset = 0): boolean {
  return !macAddressIsMulticast(bytes, offset) && !macAddressesEqual(bytes, offset, zeroMacAddress, 0);
}
