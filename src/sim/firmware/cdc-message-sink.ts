import type { OutSink } from '../device-endpoint.ts';
import { frameCapacityBytes } from '../frame.ts';
import { type CdcNetwork, minFrameBytes } from './cdc-network.ts';

/** Takes a whole message apart; hands frames to {@link CdcMessageSink.sendUp}. False: it is malformed. */
export type TakeMessage = (bytes: Uint8Array, length: number, nowUs: number) => boolean;

/** Puts messages together from packets, each to the short packet that ends it, and sends the frames in them on. */
export class CdcMessageSink implements OutSink {
  readonly #network: () => CdcNetwork;
  readonly #message: Uint8Array;
  readonly #take: TakeMessage;
  /** Of the message so far, those included that are too many. */
  #bytes = 0;
  /** Of the frames that were found in the message being taken apart. */
  #frameBytes = 0;

  /** @param maxBytes of the longest message; what is longer is malformed */
  constructor(network: () => CdcNetwork, maxBytes: number, take: TakeMessage) {
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
    this.#frameBytes = 0;
    // An empty packet that ends nothing.
    if (bytes === 0) return;
    network.counters.messagesFromHost++;
    if (bytes > this.#message.length || !this.#take(this.#message, bytes, nowUs)) {
      network.counters.malformedFromHost++;
    }
    network.discard(bytes - this.#frameBytes, nowUs);
  }

  /** A frame in the message that is being taken apart; it is dropped while the interface is not in use. */
  sendUp(bytes: Uint8Array, offset: number, length: number, nowUs: number): void {
    const network = this.#network();
    if (!network.isOpen) {
      network.counters.closedDrops++;
      return;
    }
    if (length < minFrameBytes || length > frameCapacityBytes) {
      network.counters.malformedFromHost++;
      return;
    }
    const frame = network.takeFrame();
    frame.bytes.set(bytes.subarray(offset, offset + length));
    frame.length = length;
    this.#frameBytes += length;
    network.sendUp(frame, nowUs);
  }

  reset(nowUs: number): void {
    const bytes = this.#bytes;
    this.#bytes = 0;
    this.#network().discard(bytes, nowUs);
  }
}
