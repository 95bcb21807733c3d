/**
 * Segments as a sender hands them to an interface that cuts them, and what is needed to judge the pieces: written out by
 * hand, so that it shares no code with what is tested.
 */
import type { Segmenter } from '../../../src/netif/segmenter.ts';
import { Packet, packetCapacityBytes } from '../../../src/usbnet/packet.ts';

export interface LongSegment {
  readonly protocol: 'tcp' | 'udp';
  readonly version: 4 | 6;
  readonly vlan: boolean;
  /** Bytes of options behind IPv4's header, or in an extension header of IPv6; of TCP. Multiples of 4 (IPv6: 8). */
  readonly networkOptions: number;
  readonly tcpOptions: number;
  readonly flags: number;
  readonly sequence: number;
  readonly identification: number;
  readonly payload: Uint8Array;
  readonly gsoSize: number;
}

export const headerBytes = 10;

/** One's complement sum of pairs of bytes, by whole numbers of any size. */
export function plainSum(bytes: Uint8Array): number {
  let sum = 0n;
  for (let i = 0; i < bytes.length; i++) sum += BigInt(bytes[i] ?? 0) << (i % 2 === 0 ? 8n : 0n);
  while (sum > 0xffffn) sum = (sum >> 16n) + (sum & 0xffffn);
  return Number(sum);
}

function joined(...parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const uint16 = (value: number): Uint8Array => Uint8Array.of(value >>> 8, value);
const uint32 = (value: number): Uint8Array => joined(uint16(value >>> 16), uint16(value & 0xffff));
const macAddresses = Uint8Array.of(2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2);

/** The pseudo header of a datagram or segment. */
function pseudoHeader(addresses: Uint8Array, protocol: number, length: number): Uint8Array {
  return joined(addresses, uint32(length), uint32(protocol));
}

/** The virtio_net_hdr and the frame that a sender would hand over. */
export function longSegment(segment: LongSegment): Uint8Array {
  const { version, vlan, payload } = segment;
  const isTcp = segment.protocol === 'tcp';
  const protocol = isTcp ? 6 : 17;
  const ports = Uint8Array.of(0x12, 0x34, 0x14, 0x51);
  const transportHeader = isTcp
    ? joined(
        ports,
        uint32(segment.sequence),
        uint32(0x01020304),
        Uint8Array.of((5 + segment.tcpOptions / 4) << 4, segment.flags),
        uint16(0x0200),
        uint16(0),
        uint16(0),
        new Uint8Array(segment.tcpOptions).fill(1),
      )
    : joined(ports, uint16(8 + payload.length), uint16(0));
  const transportLength = transportHeader.length + payload.length;
  const addresses =
    version === 4
      ? Uint8Array.of(10, 0, 0, 2, 10, 0, 0, 1)
      : Uint8Array.from({ length: 32 }, (_, index) => index * 7);
  transportHeader.set(uint16(plainSum(pseudoHeader(addresses, protocol, transportLength))), isTcp ? 16 : 6);
  const network =
    version === 4
      ? joined(
          Uint8Array.of(0x45 + segment.networkOptions / 4, 0x10),
          uint16(20 + segment.networkOptions + transportLength),
          uint16(segment.identification),
          Uint8Array.of(0x40, 0, 64, protocol, 0, 0),
          addresses,
          new Uint8Array(segment.networkOptions).fill(1),
        )
      : joined(
          Uint8Array.of(0x60, 0, 0, 0),
          uint16(segment.networkOptions + transportLength),
          Uint8Array.of(segment.networkOptions === 0 ? protocol : 60, 64),
          addresses,
          extensionHeader(protocol, segment.networkOptions),
        );
  const ethernet = joined(
    macAddresses,
    vlan ? Uint8Array.of(0x81, 0, 0, 5) : new Uint8Array(0),
    uint16(version === 4 ? 0x0800 : 0x86dd),
  );
  const frame = joined(ethernet, network, transportHeader, payload);
  const header = new DataView(new ArrayBuffer(headerBytes));
  header.setUint8(0, 1);
  header.setUint8(1, isTcp ? (version === 4 ? 1 : 4) : 5);
  header.setUint16(2, frame.length - payload.length, true);
  header.setUint16(4, segment.gsoSize, true);
  header.setUint16(6, ethernet.length + network.length, true);
  header.setUint16(8, isTcp ? 16 : 6, true);
  return joined(new Uint8Array(header.buffer), frame);
}

function extensionHeader(protocol: number, length: number): Uint8Array {
  const header = new Uint8Array(length);
  if (length > 0) header.set([protocol, length / 8 - 1]);
  return header;
}

/** What a receiver finds in a frame. */
export interface ReadFrame {
  readonly addresses: Uint8Array;
  readonly identification: number;
  readonly sequence: number;
  readonly flags: number;
  readonly payload: Uint8Array;
  /** Every checksum and every length is right. */
  readonly isGood: boolean;
}

export function readFrame(frame: Uint8Array): ReadFrame {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  const network = view.getUint16(12) === 0x8100 ? 18 : 14;
  const isIpv4 = (frame[network] ?? 0) >> 4 === 4;
  const networkLength = isIpv4
    ? ((frame[network] ?? 0) & 0x0f) * 4
    : 40 + (frame[network + 6] === 60 ? 8 * ((frame[network + 41] ?? 0) + 1) : 0);
  const first = (frame[network + 6] === 60 ? frame[network + 40] : frame[network + 6]) ?? 0;
  const protocol = isIpv4 ? (frame[network + 9] ?? 0) : first;
  const transport = network + networkLength;
  const segment = frame.subarray(transport);
  const addresses = isIpv4
    ? frame.subarray(network + 12, network + 20)
    : frame.subarray(network + 8, network + 40);
  const isTcp = protocol === 6;
  const transportHeaderLength = isTcp ? ((frame[transport + 12] ?? 0) >> 4) * 4 : 8;
  const lengthIsGood = isIpv4
    ? view.getUint16(network + 2) === frame.length - network
    : view.getUint16(network + 4) === frame.length - network - 40;
  const headerIsGood = !isIpv4 || plainSum(frame.subarray(network, transport)) === 0xffff;
  const sumIsGood = plainSum(joined(pseudoHeader(addresses, protocol, segment.length), segment)) === 0xffff;
  const udpIsGood =
    isTcp || (view.getUint16(transport + 4) === segment.length && view.getUint16(transport + 6) !== 0);
  return {
    addresses,
    identification: isIpv4 ? view.getUint16(network + 4) : 0,
    sequence: isTcp ? view.getUint32(transport + 4) : 0,
    flags: isTcp ? (frame[transport + 13] ?? 0) : 0,
    payload: frame.subarray(transport + transportHeaderLength),
    isGood: lengthIsGood && headerIsGood && sumIsGood && udpIsGood,
  };
}

/** What comes out of a segmenter of what was read; undefined: it is refused. */
export function cutBy(segmenter: Segmenter, read: Uint8Array): Uint8Array[] | undefined {
  const packet = new Packet(packetCapacityBytes);
  segmenter.bytes.set(read.subarray(0, segmenter.bytes.length));
  if (!segmenter.load(Math.min(read.length, segmenter.bytes.length))) return undefined;
  const frames: Uint8Array[] = [];
  while (!segmenter.isEmpty) {
    segmenter.next(packet);
    frames.push(packet.bytes.slice(0, packet.length));
  }
  return frames;
}
