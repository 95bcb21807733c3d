import { DeviceEndpoint, type InSource, type OutSink } from '../device-endpoint.ts';
import { adapterAddresses } from './adapter-descriptors.ts';
import { DeviceNetwork, type DeviceNetworkOptions } from './device-network.ts';

/** What an adapter's chip has to say to its network side. */
export interface AdapterChip {
  readonly sink: OutSink;
  readonly source: InSource;
  readonly status: InSource;
  /** Whether a frame from the link is for the host, by the receiver's registers. */
  passes(bytes: Uint8Array): boolean;
}

/** The network side of the chips of Ethernet adapters: three endpoints in one interface. */
export class AdapterNetwork extends DeviceNetwork {
  readonly endpoints: readonly DeviceEndpoint[];
  readonly #chip: AdapterChip;
  readonly #interruptIn: DeviceEndpoint;
  /** The receiver works. */
  #receiving = false;

  constructor(options: DeviceNetworkOptions, chip: AdapterChip) {
    super(
      options,
      new DeviceEndpoint(adapterAddresses.bulkIn, { source: chip.source }),
      new DeviceEndpoint(adapterAddresses.bulkOut, { sink: chip.sink }),
    );
    this.#chip = chip;
    this.#interruptIn = new DeviceEndpoint(adapterAddresses.interruptIn, { source: chip.status });
    this.endpoints = [this.bulkIn, this.bulkOut, this.#interruptIn];
  }

  get carrier(): boolean {
    return this.network.carrier;
  }

  get isOpen(): boolean {
    return this.#receiving;
  }

  /** The receiver was switched on or off. */
  setReceiving(receiving: boolean): void {
    if (this.#receiving && !receiving) this.dropForHost();
    this.#receiving = receiving;
  }

  protected passes(bytes: Uint8Array): boolean {
    return this.#chip.passes(bytes);
  }

  /** The host sees it in the next packet of the interrupt endpoint. */
  handleCarrier(_on: boolean, nowUs: number): void {
    this.#interruptIn.ready(nowUs);
  }
}
