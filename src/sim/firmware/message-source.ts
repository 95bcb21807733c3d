import type { InSource } from '../device-endpoint.ts';
import type { FrameQueue } from '../frame.ts';
import type { DeviceNetwork } from './device-network.ts';

/**
 * Writes the next message for the host into a buffer, out of the frames at the head of the queue: each that is in it is
 * removed by `take`. Answers its length; 0: there is nothing to send.
 */
export type BuildMessage = (buffer: Uint8Array, queue: FrameQueue, take: () => void) => number;

/** Sends messages; one that ends on a packet boundary is followed by an empty packet, unless it ends by its size. */
export class MessageSource implements InSource {
  readonly #network: () => DeviceNetwork;
  readonly #packetBytes: number;
  readonly #buffer: Uint8Array;
  readonly #build: BuildMessage;
  readonly #endsBySize: (length: number) => boolean;
  readonly #take = (): void => this.#takeFrame();
  /** 0: there is no message. */
  #length = 0;
  #sentBytes = 0;
  /** In the message. */
  #frames = 0;
  #frameBytes = 0;

  /** @param endsBySize whether a message of that length fills what the host has asked for, so that it needs no other end */
  constructor(
    network: () => DeviceNetwork,
    packetBytes: number,
    maxBytes: number,
    build: BuildMessage,
    endsBySize: (length: number) => boolean = () => false,
  ) {
    this.#network = network;
    this.#packetBytes = packetBytes;
    this.#buffer = new Uint8Array(maxBytes);
    this.#build = build;
    this.#endsBySize = endsBySize;
  }

  pendingBytes(): number {
    if (this.#length === 0) {
      this.#frames = 0;
      this.#frameBytes = 0;
      this.#sentBytes = 0;
      this.#length = this.#build(this.#buffer, this.#network().hostQueue, this.#take);
    }
    return this.#length === 0 ? -1 : this.#length - this.#sentBytes;
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
    to.set(this.#buffer.subarray(from, from + length), offset);
    this.#sentBytes += length;
    if (this.#sentBytes < this.#length) return;
    const needsEmptyPacket =
      length > 0 && length % this.#packetBytes === 0 && !this.#endsBySize(this.#length);
    if (needsEmptyPacket) return;
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
