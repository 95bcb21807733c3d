import { usbClasses } from '../../wire/cdc-class.ts';
import type { EndpointDescriptor, EndpointType } from '../../wire/usb-descriptor.ts';
import type { SimSpeed } from '../sim-device.ts';
import { describeDevice, type DeviceIdentity, noExtra } from './device-description.ts';
import type { DeviceDescriptors } from './firmware.ts';

/** Where the endpoints of ASIX' chips are. */
export const adapterAddresses = { interruptIn: 0x81, bulkIn: 0x82, bulkOut: 0x03 } as const;

export const adapterPacketSizes: Readonly<Record<SimSpeed, number>> = { full: 64, high: 512, super: 1024 };
const interruptPacketSize = 8;
/** 128 ms: milliseconds at full speed, otherwise an exponent. */
const interruptIntervals: Readonly<Record<SimSpeed, number>> = { full: 128, high: 11, super: 11 };
const bursts = { bulkIn: 3, bulkOut: 15 } as const;
/** Bus powered, with remote wakeup. */
const attributes = 0xa0;
const maxPowerMa: Readonly<Record<SimSpeed, number>> = { full: 250, high: 250, super: 496 };
const vendorSubclass = 0xff;
/** Behind those of every device. */
const interfaceName = 4;

/**
 * One vendor-specific interface with an interrupt and a pair of bulk endpoints, as ASIX' adapters have it.
 * @param deviceVersion tells some of the chips apart
 */
export function adapterDescriptors(
  speed: SimSpeed,
  identity: DeviceIdentity,
  deviceVersion: number,
): DeviceDescriptors {
  const { interruptIn, bulkIn, bulkOut } = adapterAddresses;
  return describeDevice({
    speed,
    identity,
    deviceVersion,
    deviceClass: {
      deviceClass: usbClasses.vendorSpecific,
      deviceSubclass: vendorSubclass,
      deviceProtocol: 0,
    },
    attributes,
    maxPowerMa,
    associations: [],
    interfaces: [
      {
        number: 0,
        altSettings: [
          {
            interfaceNumber: 0,
            alternateSetting: 0,
            interfaceClass: usbClasses.vendorSpecific,
            interfaceSubclass: vendorSubclass,
            interfaceProtocol: 0,
            nameIndex: interfaceName,
            endpoints: [
              endpoint(speed, interruptIn, 'interrupt', 0),
              endpoint(speed, bulkIn, 'bulk', bursts.bulkIn),
              endpoint(speed, bulkOut, 'bulk', bursts.bulkOut),
            ],
            extra: noExtra,
          },
        ],
      },
    ],
    strings: ['Network_Interface'],
  });
}

function endpoint(
  speed: SimSpeed,
  address: number,
  type: EndpointType,
  maxBurst: number,
): EndpointDescriptor {
  const bulk = type === 'bulk';
  const maxPacketSize = bulk ? adapterPacketSizes[speed] : interruptPacketSize;
  return {
    address,
    direction: address >= 0x80 ? 'in' : 'out',
    type,
    maxPacketSize,
    interval: bulk ? 0 : interruptIntervals[speed],
    ...(speed === 'super'
      ? { companion: { maxBurst, attributes: 0, bytesPerInterval: bulk ? 0 : maxPacketSize } }
      : {}),
    extra: noExtra,
  };
}
