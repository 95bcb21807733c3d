import { ethernetHeaderLength, ethernetType } from '../wire/ethernet.ts';
import { readUint16Be } from '../wire/byte-order.ts';

/** VLAN tags (IEEE 802.1Q, and 802.1ad around it) stand between the addresses and the EtherType proper. */
const etherTypeVlan = 0x8100;
const etherTypeServiceVlan = 0x88a8;
const vlanTagLength = 4;
const tagLimit = 2;

/** Where the network header of a frame begins, behind any VLAN tags; its EtherType is the two bytes before. */
export function networkHeaderOffset(bytes: Uint8Array, length: number): number {
  if (length < ethernetHeaderLength) return length;
  let offset = ethernetHeaderLength;
  let type = ethernetType(bytes, 0);
  for (let i = 0; i < tagLimit && isVlan(type) && offset + vlanTagLength <= length; i++) {
    type = readUint16Be(bytes, offset + 2);
    offset += vlanTagLength;
  }
  return offset;
}

function isVlan(type: number): boolean {
  return type === etherTypeVlan || type === etherTypeServiceVlan;
}
