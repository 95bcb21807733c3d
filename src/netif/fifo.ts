import { RingQueue } from '../base/ring-queue.ts';
import type { Packet } from '../usbnet/packet.ts';
import { emptyQdiscStats, type Qdisc, type QdiscStats } from './qdisc.ts';

/** One queue, first-in first-out, whatever the priority; when it is full the packet that arrives is dropped (`pfifo`). */
export class Fifo implements Qdisc {
  readonly name = 'pfifo';
  readonly flows = Number.NaN;
  onDrop: ((packet: Packet) => void) | undefined = undefined;
  readonly #queue: RingQueue<Packet>;
  readonly #stats: QdiscStats = emptyQdiscStats();
  #backlogBytes = 0;

  /** @param limitPackets packets that it holds; Linux takes the interface's `txqueuelen` */
  constructor(limitPackets: number) {
    this.#queue = new RingQueue<Packet>(limitPackets);
  }

  get length(): number {
    return this.#queue.length;
  }
  get backlogBytes(): number {
    return this.#backlogBytes;
  }
  get stats(): Readonly<QdiscStats> {
    return this.#stats;
  }
  get roomPackets(): number {
    return this.#queue.capacity;
  }

  enqueue(packet: Packet, _nowUs: number): boolean {
    if (!this.#queue.push(packet)) {
      this.#stats.drops++;
      this.#stats.dropsOverLimit++;
      packet.release();
      return false;
    }
    this.#backlogBytes += packet.length;
    return true;
  }

  dequeue(_nowUs: number): Packet | undefined {
    const packet = this.#queue.shift();
    if (packet !== undefined) this.#backlogBytes -= packet.length;
    return packet;
  }

  purge(): number {
    const count = this.#queue.length;
    for (let i = 0; i < count; i++) {
      const packet = this.dequeue(0);
      if (packet === undefined) break;
      this.onDrop?.(packet);
      packet.release();
    }
    return count;
  }
}
