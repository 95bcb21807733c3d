import { parseIpv4Cidr } from '../wire/ipv4-address.ts';
import { invariant } from '../base/errors.ts';
import type { BusTiming } from './bus-timing.ts';
import { Ax88179Firmware } from './firmware/ax88179.ts';
import { type AsixChip, AsixFirmware } from './firmware/asix.ts';
import { EcmFirmware } from './firmware/ecm.ts';
import { EemFirmware, type EemOptions } from './firmware/eem.ts';
import { NcmFirmware, type NcmOptions, type NtbSizes } from './firmware/ncm.ts';
import { RndisFirmware, type RndisOptions } from './firmware/rndis.ts';
import type { CdcNetworkOptions } from './firmware/cdc-network.ts';
import type { DeviceIdentity } from './firmware/device-description.ts';
import type { NetworkFirmware } from './firmware/network-firmware.ts';
import type { SimSpeed } from './sim-device.ts';
import { type LinkProfile, SimNetwork } from './sim-network.ts';

/** What is in a device: the way in which it packs frames into transfers, and what it says of itself. */
export type FirmwareName = 'cdc-ecm' | 'cdc-ncm' | 'huawei-ncm' | 'cdc-eem' | 'rndis' | 'ax88179' | AsixChip;

/** A virtual device as data. */
export interface SimPersonality {
  /** Unique; `sim:<name>` is the device's id. */
  readonly name: string;
  /** One line on what it is. */
  readonly description: string;
  /** What it is to its user; the descriptors may say otherwise, as many a modem's do. */
  readonly function: 'ethernet' | 'wwan';
  readonly firmware: FirmwareName;
  readonly speed: SimSpeed;
  readonly productId: number;
  readonly product: string;
  readonly link: LinkProfile;
  /** The memory between USB and link, and what must drain before it takes more once it was full ({@link DeviceFifo}). */
  readonly fifoBytes: number;
  readonly hysteresisBytes: number;
  /** Frames for the host that may wait in the device, bytes. */
  readonly hostQueueBytes: number;
  /** Of NCM; 16,384 each if not given. */
  readonly ntb?: NtbSizes;
  /** What its firmware does otherwise than usual. */
  readonly ncm?: NcmOptions;
  readonly eem?: EemOptions;
  readonly rndis?: RndisOptions;
  /** The far host's address and network, `10.64.0.1/24` if not given; the client is leased the address after it. */
  readonly farHost?: string;
  /** What the bus does otherwise than usual at its speed. */
  readonly bus?: Partial<BusTiming>;
}

/** pid.codes, whose product ids 0x0001 to 0x0010 are for tests. */
const testVendorId = 0x1209;
/** Drivers know chips by their ids alone, so a virtual chip needs the real one's. */
const vendorIds: Readonly<Partial<Record<FirmwareName, number>>> = {
  // Linux knows Huawei's NCM with Huawei's id alone.
  'huawei-ncm': 0x12d1,
  ax88179: 0x0b95,
  ax88172: 0x0b95,
  ax88178: 0x0b95,
  ax88772: 0x0b95,
  ax88772a: 0x0b95,
  ax88772b: 0x0b95,
};
const manufacturer = 'Queuescope';
const defaultNtbSizes: NtbSizes = { inMaxBytes: 16_384, outMaxBytes: 16_384 };
const defaultFarHost = '10.64.0.1/24';

/** Locally administered; the last two bytes are the device's product id, or one that says "far host". */
const macPrefix = [0x02, 0x51, 0x53, 0x00] as const;
const farHostMacAddress = Uint8Array.of(...macPrefix, 0xff, 0x01);

/** Who the device is. */
export function identityOf(personality: SimPersonality): DeviceIdentity {
  const { productId } = personality;
  return {
    vendorId: vendorIds[personality.firmware] ?? testVendorId,
    productId,
    manufacturer,
    product: personality.product,
    serialNumber: `SIM${productId.toString().padStart(6, '0')}`,
    macAddress: Uint8Array.of(...macPrefix, productId >>> 8, productId & 0xff),
  };
}

/** The link and the far host of a device. @throws InvariantError if the far host's address is none. */
export function makeNetwork(personality: SimPersonality, seed: number): SimNetwork {
  const cidr = parseIpv4Cidr(personality.farHost ?? defaultFarHost);
  invariant(cidr !== undefined, `"${personality.farHost}" is no address with a prefix length`);
  return new SimNetwork({
    link: personality.link,
    farHost: {
      macAddress: farHostMacAddress,
      address: cidr.address,
      prefixLength: cidr.prefixLength,
      clientAddress: cidr.address + 1,
    },
    seed,
  });
}

/** What runs in a device. */
export function makeFirmware(personality: SimPersonality, network: SimNetwork): NetworkFirmware {
  const identity = identityOf(personality);
  const { speed } = personality;
  const options: CdcNetworkOptions = {
    network,
    fifoBytes: personality.fifoBytes,
    hysteresisBytes: personality.hysteresisBytes,
    hostQueueBytes: personality.hostQueueBytes,
    macAddress: identity.macAddress,
  };
  switch (personality.firmware) {
    case 'cdc-ecm':
      return new EcmFirmware(speed, identity, options);
    case 'cdc-ncm':
      return new NcmFirmware(speed, identity, options, personality.ntb ?? defaultNtbSizes, personality.ncm);
    case 'huawei-ncm':
      return new NcmFirmware(speed, identity, options, personality.ntb ?? defaultNtbSizes, {
        rules: { ndpToEnd: true },
        huawei: {},
        ...personality.ncm,
      });
    case 'cdc-eem':
      return new EemFirmware(speed, identity, options, personality.eem);
    case 'rndis':
      return new RndisFirmware(speed, identity, options, personality.rndis);
    case 'ax88179':
      return new Ax88179Firmware(speed, identity, options);
    default:
      return new AsixFirmware(personality.firmware, speed, identity, options);
  }
}
