import type { LinkLayer } from '../../../src/ip/link-layer.ts';
import { type Packet, PacketPool } from '../../../src/usbnet/packet.ts';
import { arpReply, arpRequest, writeArp } from '../../../src/wire/arp.ts';
import { etherTypeArp, etherTypeIpv4, writeEthernet } from '../../../src/wire/ethernet.ts';
import { writeIpv4 } from '../../../src/wire/ipv4.ts';
import { broadcastMacAddress } from '../../../src/wire/mac-address.ts';
import { writeUdp } from '../../../src/wire/udp.ts';

export const ourMac = Uint8Array.of(0x02, 0, 0, 0, 0, 1);
export const peerMac = Uint8Array.of(0x02, 0, 0, 0, 0, 0xfe);

/** "10.9.0.2" as a number, without the help of what is tested. */
export function ip(text: string): number {
  return text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

export interface SentFrame {
  readonly bytes: Uint8Array;
  readonly priority: number;
  readonly tag: number;
  readonly nowUs: number;
}

/** A link that keeps what is sent over it. */
export class LinkDouble implements LinkLayer {
  readonly macAddress = ourMac;
  mtuBytes = 1500;
  readonly packets = new PacketPool(4096);
  readonly sent: SentFrame[] = [];
  /** Takes no packets while it is false. */
  accepts = true;

  transmit(packet: Packet, nowUs: number): boolean {
    if (this.accepts) {
      const { priority, tag, length } = packet;
      this.sent.push({ bytes: packet.bytes.slice(0, length), priority, tag, nowUs });
    }
    packet.release();
    return this.accepts;
  }

  /** What was sent since the last time. */
  take(): readonly SentFrame[] {
    return this.sent.splice(0);
  }
}

/** The one's complement sum of RFC 1071, the plain way: 0xffff over a range that contains its good checksum. */
export function plainSum(bytes: Uint8Array, initial = 0): number {
  let sum = initial;
  for (let i = 0; i < bytes.length; i += 2) sum += ((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + Math.floor(sum / 0x10000);
  return sum;
}

/** What a frame says, read by hand; the checksums are good if they are true. */
export function readFrame(bytes: Uint8Array): {
  readonly destinationMac: Uint8Array;
  readonly sourceMac: Uint8Array;
  readonly type: number;
  readonly tos: number;
  readonly totalLength: number;
  readonly identification: number;
  readonly timeToLive: number;
  readonly protocol: number;
  readonly source: number;
  readonly destination: number;
  readonly payload: Uint8Array;
  readonly headerChecksum: boolean;
  readonly udpChecksum: boolean;
} {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const type = view.getUint16(12);
  if (type !== 0x0800) {
    const none = {
      tos: 0,
      totalLength: 0,
      identification: 0,
      timeToLive: 0,
      protocol: 0,
      source: 0,
      destination: 0,
    };
    const parts = { payload: bytes.subarray(14), headerChecksum: false, udpChecksum: false };
    return { destinationMac: bytes.slice(0, 6), sourceMac: bytes.slice(6, 12), type, ...none, ...parts };
  }
  const payload = bytes.subarray(34, 14 + view.getUint16(16));
  // Pseudo header: addresses, protocol, length.
  const pseudo = plainSum(bytes.subarray(26, 34)) + (bytes[23] ?? 0) + payload.length;
  return {
    destinationMac: bytes.slice(0, 6),
    sourceMac: bytes.slice(6, 12),
    type,
    tos: bytes[15] ?? 0,
    totalLength: view.getUint16(16),
    identification: view.getUint16(18),
    timeToLive: bytes[22] ?? 0,
    protocol: bytes[23] ?? 0,
    source: view.getUint32(26),
    destination: view.getUint32(30),
    payload,
    headerChecksum: plainSum(bytes.subarray(14, 34)) === 0xffff,
    udpChecksum: payload.length >= 8 && plainSum(payload, pseudo) === 0xffff,
  };
}

/** What an ARP frame says; undefined if it is none. */
export function readArp(bytes: Uint8Array):
  | {
      readonly operation: number;
      readonly senderMac: Uint8Array;
      readonly senderIp: number;
      readonly targetMac: Uint8Array;
      readonly targetIp: number;
    }
  | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < 42 || view.getUint16(12) !== 0x0806) return undefined;
  return {
    operation: view.getUint16(20),
    senderMac: bytes.slice(22, 28),
    senderIp: view.getUint32(28),
    targetMac: bytes.slice(32, 38),
    targetIp: view.getUint32(38),
  };
}

export function arpFrame(
  operation: 'request' | 'reply',
  senderMac: Uint8Array,
  senderIp: number,
  targetIp: number,
): Uint8Array {
  const bytes = new Uint8Array(60);
  writeEthernet(bytes, 0, operation === 'request' ? broadcastMacAddress : ourMac, senderMac, etherTypeArp);
  const code = operation === 'request' ? arpRequest : arpReply;
  writeArp(
    bytes,
    14,
    code,
    senderMac,
    senderIp,
    operation === 'request' ? new Uint8Array(6) : ourMac,
    targetIp,
  );
  return bytes;
}

/** An IPv4 packet in a frame; the payload's own checksum is its own business. */
export function ipFrame(
  protocol: number,
  source: number,
  destination: number,
  payload: Uint8Array,
  more: { readonly destinationMac?: Uint8Array; readonly tos?: number } = {},
): Uint8Array {
  const bytes = new Uint8Array(34 + payload.length);
  writeEthernet(bytes, 0, more.destinationMac ?? ourMac, peerMac, etherTypeIpv4);
  writeIpv4(bytes, 14, more.tos ?? 0, payload.length, 1, false, 64, protocol, source, destination);
  bytes.set(payload, 34);
  return bytes;
}

export function udpFrame(
  source: number,
  sourcePort: number,
  destination: number,
  destinationPort: number,
  data: Uint8Array,
  destinationMac?: Uint8Array,
): Uint8Array {
  const payload = new Uint8Array(8 + data.length);
  payload.set(data, 8);
  writeUdp(payload, 0, sourcePort, destinationPort, data.length, source, destination);
  return ipFrame(17, source, destination, payload, destinationMac === undefined ? {} : { destinationMac });
}

/** An echo request or reply with its checksum. */
export function echo(
  type: 'request' | 'reply',
  identifier: number,
  sequence: number,
  data: Uint8Array,
): Uint8Array {
  const bytes = new Uint8Array(8 + data.length);
  const view = new DataView(bytes.buffer);
  bytes[0] = type === 'request' ? 8 : 0;
  view.setUint16(4, identifier);
  view.setUint16(6, sequence);
  bytes.set(data, 8);
  view.setUint16(2, 0xffff - plainSum(bytes));
  return bytes;
}
