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
/**
 * Tags of its packets, below those of pings: two of them in turns, so that what was sent before a restart is not taken for
 * what was sent after it.
 */
const loadTags = [1, 2] as const;
const microseconds = 1e6;

export interface LoadSettings {
  readonly enabled: boolean;
  /** IP packets on the link, bits per second; 0: as fast as the queue takes them. */
  readonly rateBitsPerSecond: number;
  /** Less is sent where the MTU does not allow as much. */
  readonly payloadBytes: number;
  readonly targetPort: number;
  /** At most so many packets are below the socket (qdisc and driver) at any time; 0 or absent: only the qdisc bounds it. */
  readonly socketPackets?: number | undefined;
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
  #restarts = 0;
  /** Packets handed over since the last restart whose transfers have not ended. */
  #outstanding = 0;

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

  /** The transfer of a packet with this tag has ended. */
  handlePacketSent(tag: number): void {
    if (tag === this.#tag && this.#outstanding > 0) this.#outstanding--;
  }

  /** The qdisc has dropped a packet with this tag after taking it: the socket has that room again. */
  handlePacketDropped(tag: number): void {
    this.handlePacketSent(tag);
  }

  get #tag(): number {
    return loadTags[this.#restarts % 2 === 0 ? 0 : 1];
  }

  /** Packets that the socket has room for. */
  get #socketRoom(): number {
    const { socketPackets = 0 } = this.#settings;
    return socketPackets === 0 ? Number.POSITIVE_INFINITY : socketPackets - this.#outstanding;
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
    this.#restarts++;
    this.#outstanding = 0;
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
    for (let room = this.#room(); room > 0; room--) if (!this.#send(flow, nowUs)) return;
  }

  /** Packets that may be sent at once without a rate. */
  #room(): number {
    // The socket's own bound keeps the qdisc short of what it drops.
    if ((this.#settings.socketPackets ?? 0) > 0) return this.#socketRoom;
    const backlog = this.#backlogPackets();
    return backlog > greedyLow ? 0 : greedyHigh - backlog;
  }

  #pace(flow: UdpFlow, nowUs: number): void {
    const packetUs = (flow.ipPacketBytes * 8 * microseconds) / this.#settings.rateBitsPerSecond;
    this.#dueAtUs = Math.max(this.#dueAtUs, nowUs - debtLimitUs);
    while (nowUs >= this.#dueAtUs) {
      // A program that is blocked in its send goes on with the same packet.
      if (this.#socketRoom <= 0) return;
      this.#dueAtUs += packetUs;
      if (!this.#send(flow, nowUs)) return;
    }
  }

  /** False: stop for now. */
  #send(flow: UdpFlow, nowUs: number): boolean {
    switch (flow.send(this.#tag, nowUs)) {
      case 'queued':
        this.#sent++;
        this.#outstanding++;
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
    if (this.#settings.rateBitsPerSecond > 0) {
      return this.#socketRoom > 0 ? Math.max(this.#dueAtUs, this.#retryAtUs) : neverUs;
    }
    return this.#room() > 0 ? this.#retryAtUs : neverUs;
  }
}
