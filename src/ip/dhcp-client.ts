import { neverUs, type Polled } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import {
  dhcpClientPort,
  type DhcpMessage,
  dhcpOptionCodes,
  dhcpServerPort,
  encodeDhcpMessage,
  parseDhcpMessage,
} from '../wire/dhcp.ts';
import { ethernetHeaderLength, etherTypeIpv4, writeEthernet } from '../wire/ethernet.ts';
import { ipProtocolUdp, ipv4MinHeaderLength, writeIpv4 } from '../wire/ipv4.ts';
import {
  broadcastIpv4Address,
  ipv4AddressIsHost,
  ipv4PrefixLengthOfMask,
  unspecifiedIpv4Address,
} from '../wire/ipv4-address.ts';
import { broadcastMacAddress, macAddressesEqual } from '../wire/mac-address.ts';
import { udpHeaderLength, writeUdp } from '../wire/udp.ts';
import type { DatagramHandler, IpStack, Ipv4Configuration } from './ip-stack.ts';
import { priorities } from '../netif/priority.ts';

/** First wait for an answer, doubled up to the longest (RFC 2131 section 4.1, begun sooner: someone is watching). */
const firstWaitUs = 1_000_000;
const longestWaitUs = 16_000_000;
/** After so many unanswered messages the observer is told that there is no server; the client goes on asking. */
const silentTries = 4;
const secondUs = 1_000_000;
/** A lease without these times is renewed at half of it, by anyone at 7/8 (RFC 2131 section 4.4.5). */
const renewalShare = 0.5;
const rebindingShare = 0.875;
const defaultLeaseSeconds = 3600;
/** A shorter lease is kept for this long: a server must not make us ask as fast as it answers. */
const leastLeaseSeconds = 10;
const infiniteLease = 0xffff_ffff;
const udpPayloadOffset = ethernetHeaderLength + ipv4MinHeaderLength + udpHeaderLength;

/** When a lease is to be renewed, and by anyone; the server's times, if they are in order. */
function leaseTimes(message: DhcpMessage, leaseSeconds: number): readonly [number, number] {
  const renewal = message.renewalTimeSeconds ?? leaseSeconds * renewalShare;
  const rebinding = message.rebindingTimeSeconds ?? leaseSeconds * rebindingShare;
  const inOrder = renewal > 0 && renewal < rebinding && rebinding < leaseSeconds;
  return inOrder ? [renewal, rebinding] : [leaseSeconds * renewalShare, leaseSeconds * rebindingShare];
}

export type DhcpState = 'idle' | 'selecting' | 'requesting' | 'bound' | 'renewing' | 'rebinding';

export interface DhcpLease extends Ipv4Configuration {
  readonly server: number;
  readonly dnsServers: readonly number[];
  readonly leaseSeconds: number;
}

export interface DhcpObserver {
  /** A lease that is new, or renewed with another address or route. */
  handleLease(lease: DhcpLease, nowUs: number): void;
  /** The lease ran out or was refused. */
  handleLeaseLost(nowUs: number): void;
  /** Nobody gives an address; the client keeps asking. */
  handleNoServer(nowUs: number): void;
}

/** A DHCP client (RFC 2131) that sends and receives through an {@link IpStack}, whose address it sets. */
export class DhcpClient implements Polled, DatagramHandler {
  readonly #stack: IpStack;
  readonly #random: Random;
  readonly #observer: DhcpObserver;
  #state: DhcpState = 'idle';
  #transactionId = 0;
  #startedAtUs = 0;
  #tries = 0;
  #retryAtUs = neverUs;
  #renewAtUs = neverUs;
  #rebindAtUs = neverUs;
  #expiresAtUs = neverUs;
  #offer: DhcpMessage | undefined;
  #lease: DhcpLease | undefined;

  constructor(stack: IpStack, random: Random, observer: DhcpObserver) {
    this.#stack = stack;
    this.#random = random;
    this.#observer = observer;
  }

  get state(): DhcpState {
    return this.#state;
  }
  get lease(): DhcpLease | undefined {
    return this.#lease;
  }

  /** Begins (or begins anew) to ask for an address. */
  start(nowUs: number): void {
    this.#stack.setDatagramHandler(dhcpClientPort, this);
    this.#stack.configure(undefined);
    this.#lease = undefined;
    this.#startedAtUs = nowUs;
    this.#tries = 0;
    this.#discover(nowUs);
  }

