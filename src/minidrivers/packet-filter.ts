import { cdcRequests, packetFilterBits } from '../wire/cdc-class.ts';
import type { RxMode } from '../usbnet/minidriver.ts';
import { controlOut, type Procedure } from '../usbnet/procedure.ts';

/**
 * SET_ETHERNET_PACKET_FILTER (spec 3.1): always what is sent to us and to all. Its status is of no interest: devices
 * that have no filter refuse the request and work.
 */
export function* setPacketFilter(controlInterface: number, mode: RxMode): Procedure<void> {
  let bits: number = packetFilterBits.directed | packetFilterBits.broadcast;
  if (mode.promiscuous) bits |= packetFilterBits.promiscuous;
  if (mode.multicast) bits |= packetFilterBits.allMulticast;
  yield* controlOut('class-interface', cdcRequests.setEthernetPacketFilter, bits, controlInterface);
}
