import type { Polled } from '../base/clock.ts';
import type { Packet } from '../usbnet/packet.ts';
import {
  arpLength,
  arpOperation,
  arpReply,
  arpRequest,
  arpSenderIp,
  arpTargetIp,
  checkArp,
  copyArpSenderMac,
  writeArp,
} from '../wire/arp.ts';
import {
  checkEthernet,
  ethernetDestinationIs,
  ethernetDestinationIsMulticast,
  ethernetHeaderLength,
  ethernetType,
  etherTypeArp,
  etherTypeIpv4,
  writeEthernet,
} from '../wire/ethernet.ts';
import {
  checkIcmp,
  icmpChecksumIsGood,
  icmpEchoReply,
  icmpEchoRequest,
  icmpIdentifier,
  icmpSequence,
  icmpType,
  turnIcmpEchoIntoReply,
} from '../wire/icmp.ts';
import {
  checkIpv4,
  ipProtocolIcmp,
  ipProtocolUdp,
  ipv4ChecksumIsGood,
  ipv4Destination,
  ipv4IsFragment,
  ipv4MinHeaderLength,
  ipv4Protocol,
  ipv4Source,
  ipv4TotalLength,
  ipv4TypeOfService,
  writeIpv4,
} from '../wire/ipv4.ts';
import { broadcastIpv4Address, ipv4InSameNetwork, ipv4NetworkBroadcast } from '../wire/ipv4-address.ts';
import {
  broadcastMacAddress,
  macAddressIsUsable,
  macAddressLength,
  zeroMacAddress,
} from '../wire/mac-address.ts';
import { checkUdp, udpChecksumIsGood, udpDestinationPort, udpHeaderLength, udpLength } from '../wire/udp.ts';
import type { LinkLayer } from './link-layer.ts';
import { Neighbours } from './neighbours.ts';
import { priorities, tosPriority } from '../netif/priority.ts';

/** Where the payload of a packet without IP options begins in its frame. */
export const ipv4PayloadOffset = ethernetHeaderLength + ipv4MinHeaderLength;
const timeToLive = 64;

/** The address of this host, as set by hand or leased. */
export interface Ipv4Configuration {
  readonly address: number;
  readonly prefixLength: number;
  readonly gateway: number | undefined;
}

/** Who gets the answers to echo requests. */
export interface EchoHandler {
  handleEchoReply(sequence: number, nowUs: number): void;
}

/** Who gets the datagrams of a UDP port; the bytes are valid during the call only. False: it was not meant for it. */
export interface DatagramHandler {
  handleDatagram(
    bytes: Uint8Array,
    payloadOffset: number,
    payloadLength: number,
    source: number,
    sourcePort: number,
    nowUs: number,
  ): boolean;
}

/** Received packets that led nowhere, by reason. */
export interface IpCounters {
  malformed: number;
  badChecksum: number;
  notForUs: number;
  fragments: number;
  noListener: number;
  noRoute: number;
  /** Packets not sent, since the next hop's MAC address was not known yet. */
  unresolved: number;
}

/**
 * A small IPv4 host on one interface: ARP, echo in both directions, UDP. No forwarding, no reassembly, no options.
 */
export class IpStack implements Polled {
  readonly counters: IpCounters = {
    malformed: 0,
    badChecksum: 0,
    notForUs: 0,
    fragments: 0,
    noListener: 0,
    noRoute: 0,
    unresolved: 0,
  };
  readonly #link: LinkLayer;
  readonly #answers: boolean;
  readonly #neighbours: Neighbours;
  readonly #echoHandlers = new Map<number, EchoHandler>();
  readonly #datagramHandlers = new Map<number, DatagramHandler>();
  readonly #scratchMac = new Uint8Array(macAddressLength);
  #configuration: Ipv4Configuration | undefined;
  #identification = 0;

  /**
   * @param answers false: another host shares the interface and answers ARP and echo requests in this one's stead
   */
  constructor(link: LinkLayer, answers = true) {
    this.#link = link;
    this.#answers = answers;
    this.#neighbours = new Neighbours((address, nowUs) => this.#sendArpRequest(address, nowUs));
  }

  get configuration(): Ipv4Configuration | undefined {
    return this.#configuration;
  }
  get link(): LinkLayer {
    return this.#link;
  }
  /** The most bytes that a packet can carry behind its IPv4 header: nothing is fragmented here. */
  get maxPayloadBytes(): number {
    return this.#link.mtuBytes - ipv4MinHeaderLength;
  }

  /** Sets or (undefined) removes this host's address. */
  configure(configuration: Ipv4Configuration | undefined): void {
    this.#configuration = configuration;
    this.#neighbours.clear();
  }

  /** Gets echo replies with this identifier. */
  setEchoHandler(identifier: number, handler: EchoHandler | undefined): void {
    if (handler === undefined) this.#echoHandlers.delete(identifier);
    else this.#echoHandlers.set(identifier, handler);
  }

