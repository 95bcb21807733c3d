import { ethernetHeaderLength } from '../wire/ethernet.ts';
import { ipProtocolUdp, setIpv4Identification } from '../wire/ipv4.ts';
import { setUdpPayloadUint32, udpHeaderLength, writeUdp } from '../wire/udp.ts';
import type { SendResult } from './icmp-socket.ts';
import { ipv4PayloadOffset, type IpStack } from './ip-stack.ts';

/** The payload's first bytes: a sequence number, where there is room for one. */
const sequenceBytes = 4;
/** The template is built anew after this long, so that another address, route or MAC address is taken up. */
const templateUs = 1_000_000;

/**
 * A flow of equal UDP datagrams to one destination, numbered in their first four bytes. The first one is built; each
 * later one is a copy with two fields and their checksums changed.
 */
export class UdpFlow {
  readonly #stack: IpStack;
  readonly #destination: number;
  readonly #sourcePort: number;
  readonly #destinationPort: number;
  readonly #tos: number;
  readonly #payloadBytes: number;
  #template: Uint8Array | undefined;
  #templateUntilUs = 0;
  #priority = 0;
  #sequence = 0;

  constructor(options: {
    readonly stack: IpStack;
    readonly destination: number;
    readonly sourcePort: number;
    readonly destinationPort: number;
    readonly tos: number;
    readonly payloadBytes: number;
  }) {
    this.#stack = options.stack;
    this.#destination = options.destination;
    this.#sourcePort = options.sourcePort;
    this.#destinationPort = options.destinationPort;
    this.#tos = options.tos;
    this.#payloadBytes = options.payloadBytes;
  }

  /** Bytes of the IP packet of one datagram; a rate is reckoned in these. */
  get ipPacketBytes(): number {
    return ipv4PayloadOffset - ethernetHeaderLength + udpHeaderLength + this.#payloadBytes;
  }

  /** Datagrams that were handed to the interface. */
  get sent(): number {
    return this.#sequence;
  }

  send(tag: number, nowUs: number): SendResult {
    if (nowUs >= this.#templateUntilUs) this.#template = undefined;
    const template = this.#template ?? this.#build(nowUs);
    if (template === undefined) return 'unresolved';
    const packet = this.#stack.link.packets.take();
    if (packet === undefined) return 'dropped';
    packet.bytes.set(template);
    packet.length = template.length;
    packet.priority = this.#priority;
    packet.tag = tag;
    setIpv4Identification(packet.bytes, ethernetHeaderLength, this.#stack.nextIdentification());
    if (this.#payloadBytes >= sequenceBytes) {
      setUdpPayloadUint32(packet.bytes, ipv4PayloadOffset, 0, this.#sequence >>> 0);
    }
    this.#sequence++;
    return this.#stack.send(packet, nowUs) ? 'queued' : 'dropped';
  }

  #build(nowUs: number): Uint8Array | undefined {
    const source = this.#stack.configuration?.address;
    const packet = this.#stack.beginPacket(
      this.#destination,
      this.#tos,
      ipProtocolUdp,
      udpHeaderLength + this.#payloadBytes,
      nowUs,
    );
    if (packet === undefined || source === undefined) return undefined;
    packet.bytes.fill(0x55, ipv4PayloadOffset + udpHeaderLength, packet.length);
    packet.bytes.fill(
      0,
      ipv4PayloadOffset + udpHeaderLength,
      Math.min(packet.length, ipv4PayloadOffset + udpHeaderLength + sequenceBytes),
    );
    writeUdp(
      packet.bytes,
      ipv4PayloadOffset,
      this.#sourcePort,
      this.#destinationPort,
      this.#payloadBytes,
      source,
      this.#destination,
    );
    this.#template = packet.bytes.slice(0, packet.length);
    this.#templateUntilUs = nowUs + templateUs;
    this.#priority = packet.priority;
    packet.release();
    return this.#template;
  }
}
