import { neverUs, type Polled } from '../base/clock.ts';
import type { EchoSocket } from '../ip/echo-socket.ts';
import { IcmpSocket } from '../ip/icmp-socket.ts';
import type { EchoHandler, IpStack } from '../ip/ip-stack.ts';
import { UdpEchoSocket } from '../ip/udp-echo-socket.ts';

/**
 * Tags of a ping's packets are its number (from 1) above the low 16 bits of the sequence number; other senders stay below
 * all of them.
 */
const tagStep = 0x10000;
const sequenceMask = 0xffff;
/** Probes that can be on their way at once; an older one that is still out counts as lost then. */
const slots = 1024;
/** Of probes that became due while nothing ran, at most so many are made up for. */
const lateLimit = 20;
/** Below it are the ports of the load; each ping has one of its own from here on. */
const firstUdpPort = 49_100;

/** What is sent: ICMP echo requests, or datagrams to the echo service (UDP port 7). */
export type PingProtocol = 'icmp' | 'udp';

export interface PingSettings {
  readonly enabled: boolean;
  readonly intervalUs: number;
  readonly tos: number;
  /** Less is sent where the MTU does not allow as much. */
  readonly payloadBytes: number;
  /** Unanswered for so long: lost. */
  readonly timeoutUs: number;
  /** Absent: icmp. Fixed once the ping is made. */
  readonly protocol?: PingProtocol | undefined;
}

/** What became of one probe. Times that are not known are NaN. */
export interface ProbeResult {
  readonly dueAtUs: number;
  readonly sequence: number;
  /** From being handed to the qdisc to its reply; NaN: lost. */
  readonly rttUs: number;
  readonly qdiscWaitUs: number;
  /** From being handed to the driver to the end of its transfer. */
  readonly driverQueueUs: number;
  /** How much later than due it was sent. */
  readonly lateUs: number;
}

interface Slot {
  sequence: number;
  active: boolean;
  dueAtUs: number;
  sentAtUs: number;
  rttUs: number;
  qdiscWaitUs: number;
  driverQueueUs: number;
}

function emptySlot(): Slot {
  return {
    sequence: -1,
    active: false,
    dueAtUs: 0,
    sentAtUs: 0,
    rttUs: Number.NaN,
    qdiscWaitUs: Number.NaN,
    driverQueueUs: Number.NaN,
  };
}

/**
 * Pings one address at a fixed pace. Probes leave when they are due, whatever became of those before (no coordinated
 * omission); one that could only be sent late says by how much.
 */
export class Ping implements Polled, EchoHandler {
  readonly #stack: IpStack;
  readonly #socket: EchoSocket;
  readonly #report: (result: ProbeResult) => void;
  readonly #slots: Slot[] = Array.from({ length: slots }, emptySlot);
  #settings: PingSettings;
  #target: number | undefined;
  #sequence = 0;
  #oldest = 0;
  #dueAtUs = neverUs;
  #omitted = 0;
  readonly #tagBase: number;

  /** @param number of those that share a stack, from 1: no two have the same */
  constructor(
    stack: IpStack,
    identifier: number,
    settings: PingSettings,
    report: (result: ProbeResult) => void,
    number = 1,
  ) {
    this.#tagBase = number * tagStep;
    this.#stack = stack;
    this.#settings = settings;
    this.#report = report;
    this.#socket =
      settings.protocol === 'udp'
        ? new UdpEchoSocket(stack, firstUdpPort + number, this)
        : new IcmpSocket(stack, identifier, this);
  }

  /** Probes that were sent, the ones on their way included. */
  get sent(): number {
    return this.#sequence;
  }

  /** Probes that were due in a pause of ours so long that they are not made up for; nothing is known of their time. */
  get omitted(): number {
    return this.#omitted;
  }

