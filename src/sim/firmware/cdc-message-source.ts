import type { InSource } from '../device-endpoint.ts';
import type { CdcNetwork } from './cdc-network.ts';

/** What a message is made of; frames that are in it have been taken from the queue and given back. */
export interface BuiltMessage {
  /** 0: there is nothing to send. */
  readonly length: number;
  readonly frames: number;
  readonly frameBytes: number;
}

export const noMessage: BuiltMessage = { length: 0, frames: 0, frameBytes: 0 };

/** Writes the next message to the host into a buffer. */
export type BuildMessage = (buffer: Uint8Array) => BuiltMessage;

/** Sends messages; one that ends on a packet boundary is ended by an empty packet. */
export class CdcMessageSource implements InSource {
  readonly #network: () => CdcNetwork;
  readonly #packetBytes: number;
  readonly #buffer: Uint8Array;
  readonly #build: BuildMessage;
  #message = noMessage;
  #sentBytes = 0;

  constructor(network: () => CdcNetwork, packetBytes: number, maxBytes: number, build: BuildMessage) {
    this.#network = network;
    this.#packetBytes = packetBytes;
    this.#buffer = new Uint8Array(maxBytes);
    this.#build = build;
  }

  pendingBytes(): number {
    if (this.#message.length === 0) {
      this.#message = this.#build(this.#buffer);
      this.#sentBytes = 0;
    }
    return this.#message.length === 0 ? -1 : this.#message.length - this.#sentBytes;
  }

  transmit(to: Uint8Array, offset: number, length: number): void {
    const from = this.#sentBytes;
    to.set(this.#buffer.subarray(from, from + length), offset);
    this.#sentBytes += length;
    if (this.#sentBytes < this.#message.length) return;
    if (length > 0 && length % this.#packetBytes === 0) return;
    const { counters } = this.#network();
    counters.messagesToHost++;
    counters.framesToHost += this.#message.frames;
    counters.bytesToHost += this.#message.frameBytes;
    this.#message = noMessage;
  }

  reset(): void {
    this.#network().counters.closedDrops += this.#message.frames;
    this.#message = noMessage;
  }
}
