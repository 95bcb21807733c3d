import { frameCapacityBytes } from '../frame.ts';
import { type CdcNetwork, minFrameBytes } from './cdc-network.ts';
import { MessageSink } from './message-sink.ts';

/** Messages of CDC's network functions. */
export class CdcMessageSink extends MessageSink<CdcNetwork> {
  /** A frame in the message that is being taken apart; it is dropped while the interface is not in use. */
  sendUp(bytes: Uint8Array, offset: number, length: number): void {
    const network = this.network();
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
    this.spend(length);
    network.sendUp(frame, this.nowUs);
  }
}
