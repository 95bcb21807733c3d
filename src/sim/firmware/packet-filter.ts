import { packetFilterBits } from '../../wire/cdc-class.ts';
import {
  ethernetDestinationIs,
  ethernetDestinationIsBroadcast,
  ethernetDestinationIsMulticast,
} from '../../wire/ethernet.ts';

/** What a function passes up before the host has set a filter: everything, as Linux's gadgets do. */
export const initialPacketFilter: number =
  packetFilterBits.promiscuous |
  packetFilterBits.allMulticast |
  packetFilterBits.directed |
  packetFilterBits.broadcast;

/**
 * Whether a frame for the host passes SET_ETHERNET_PACKET_FILTER's bits (spec 3.0). A list of multicast addresses is not
 * kept: the bit for it counts as "all".
 */
export function passesPacketFilter(filter: number, bytes: Uint8Array, macAddress: Uint8Array): boolean {
  if ((filter & packetFilterBits.promiscuous) !== 0) return true;
  if (ethernetDestinationIsBroadcast(bytes, 0)) return (filter & packetFilterBits.broadcast) !== 0;
  if (ethernetDestinationIsMulticast(bytes, 0)) {
    return (filter & (packetFilterBits.allMulticast | packetFilterBits.multicast)) !== 0;
  }
  return (filter & packetFilterBits.directed) !== 0 && ethernetDestinationIs(bytes, 0, macAddress);
}
