import { readUint16Be, writeUint16Be } from './byte-order.ts';
import {
  copyMacAddress,
  macAddressesEqual,
  macAddressIsBroadcast,
  macAddressIsMulticast,
  macAddressLength,
} from './mac-address.ts';

/** Ethernet II: destination, source, EtherType (IEEE 802.3). */
export const ethernetHeaderLength = 14;

export const etherTypeIpv4 = 0x0800;
export const etherTypeArp = 0x0806;
export const etherTypeIpv6 = 0x86dd;

const sourceOffset = macAddressLength;
const typeOffset = 2 * macAddressLength;

/** The length of the header, 14, or -1 if the frame is shorter. Any EtherType is accepted, as is a length field. */
export function checkEthernet(bytes: Uint8Array, offset: number, length: number): number {
  if (length < ethernetHeaderLength || offset < 0 || offset + length > bytes.length) return -1;
  return ethernetHeaderLength;
}

/** The EtherType; below 0x0600 it is the length of an 802.3 frame. */
export function ethernetType(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + typeOffset);
}

export function ethernetDestinationIs(bytes: Uint8Array, offset: number, address: Uint8Array): boolean {
  return macAddressesEqual(bytes, offset, address, 0);
}

export function ethernetDestinationIsMulticast(bytes: Uint8Array, offset: number): boolean {
  return macAddressIsMulticast(bytes, offset);
}

export function ethernetDestinationIsBroadcast(bytes: Uint8Array, offset: number): boolean {
  return macAddressIsBroadcast(bytes, offset);
}

export function copyEthernetDestination(bytes: Uint8Array, offset: number, to: Uint8Array): void {
  copyMacAddress(bytes, offset, to, 0);
}

export function copyEthernetSource(bytes: Uint8Array, offset: number, to: Uint8Array): void {
  copyMacAddress(bytes, offset + sourceOffset, to, 0);
}

/** Writes a header and returns its length. */
export function writeEthernet(
  bytes: Uint8Array,
  offset: number,
  destination: Uint8Array,
  source: Uint8Array,
  type: number,
): number {
  copyMacAddress(destination, 0, bytes, offset);
  copyMacAddress(source, 0, bytes, offset + sourceOffset);
  writeUint16Be(bytes, offset + typeOffset, type);
  return ethernetHeaderLength;
}