  /** Stops; a lease is given back to its server. */
  stop(nowUs: number): void {
    if (this.#lease !== undefined) this.#send('release', nowUs);
    this.#state = 'idle';
    this.#lease = undefined;
    this.#offer = undefined;
    this.#clearTimers();
    this.#stack.setDatagramHandler(dhcpClientPort, undefined);
    this.#stack.configure(undefined);
  }

  #clearTimers(): void {
    this.#retryAtUs = neverUs;
    this.#renewAtUs = neverUs;
    this.#rebindAtUs = neverUs;
    this.#expiresAtUs = neverUs;
  }

  #discover(nowUs: number): void {
    this.#beginSelecting();
    this.#sendAndWait('discover', nowUs);
  }

  #beginSelecting(): void {
    this.#clearTimers();
    this.#state = 'selecting';
    this.#transactionId = this.#random.uint32();
    this.#offer = undefined;
  }

  #sendAndWait(type: 'discover' | 'request', nowUs: number): void {
    const waitUs = Math.min(firstWaitUs * 2 ** this.#tries, longestWaitUs);
    this.#tries++;
    if (this.#tries === silentTries && this.#lease === undefined) this.#observer.handleNoServer(nowUs);
    // A tenth of jitter, so that many devices on one bench don't ask in step.
    this.#retryAtUs = nowUs + waitUs + this.#random.integer(0, waitUs / 10);
    this.#send(type, nowUs);
  }

  handleDatagram(
    bytes: Uint8Array,
    payloadOffset: number,
    payloadLength: number,
    _source: number,
    _sourcePort: number,
    nowUs: number,
  ): boolean {
    const message = parseDhcpMessage(bytes, payloadOffset, payloadLength);
    if (message === undefined || message.operation !== 'reply') return false;
    if (message.transactionId !== this.#transactionId) return false;
    if (!macAddressesEqual(message.clientMac, 0, this.#stack.link.macAddress, 0)) return false;
    this.#handleReply(message, nowUs);
    return true;
  }

  #handleReply(message: DhcpMessage, nowUs: number): void {
    switch (message.type) {
      case 'offer':
        if (this.#state === 'selecting' && message.serverIdentifier !== undefined) {
          this.#handleOffer(message, nowUs);
        }
        break;
      case 'ack':
        if (this.#hasRequested) this.#bind(message, nowUs);
        break;
      case 'nak':
        if (!this.#hasRequested) return;
        this.#dropLease(nowUs);
        // Not at once: a server that refuses all it offers would be asked as fast as it answers.
        this.#tries = 0;
        this.#beginSelecting();
        this.#retryAtUs = nowUs + firstWaitUs;
        break;
      default:
        break;
    }
  }

  get #hasRequested(): boolean {
    return this.#state === 'requesting' || this.#state === 'renewing' || this.#state === 'rebinding';
  }

  #handleOffer(offer: DhcpMessage, nowUs: number): void {
    if (!ipv4AddressIsHost(offer.yourAddress)) return;
    this.#offer = offer;
    this.#state = 'requesting';
    this.#tries = 0;
    this.#sendAndWait('request', nowUs);
  }

  #bind(message: DhcpMessage, nowUs: number): void {
    if (!ipv4AddressIsHost(message.yourAddress)) return;
    const prefixLength = ipv4PrefixLengthOfMask(message.subnetMask ?? 0xffff_ff00) ?? 24;
    const leaseSeconds = Math.max(leastLeaseSeconds, message.leaseTimeSeconds ?? defaultLeaseSeconds);
    const before = this.#lease;
    const lease: DhcpLease = {
      address: message.yourAddress,
      prefixLength,
      gateway: message.routers?.find(ipv4AddressIsHost),
      server: message.serverIdentifier ?? this.#offer?.serverIdentifier ?? message.serverAddress,
      dnsServers: message.dnsServers ?? [],
      leaseSeconds,
    };
    this.#lease = lease;
    this.#state = 'bound';
    this.#tries = 0;
    this.#clearTimers();
    if (leaseSeconds !== infiniteLease) {
      const [renewalSeconds, rebindingSeconds] = leaseTimes(message, leaseSeconds);
      this.#renewAtUs = nowUs + renewalSeconds * secondUs;
      this.#rebindAtUs = nowUs + rebindingSeconds * secondUs;
      this.#expiresAtUs = nowUs + leaseSeconds * secondUs;
    }
    const isSame =
      before?.address === lease.address &&
      before.prefixLength === lease.prefixLength &&
      before.gateway === lease.gateway;
    if (isSame) return;
    this.#stack.configure(lease);
    this.#observer.handleLease(lease, nowUs);
  }

  #dropLease(nowUs: number): void {
    if (this.#lease === undefined) return;
    this.#lease = undefined;
    this.#stack.configure(undefined);
    this.#observer.handleLeaseLost(nowUs);
  }

  poll(nowUs: number): void {
    if (nowUs >= this.#expiresAtUs) {
      this.#dropLease(nowUs);
      this.#tries = 0;
      this.#discover(nowUs);
      return;
    }
    if (nowUs >= this.#rebindAtUs) {
      this.#renewAtUs = neverUs;
      this.#rebindAtUs = neverUs;
      this.#state = 'rebinding';
      this.#tries = 0;
      this.#sendAndWait('request', nowUs);
    } else if (nowUs >= this.#renewAtUs) {
      this.#renewAtUs = neverUs;
      this.#state = 'renewing';
      this.#transactionId = this.#random.uint32();
      this.#tries = 0;
      this.#sendAndWait('request', nowUs);
    }
    if (nowUs >= this.#retryAtUs) {
      // A server that offered and then fell silent is asked like any other again.
      if (this.#state === 'requesting' && this.#tries >= silentTries) this.#discover(nowUs);
      else this.#sendAndWait(this.#state === 'selecting' ? 'discover' : 'request', nowUs);
    }
  }

  pollAtUs(): number {
    return Math.min(this.#retryAtUs, this.#renewAtUs, this.#rebindAtUs, this.#expiresAtUs);
  }

  /** Broadcast, except to the server that gave the lease (renewal and release). */
  #send(type: 'discover' | 'request' | 'release', nowUs: number): void {
    const message = encodeDhcpMessage(this.#message(type, nowUs));
    const lease = this.#lease;
    if (lease !== undefined && this.#state !== 'rebinding') {
      const packet = this.#stack.beginPacket(
        lease.server,
        0,
        ipProtocolUdp,
        udpHeaderLength + message.length,
        nowUs,
      );
      if (packet === undefined) return;
      packet.bytes.set(message, udpPayloadOffset);
      writeUdp(
        packet.bytes,
        udpPayloadOffset - udpHeaderLength,
        dhcpClientPort,
        dhcpServerPort,
        message.length,
        lease.address,
        lease.server,
      );
      packet.priority = priorities.control;
      this.#stack.send(packet, nowUs);
      return;
    }
    this.#broadcast(message, lease?.address ?? unspecifiedIpv4Address, nowUs);
  }

  #broadcast(message: Uint8Array, source: number, nowUs: number): void {
    const { link } = this.#stack;
    const packet = link.packets.take();
    if (packet === undefined) return;
    const udpOffset = udpPayloadOffset - udpHeaderLength;
    const udpBytes = udpHeaderLength + message.length;
    writeEthernet(packet.bytes, 0, broadcastMacAddress, link.macAddress, etherTypeIpv4);
    writeIpv4(
      packet.bytes,
      ethernetHeaderLength,
      0x10,
      udpBytes,
      this.#stack.nextIdentification(),
      false,
      64,
      ipProtocolUdp,
      source,
      broadcastIpv4Address,
    );
    packet.bytes.set(message, udpPayloadOffset);
    writeUdp(
      packet.bytes,
      udpOffset,
      dhcpClientPort,
      dhcpServerPort,
      message.length,
      source,
      broadcastIpv4Address,
    );
    packet.length = udpOffset + udpBytes;
    packet.priority = priorities.control;
    this.#stack.send(packet, nowUs);
  }

  #message(type: 'discover' | 'request' | 'release', nowUs: number): DhcpMessage {
    const macAddress = this.#stack.link.macAddress;
    const base: DhcpMessage = {
      type,
      operation: 'request',
      transactionId: this.#transactionId,
      secondsElapsed: Math.min(0xffff, Math.floor((nowUs - this.#startedAtUs) / secondUs)),
      broadcast: this.#lease === undefined,
      clientAddress: this.#lease?.address ?? unspecifiedIpv4Address,
      yourAddress: unspecifiedIpv4Address,
      serverAddress: unspecifiedIpv4Address,
      relayAddress: unspecifiedIpv4Address,
      clientMac: macAddress,
      // Hardware type 1, then the MAC address (RFC 2132 section 9.14).
      clientIdentifier: Uint8Array.of(1, ...macAddress),
    };
    if (type === 'release') {
      return this.#lease === undefined ? base : { ...base, serverIdentifier: this.#lease.server };
    }
    const request: DhcpMessage = {
      ...base,
      parameterRequestList: [
        dhcpOptionCodes.subnetMask,
        dhcpOptionCodes.routers,
        dhcpOptionCodes.dnsServers,
        dhcpOptionCodes.interfaceMtu,
      ],
      maxMessageSize: 1500,
    };
    if (type === 'discover' || this.#state !== 'requesting') return request;
    const offer = this.#offer;
    if (offer?.serverIdentifier === undefined) return request;
    return { ...request, requestedAddress: offer.yourAddress, serverIdentifier: offer.serverIdentifier };
  }
}
