import type { InSource } from '../device-endpoint.ts';
import type { FrameQueue } from '../frame.ts';
import type { AdapterNetwork } from './adapter-network.ts';

/** Packs what waits for the host into a block, takes it out of the queue with `take`, and answers the block's length. */
export type BlockBuilder = (block: Uint8Array, queue: FrameQueue, take: () => void) => number;

/** Sends blocks of frames, each ended by a short packet. What waits when a transfer is there goes into one block. */
export class BlockSource implements InSource {
  readonly #network: () => AdapterNetwork;
  readonly #packetBytes: number;
  readonly #block: Uint8Array;
  readonly #build: BlockBuilder;
  readonly #take = (): void => this.#takeFrame();
  /** 0: there is no block. */
  #length = 0;
  #sentBytes = 0;
  #frames = 0;
  #frameBytes = 0;

  constructor(network: () => AdapterNetwork, packetBytes: number, maxBytes: number, build: BlockBuilder) {
    this.#network = network;
    this.#packetBytes = packetBytes;
    this.#block = new Uint8Array(maxBytes);
    this.#build = build;
  }

  pendingBytes(): number {
    if (this.#length === 0) this.#begin();
    return this.#length === 0 ? -1 : this.#length - this.#sentBytes;
  }

  #begin(): void {
    const { hostQueue } = this.#network();
    if (hostQueue.length === 0) return;
    this.#frames = 0;
    this.#frameBytes = 0;
    this.#sentBytes = 0;
    this.#length = this.#build(this.#block, hostQueue, this.#take);
  }

  #takeFrame(): void {
    const network = this.#network();
    const frame = network.hostQueue.shift();
    if (frame === undefined) return;
    this.#frames++;
    this.#frameBytes += frame.length;
    network.giveFrame(frame);
  }

  transmit(to: Uint8Array, offset: number, length: number): void {
    const from = this.#sentBytes;
    to.set(this.#block.subarray(from, from + length), offset);
    this.#sentBytes += length;
    if (this.#sentBytes < this.#length) return;
    // One that ends on a packet boundary is followed by an empty packet.
    if (length > 0 && length % this.#packetBytes === 0) return;
    const { counters } = this.#network();
    counters.messagesToHost++;
    counters.framesToHost += this.#frames;
    counters.bytesToHost += this.#frameBytes;
    this.#length = 0;
  }

  reset(): void {
    if (this.#length > 0) this.#network().counters.closedDrops += this.#frames;
    this.#length = 0;
  }
}
