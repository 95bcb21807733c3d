import type { BusObserver } from '../../../src/sim/bus-observer.ts';
import { catalogue, findPersonality } from '../../../src/sim/catalogue.ts';
import {
  createSimDevice,
  type RunningSimDevice,
  type SimInspection,
} from '../../../src/sim/create-sim-device.ts';
import type { SimPersonality } from '../../../src/sim/personality.ts';
import type { Transfer } from '../../../src/usbnet/transfer.ts';
import { etherTypeIpv4, writeEthernet } from '../../../src/wire/ethernet.ts';
import { writeIpv4 } from '../../../src/wire/ipv4.ts';
import { writeUdp } from '../../../src/wire/udp.ts';
import { TinyDriver } from './tiny-driver.ts';

export const bulkOut = 0x01;
export const bulkIn = 0x81;
export const interruptIn = 0x82;

/** The CDC functions of the catalogue: two interfaces, of which the data interface has the endpoints above. */
export const cdcCatalogue: readonly SimPersonality[] = catalogue.filter(
  ({ firmware }) => firmware === 'cdc-ecm' || firmware === 'cdc-ncm',
);

/** A personality of the catalogue with some of it changed. */
export function personality(name: string, differing: Partial<SimPersonality> = {}): SimPersonality {
  const found = findPersonality(name);
  if (found === undefined) throw new Error(`no personality "${name}"`);
  return { ...found, ...differing };
}

/** A simulated device with a tiny driver on it. */
export class SimSetup {
  readonly device: RunningSimDevice;
  readonly driver: TinyDriver;
  readonly mac: Uint8Array;

  constructor(
    what: SimPersonality,
    options: { readonly seed?: number; readonly observer?: BusObserver } = {},
  ) {
    const { seed = 1, observer } = options;
    this.device = createSimDevice(what, { seed, nowUs: 0, ...(observer === undefined ? {} : { observer }) });
    this.driver = new TinyDriver(this.device.transport, this.device.polled);
    this.mac = Uint8Array.of(2, 0x51, 0x53, 0, what.productId >> 8, what.productId & 0xff);
  }

  open(): void {
    const result = this.driver.setInterface(1, 1);
    if (result.status !== 'completed') throw new Error(result.status);
  }

  inspect(): SimInspection {
    return this.device.inspect(this.driver.nowUs);
  }

  /** Keeps so many transfers IN out, and hands over what they get. */
  receive(length: number, count: number, handle: (bytes: Uint8Array) => void): void {
    const before = this.driver.onDone;
    this.driver.onDone = (transfer, nowUs) => {
      before?.(transfer, nowUs);
      if (transfer.endpointAddress !== bulkIn) return;
      if (transfer.status === 'completed') handle(transfer.buffer.slice(0, transfer.actualLength));
      if (transfer.status === 'gone' || transfer.status === 'cancelled') return;
      this.driver.transport.submit(transfer, nowUs);
    };
    for (let i = 0; i < count; i++) this.driver.submit(this.driver.in(bulkIn, length));
  }

  /** A UDP frame to the far host. */
  udp(port: number, payload: Uint8Array): Uint8Array {
    const { address, clientAddress, macAddress } = this.device.farHost;
    const bytes = new Uint8Array(42 + payload.length);
    bytes.set(payload, 42);
    writeEthernet(bytes, 0, macAddress, this.mac, etherTypeIpv4);
    writeUdp(bytes, 34, 4000, port, payload.length, clientAddress, address);
    writeIpv4(bytes, 14, 0, 8 + payload.length, 1, true, 64, 17, clientAddress, address);
    return bytes;
  }

  /** The frame that port 7 sends back for one of {@link udp}. */
  echoOf(payload: Uint8Array): Uint8Array {
    const { address, clientAddress, macAddress } = this.device.farHost;
    const bytes = new Uint8Array(42 + payload.length);
    bytes.set(payload, 42);
    writeEthernet(bytes, 0, this.mac, macAddress, etherTypeIpv4);
    writeUdp(bytes, 34, 7, 4000, payload.length, address, clientAddress);
    writeIpv4(bytes, 14, 0, 8 + payload.length, 1, true, 64, 17, address, clientAddress);
    return bytes;
  }

  /** Keeps `count` transfers OUT with this message in flight; each is submitted anew once it is done. */
  saturate(message: Uint8Array, count: number): Transfer[] {
    const transfers = Array.from({ length: count }, () => this.driver.out(bulkOut, message));
    const mine = new Set(transfers);
    const before = this.driver.onDone;
    this.driver.onDone = (transfer, nowUs) => {
      before?.(transfer, nowUs);
      if (!mine.has(transfer) || transfer.status !== 'completed') return;
      transfer.submittedAtUs = nowUs;
      this.driver.transport.submit(transfer, nowUs);
    };
    for (const transfer of transfers) {
      transfer.submittedAtUs = this.driver.nowUs;
      this.driver.submit(transfer);
    }
    return transfers;
  }
}
