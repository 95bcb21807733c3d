import type { UsbDevice, UsbSpeed } from '../../../src/usbnet/transport.ts';
import type {
  AltSetting,
  ConfigurationDescriptor,
  DeviceDescriptor,
  EndpointDescriptor,
} from '../../../src/wire/usb-descriptor.ts';

const noBytes = new Uint8Array(0);

export const deviceDescriptor: DeviceDescriptor = {
  usbVersion: 0x0200,
  deviceClass: 0x02,
  deviceSubclass: 0,
  deviceProtocol: 0,
  maxPacketSize0: 64,
  vendorId: 0x1d6b,
  productId: 0x0104,
  deviceVersion: 0x0100,
  manufacturerIndex: 0,
  productIndex: 0,
  serialIndex: 0,
  configurationCount: 1,
};

export function endpoint(
  address: number,
  type: EndpointDescriptor['type'],
  maxPacketSize: number,
  more: { readonly interval?: number; readonly extra?: Uint8Array } = {},
): EndpointDescriptor {
  return {
    address,
    direction: (address & 0x80) === 0 ? 'out' : 'in',
    type,
    maxPacketSize,
    interval: more.interval ?? (type === 'interrupt' ? 9 : 0),
    extra: more.extra ?? noBytes,
  };
}

export function altSetting(
  interfaceNumber: number,
  alternateSetting: number,
  triple: readonly [number, number, number],
  endpoints: readonly EndpointDescriptor[] = [],
  extra: Uint8Array = noBytes,
): AltSetting {
  const [interfaceClass, interfaceSubclass, interfaceProtocol] = triple;
  return {
    interfaceNumber,
    alternateSetting,
    interfaceClass,
    interfaceSubclass,
    interfaceProtocol,
    nameIndex: 0,
    endpoints,
    extra,
  };
}

/** A configuration of these altsettings, in this order. */
export function configuration(
  altSettings: readonly AltSetting[],
  more: Partial<ConfigurationDescriptor> = {},
): ConfigurationDescriptor {
  const numbers = [...new Set(altSettings.map((setting) => setting.interfaceNumber))];
  return {
    value: 1,
    nameIndex: 0,
    attributes: 0x80,
    maxPowerMa: 100,
    interfaces: numbers.map((number) => ({
      number,
      altSettings: altSettings.filter((setting) => setting.interfaceNumber === number),
    })),
    associations: [],
    extra: noBytes,
    ...more,
  };
}

export const bulkIn = 0x81;
export const bulkOut = 0x02;
export const interruptIn = 0x83;

export interface DeviceShape {
  readonly speed?: UsbSpeed;
  readonly maxPacketOut?: number;
  readonly maxPacketIn?: number;
}

const packetSizes: Readonly<Partial<Record<UsbSpeed, number>>> = { full: 64, high: 512, super: 1024 };

/** A device with a control interface (interrupt IN) and a data interface (bulk IN and OUT), at high speed if not told. */
export function makeDevice(shape: DeviceShape = {}): UsbDevice {
  const speed = shape.speed ?? 'high';
  const usual = packetSizes[speed] ?? 512;
  return {
    speed,
    descriptor: deviceDescriptor,
    configuration: configuration([
      altSetting(0, 0, [0x02, 0x06, 0x00], [endpoint(interruptIn, 'interrupt', 16)]),
      altSetting(1, 0, [0x0a, 0x00, 0x00]),
      altSetting(
        1,
        1,
        [0x0a, 0x00, 0x00],
        [
          endpoint(bulkIn, 'bulk', shape.maxPacketIn ?? usual),
          endpoint(bulkOut, 'bulk', shape.maxPacketOut ?? usual),
        ],
      ),
    ]),
  };
}
