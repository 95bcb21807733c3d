import { DeviceEndpoint, type InSource, type OutSink } from '../device-endpoint.ts';
import { DeviceFifo } from '../device-fifo.ts';
import { type Frame, FrameQueue } from '../frame.ts';
import type { NetworkDevice, SimNetwork } from '../sim-network.ts';
import { adapterAddresses } from './adapter-descriptors.ts';
import { FunctionCounters } from './cdc-network.ts';

export interface AdapterNetworkOptions {
  readonly network: SimNetwork;
  readonly fifoBytes: number;
  readonly hysteresisBytes: number;
  /** Bytes of frames that may wait for the host; what is more is dropped. */
  readonly hostQueueBytes: number;
}

/** What an adapter's chip has to say to its network side. */
export interface AdapterChip {
  readonly sink: OutSink;
  readonly source: InSource;
  readonly status: InSource;
  /** Whether a frame from the link is for the host, by the receiver's registers. */
  passes(bytes: Uint8Array): boolean;
}

/**
 * What the chips of Ethernet adapters have in common: the memory towards the link, the queue towards the host, and three
 * endpoints in one interface.
 */
export class AdapterNetwork implements NetworkDevice {
  readonly fifo: DeviceFifo;
  readonly hostQueue = new FrameQueue();
  readonly counters = new FunctionCounters();
  readonly endpoints: readonly DeviceEndpoint[];
  readonly #network: SimNetwork;
  readonly #hostQueueBytes: number;
  readonly #chip: AdapterChip;
  readonly #bulkIn: DeviceEndpoint;
  readonly #bulkOut: DeviceEndpoint;
  readonly #interruptIn: DeviceEndpoint;
  /** The receiver works. */
  #receiving = false;

  constructor(options: AdapterNetworkOptions, chip: AdapterChip) {
    this.#network = options.network;
    this.#hostQueueBytes = options.hostQueueBytes;
    this.#chip = chip;
    this.fifo = new DeviceFifo(options.fifoBytes, options.hysteresisBytes);
    this.#bulkIn = new DeviceEndpoint(adapterAddresses.bulkIn, { source: chip.source });
    this.#bulkOut = new DeviceEndpoint(adapterAddresses.bulkOut, { sink: chip.sink });
    this.#interruptIn = new DeviceEndpoint(adapterAddresses.interruptIn, { source: chip.status });
    this.endpoints = [this.#bulkIn, this.#bulkOut, this.#interruptIn];
    options.network.setDevice(this);
  }

  get carrier(): boolean {
    return this.#network.carrier;
  }

  /** Sends a frame on to the link, whose bytes are in the FIFO already. */
  sendUp(bytes: Uint8Array, offset: number, length: number, nowUs: number): void {
    const frame = this.#network.pool.take();
    frame.bytes.set(bytes.subarray(offset, offset + length));
    frame.length = length;
    this.counters.framesFromHost++;
    this.counters.bytesFromHost += length;
    this.fifo.commit(length);
    this.#network.sendUp(frame, nowUs);
  }

  /** Takes bytes out of the FIFO that are no frame. */
  discard(bytes: number, nowUs: number): void {
    if (bytes !== 0 && this.fifo.discard(bytes)) this.#bulkOut.ready(nowUs);
  }

  giveFrame(frame: Frame): void {
    this.#network.pool.give(frame);
  }

  /** The receiver was switched on or off; what waits for the host does not outlast that. */
  setReceiving(receiving: boolean): void {
    if (this.#receiving && !receiving) this.counters.closedDrops += this.hostQueue.clear(this.#network.pool);
    this.#receiving = receiving;
  }

  // ---- the link ----

  handleFrameSent(lengthBytes: number, nowUs: number): void {
    if (this.fifo.release(lengthBytes)) this.#bulkOut.ready(nowUs);
  }

  handleFrame(frame: Frame, nowUs: number): void {
    const { counters } = this;
    if (!this.#receiving) counters.closedDrops++;
    else if (!this.#chip.passes(frame.bytes)) counters.filtered++;
    else if (this.hostQueue.bytes + frame.length > this.#hostQueueBytes) counters.dropped++;
    else {
      this.hostQueue.push(frame);
      this.#bulkIn.ready(nowUs);
      return;
    }
    this.#network.pool.give(frame);
  }

  /** The host sees it in the next packet of the interrupt endpoint. */
  handleCarrier(_on: boolean, nowUs: number): void {
    this.#interruptIn.ready(nowUs);
  }
}
