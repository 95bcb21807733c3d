import type { Packet } from '../usbnet/packet.ts';

export type QdiscName = 'pfifo_fast';

/**
 * A queueing discipline: what waits above the driver, and in which order it leaves. Here packets can still overtake
 * one another; once handed to the driver they can't.
 *
 * A packet that is enqueued belongs to the qdisc; one that it drops, it also releases and counts.
 */
export interface Qdisc {
  readonly name: QdiscName;
  /** Packets waiting. */
  readonly length: number;
  readonly backlogBytes: number;
  /** Packets dropped since the start. */
  readonly drops: number;

  /** False: the packet was dropped (and released). */
  enqueue(packet: Packet, nowUs: number): boolean;
  dequeue(nowUs: number): Packet | undefined;
  /** Drops all that waits; these are not counted as drops. Returns how many. */
  purge(): number;
}
