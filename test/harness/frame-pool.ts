import { type Packet, PacketPool } from '../../src/usbnet/packet.ts';
import { writeUint16Be } from '../../src/wire/byte-order.ts';
import { etherTypeIpv4, etherTypeIpv6, writeEthernet } from '../../src/wire/ethernet.ts';
import { ipProtocolUdp, writeIpv4 } from '../../src/wire/ipv4.ts';
import { writeUdp } from '../../src/wire/udp.ts';

const destination = Uint8Array.of(2, 0, 0, 0, 0, 1);
const source = Uint8Array.of(2, 0, 0, 0, 0, 2);
const headers = 14 + 20 + 8;

export interface UdpShape {
  readonly port?: number;
  /** TOS byte; its lower two bits are ECN. */
  readonly tos?: number;
  /** Of the frame, without VLAN tag. */
  readonly length?: number;
  readonly vlan?: number;
  readonly protocol?: number;
  readonly tag?: number;
}

/** Ethernet frames in packets of one pool, so that a test sees whether all came back. */
export class FramePool {
  readonly pool: PacketPool;

  constructor(limit = 20_000) {
    this.pool = new PacketPool(limit);
  }

  take(length: number, tag = 0): Packet {
    const packet = this.pool.take();
    if (packet === undefined) throw new Error('no packet');
    packet.bytes.fill(0, 0, length);
    return Object.assign(packet, { length, tag });
  }

  udp(shape: UdpShape = {}): Packet {
    const { port = 1, tos = 0, length = 1514, vlan, tag = 0, protocol = ipProtocolUdp } = shape;
    const packet = this.take(length + (vlan === undefined ? 0 : 4), tag);
    const { bytes } = packet;
    let offset = writeEthernet(bytes, 0, destination, source, vlan === undefined ? etherTypeIpv4 : 0x8100);
    if (vlan !== undefined) {
      writeUint16Be(bytes, offset, vlan);
      writeUint16Be(bytes, offset + 2, etherTypeIpv4);
      offset += 4;
    }
    const payload = length - 34;
    offset += writeIpv4(bytes, offset, tos, payload, 7, true, 64, protocol, 0x0a090002, 0x0a090001);
    writeUdp(bytes, offset, 1000, port, length - headers, 0x0a090002, 0x0a090001);
    return packet;
  }

  /** @param label of the flow, 20 bits */
  ipv6(port: number, ecn: number, label = 0): Packet {
    const packet = this.take(14 + 40 + 8 + 100);
    const { bytes } = packet;
    writeEthernet(bytes, 0, destination, source, etherTypeIpv6);
    bytes[14] = 0x60;
    bytes[15] = (ecn << 4) | (label >>> 16);
    writeUint16Be(bytes, 16, label & 0xffff);
    writeUint16Be(bytes, 18, 108);
    bytes[20] = ipProtocolUdp;
    bytes[22 + 15] = 1;
    bytes[38 + 15] = 2;
    writeUint16Be(bytes, 54, 1000);
    writeUint16Be(bytes, 56, port);
    return packet;
  }
}
