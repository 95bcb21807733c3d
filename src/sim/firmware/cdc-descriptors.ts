import { usbClasses } from '../../wire/cdc-class.ts';
import { type CdcFunctional, encodeCdcFunctional } from '../../wire/cdc-functional.ts';
import { toHex } from '../../base/bytes.ts';
import type {
  AltSetting,
  ConfigurationDescriptor,
  EndpointDescriptor,
  EndpointType,
} from '../../wire/usb-descriptor.ts';
import type { SimSpeed } from '../sim-device.ts';
import { describeDevice, type DeviceIdentity, identityStrings, noExtra } from './device-description.ts';
import type { DeviceDescriptors } from './firmware.ts';

/** Where things are in each of our CDC network functions. */
export const cdcAddresses = {
  controlInterface: 0,
  dataInterface: 1,
  bulkIn: 0x81,
  bulkOut: 0x01,
  interruptIn: 0x82,
} as const;

export interface CdcFunctionDescription {
  readonly speed: SimSpeed;
  readonly identity: DeviceIdentity;
  /** Of the control interface, and of the whole function. */
  readonly subclass: number;
  /** Of the data interface. */
  readonly dataProtocol: number;
  /** The longest frame, bytes without FCS. */
  readonly maxSegmentSize: number;
  /** Something else than two interfaces of CDC's classes: one of this triple that is all of it, as Huawei has them. */
  readonly single?: readonly [number, number, number];
  /** What the function has beyond header, union and ethernet descriptor. */
  readonly functional: Pick<CdcFunctional, 'ncm'>;
  readonly controlName: string;
  readonly dataName: string;
}

export const cdcVersion = 0x0110;
const bulkPacketSizes: Readonly<Record<SimSpeed, number>> = { full: 64, high: 512, super: 1024 };
/** 32 ms: milliseconds at full speed, otherwise an exponent. */
const interruptIntervals: Readonly<Record<SimSpeed, number>> = { full: 32, high: 9, super: 9 };
/** Large enough for a speed change. */
const interruptPacketSize = 16;
const maxBulkBurst = 15;
/** Class triple of a device that is made of associated interfaces (USB ECN of 2003). */
export const associatedDevice = {
  deviceClass: usbClasses.miscellaneous,
  deviceSubclass: 0x02,
  deviceProtocol: 0x01,
};

export const stringIndices = { ...identityStrings, macAddress: 4, control: 5, data: 6 } as const;

/**
 * Descriptors of a device with one CDC network function: a control interface with an interrupt endpoint, and a data
 * interface with altsettings 0 (no endpoints) and 1 (a bulk pair), both in an association (spec 6.2).
 */
export function cdcDescriptors(description: CdcFunctionDescription): DeviceDescriptors {
  const { speed, identity, subclass } = description;
  const { controlInterface, dataInterface } = cdcAddresses;
  const { communications } = usbClasses;
  const dataAltSetting: AltSetting = {
    interfaceNumber: dataInterface,
    alternateSetting: 0,
    interfaceClass: usbClasses.data,
    interfaceSubclass: 0,
    interfaceProtocol: description.dataProtocol,
    nameIndex: stringIndices.data,
    endpoints: [],
    extra: noExtra,
  };
  if (description.single !== undefined) return singleInterface(description, description.single);
  return describeDevice({
    speed,
    identity,
    deviceClass: associatedDevice,
    associations: [associationOf([communications, subclass, 0])],
    interfaces: [
      {
        number: controlInterface,
        altSettings: [
          {
            interfaceNumber: controlInterface,
            alternateSetting: 0,
            interfaceClass: communications,
            interfaceSubclass: subclass,
            interfaceProtocol: 0,
            nameIndex: stringIndices.control,
            endpoints: [statusEndpoint(speed)],
            extra: functionalBytes(description, dataInterface),
          },
        ],
      },
      {
        number: dataInterface,
        altSettings: [
          dataAltSetting,
          { ...dataAltSetting, alternateSetting: 1, endpoints: bulkEndpoints(speed) },
        ],
      },
    ],
    strings: cdcStrings(identity, [description.controlName, description.dataName]),
  });
}

