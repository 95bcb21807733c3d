import type { Packet } from '../usbnet/packet.ts';

export const qdiscNames = ['pfifo_fast', 'fq_codel', 'pfifo'] as const;
export type QdiscName = (typeof qdiscNames)[number];

/** What a qdisc has counted since it was made, as `tc -s qdisc` shows it. */
export interface QdiscStats {
  /** Packets dropped, for whatever reason. */
  drops: number;
  /** Of these: because there was no more room. */
  dropsOverLimit: number;
  /** Packets marked with "congestion experienced" instead. */
  ecnMarks: number;
  /** So often a flow began to send again. */
  newFlows: number;
}

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
  readonly stats: Readonly<QdiscStats>;
  /** Flows that have packets waiting or had until a moment ago; NaN: it knows of no flows. */
  readonly flows: number;
  /** Packets that a flow of best effort may have waiting before the qdisc has no more room. */
  readonly roomPackets: number;

  /** Is told of each packet that is dropped after it was taken, before it is released. */
  onDrop: ((packet: Packet) => void) | undefined;

  /** False: the packet was dropped (and released). */
  enqueue(packet: Packet, nowUs: number): boolean;
  /** The next packet to be sent; on the way to it others may be dropped. */
  dequeue(nowUs: number): Packet | undefined;
  /** Drops all that waits; these are not counted as drops. Returns how many. */
  purge(): number;
}

export function emptyQdiscStats(): QdiscStats {
  return { drops: 0, dropsOverLimit: 0, ecnMarks: 0, newFlows: 0 };
}
