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
import { dhcpClientPort, dhcpServerPort } from '../wire/dhcp.ts';
import {
  checkEthernet,
  copyEthernetSource,
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
  icmpEchoRequest,
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
  setIpv4TimeToLive,
  writeIpv4,
} from '../wire/ipv4.ts';
import { ipv4AddressIsMulticast, ipv4InSameNetwork, ipv4NetworkBroadcast } from '../wire/ipv4-address.ts';
import { broadcastMacAddress, macAddressLength } from '../wire/mac-address.ts';
import { readUint16Be, readUint32Be, writeUint16Be, writeUint32Be } from '../wire/byte-order.ts';
import {
  checkUdp,
  udpChecksumIsGood,
  udpDestinationPort,
  udpHeaderLength,
  udpLength,
  writeUdp,
} from '../wire/udp.ts';
import { readUdpSourceRequest, udpSourcePort } from '../wire/udp-source-request.ts';
import { DhcpServer } from './dhcp-server.ts';
import type { Frame, FramePool } from './frame.ts';
import { UdpSource } from './udp-source.ts';

const echoPort = 7;
const timeToLive = 64;
const leaseTimeSeconds = 3600;

const ipv4SourceOffset = 12;
const ipv4DestinationOffset = 16;

export interface FarHostOptions {
  readonly macAddress: Uint8Array;
  readonly address: number;
  readonly prefixLength: number;
  /** The address that the far host's DHCP server leases to the client. */
  readonly clientAddress: number;
  readonly pool: FramePool;
  /** Sends a frame back to the device; it is taken over. */
  readonly send: (frame: Frame, nowUs: number) => void;
  /** Of the link downwards, now. */
  readonly linkBitsPerSecond: (nowUs: number) => number;
}

/** Whether a frame asks for an address. */
export function isForDhcpServer(bytes: Uint8Array, length: number): boolean {
  if (checkEthernet(bytes, 0, length) < 0 || ethernetType(bytes, 0) !== etherTypeIpv4) return false;
  const headerLength = checkIpv4(bytes, ethernetHeaderLength, length - ethernetHeaderLength);
  if (headerLength < 0 || ipv4IsFragment(bytes, ethernetHeaderLength)) return false;
  if (ipv4Protocol(bytes, ethernetHeaderLength) !== ipProtocolUdp) return false;
  const offset = ethernetHeaderLength + headerLength;
  const payloadLength = ipv4TotalLength(bytes, ethernetHeaderLength) - headerLength;
  return checkUdp(bytes, offset, payloadLength) >= 0 && udpDestinationPort(bytes, offset) === dhcpServerPort;
}

/** What the far host has seen. A frame is in exactly one of those that are marked. */
export class FarHostCounters {
  frames = 0;
  bytes = 0;
  /** Marked: */
  arpRequests = 0;
  dhcpMessages = 0;
  echoRequests = 0;
  /** UDP that was taken and not answered, port 9 and all others without a service. */
  udpSunkDatagrams = 0;
  udpEchoedDatagrams = 0;
  /** Asked to send UDP, or to stop. */
  udpSourceRequests = 0;
  /** To another MAC address, or to an IP address that is none of a host. */
  notForUs = 0;
  /** Of a protocol or kind that nothing here answers: IPv6, TCP, fragments, ARP replies. */
  ignored = 0;
  /** Too short, wrong lengths, wrong checksums. */
  malformed = 0;
  /** End of marked. Payload bytes of the datagrams above. */
  udpSunkBytes = 0;
  udpEchoedBytes = 0;
  /** When the first and the last sunk datagram arrived; 0 before that. */
  udpFirstAtUs = 0;
  udpLastAtUs = 0;
}

/**
 * What is at the other end of the link: one machine that plays the whole network. It answers ARP for every address of
 * its subnet but the client's, leases that one by DHCP, and answers ICMP echo to any address that is sent to its MAC
 * address (so to hosts beyond the router, too). UDP port 7 echoes; who asks at port 5209 is sent UDP; all other datagrams
 * are counted and never answered.
 *
 * It takes no time to answer.
 */
export class FarHost {
  readonly counters = new FarHostCounters();
  readonly #macAddress: Uint8Array;
  readonly #address: number;
  readonly #prefixLength: number;
  readonly #clientAddress: number;
  readonly #pool: FramePool;
  readonly #send: (frame: Frame, nowUs: number) => void;
  readonly #dhcp: DhcpServer;
  readonly #udpSource: UdpSource;
  readonly #clientMac = new Uint8Array(macAddressLength);
  #identification = 0;

