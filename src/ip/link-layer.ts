import type { Packet, PacketPool } from '../usbnet/packet.ts';

/** What the IP host needs of a network interface; {@link Netif} is one. */
export interface LinkLayer {
  readonly macAddress: Uint8Array;
  readonly mtuBytes: number;
  readonly packets: PacketPool;
  /** Takes the packet over. False: dropped. */
  transmit(packet: Packet, nowUs: number): boolean;
}
