import type { AltSetting, ConfigurationDescriptor, DeviceDescriptor } from '../wire/usb-descriptor.ts';

/** All there is to decide on: a device's descriptors, every configuration of it. */
export interface DescribedDevice {
  readonly descriptor: DeviceDescriptor;
  readonly configurations: readonly ConfigurationDescriptor[];
  /** Absent: the descriptors came from the device itself and nothing is missing. */
  readonly gaps?: DescriptorGaps;
}

/** What is known beside descriptors that somebody has printed, and what is not. */
export interface DescriptorGaps {
  /** `bNumEndpoints`: endpoints that there are, listed or not. */
  readonly endpointCounts: ReadonlyMap<AltSetting, number>;
  /** Configurations that promise more interfaces than are listed. */
  readonly unlistedInterfaces: ReadonlySet<ConfigurationDescriptor>;
  /** Only the altsettings that were in use have been listed. */
  readonly onlyCurrentAltSettings: boolean;
  /** The driver that had the interface when the descriptors were printed, as far as it was printed too. */
  readonly kernelDrivers: ReadonlyMap<AltSetting, string>;
}

/** "0bda:8153", as lsusb writes it. */
export function formatUsbId(vendorId: number, productId: number): string {
  const hex = (value: number): string => value.toString(16).padStart(4, '0');
  return `${hex(vendorId)}:${hex(productId)}`;
}

export function usbIdOf({ descriptor }: DescribedDevice): string {
  return formatUsbId(descriptor.vendorId, descriptor.productId);
}