function functionalBytes(description: CdcFunctionDescription, dataInterface: number): Uint8Array {
  const { controlInterface } = cdcAddresses;
  return encodeCdcFunctional({
    header: { version: cdcVersion },
    union: { controlInterface, dataInterfaces: [dataInterface] },
    ethernet: {
      macAddressIndex: stringIndices.macAddress,
      statistics: 0,
      maxSegmentSize: description.maxSegmentSize,
      multicastFilters: 0,
      powerFilters: 0,
    },
    ...description.functional,
  });
}

/** Altsetting 0 has the interrupt endpoint alone, altsetting 1 the bulk pair as well. */
function singleInterface(
  description: CdcFunctionDescription,
  [interfaceClass, interfaceSubclass, interfaceProtocol]: readonly [number, number, number],
): DeviceDescriptors {
  const { speed, identity } = description;
  const first: AltSetting = {
    interfaceNumber: cdcAddresses.controlInterface,
    alternateSetting: 0,
    interfaceClass,
    interfaceSubclass,
    interfaceProtocol,
    nameIndex: stringIndices.control,
    endpoints: [statusEndpoint(speed)],
    extra: functionalBytes(description, cdcAddresses.controlInterface),
  };
  const second: AltSetting = {
    ...first,
    alternateSetting: 1,
    endpoints: [statusEndpoint(speed), ...bulkEndpoints(speed)],
    extra: noExtra,
  };
  return describeDevice({
    speed,
    identity,
    deviceClass: { deviceClass: 0, deviceSubclass: 0, deviceProtocol: 0 },
    associations: [],
    interfaces: [{ number: cdcAddresses.controlInterface, altSettings: [first, second] }],
    strings: cdcStrings(identity, [description.controlName, description.dataName]),
  });
}

/** Control and data interface, as one function of this class, subclass and protocol. */
export function associationOf([functionClass, functionSubclass, functionProtocol]: readonly [
  number,
  number,
  number,
]): ConfigurationDescriptor['associations'][number] {
  return {
    firstInterface: cdcAddresses.controlInterface,
    interfaceCount: 2,
    functionClass,
    functionSubclass,
    functionProtocol,
    nameIndex: stringIndices.control,
  };
}

/** Strings as {@link stringIndices} has them. @param names from `control` on */
export function cdcStrings({ macAddress }: DeviceIdentity, names: readonly string[]): readonly string[] {
  return [toHex(macAddress).toUpperCase(), ...names];
}

/** The interrupt IN endpoint. */
export function statusEndpoint(speed: SimSpeed): EndpointDescriptor {
  return endpoint(
    speed,
    cdcAddresses.interruptIn,
    'interrupt',
    interruptPacketSize,
    interruptIntervals[speed],
  );
}

/** The bulk pair, IN first. */
export function bulkEndpoints(speed: SimSpeed): readonly EndpointDescriptor[] {
  const packetSize = bulkPacketSizes[speed];
  return [
    endpoint(speed, cdcAddresses.bulkIn, 'bulk', packetSize, 0),
    endpoint(speed, cdcAddresses.bulkOut, 'bulk', packetSize, 0),
  ];
}

/** `wMaxPacketSize` of the bulk IN endpoint. */
export function bulkInPacketSize(descriptors: DeviceDescriptors): number {
  for (const { altSettings } of descriptors.configuration.interfaces) {
    for (const { endpoints } of altSettings) {
      for (const { address, maxPacketSize } of endpoints) {
        if (address === cdcAddresses.bulkIn) return maxPacketSize;
      }
    }
  }
  return 0;
}

function endpoint(
  speed: SimSpeed,
  address: number,
  type: EndpointType,
  maxPacketSize: number,
  interval: number,
): EndpointDescriptor {
  const bulk = type === 'bulk';
  return {
    address,
    direction: address >= 0x80 ? 'in' : 'out',
    type,
    maxPacketSize,
    interval,
    ...(speed === 'super'
      ? {
          companion: {
            maxBurst: bulk ? maxBulkBurst : 0,
            attributes: 0,
            bytesPerInterval: bulk ? 0 : maxPacketSize,
          },
        }
      : {}),
    extra: noExtra,
  };
}
