import {
  type ConfigurationDescriptor,
  configurationHeaderLength,
  configurationTotalLength,
  type DeviceDescriptor,
  descriptorTypes,
  deviceDescriptorLength,
  parseConfigurationDescriptor,
  parseDeviceDescriptor,
} from '../wire/usb-descriptor.ts';
import type { UsbSpeed } from '../usbnet/transport.ts';

export interface DeviceDescriptors {
  readonly descriptor: DeviceDescriptor;
  readonly configurations: readonly ConfigurationDescriptor[];
  /** What was wrong with configurations that are left out. */
  readonly problems: readonly string[];
}

/**
 * Parses a device descriptor with all configurations behind it, the form of Linux's `descriptors` file and of
 * binary dumps. Undefined if there is no device descriptor.
 */
export function parseDeviceDescriptors(bytes: Uint8Array, speed: UsbSpeed): DeviceDescriptors | undefined {
  const device = parseDeviceDescriptor(bytes);
  if (!device.ok) return undefined;
  const configurations: ConfigurationDescriptor[] = [];
  const problems: string[] = [];
  let position: number = deviceDescriptorLength;
  while (position < bytes.length) {
    const end = configurationEnd(bytes, position);
    const parsed = parseConfigurationDescriptor(bytes.subarray(position, end), {
      superSpeed: speed === 'unknown' ? undefined : speed === 'super' || speed === 'super-plus',
    });
    if (parsed.ok) configurations.push(parsed.value);
    else problems.push(parsed.problem);
    position = end;
  }
  return { descriptor: device.value, configurations, problems };
}

/**
 * Where a configuration ends: where it says, unless something else than a configuration follows there. Linux cuts what
 * a device did not send without correcting the length in the bytes.
 */
function configurationEnd(bytes: Uint8Array, start: number): number {
  const said = start + (configurationTotalLength(bytes.subarray(start)) ?? 0);
  if (said === bytes.length || (said > start && isConfiguration(bytes, said))) return said;
  let position = start + Math.max(bytes[start] ?? 0, 2);
  while (position < bytes.length && !isConfiguration(bytes, position)) {
    const length = bytes[position] ?? 0;
    if (length < 2) return bytes.length;
    position += length;
  }
  return Math.min(position, bytes.length);
}

function isConfiguration(bytes: Uint8Array, position: number): boolean {
  return (
    (bytes[position] ?? 0) >= configurationHeaderLength &&
    bytes[position + 1] === descriptorTypes.configuration
  );
}

/** The speed that a device must have been enumerated at, from what its endpoints are allowed at which speed. */
export function inferSpeed(
  descriptor: DeviceDescriptor,
  configurations: readonly ConfigurationDescriptor[],
): UsbSpeed {
  for (const configuration of configurations) {
    for (const usbInterface of configuration.interfaces) {
      for (const altSetting of usbInterface.altSettings) {
        for (const endpoint of altSetting.endpoints) {
          if (endpoint.companion !== undefined) return 'super';
          if (endpoint.type !== 'bulk') continue;
          if (endpoint.maxPacketSize === 1024) return 'super';
          if (endpoint.maxPacketSize === 512) return 'high';
          if (endpoint.maxPacketSize > 0) return 'full';
        }
      }
    }
  }
  // Only the default endpoint of SuperSpeed gives an exponent.
  return descriptor.usbVersion >= 0x0300 && descriptor.maxPacketSize0 === 9 ? 'super' : 'unknown';
}
