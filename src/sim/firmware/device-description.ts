import { bosSpeeds } from '../../wire/usb-bos.ts';
import type { ConfigurationDescriptor, DeviceDescriptor } from '../../wire/usb-descriptor.ts';
import type { SimSpeed } from '../sim-device.ts';
import type { DeviceDescriptors } from './firmware.ts';

/** Who a device says it is. */
export interface DeviceIdentity {
  readonly vendorId: number;
  readonly productId: number;
  readonly manufacturer: string;
  readonly product: string;
  readonly serialNumber: string;
  /** The address that the host is to use, 6 bytes. */
  readonly macAddress: Uint8Array;
}

/** Where the strings of every device are. */
export const identityStrings = { manufacturer: 1, product: 2, serial: 3 } as const;

export interface DeviceDescription {
  readonly speed: SimSpeed;
  readonly identity: DeviceIdentity;
  readonly deviceClass: Pick<DeviceDescriptor, 'deviceClass' | 'deviceSubclass' | 'deviceProtocol'>;
  /** bcdDevice; absent: 1.00. */
  readonly deviceVersion?: number;
  /** Of the configuration; absent: bus powered. */
  readonly attributes?: number;
  readonly maxPowerMa?: Readonly<Record<SimSpeed, number>>;
  readonly associations: ConfigurationDescriptor['associations'];
  readonly interfaces: ConfigurationDescriptor['interfaces'];
  /** Strings behind {@link identityStrings}. */
  readonly strings: readonly string[];
}

const usualVersion = 0x0100;
/** Bus powered; bit 7 is set by custom. */
const busPowered = 0x80;
const usualPowerMa: Readonly<Record<SimSpeed, number>> = { full: 500, high: 500, super: 896 };
const usbVersions: Readonly<Record<SimSpeed, number>> = { full: 0x0200, high: 0x0200, super: 0x0300 };
/** Bytes, but the exponent of two at SuperSpeed. */
const controlPacketSizes: Readonly<Record<SimSpeed, number>> = { full: 64, high: 64, super: 9 };
const linkPowerManagement = 0x02;
export const noExtra = new Uint8Array(0);

/** All that is the same whatever a device's function is: one configuration, the strings, and BOS at SuperSpeed. */
export function describeDevice(description: DeviceDescription): DeviceDescriptors {
  const { speed, identity, maxPowerMa = usualPowerMa } = description;
  return {
    device: {
      usbVersion: usbVersions[speed],
      ...description.deviceClass,
      maxPacketSize0: controlPacketSizes[speed],
      vendorId: identity.vendorId,
      productId: identity.productId,
      deviceVersion: description.deviceVersion ?? usualVersion,
      manufacturerIndex: identityStrings.manufacturer,
      productIndex: identityStrings.product,
      serialIndex: identityStrings.serial,
      configurationCount: 1,
    },
    configuration: {
      value: 1,
      nameIndex: 0,
      attributes: description.attributes ?? busPowered,
      maxPowerMa: maxPowerMa[speed],
      associations: description.associations,
      interfaces: description.interfaces,
      extra: noExtra,
    },
    ...(speed === 'super'
      ? {
          bos: {
            usb2Extension: { attributes: linkPowerManagement },
            superSpeed: {
              attributes: 0,
              speedsSupported: bosSpeeds.full | bosSpeeds.high | bosSpeeds.super,
              functionalitySupport: 1,
              u1ExitLatencyUs: 10,
              u2ExitLatencyUs: 511,
            },
            others: [],
          },
        }
      : {}),
    strings: [identity.manufacturer, identity.product, identity.serialNumber, ...description.strings],
  };
}
