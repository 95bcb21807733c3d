import type { AdapterNetwork } from './adapter-network.ts';
import { MessageSink } from './message-sink.ts';

/** Messages of adapters. */
export class AdapterMessageSink extends MessageSink<AdapterNetwork> {
  /** Sends a frame on that was found, or made, in the message that is being taken apart. */
  sendFrame(bytes: Uint8Array, offset: number, length: number): void {
    this.spend(length);
    this.network().sendUp(bytes, offset, length, this.nowUs);
  }
}
