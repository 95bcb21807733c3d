import { cdcRequests, cdcRequestTypes } from '../../wire/cdc-class.ts';
import { DeviceEndpoint, type InSource, type OutSink } from '../device-endpoint.ts';
import { DeviceFifo } from '../device-fifo.ts';
import { type Frame, FrameQueue } from '../frame.ts';
import type { NetworkDevice, SimNetwork } from '../sim-network.ts';
import { cdcAddresses } from './cdc-descriptors.ts';
import { CdcNotifier } from './cdc-notifier.ts';
import type { SetupPacket } from './firmware.ts';
import { initialPacketFilter, passesPacketFilter } from './packet-filter.ts';

/** Frames shorter than an Ethernet header are dropped. */
export const minFrameBytes = 14;

const noData = new Uint8Array(0);

/** What a function says on its interrupt endpoint. */
export interface StatusSource extends InSource {
  /** The link is there, or is not. */
  announce(connected: boolean): void;
  /** Forgets what was to be said. */
  reset(): void;
}

export interface CdcNetworkOptions {
  readonly network: SimNetwork;
  readonly fifoBytes: number;
  readonly hysteresisBytes: number;
  /** Bytes of frames that may wait for the host; what is more is dropped. */
  readonly hostQueueBytes: number;
  readonly macAddress: Uint8Array;
}

/** What a function has seen, both ways. */
export class FunctionCounters {
  /** Messages that came over the bulk OUT endpoint (frames, NTBs), and frames that went on to the link. */
  messagesFromHost = 0;
  framesFromHost = 0;
  bytesFromHost = 0;
  /** Messages or frames from the host that were no such thing: too short, too long, an NTB with errors. */
  malformedFromHost = 0;
  /** Messages (frames, NTBs) that the host has fetched, and frames in them. */
  messagesToHost = 0;
  framesToHost = 0;
  bytesToHost = 0;
  /** Frames that the packet filter kept back, that found the queue for the host full, or the interface closed. */
  filtered = 0;
  dropped = 0;
  closedDrops = 0;
}

/**
 * What the CDC network functions have in common: the memory towards the link, the queue towards the host, packet filter,
 * carrier, and the three endpoints. How frames lie in transfers is the business of who makes one.
 */
export class CdcNetwork implements NetworkDevice {
  readonly fifo: DeviceFifo;
  readonly hostQueue = new FrameQueue();
  readonly counters = new FunctionCounters();
  readonly notifier: StatusSource | undefined;
  readonly endpoints: readonly DeviceEndpoint[];
  readonly #network: SimNetwork;
  readonly #hostQueueBytes: number;
  readonly #macAddress: Uint8Array;
  readonly #bulkIn: DeviceEndpoint;
  readonly #bulkOut: DeviceEndpoint;
  readonly #interruptIn: DeviceEndpoint | undefined;
  #packetFilter = initialPacketFilter;
  /** An altsetting with endpoints is in force. */
  #open = false;

  /** @param status what is on the interrupt endpoint, if it is not what CDC has there; null: there is none */
  constructor(options: CdcNetworkOptions, sink: OutSink, source: InSource, status?: StatusSource | null) {
    this.#network = options.network;
    this.#hostQueueBytes = options.hostQueueBytes;
    this.#macAddress = options.macAddress;
    this.fifo = new DeviceFifo(options.fifoBytes, options.hysteresisBytes);
    this.notifier =
      status === null
        ? undefined
        : (status ?? new CdcNotifier(cdcAddresses.controlInterface, options.network.link));
    this.#bulkIn = new DeviceEndpoint(cdcAddresses.bulkIn, { source });
    this.#bulkOut = new DeviceEndpoint(cdcAddresses.bulkOut, { sink });
    this.endpoints = [this.#bulkIn, this.#bulkOut];
    if (this.notifier !== undefined) {
      this.#interruptIn = new DeviceEndpoint(cdcAddresses.interruptIn, { source: this.notifier });
      this.endpoints = [...this.endpoints, this.#interruptIn];
    }
    options.network.setDevice(this);
  }

  get isOpen(): boolean {
    return this.#open;
  }
  get packetFilter(): number {
    return this.#packetFilter;
  }

  takeFrame(): Frame {
    return this.#network.pool.take();
  }

  giveFrame(frame: Frame): void {
    this.#network.pool.give(frame);
  }

  /** Sends a frame on to the link, whose bytes are in the FIFO already. */
  sendUp(frame: Frame, nowUs: number): void {
    this.counters.framesFromHost++;
    this.counters.bytesFromHost += frame.length;
    this.fifo.commit(frame.length);
    this.#network.sendUp(frame, nowUs);
  }

  /** Takes bytes out of the FIFO that are no frame. */
  discard(bytes: number, nowUs: number): void {
    if (bytes !== 0 && this.fifo.discard(bytes)) this.#bulkOut.ready(nowUs);
  }

  /** SET_ETHERNET_PACKET_FILTER; undefined: another request. */
  handleRequest(setup: SetupPacket): Uint8Array | undefined {
    const isFilter =
      setup.requestType === cdcRequestTypes.out &&
      setup.request === cdcRequests.setEthernetPacketFilter &&
      setup.index === cdcAddresses.controlInterface;
    if (!isFilter) return undefined;
    this.#packetFilter = setup.value;
    return noData;
  }

  /** The data interface was opened (altsetting 1), or closed. Frames for the host do not outlast that. */
  setOpen(open: boolean, nowUs: number): void {
    this.#open = open;
    this.counters.closedDrops += this.hostQueue.clear(this.#network.pool);
    this.notifier?.reset();
    if (!open) {
      this.#packetFilter = initialPacketFilter;
      return;
    }
    this.#announce(this.#network.carrier, nowUs);
  }

  #announce(connected: boolean, nowUs: number): void {
    this.notifier?.announce(connected);
    this.notify(nowUs);
  }

  /** There is something on the interrupt endpoint. */
  notify(nowUs: number): void {
    this.#interruptIn?.ready(nowUs);
  }

  /** There is something on the bulk IN endpoint that is no frame. */
  notifyBulkIn(nowUs: number): void {
    this.#bulkIn.ready(nowUs);
  }

  /** Which frames go up, by bits of CDC's packet filter. */
  setPacketFilter(bits: number): void {
    this.#packetFilter = bits;
  }

  // ---- the link ----

  handleFrameSent(lengthBytes: number, nowUs: number): void {
    if (this.fifo.release(lengthBytes)) this.#bulkOut.ready(nowUs);
  }

  handleFrame(frame: Frame, nowUs: number): void {
    const { counters } = this;
    if (!this.#open) counters.closedDrops++;
    else if (!passesPacketFilter(this.#packetFilter, frame.bytes, this.#macAddress)) counters.filtered++;
    else if (this.hostQueue.bytes + frame.length > this.#hostQueueBytes) counters.dropped++;
    else {
      this.hostQueue.push(frame);
      this.#bulkIn.ready(nowUs);
      return;
    }
    this.#network.pool.give(frame);
  }

  handleCarrier(on: boolean, nowUs: number): void {
    if (this.#open) this.#announce(on, nowUs);
  }
}
