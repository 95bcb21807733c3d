import { neverUs } from '../base/clock.ts';
import { ethernetHeaderLength, etherTypeIpv4, writeEthernet } from '../wire/ethernet.ts';
import { ipProtocolUdp, ipv4MinHeaderLength, writeIpv4 } from '../wire/ipv4.ts';
import { udpHeaderLength, writeUdp } from '../wire/udp.ts';
import { udpSourcePort, type UdpSourceRequest } from '../wire/udp-source-request.ts';
import { type Frame, frameCapacityBytes, type FramePool } from './frame.ts';

const timeToLive = 64;
const headerLength = ethernetHeaderLength + ipv4MinHeaderLength + udpHeaderLength;
const largestPayloadBytes = frameCapacityBytes - headerLength;
/** Without a rate of its own it sends this much faster than the link carries: what is at the link's start drops the rest. */
const greed = 1.05;
/** A rate schedule that stands still is looked at again after this long. */
const standstillUs = 10_000;
/** What was not sent while the link stood still, or time did, is not made up for beyond this. */
const debtLimitUs = 20_000;

export interface UdpSourceOptions {
  readonly pool: FramePool;
  readonly send: (frame: Frame, nowUs: number) => void;
  /** Of the link downwards, now. */
  readonly linkBitsPerSecond: (nowUs: number) => number;
}

/** Who asked, and where the answers are to go. */
export interface UdpSourceClient {
  readonly macAddress: Uint8Array;
  readonly address: number;
  readonly port: number;
}

/** A sender of UDP at the far end: sends on request, to one client at a time, until it is no longer asked. */
export class UdpSource {
  readonly #options: UdpSourceOptions;
  readonly #ownMac: Uint8Array;
  #client: UdpSourceClient | undefined;
  #from = 0;
  #request: UdpSourceRequest | undefined;
  #untilUs = 0;
  #dueAtUs = neverUs;
  #sent = 0;

  constructor(options: UdpSourceOptions, ownMac: Uint8Array) {
    this.#options = options;
    this.#ownMac = ownMac;
  }

  /** Datagrams that were sent. */
  get sent(): number {
    return this.#sent;
  }

  /** @param from the address that was asked, which the datagrams come from */
  handleRequest(request: UdpSourceRequest, client: UdpSourceClient, from: number, nowUs: number): void {
    this.#client = client;
    this.#from = from;
    this.#request = request;
    this.#untilUs = nowUs + request.lifetimeMs * 1000;
    if (request.lifetimeMs === 0) this.#dueAtUs = neverUs;
    else if (this.#dueAtUs === neverUs) this.#dueAtUs = nowUs;
  }

  pollAtUs(): number {
    return this.#dueAtUs;
  }

  poll(nowUs: number): void {
    const request = this.#request;
    if (request === undefined || nowUs < this.#dueAtUs) return;
    if (nowUs > this.#untilUs) {
      this.#dueAtUs = neverUs;
      return;
    }
    const linkRate = this.#options.linkBitsPerSecond(nowUs);
    const rate = request.rateBitsPerSecond > 0 ? request.rateBitsPerSecond : linkRate * greed;
    if (rate <= 0) {
      this.#dueAtUs = nowUs + standstillUs;
      return;
    }
    const payloadBytes = Math.min(request.payloadBytes, largestPayloadBytes);
    const packetUs = ((ipv4MinHeaderLength + udpHeaderLength + payloadBytes) * 8e6) / rate;
    this.#dueAtUs = Math.max(this.#dueAtUs, nowUs - debtLimitUs) + packetUs;
    this.#send(payloadBytes, nowUs);
  }

  #send(payloadBytes: number, nowUs: number): void {
    const client = this.#client;
    if (client === undefined) return;
    const frame = this.#options.pool.take();
    const { bytes } = frame;
    const ipOffset = ethernetHeaderLength;
    const udpOffset = ipOffset + ipv4MinHeaderLength;
    bytes.fill(0x55, headerLength, headerLength + payloadBytes);
    writeEthernet(bytes, 0, client.macAddress, this.#ownMac, etherTypeIpv4);
    writeUdp(bytes, udpOffset, udpSourcePort, client.port, payloadBytes, this.#from, client.address);
    this.#sent++;
    writeIpv4(
      bytes,
      ipOffset,
      0,
      udpHeaderLength + payloadBytes,
      this.#sent & 0xffff,
      false,
      timeToLive,
      ipProtocolUdp,
      this.#from,
      client.address,
    );
    frame.length = headerLength + payloadBytes;
    this.#options.send(frame, nowUs);
  }
}
