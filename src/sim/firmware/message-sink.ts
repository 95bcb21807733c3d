import type { OutSink } from '../device-endpoint.ts';
import type { AdapterNetwork } from './adapter-network.ts';

/** Takes a whole message apart; what it finds goes to {@link MessageSink.sendFrame}. False: it is malformed. */
export type MessageHandler = (bytes: Uint8Array, length: number) => boolean;

/** Puts messages together from packets: a short packet ends one. */
export class MessageSink implements OutSink {
  readonly #network: () => AdapterNetwork;
  readonly #block: Uint8Array;
  readonly #handle: MessageHandler;
  /** Of the message so far, those included that are too many. */
  #bytes = 0;
  /** Of the message that is being taken apart: bytes in the FIFO that no frame has been made of. */
  #unspentBytes = 0;
  #nowUs = 0;

  constructor(network: () => AdapterNetwork, maxBytes: number, handle: MessageHandler) {
    this.#network = network;
    this.#block = new Uint8Array(maxBytes);
    this.#handle = handle;
  }

  admit(wantedBytes: number, packetBytes: number): number {
    return this.#network().fifo.admit(wantedBytes, packetBytes);
  }

  receive(bytes: Uint8Array, offset: number, length: number, endOfMessage: boolean, nowUs: number): void {
    const from = this.#bytes;
    this.#bytes += length;
    this.#network().fifo.add(length);
    if (this.#bytes <= this.#block.length) this.#block.set(bytes.subarray(offset, offset + length), from);
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
    const good = bytes <= this.#block.length && this.#handle(this.#block, bytes);
    if (!good) network.counters.malformedFromHost++;
    network.discard(this.#unspentBytes, nowUs);
  }

  /** Sends a frame on that was found, or made, in the message. */
  sendFrame(bytes: Uint8Array, offset: number, length: number): void {
    const network = this.#network();
    // Pieces of a segment are more together than it was.
    if (length > this.#unspentBytes) network.fifo.add(length - this.#unspentBytes);
    this.#unspentBytes = Math.max(0, this.#unspentBytes - length);
    network.sendUp(bytes, offset, length, this.#nowUs);
  }

  reset(nowUs: number): void {
    const bytes = this.#bytes;
    this.#bytes = 0;
    this.#network().discard(bytes, nowUs);
  }
}
