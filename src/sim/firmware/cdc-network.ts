import { cdcRequests, cdcRequestTypes } from '../../wire/cdc-class.ts';
import { DeviceEndpoint, type InSource, type OutSink } from '../device-endpoint.ts';
import { cdcAddresses } from './cdc-descriptors.ts';
import { CdcNotifier } from './cdc-notifier.ts';
import { DeviceNetwork, type DeviceNetworkOptions } from './device-network.ts';
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

export interface CdcNetworkOptions extends DeviceNetworkOptions {
  readonly macAddress: Uint8Array;
}

/**
 * The network side of the CDC network functions: packet filter, carrier, and the three endpoints. How frames lie in transfers
 * is the business of who makes one.
 */
export class CdcNetwork extends DeviceNetwork {
  readonly notifier: StatusSource | undefined;
  readonly endpoints: readonly DeviceEndpoint[];
  readonly #macAddress: Uint8Array;
  readonly #interruptIn: DeviceEndpoint | undefined;
  #packetFilter = initialPacketFilter;
  /** An altsetting with endpoints is in force. */
  #open = false;

  /** @param status what is on the interrupt endpoint, if it is not what CDC has there; null: there is none */
  constructor(options: CdcNetworkOptions, sink: OutSink, source: InSource, status?: StatusSource | null) {
    super(
      options,
      new DeviceEndpoint(cdcAddresses.bulkIn, { source }),
      new DeviceEndpoint(cdcAddresses.bulkOut, { sink }),
    );
    this.#macAddress = options.macAddress;
    this.notifier =
      status === null
        ? undefined
        : (status ?? new CdcNotifier(cdcAddresses.controlInterface, options.network.link));
    this.endpoints = [this.bulkIn, this.bulkOut];
    if (this.notifier !== undefined) {
      this.#interruptIn = new DeviceEndpoint(cdcAddresses.interruptIn, { source: this.notifier });
      this.endpoints = [...this.endpoints, this.#interruptIn];
    }
  }

  get isOpen(): boolean {
    return this.#open;
  }
  get packetFilter(): number {
    return this.#packetFilter;
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
    this.dropForHost();
    this.notifier?.reset();
    if (!open) {
      this.#packetFilter = initialPacketFilter;
      return;
    }
    this.#announce(this.network.carrier, nowUs);
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
    this.bulkIn.ready(nowUs);
  }

  /** Which frames go up, by bits of CDC's packet filter. */
  setPacketFilter(bits: number): void {
    this.#packetFilter = bits;
  }

  protected passes(bytes: Uint8Array): boolean {
    return passesPacketFilter(this.#packetFilter, bytes, this.#macAddress);
  }

  handleCarrier(on: boolean, nowUs: number): void {
    if (this.#open) this.#announce(on, nowUs);
  }
}
