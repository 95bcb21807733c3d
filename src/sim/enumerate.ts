import { invariant } from '../base/errors.ts';
import type { UsbDevice } from '../usbnet/transport.ts';
import {
  descriptorTypes,
  deviceDescriptorLength,
  parseConfigurationDescriptor,
  parseDeviceDescriptor,
} from '../wire/usb-descriptor.ts';
import type { SimDevice } from './sim-device.ts';
import { getDescriptorSetup, setConfigurationSetup } from './standard-setup.ts';

const maxDescriptorLength = 0xffff;
const empty = new Uint8Array(0);

/**
 * What a host does with a new device, as far as it matters to a driver: resets it, reads its descriptors and configures
 * it. Takes no time. @throws InvariantError if the device's descriptors are bad: it is one of ours
 */
export function enumerate(device: SimDevice, nowUs: number): UsbDevice {
  device.handleBusReset(nowUs);
  const read = (type: number, length: number): Uint8Array =>
    device.control(getDescriptorSetup(type, length), empty, nowUs) ?? empty;
  const descriptor = parseDeviceDescriptor(read(descriptorTypes.device, deviceDescriptorLength));
  invariant(descriptor.ok, 'a simulated device has a bad device descriptor');
  const configuration = parseConfigurationDescriptor(
    read(descriptorTypes.configuration, maxDescriptorLength),
    {
      superSpeed: device.speed === 'super',
    },
  );
  invariant(configuration.ok, 'a simulated device has a bad configuration descriptor');
  configure(device, configuration.value.value, nowUs);
  return { speed: device.speed, descriptor: descriptor.value, configuration: configuration.value };
}

export function configure(device: SimDevice, configurationValue: number, nowUs: number): void {
  const answer = device.control(setConfigurationSetup(configurationValue), empty, nowUs);
  invariant(answer !== undefined, 'a simulated device refused its configuration');
}