  constructor(options: FarHostOptions) {
    this.#macAddress = options.macAddress;
    this.#address = options.address;
    this.#prefixLength = options.prefixLength;
    this.#clientAddress = options.clientAddress;
    this.#pool = options.pool;
    this.#send = options.send;
    this.#udpSource = new UdpSource(options, options.macAddress);
    this.#dhcp = new DhcpServer({
      serverAddress: options.address,
      prefixLength: options.prefixLength,
      clientAddress: options.clientAddress,
      leaseTimeSeconds,
    });
  }

  get macAddress(): Uint8Array {
    return this.#macAddress;
  }
  get address(): number {
    return this.#address;
  }
  get prefixLength(): number {
    return this.#prefixLength;
  }
  get clientAddress(): number {
    return this.#clientAddress;
  }

  /** When it next has something to send of its own accord. */
  pollAtUs(): number {
    return this.#udpSource.pollAtUs();
  }

  poll(nowUs: number): void {
    this.#udpSource.poll(nowUs);
  }

  /** A frame has arrived; it is the far host's now. */
  handleFrame(frame: Frame, nowUs: number): void {
    const { bytes, length } = frame;
    const { counters } = this;
    counters.frames++;
    counters.bytes += length;
    if (checkEthernet(bytes, 0, length) < 0) {
      counters.malformed++;
    } else if (
      !ethernetDestinationIs(bytes, 0, this.#macAddress) &&
      !ethernetDestinationIsMulticast(bytes, 0)
    ) {
      counters.notForUs++;
    } else {
      const payloadLength = length - ethernetHeaderLength;
      switch (ethernetType(bytes, 0)) {
        case etherTypeArp:
          this.#handleArp(bytes, payloadLength, nowUs);
          break;
        case etherTypeIpv4:
          if (this.#handleIpv4(frame, payloadLength, nowUs)) return;
          break;
        default:
          counters.ignored++;
          break;
      }
    }
    this.#pool.give(frame);
  }

  #handleArp(bytes: Uint8Array, length: number, nowUs: number): void {
    if (checkArp(bytes, ethernetHeaderLength, length) < 0) {
      this.counters.malformed++;
      return;
    }
    const targetIp = arpTargetIp(bytes, ethernetHeaderLength);
    if (arpOperation(bytes, ethernetHeaderLength) !== arpRequest) {
      this.counters.ignored++;
      return;
    }
    // The client's own address is left alone, so that it finds no conflict when it probes for one.
    const ours =
      targetIp !== this.#clientAddress && ipv4InSameNetwork(targetIp, this.#address, this.#prefixLength);
    if (!ours) {
      this.counters.notForUs++;
      return;
    }
    this.counters.arpRequests++;
    copyArpSenderMac(bytes, ethernetHeaderLength, this.#clientMac);
    const senderIp = arpSenderIp(bytes, ethernetHeaderLength);
    const reply = this.#pool.take();
    writeEthernet(reply.bytes, 0, this.#clientMac, this.#macAddress, etherTypeArp);
    writeArp(
      reply.bytes,
      ethernetHeaderLength,
      arpReply,
      this.#macAddress,
      targetIp,
      this.#clientMac,
      senderIp,
    );
    reply.length = ethernetHeaderLength + arpLength;
    this.#send(reply, nowUs);
  }

  /** True: the frame was sent back. */
  #handleIpv4(frame: Frame, length: number, nowUs: number): boolean {
    const { bytes } = frame;
    const { counters } = this;
    const offset = ethernetHeaderLength;
    const headerLength = checkIpv4(bytes, offset, length);
    if (headerLength < 0 || !ipv4ChecksumIsGood(bytes, offset)) {
      counters.malformed++;
      return false;
    }
    if (ipv4IsFragment(bytes, offset)) {
      counters.ignored++;
      return false;
    }
    const payloadOffset = offset + headerLength;
    const payloadLength = ipv4TotalLength(bytes, offset) - headerLength;
    switch (ipv4Protocol(bytes, offset)) {
      case ipProtocolIcmp:
        return this.#handleIcmp(frame, payloadOffset, payloadLength, nowUs);
      case ipProtocolUdp:
        return this.#handleUdp(frame, payloadOffset, payloadLength, nowUs);
      default:
        counters.ignored++;
        return false;
    }
  }

  #handleIcmp(frame: Frame, offset: number, length: number, nowUs: number): boolean {
    const { bytes } = frame;
    const { counters } = this;
    if (checkIcmp(bytes, offset, length) < 0 || !icmpChecksumIsGood(bytes, offset, length)) {
      counters.malformed++;
      return false;
    }
    if (icmpType(bytes, offset) !== icmpEchoRequest) {
      counters.ignored++;
      return false;
    }
    if (!this.#isUnicast(ipv4Destination(bytes, ethernetHeaderLength))) {
      counters.notForUs++;
      return false;
    }
    counters.echoRequests++;
    turnIcmpEchoIntoReply(bytes, offset, length);
    this.#sendBack(frame, nowUs);
    return true;
  }

  #handleUdp(frame: Frame, offset: number, length: number, nowUs: number): boolean {
    const { bytes } = frame;
    const { counters } = this;
    const source = ipv4Source(bytes, ethernetHeaderLength);
    const destination = ipv4Destination(bytes, ethernetHeaderLength);
    if (checkUdp(bytes, offset, length) < 0 || !udpChecksumIsGood(bytes, offset, source, destination)) {
      counters.malformed++;
      return false;
    }
    const payloadLength = udpLength(bytes, offset) - udpHeaderLength;
    const port = udpDestinationPort(bytes, offset);
    if (port === dhcpServerPort) {
      counters.dhcpMessages++;
      this.#answerDhcp(bytes, offset + udpHeaderLength, payloadLength, nowUs);
      return false;
    }
    if (port === echoPort && this.#isUnicast(destination)) {
      counters.udpEchoedDatagrams++;
      counters.udpEchoedBytes += payloadLength;
      const sourcePort = readUint16Be(bytes, offset);
      writeUint16Be(bytes, offset, port);
      writeUint16Be(bytes, offset + 2, sourcePort);
      this.#sendBack(frame, nowUs);
      return true;
    }
    if (port === udpSourcePort && this.#isUnicast(destination)) {
      const request = readUdpSourceRequest(bytes, offset + udpHeaderLength, payloadLength);
      if (request !== undefined) {
        counters.udpSourceRequests++;
        const macAddress = new Uint8Array(macAddressLength);
        copyEthernetSource(bytes, 0, macAddress);
        const client = { macAddress, address: source, port: readUint16Be(bytes, offset) };
        this.#udpSource.handleRequest(request, client, destination, nowUs);
        return false;
      }
    }
    if (counters.udpSunkDatagrams === 0) counters.udpFirstAtUs = nowUs;
    counters.udpLastAtUs = nowUs;
    counters.udpSunkDatagrams++;
    counters.udpSunkBytes += payloadLength;
    return false;
  }

  #answerDhcp(bytes: Uint8Array, offset: number, length: number, nowUs: number): void {
    const reply = this.#dhcp.answer(bytes, offset, length);
    if (reply === undefined) return;
    const toClient = reply.destination === this.#clientAddress;
    copyEthernetSource(bytes, 0, this.#clientMac);
    const frame = this.#pool.take();
    const ipOffset = ethernetHeaderLength;
    const udpOffset = ipOffset + ipv4MinHeaderLength;
    const payloadOffset = udpOffset + udpHeaderLength;
    frame.bytes.set(reply.payload, payloadOffset);
    writeEthernet(
      frame.bytes,
      0,
      toClient ? this.#clientMac : broadcastMacAddress,
      this.#macAddress,
      etherTypeIpv4,
    );
    writeUdp(
      frame.bytes,
      udpOffset,
      dhcpServerPort,
      dhcpClientPort,
      reply.payload.length,
      this.#address,
      reply.destination,
    );
    this.#identification = (this.#identification + 1) & 0xffff;
    writeIpv4(
      frame.bytes,
      ipOffset,
      0,
      udpHeaderLength + reply.payload.length,
      this.#identification,
      false,
      timeToLive,
      ipProtocolUdp,
      this.#address,
      reply.destination,
    );
    frame.length = payloadOffset + reply.payload.length;
    this.#send(frame, nowUs);
  }

  /** Whether echoes to the address are answered. */
  #isUnicast(address: number): boolean {
    return (
      address !== this.#clientAddress &&
      address !== 0xffff_ffff &&
      address !== ipv4NetworkBroadcast(this.#address, this.#prefixLength) &&
      !ipv4AddressIsMulticast(address)
    );
  }

  /** Returns a packet to its sender with the addresses exchanged, which leaves all checksums as they are. */
  #sendBack(frame: Frame, nowUs: number): void {
    const { bytes } = frame;
    copyEthernetSource(bytes, 0, this.#clientMac);
    writeEthernet(bytes, 0, this.#clientMac, this.#macAddress, etherTypeIpv4);
    const sourceOffset = ethernetHeaderLength + ipv4SourceOffset;
    const destinationOffset = ethernetHeaderLength + ipv4DestinationOffset;
    const source = readUint32Be(bytes, sourceOffset);
    writeUint32Be(bytes, sourceOffset, readUint32Be(bytes, destinationOffset));
    writeUint32Be(bytes, destinationOffset, source);
    setIpv4TimeToLive(bytes, ethernetHeaderLength, timeToLive);
    this.#send(frame, nowUs);
  }
}
