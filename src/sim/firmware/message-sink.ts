import type { OutSink } from '../device-endpoint.ts';
import type { DeviceFifo } from '../device-fifo.ts';
import type { FunctionCounters } from './cdc-network.ts';

/** What is needed of the network side of a device. */
export interface SinkNetwork {
  readonly fifo: DeviceFifo;
  readonly counters: Pick<FunctionCounters, 'messagesFromHost' | 'malformedFromHost'>;
  /** Bytes of the FIFO that no frame was made of are free again. */
  discard(bytes: number, nowUs: number): void;
}

/** Takes a whole message apart and sends the frames in it on. False: it is malformed. */
export type TakeMessage = (bytes: Uint8Array, length: number, nowUs: number) => boolean;

/** Puts messages together from packets, each to the short packet that ends it. */
export abstract class MessageSink<Network extends SinkNetwork> implements OutSink {
  protected readonly network: () => Network;
  readonly #message: Uint8Array;
  readonly #take: TakeMessage;
  /** Of the message so far, those included that are too many. */
  #bytes = 0;
  /** Of the message that is being taken apart: bytes in the FIFO that no frame has been made of. */
  #unspentBytes = 0;
  /** When it is taken apart. */
  protected nowUs = 0;

  /** @param maxBytes of the longest message; what is longer is malformed */
  constructor(network: () => Network, maxBytes: number, take: TakeMessage) {
    this.network = network;
    this.#message = new Uint8Array(maxBytes);
    this.#take = take;
  }

  admit(wantedBytes: number, packetBytes: number): number {
    return this.network().fifo.admit(wantedBytes, packetBytes);
  }

  receive(bytes: Uint8Array, offset: number, length: number, endOfMessage: boolean, nowUs: number): void {
    const from = this.#bytes;
    this.#bytes += length;
    this.network().fifo.add(length);
    if (this.#bytes <= this.#message.length) {
      this.#message.set(bytes.subarray(offset, offset + length), from);
    }
    if (endOfMessage) this.#finish(nowUs);
  }

  #finish(nowUs: number): void {
    const network = this.network();
    const bytes = this.#bytes;
    this.#bytes = 0;
    // An empty packet that ends nothing.
    if (bytes === 0) return;
    network.counters.messagesFromHost++;
    this.#unspentBytes = bytes;
    this.nowUs = nowUs;
    const good = bytes <= this.#message.length && this.#take(this.#message, bytes, nowUs);
    if (!good) network.counters.malformedFromHost++;
    network.discard(this.#unspentBytes, nowUs);
  }

  /** A frame of that length was made of the message; it leaves the FIFO when it has left on the link. */
  protected spend(length: number): void {
    // Pieces of a segment are more together than it was.
    if (length > this.#unspentBytes) this.network().fifo.add(length - this.#unspentBytes);
    this.#unspentBytes = Math.max(0, this.#unspentBytes - length);
  }

  reset(nowUs: number): void {
    const bytes = this.#bytes;
    this.#bytes = 0;
    this.network().discard(bytes, nowUs);
  }
}
