import { neverUs, type Polled } from '../base/clock.ts';
import type { IpStack } from '../ip/ip-stack.ts';
import { UdpFlow } from '../ip/udp-flow.ts';
import { udpHeaderLength } from '../wire/udp.ts';

/** Without a rate the qdisc is kept between these many packets: never empty, never near the length at which it drops. */
const greedyLow = 64;
const greedyHigh = 128;
/** While the target's MAC address is unknown it is tried again at this pace. */
const unresolvedUs = 50_000;
/** A pause of ours is not made up for beyond this: a burst of that length is no load of that rate. */
const debtLimitUs = 20_000;
const sourcePort = 49_000;
const microseconds = 1e6;

export interface LoadSettings {
  readonly enabled: boolean;
  /** IP packets on the link, bits per second; 0: as fast as the queue takes them. */
  readonly rateBitsPerSecond: number;
  /** Less is sent where the MTU does not allow as much. */
  readonly payloadBytes: number;
  readonly targetPort: number;
}

/** Sends UDP datagrams to one address at a target rate, best effort. */
export class Load implements Polled {
  readonly #stack: IpStack;
  readonly #backlogPackets: () => number;
  #settings: LoadSettings;
  #target: number | undefined;
  #flow: UdpFlow | undefined;
  #dueAtUs = neverUs;
  #retryAtUs = 0;
  #sent = 0;
  #dropped = 0;

  /** @param backlogPackets packets that wait in the qdisc now */
  constructor(stack: IpStack, backlogPackets: () => number, settings: LoadSettings) {
    this.#stack = stack;
    this.#backlogPackets = backlogPackets;
    this.#settings = settings;
  }

  /** Datagrams handed to the interface, and those that it dropped. */
  get sent(): number {
    return this.#sent;
  }
  get dropped(): number {
    return this.#dropped;
  }

  configure(settings: LoadSettings, nowUs: number): void {
    this.#settings = settings;
    this.#restart(nowUs);
  }

  /** Sets the address that is loaded; undefined stops. */
  setTarget(target: number | undefined, nowUs: number): void {
    this.#target = target;
    this.#restart(nowUs);
  }

  #restart(nowUs: number): void {
    const { enabled, payloadBytes, targetPort } = this.#settings;
    if (!enabled || this.#target === undefined) {
      this.#flow = undefined;
      this.#dueAtUs = neverUs;
      return;
    }
    this.#flow = new UdpFlow({
      stack: this.#stack,
      destination: this.#target,
      sourcePort,
      destinationPort: targetPort,
      tos: 0,
      payloadBytes: Math.min(payloadBytes, this.#stack.maxPayloadBytes - udpHeaderLength),
    });
    this.#dueAtUs = nowUs;
    this.#retryAtUs = nowUs;
  }

  poll(nowUs: number): void {
    const flow = this.#flow;
    if (flow === undefined || nowUs < this.#retryAtUs) return;
    if (this.#settings.rateBitsPerSecond > 0) this.#pace(flow, nowUs);
    else this.#fill(flow, nowUs);
  }

  #fill(flow: UdpFlow, nowUs: number): void {
    const backlog = this.#backlogPackets();
    if (backlog > greedyLow) return;
    for (let room = greedyHigh - backlog; room > 0; room--) if (!this.#send(flow, nowUs)) return;
  }

  #pace(flow: UdpFlow, nowUs: number): void {
    const packetUs = (flow.ipPacketBytes * 8 * microseconds) / this.#settings.rateBitsPerSecond;
    this.#dueAtUs = Math.max(this.#dueAtUs, nowUs - debtLimitUs);
    while (nowUs >= this.#dueAtUs) {
      this.#dueAtUs += packetUs;
      if (!this.#send(flow, nowUs)) return;
    }
  }

  /** False: stop for now. */
  #send(flow: UdpFlow, nowUs: number): boolean {
    switch (flow.send(0, nowUs)) {
      case 'queued':
        this.#sent++;
        return true;
      case 'unresolved':
        this.#retryAtUs = nowUs + unresolvedUs;
        return false;
      case 'dropped':
        this.#dropped++;
        // With a rate the next one is due on its own time; without one, wait for room.
        if (this.#settings.rateBitsPerSecond === 0) this.#retryAtUs = nowUs + 1000;
        return this.#settings.rateBitsPerSecond > 0;
    }
  }

  pollAtUs(): number {
    if (this.#flow === undefined) return neverUs;
    if (this.#settings.rateBitsPerSecond > 0) return Math.max(this.#dueAtUs, this.#retryAtUs);
    return this.#backlogPackets() > greedyLow ? neverUs : this.#retryAtUs;
  }
}
