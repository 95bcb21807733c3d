import type {
  LibusbConfigDescriptor,
  LibusbEndpointDescriptor,
  LibusbInterfaceDescriptor,
} from '../../../src/transports/libusb-module.ts';

/**
 * A configuration as libusb's parser presents it, written after its rules and not after our parser: what is not a
 * standard descriptor is the `extra` of the interface or endpoint before it, or of the configuration if none came yet.
 */
export function libusbView(bytes: Uint8Array): LibusbConfigDescriptor {
  const at = (index: number): number => bytes[index] ?? 0;
  const interfaces: LibusbInterfaceDescriptor[][] = [];
  const byNumber = new Map<number, LibusbInterfaceDescriptor[]>();
  let holder: { extra: Buffer } = { extra: Buffer.alloc(0) };
  const configuration = holder;
  let endpoints: LibusbEndpointDescriptor[] = [];
  for (let i = at(0); i < bytes.length; i += at(i)) {
    if (at(i + 1) === 4) {
      endpoints = [];
      const descriptor = {
        bLength: at(i),
        bDescriptorType: 4,
        bInterfaceNumber: at(i + 2),
        bAlternateSetting: at(i + 3),
        bNumEndpoints: at(i + 4),
        bInterfaceClass: at(i + 5),
        bInterfaceSubClass: at(i + 6),
        bInterfaceProtocol: at(i + 7),
        iInterface: at(i + 8),
        extra: Buffer.alloc(0),
        endpoints,
      };
      let altSettings = byNumber.get(descriptor.bInterfaceNumber);
      if (altSettings === undefined) {
        altSettings = [];
        byNumber.set(descriptor.bInterfaceNumber, altSettings);
        interfaces.push(altSettings);
      }
      altSettings.push(descriptor);
      holder = descriptor;
    } else if (at(i + 1) === 5) {
      const descriptor = {
        bLength: at(i),
        bDescriptorType: 5,
        bEndpointAddress: at(i + 2),
        bmAttributes: at(i + 3),
        wMaxPacketSize: at(i + 4) | (at(i + 5) << 8),
        bInterval: at(i + 6),
        bRefresh: 0,
        bSynchAddress: 0,
        extra: Buffer.alloc(0),
      };
      endpoints.push(descriptor);
      holder = descriptor;
    } else {
      holder.extra = Buffer.concat([holder.extra, bytes.subarray(i, i + at(i))]);
    }
  }
  return {
    bLength: at(0),
    bDescriptorType: at(1),
    wTotalLength: at(2) | (at(3) << 8),
    bNumInterfaces: at(4),
    bConfigurationValue: at(5),
    iConfiguration: at(6),
    bmAttributes: at(7),
    bMaxPower: at(8),
    extra: configuration.extra,
    interfaces,
  };
}