  configure(settings: PingSettings, nowUs: number): void {
    const wasRunning = this.#dueAtUs !== neverUs;
    this.#settings = settings;
    if (!settings.enabled || this.#target === undefined) this.#dueAtUs = neverUs;
    else if (!wasRunning) this.#dueAtUs = nowUs;
    else this.#dueAtUs = Math.min(this.#dueAtUs, nowUs + settings.intervalUs);
  }

  /** Sets the address to ping; undefined stops. */
  setTarget(target: number | undefined, nowUs: number): void {
    this.#target = target;
    this.configure(this.#settings, nowUs);
  }

  poll(nowUs: number): void {
    this.#expire(nowUs);
    const { intervalUs } = this.#settings;
    const omitted = Math.floor((nowUs - this.#dueAtUs) / intervalUs) - lateLimit;
    if (omitted > 0) {
      this.#omitted += omitted;
      this.#dueAtUs += omitted * intervalUs;
    }
    while (nowUs >= this.#dueAtUs) {
      this.#send(this.#dueAtUs, nowUs);
      this.#dueAtUs += this.#settings.intervalUs;
    }
  }

  pollAtUs(): number {
    return Math.min(this.#dueAtUs, this.#expiresAtUs());
  }

  #expiresAtUs(): number {
    for (; this.#oldest < this.#sequence; this.#oldest++) {
      const slot = this.#slotOf(this.#oldest);
      if (slot.active && slot.sequence === this.#oldest) return slot.sentAtUs + this.#settings.timeoutUs;
    }
    return neverUs;
  }

  #expire(nowUs: number): void {
    while (nowUs >= this.#expiresAtUs()) this.#finish(this.#slotOf(this.#oldest));
  }

  #slotOf(sequence: number): Slot {
    const index = sequence % slots;
    return (this.#slots[index] ??= emptySlot());
  }

  #send(dueAtUs: number, nowUs: number): void {
    const target = this.#target;
    if (target === undefined) return;
    const sequence = this.#sequence;
    const { tos } = this.#settings;
    const payloadBytes = Math.min(
      this.#settings.payloadBytes,
      this.#stack.maxPayloadBytes - this.#socket.headerBytes,
    );
    const tag = this.#tagBase + (sequence & sequenceMask);
    const result = this.#socket.sendEcho(target, sequence, tos, payloadBytes, tag, nowUs);
    // While the target's MAC address is still being asked for, nothing was sent and nothing can be lost.
    if (result === 'unresolved' && !this.#stack.isUnreachable(target)) return;
    const slot = this.#slotOf(sequence);
    if (slot.active) this.#finish(slot);
    this.#sequence++;
    slot.sequence = sequence;
    slot.active = true;
    slot.dueAtUs = dueAtUs;
    slot.sentAtUs = nowUs;
    slot.rttUs = Number.NaN;
    slot.qdiscWaitUs = Number.NaN;
    slot.driverQueueUs = Number.NaN;
    if (result !== 'queued') this.#finish(slot);
  }

  handleEchoReply(sequence: number, nowUs: number): void {
    const slot = this.#find(sequence);
    if (slot === undefined || !Number.isNaN(slot.rttUs)) return;
    slot.rttUs = nowUs - slot.sentAtUs;
    // The end of its own transfer may be reported later than the reply.
    if (!Number.isNaN(slot.driverQueueUs)) this.#finish(slot);
  }

  #isOwn(tag: number): boolean {
    return tag >= this.#tagBase && tag < this.#tagBase + tagStep;
  }

  /** One of our packets has left the qdisc. */
  handlePacketDequeued(tag: number, waitUs: number): void {
    if (!this.#isOwn(tag)) return;
    const slot = this.#find(tag & sequenceMask);
    if (slot !== undefined) slot.qdiscWaitUs = waitUs;
  }

  /** The transfer of one of our packets has ended. */
  handlePacketSent(tag: number, handedOverAtUs: number, completedAtUs: number): void {
    if (!this.#isOwn(tag)) return;
    const slot = this.#find(tag & sequenceMask);
    if (slot === undefined) return;
    slot.driverQueueUs = completedAtUs - handedOverAtUs;
    if (!Number.isNaN(slot.rttUs)) this.#finish(slot);
  }

  /** The active slot of the probe whose sequence number has these low 16 bits. */
  #find(lowBits: number): Slot | undefined {
    const slot = this.#slotOf(lowBits % slots);
    return slot.active && (slot.sequence & sequenceMask) === lowBits ? slot : undefined;
  }

  #finish(slot: Slot): void {
    slot.active = false;
    this.#report({
      dueAtUs: slot.dueAtUs,
      sequence: slot.sequence,
      rttUs: slot.rttUs,
      qdiscWaitUs: slot.qdiscWaitUs,
      driverQueueUs: slot.driverQueueUs,
      lateUs: slot.sentAtUs - slot.dueAtUs,
    });
  }

  /** Gives up all probes that are on their way; they are not counted as lost, since nobody waits for them any more. */
  close(): void {
    this.#dueAtUs = neverUs;
    for (const slot of this.#slots) slot.active = false;
    this.#socket.close();
  }
}
