import { frameCapacityBytes } from '../frame.ts';
import { type CdcNetwork, minFrameBytes } from './cdc-network.ts';
import { MessageSink, type TakeMessage } from './message-sink.ts';

/** Messages of CDC's network functions, which have no receiver to switch off and take frames of any length. */
export class CdcMessageSink extends MessageSink {
  readonly #cdc: () => CdcNetwork;

  constructor(network: () => CdcNetwork, maxBytes: number, take: TakeMessage) {
    super(network, maxBytes, take);
    this.#cdc = network;
  }

  /** The frame is dropped while the interface is not in use. */
  override sendUp(bytes: Uint8Array, offset: number, length: number): void {
    const { isOpen, counters } = this.#cdc();
    if (!isOpen) counters.closedDrops++;
    else if (length < minFrameBytes || length > frameCapacityBytes) counters.malformedFromHost++;
    else super.sendUp(bytes, offset, length);
  }
}
