import { ethernetDestinationIs } from '../../wire/ethernet.ts';
import { macAddressIsBroadcast, macAddressIsMulticast, macAddressLength } from '../../wire/mac-address.ts';
import { crc32 } from '../../wire/crc32.ts';

/** Which bits of a receiver's control register mean what; the same in all of ASIX' chips (spec 3.8, 3.9). */
export const receiveFilterBits = {
  promiscuous: 0x01,
  allMulticast: 0x02,
  broadcast: 0x08,
  multicastFilter: 0x10,
} as const;

/** The bit of a filter of 64 that a group address sets: the six highest of the Ethernet CRC, highest bit first. */
export function multicastHash(bytes: Uint8Array, offset = 0): number {
  const crc = ~crc32(bytes, offset, macAddressLength) >>> 0;
  let hash = 0;
  // The table's CRC has its bits the other way round.
  for (let bit = 0; bit < 6; bit++) hash = (hash << 1) | ((crc >>> bit) & 1);
  return hash;
}

/** Whether a frame passes a receiver with these bits, this address, and this filter of eight bytes. */
export function passesReceiveFilter(
  control: number,
  bytes: Uint8Array,
  macAddress: Uint8Array,
  multicastFilter: Uint8Array,
): boolean {
  if ((control & receiveFilterBits.promiscuous) !== 0) return true;
  if (macAddressIsBroadcast(bytes)) return (control & receiveFilterBits.broadcast) !== 0;
  if (macAddressIsMulticast(bytes)) {
    if ((control & receiveFilterBits.allMulticast) !== 0) return true;
    if ((control & receiveFilterBits.multicastFilter) === 0) return false;
    const hash = multicastHash(bytes);
    return (((multicastFilter[hash >> 3] ?? 0) >> (hash & 7)) & 1) !== 0;
  }
  return ethernetDestinationIs(bytes, 0, macAddress);
}
