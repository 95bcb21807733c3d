import type { DeviceEndpoint } from '../device-endpoint.ts';
import { DeviceFifo } from '../device-fifo.ts';
import { type Frame, FrameQueue } from '../frame.ts';
import type { NetworkDevice, SimNetwork } from '../sim-network.ts';
import { FunctionCounters } from './function-counters.ts';

export interface DeviceNetworkOptions {
  readonly network: SimNetwork;
  readonly fifoBytes: number;
  readonly hysteresisBytes: number;
  /** Bytes of frames that may wait for the host; what is more is dropped. */
  readonly hostQueueBytes: number;
}

/**
 * The network side that all devices have in common: the memory towards the link and the queue towards the host, between the
 * bulk endpoints and the link.
 */
export abstract class DeviceNetwork implements NetworkDevice {
  readonly fifo: DeviceFifo;
  readonly hostQueue = new FrameQueue();
  readonly counters = new FunctionCounters();
  protected readonly network: SimNetwork;
  protected readonly bulkIn: DeviceEndpoint;
  protected readonly bulkOut: DeviceEndpoint;
  readonly #hostQueueBytes: number;

  constructor(options: DeviceNetworkOptions, bulkIn: DeviceEndpoint, bulkOut: DeviceEndpoint) {
    this.network = options.network;
    this.#hostQueueBytes = options.hostQueueBytes;
    this.fifo = new DeviceFifo(options.fifoBytes, options.hysteresisBytes);
    this.bulkIn = bulkIn;
    this.bulkOut = bulkOut;
    options.network.setDevice(this);
  }

  /** Whether the host takes frames at all. */
  abstract get isOpen(): boolean;
  /** Whether a frame from the link is for the host. */
  protected abstract passes(bytes: Uint8Array): boolean;
  abstract handleCarrier(on: boolean, nowUs: number): void;

  takeFrame(): Frame {
    return this.network.pool.take();
  }

  giveFrame(frame: Frame): void {
    this.network.pool.give(frame);
  }

  /** Sends a frame on to the link, whose bytes are in the FIFO already. */
  sendUp(frame: Frame, nowUs: number): void {
    this.counters.framesFromHost++;
    this.counters.bytesFromHost += frame.length;
    this.fifo.commit(frame.length);
    this.network.sendUp(frame, nowUs);
  }

  /** Takes bytes out of the FIFO that are no frame. */
  discard(bytes: number, nowUs: number): void {
    if (bytes !== 0 && this.fifo.discard(bytes)) this.bulkOut.ready(nowUs);
  }

  /** What waits for the host does not outlast what the host has done now. */
  protected dropForHost(): void {
    this.counters.closedDrops += this.hostQueue.clear(this.network.pool);
  }

  // ---- the link ----

  handleFrameSent(lengthBytes: number, nowUs: number): void {
    if (this.fifo.release(lengthBytes)) this.bulkOut.ready(nowUs);
  }

  handleFrame(frame: Frame, nowUs: number): void {
    const { counters } = this;
    if (!this.isOpen) counters.closedDrops++;
    else if (!this.passes(frame.bytes)) counters.filtered++;
    else if (this.hostQueue.bytes + frame.length > this.#hostQueueBytes) counters.dropped++;
    else {
      this.hostQueue.push(frame);
      this.bulkIn.ready(nowUs);
      return;
    }
    this.giveFrame(frame);
  }
}