  /** Gets datagrams to this port. */
  setDatagramHandler(port: number, handler: DatagramHandler | undefined): void {
    if (handler === undefined) this.#datagramHandlers.delete(port);
    else this.#datagramHandlers.set(port, handler);
  }

  /** The address that a packet to `destination` is handed to on the link; undefined without a route. */
  nextHop(destination: number): number | undefined {
    const configuration = this.#configuration;
    if (configuration === undefined) return undefined;
    if (ipv4InSameNetwork(destination, configuration.address, configuration.prefixLength)) return destination;
    return configuration.gateway;
  }

  /** True if the next hop to `destination` does not answer ARP. */
  isUnreachable(destination: number): boolean {
    const hop = this.nextHop(destination);
    return hop === undefined || this.#neighbours.hasFailed(hop);
  }

  /** The MAC address of the next hop to `destination`; if it is not known it is asked for. */
  resolve(destination: number, nowUs: number): Uint8Array | undefined {
    const hop = this.nextHop(destination);
    if (hop === undefined) {
      this.counters.noRoute++;
      return undefined;
    }
    const macAddress = this.#neighbours.lookup(hop, nowUs);
    if (macAddress === undefined) this.counters.unresolved++;
    return macAddress;
  }

  /**
   * A packet to `destination` with its Ethernet and IPv4 headers in place and room for `payloadLength` bytes at
   * {@link ipv4PayloadOffset}. Undefined if the next hop is not known (yet) or there is no packet to be had.
   */
  beginPacket(
    destination: number,
    tos: number,
    protocol: number,
    payloadLength: number,
    nowUs: number,
  ): Packet | undefined {
    const configuration = this.#configuration;
    const macAddress = this.resolve(destination, nowUs);
    if (configuration === undefined || macAddress === undefined) return undefined;
    const packet = this.#link.packets.take();
    if (packet === undefined) return undefined;
    writeEthernet(packet.bytes, 0, macAddress, this.#link.macAddress, etherTypeIpv4);
    writeIpv4(
      packet.bytes,
      ethernetHeaderLength,
      tos,
      payloadLength,
      this.nextIdentification(),
      false,
      timeToLive,
      protocol,
      configuration.address,
      destination,
    );
    packet.length = ipv4PayloadOffset + payloadLength;
    packet.priority = tosPriority(tos);
    return packet;
  }

  nextIdentification(): number {
    this.#identification = (this.#identification + 1) & 0xffff;
    return this.#identification;
  }

  /** Hands a packet to the interface. False: dropped. */
  send(packet: Packet, nowUs: number): boolean {
    return this.#link.transmit(packet, nowUs);
  }

  // ---- receive ----

  /**
   * A frame from the interface. True if it was for one of this host's own sockets, and so for nobody else who may share
   * the interface.
   */
  handleFrame(bytes: Uint8Array, offset: number, length: number, nowUs: number): boolean {
    if (checkEthernet(bytes, offset, length) < 0) {
      this.counters.malformed++;
      return false;
    }
    const payloadOffset = offset + ethernetHeaderLength;
    const payloadLength = length - ethernetHeaderLength;
    switch (ethernetType(bytes, offset)) {
      case etherTypeIpv4:
        if (
          ethernetDestinationIs(bytes, offset, this.#link.macAddress) ||
          ethernetDestinationIsMulticast(bytes, offset)
        ) {
          return this.#handleIpv4(bytes, payloadOffset, payloadLength, nowUs);
        }
        this.counters.notForUs++;
        return false;
      case etherTypeArp:
        this.#handleArp(bytes, payloadOffset, payloadLength, nowUs);
        return false;
      default:
        this.counters.notForUs++;
        return false;
    }
  }

  #handleArp(bytes: Uint8Array, offset: number, length: number, nowUs: number): void {
    if (checkArp(bytes, offset, length) < 0) {
      this.counters.malformed++;
      return;
    }
    const senderIp = arpSenderIp(bytes, offset);
    copyArpSenderMac(bytes, offset, this.#scratchMac);
    if (!macAddressIsUsable(this.#scratchMac)) {
      this.counters.malformed++;
      return;
    }
    this.#neighbours.learn(senderIp, this.#scratchMac, nowUs);
    const configuration = this.#configuration;
    if (configuration === undefined || arpOperation(bytes, offset) !== arpRequest) return;
    if (!this.#answers) return;
    if (arpTargetIp(bytes, offset) !== configuration.address) return;
    this.#sendArp(arpReply, this.#scratchMac, this.#scratchMac, senderIp, nowUs);
  }

  #handleIpv4(bytes: Uint8Array, offset: number, length: number, nowUs: number): boolean {
    const headerLength = checkIpv4(bytes, offset, length);
    if (headerLength < 0) {
      this.counters.malformed++;
      return false;
    }
    if (!ipv4ChecksumIsGood(bytes, offset)) {
      this.counters.badChecksum++;
      return false;
    }
    if (!this.#isForUs(ipv4Destination(bytes, offset))) {
      this.counters.notForUs++;
      return false;
    }
    if (ipv4IsFragment(bytes, offset)) {
      this.counters.fragments++;
      return false;
    }
    const payloadOffset = offset + headerLength;
    const payloadLength = ipv4TotalLength(bytes, offset) - headerLength;
    switch (ipv4Protocol(bytes, offset)) {
      case ipProtocolIcmp:
        return this.#handleIcmp(bytes, offset, payloadOffset, payloadLength, nowUs);
      case ipProtocolUdp:
        return this.#handleUdp(bytes, offset, payloadOffset, payloadLength, nowUs);
      default:
        this.counters.noListener++;
        return false;
    }
  }

  /** Without an address all is for us that got here: some servers send their offer to the address they offer. */
  #isForUs(destination: number): boolean {
    if (destination === broadcastIpv4Address) return true;
    const configuration = this.#configuration;
    if (configuration === undefined) return true;
    return (
      destination === configuration.address ||
      destination === ipv4NetworkBroadcast(configuration.address, configuration.prefixLength)
    );
  }

  #handleIcmp(bytes: Uint8Array, ipOffset: number, offset: number, length: number, nowUs: number): boolean {
    if (checkIcmp(bytes, offset, length) < 0) {
      this.counters.malformed++;
      return false;
    }
    if (!icmpChecksumIsGood(bytes, offset, length)) {
      this.counters.badChecksum++;
      return false;
    }
    switch (icmpType(bytes, offset)) {
      case icmpEchoReply: {
        const handler = this.#echoHandlers.get(icmpIdentifier(bytes, offset));
        if (handler === undefined) {
          this.counters.noListener++;
          return false;
        }
        handler.handleEchoReply(icmpSequence(bytes, offset), nowUs);
        return true;
      }
      case icmpEchoRequest:
        if (this.#answers) this.#answerEcho(bytes, ipOffset, offset, length, nowUs);
        return false;
      default:
        this.counters.noListener++;
        return false;
    }
  }

  #answerEcho(bytes: Uint8Array, ipOffset: number, offset: number, length: number, nowUs: number): void {
    if (length > this.maxPayloadBytes) return;
    // What is sent to all is not answered, or one packet could make a whole link speak.
    if (ipv4Destination(bytes, ipOffset) !== this.#configuration?.address) return;
    const source = ipv4Source(bytes, ipOffset);
    const tos = ipv4TypeOfService(bytes, ipOffset);
    const packet = this.beginPacket(source, tos, ipProtocolIcmp, length, nowUs);
    if (packet === undefined) return;
    packet.bytes.set(bytes.subarray(offset, offset + length), ipv4PayloadOffset);
    turnIcmpEchoIntoReply(packet.bytes, ipv4PayloadOffset, length);
    this.send(packet, nowUs);
  }

  #handleUdp(bytes: Uint8Array, ipOffset: number, offset: number, length: number, nowUs: number): boolean {
    if (checkUdp(bytes, offset, length) < 0) {
      this.counters.malformed++;
      return false;
    }
    const source = ipv4Source(bytes, ipOffset);
    if (!udpChecksumIsGood(bytes, offset, source, ipv4Destination(bytes, ipOffset))) {
      this.counters.badChecksum++;
      return false;
    }
    const handler = this.#datagramHandlers.get(udpDestinationPort(bytes, offset));
    if (handler === undefined) {
      this.counters.noListener++;
      return false;
    }
    const payloadLength = udpLength(bytes, offset) - udpHeaderLength;
    const sourcePort = ((bytes[offset] ?? 0) << 8) | (bytes[offset + 1] ?? 0);
    return handler.handleDatagram(bytes, offset + udpHeaderLength, payloadLength, source, sourcePort, nowUs);
  }

  // ---- ARP, sending ----

  #sendArpRequest(address: number, nowUs: number): void {
    this.#sendArp(arpRequest, broadcastMacAddress, zeroMacAddress, address, nowUs);
  }

  #sendArp(
    operation: number,
    destination: Uint8Array,
    targetMac: Uint8Array,
    targetIp: number,
    nowUs: number,
  ): void {
    const packet = this.#link.packets.take();
    const configuration = this.#configuration;
    if (packet === undefined || configuration === undefined) {
      packet?.release();
      return;
    }
    writeEthernet(packet.bytes, 0, destination, this.#link.macAddress, etherTypeArp);
    writeArp(
      packet.bytes,
      ethernetHeaderLength,
      operation,
      this.#link.macAddress,
      configuration.address,
      targetMac,
      targetIp,
    );
    packet.length = ethernetHeaderLength + arpLength;
    packet.priority = priorities.control;
    this.send(packet, nowUs);
  }

  poll(nowUs: number): void {
    this.#neighbours.poll(nowUs);
  }

  pollAtUs(): number {
    return this.#neighbours.pollAtUs();
  }
}
