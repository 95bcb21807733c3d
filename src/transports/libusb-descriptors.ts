import type {
  LibusbConfigDescriptor,
  LibusbDeviceDescriptor,
  LibusbEndpointDescriptor,
  LibusbInterfaceDescriptor,
} from './libusb-module.ts';
import type { DeviceDescriptor } from '../wire/usb-descriptor.ts';

/** libusb's view of a device, in the form that the rest of the program reads. */
export function deviceDescriptorFromLibusb(descriptor: LibusbDeviceDescriptor): DeviceDescriptor {
  return {
    usbVersion: descriptor.bcdUSB,
    deviceClass: descriptor.bDeviceClass,
    deviceSubclass: descriptor.bDeviceSubClass,
    deviceProtocol: descriptor.bDeviceProtocol,
    maxPacketSize0: descriptor.bMaxPacketSize0,
    vendorId: descriptor.idVendor,
    productId: descriptor.idProduct,
    deviceVersion: descriptor.bcdDevice,
    manufacturerIndex: descriptor.iManufacturer,
    productIndex: descriptor.iProduct,
    serialIndex: descriptor.iSerialNumber,
    configurationCount: descriptor.bNumConfigurations,
  };
}

/**
 * The bytes of a configuration that libusb has taken apart: where the system does not give the bytes themselves, they
 * are put together again so that one parser serves all. libusb keeps what it does not know, in place, as `extra`.
 */
export function configurationBytesFromLibusb(configuration: LibusbConfigDescriptor): Uint8Array {
  const parts: Uint8Array[] = [
    Uint8Array.of(
      9,
      configuration.bDescriptorType,
      0,
      0,
      configuration.bNumInterfaces,
      configuration.bConfigurationValue,
      configuration.iConfiguration,
      configuration.bmAttributes,
      configuration.bMaxPower,
    ),
    configuration.extra,
  ];
  for (const altSettings of configuration.interfaces) {
    for (const altSetting of altSettings) addInterface(parts, altSetting);
  }
  const bytes = new Uint8Array(Buffer.concat(parts));
  bytes[2] = bytes.length & 0xff;
  bytes[3] = bytes.length >>> 8;
  return bytes;
}

function addInterface(parts: Uint8Array[], descriptor: LibusbInterfaceDescriptor): void {
  parts.push(
    Uint8Array.of(
      9,
      descriptor.bDescriptorType,
      descriptor.bInterfaceNumber,
      descriptor.bAlternateSetting,
      descriptor.bNumEndpoints,
      descriptor.bInterfaceClass,
      descriptor.bInterfaceSubClass,
      descriptor.bInterfaceProtocol,
      descriptor.iInterface,
    ),
    descriptor.extra,
  );
  for (const endpoint of descriptor.endpoints) addEndpoint(parts, endpoint);
}

function addEndpoint(parts: Uint8Array[], descriptor: LibusbEndpointDescriptor): void {
  parts.push(
    Uint8Array.of(
      7,
      descriptor.bDescriptorType,
      descriptor.bEndpointAddress,
      descriptor.bmAttributes,
      descriptor.wMaxPacketSize & 0xff,
      descriptor.wMaxPacketSize >>> 8,
      descriptor.bInterval,
    ),
    descriptor.extra,
  );
}
