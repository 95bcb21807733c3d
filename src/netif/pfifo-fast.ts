import { RingQueue } from '../base/ring-queue.ts';
import type { Packet } from '../usbnet/packet.ts';
import { emptyQdiscStats, type Qdisc, type QdiscStats } from './qdisc.ts';

/** Which band a priority (modulo 16) goes to; band 0 leaves first (spec 4.2). */
const bandOfPriority = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
const bandCount = 3;

/** Linux's default length of a transmit queue, packets (`txqueuelen`); each band holds that many. */
export const defaultTxQueueLength = 1000;

/** Three bands, strict priority, each first-in first-out; a full band drops the packet that arrives. */
export class PfifoFast implements Qdisc {
  readonly name = 'pfifo_fast';
  readonly flows = Number.NaN;
  onDrop: ((packet: Packet) => void) | undefined = undefined;
  readonly roomPackets: number;
  readonly #bands: readonly RingQueue<Packet>[];
  readonly #stats: QdiscStats = emptyQdiscStats();
  #length = 0;
  #backlogBytes = 0;

  /** @param txQueueLength packets that each band holds */
  constructor(txQueueLength = defaultTxQueueLength) {
    this.roomPackets = txQueueLength;
    this.#bands = Array.from({ length: bandCount }, () => new RingQueue<Packet>(txQueueLength));
  }

  get length(): number {
    return this.#length;
  }
  get backlogBytes(): number {
    return this.#backlogBytes;
  }
  get stats(): Readonly<QdiscStats> {
    return this.#stats;
  }

  enqueue(packet: Packet, _nowUs: number): boolean {
    const band = this.#bands[bandOfPriority[packet.priority & 15] ?? 1];
    if (band === undefined || !band.push(packet)) {
      this.#stats.drops++;
      this.#stats.dropsOverLimit++;
      packet.release();
      return false;
    }
    this.#length++;
    this.#backlogBytes += packet.length;
    return true;
  }

  dequeue(_nowUs: number): Packet | undefined {
    if (this.#length === 0) return undefined;
    for (const band of this.#bands) {
      const packet = band.shift();
      if (packet === undefined) continue;
      this.#length--;
      this.#backlogBytes -= packet.length;
      return packet;
    }
    return undefined;
  }

  purge(): number {
    const count = this.#length;
    for (;;) {
      const packet = this.dequeue(0);
      if (packet === undefined) return count;
      this.onDrop?.(packet);
      packet.release();
    }
  }
}
