import { neverUs } from '../base/clock.ts';
import type { BusLane } from './bus-lane.ts';
import type { DeviceEndpoint } from './device-endpoint.ts';
import type { SimTransfer } from './sim-transfer.ts';

/** The host's end of one endpoint: transfers that wait for it, in order. */
export class BusPipe {
  readonly address: number;
  readonly lane: BusLane | undefined;
  readonly intervalUs: number;
  /** The device's end; undefined while the altsetting that has the endpoint is not in force. */
  endpoint: DeviceEndpoint | undefined;
  maxPacketSize = 0;
  /** The device answered NAK; it will say when it is ready. */
  waiting = false;
  /** When to look again: the end of a silence, the next poll of an interrupt endpoint. */
  wakeAtUs = neverUs;
  /** Time on the bus that it has had, for fair turns. */
  servedUs = 0;
  #head: SimTransfer | undefined;
  #tail: SimTransfer | undefined;
  #length = 0;

  /**
   * @param lane where its bulk transfers are served; undefined for an interrupt endpoint
   * @param intervalUs between two polls of an interrupt endpoint
   */
  constructor(address: number, lane: BusLane | undefined, intervalUs: number) {
    this.address = address;
    this.lane = lane;
    this.intervalUs = intervalUs;
  }

  get head(): SimTransfer | undefined {
    return this.#head;
  }
  get length(): number {
    return this.#length;
  }

  push(transfer: SimTransfer): void {
    transfer.previousQueued = this.#tail;
    transfer.nextQueued = undefined;
    if (this.#tail === undefined) this.#head = transfer;
    else this.#tail.nextQueued = transfer;
    this.#tail = transfer;
    this.#length++;
  }

  remove(transfer: SimTransfer): void {
    if (transfer.previousQueued === undefined) this.#head = transfer.nextQueued;
    else transfer.previousQueued.nextQueued = transfer.nextQueued;
    if (transfer.nextQueued === undefined) this.#tail = transfer.previousQueued;
    else transfer.nextQueued.previousQueued = transfer.previousQueued;
    transfer.previousQueued = undefined;
    transfer.nextQueued = undefined;
    this.#length--;
  }
}
