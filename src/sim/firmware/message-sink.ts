import type { OutSink } from '../device-endpoint.ts';
import type { DeviceNetwork } from './device-network.ts';

/** Takes a whole message apart and sends the frames in it on. False: it is malformed. */
export type TakeMessage = (bytes: Uint8Array, length: number, nowUs: number) => boolean;

/** Puts messages together from packets, each to the short packet that ends it. */
export class MessageSink implements OutSink {
  readonly #network: () => DeviceNetwork;
  readonly #message: Uint8Array;
  readonly #take: TakeMessage;
  /** Of the message so far, those included that are too many. */
  #bytes = 0;
  /** Of the message that is being taken apart: bytes in the FIFO that no frame has been made of. */
  #unspentBytes = 0;
  /** When it is taken apart. */
  #nowUs = 0;

  /** @param maxBytes of the longest message; what is longer is malformed */
  constructor(network: () => DeviceNetwork, maxBytes: number, take: TakeMessage) {
    this.#network = network;
    this.#message = new Uint8Array(maxBytes);
    this.#take = take;
  }

  admit(wantedBytes: number, packetBytes: number): number {
    return this.#network().fifo.admit(wantedBytes, packetBytes);
  }

  receive(bytes: Uint8Array, offset: number, length: number, endOfMessage: boolean, nowUs: number): void {
    const from = this.#bytes;
    this.#bytes += length;
    this.#network().fifo.add(length);
    if (this.#bytes <= this.#message.length) {
      this.#message.set(bytes.subarray(offset, offset + length), from);
    }
    if (endOfMessage) this.#finish(nowUs);
  }

  #finish(nowUs: number): void {
    const network = this.#network();
    const bytes = this.#bytes;
    this.#bytes = 0;
    // An empty packet that ends nothing.
    if (bytes === 0) return;
    network.counters.messagesFromHost++;
    this.#unspentBytes = bytes;
    this.#nowUs = nowUs;
    const good = bytes <= this.#message.length && this.#take(this.#message, bytes, nowUs);
    if (!good) network.counters.malformedFromHost++;
    network.discard(this.#unspentBytes, nowUs);
  }

  /** Sends a frame on that was found, or made, in the message that is being taken apart. */
  sendUp(bytes: Uint8Array, offset: number, length: number): void {
    const network = this.#network();
    // Pieces of a segment are more together than it was.
    if (length > this.#unspentBytes) network.fifo.add(length - this.#unspentBytes);
    this.#unspentBytes = Math.max(0, this.#unspentBytes - length);
    const frame = network.takeFrame();
    frame.bytes.set(bytes.subarray(offset, offset + length));
    frame.length = length;
    network.sendUp(frame, this.#nowUs);
  }

  reset(nowUs: number): void {
    const bytes = this.#bytes;
    this.#bytes = 0;
    this.#network().discard(bytes, nowUs);
  }
}
