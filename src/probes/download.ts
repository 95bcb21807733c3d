import { neverUs, type Polled } from '../base/clock.ts';
import { type DatagramHandler, ipv4PayloadOffset, type IpStack } from '../ip/ip-stack.ts';
import { ipProtocolUdp } from '../wire/ipv4.ts';
import { udpHeaderLength, writeUdp } from '../wire/udp.ts';
import {
  udpSourcePort,
  type UdpSourceRequest,
  udpSourceRequestLength,
  writeUdpSourceRequest,
} from '../wire/udp-source-request.ts';

const ownPort = 49_001;
/** Asked this often, so that one lost request does no harm; and left alone it stops after this long. */
const renewUs = 500_000;
const lifetimeMs = 2000;
/** Requests go ahead of what they cause. */
const requestTos = 0x10;

export interface DownloadSettings {
  readonly enabled: boolean;
  readonly rateBitsPerSecond: number;
  readonly payloadBytes: number;
}

/**
 * UDP load downwards: asks a far end that understands {@link UdpSourceRequest} to send, for as long as it is wanted, and
 * counts what comes.
 */
export class Download implements Polled, DatagramHandler {
  readonly #stack: IpStack;
  #settings: DownloadSettings;
  #target: number | undefined;
  /** The target that was asked last and has not been told to stop. */
  #asked: number | undefined;
  #dueAtUs = neverUs;
  #receivedBytes = 0;

  constructor(stack: IpStack, settings: DownloadSettings) {
    this.#stack = stack;
    this.#settings = settings;
    stack.setDatagramHandler(ownPort, this);
  }

  /** Payload bytes of the datagrams that came. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  configure(settings: DownloadSettings, nowUs: number): void {
    this.#settings = settings;
    this.#restart(nowUs);
  }

  /** Sets the address that is asked; undefined stops. */
  setTarget(target: number | undefined, nowUs: number): void {
    this.#target = target;
    this.#restart(nowUs);
  }

  #restart(nowUs: number): void {
    if (this.#settings.enabled && this.#target !== undefined) {
      this.#dueAtUs = nowUs;
      return;
    }
    this.#dueAtUs = neverUs;
    if (this.#asked !== undefined) this.#request(this.#asked, 0, nowUs);
    this.#asked = undefined;
  }

  poll(nowUs: number): void {
    if (nowUs < this.#dueAtUs || this.#target === undefined) return;
    this.#dueAtUs = nowUs + renewUs;
    this.#asked = this.#target;
    this.#request(this.#target, lifetimeMs, nowUs);
  }

  pollAtUs(): number {
    return this.#dueAtUs;
  }

  #request(target: number, lifetime: number, nowUs: number): void {
    const source = this.#stack.configuration?.address;
    const packet = this.#stack.beginPacket(
      target,
      requestTos,
      ipProtocolUdp,
      udpHeaderLength + udpSourceRequestLength,
      nowUs,
    );
    if (packet === undefined || source === undefined) return;
    const { rateBitsPerSecond, payloadBytes } = this.#settings;
    const request: UdpSourceRequest = { rateBitsPerSecond, payloadBytes, lifetimeMs: lifetime };
    writeUdpSourceRequest(packet.bytes, ipv4PayloadOffset + udpHeaderLength, request);
    writeUdp(packet.bytes, ipv4PayloadOffset, ownPort, udpSourcePort, udpSourceRequestLength, source, target);
    this.#stack.send(packet, nowUs);
  }

  handleDatagram(_bytes: Uint8Array, _payloadOffset: number, payloadLength: number): boolean {
    this.#receivedBytes += payloadLength;
    return true;
  }
}
