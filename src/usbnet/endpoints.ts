import type { AltSetting, ConfigurationDescriptor, EndpointDescriptor } from '../wire/usb-descriptor.ts';
import type { UsbDevice } from './transport.ts';

/** The endpoint of that address in any altsetting of the active configuration. */
export function findEndpoint(device: UsbDevice, address: number): EndpointDescriptor | undefined {
  for (const usbInterface of device.configuration.interfaces) {
    for (const altSetting of usbInterface.altSettings) {
      for (const endpoint of altSetting.endpoints) {
        if (endpoint.address === address) return endpoint;
      }
    }
  }
  return undefined;
}

export function findAltSetting(
  configuration: ConfigurationDescriptor,
  interfaceNumber: number,
  alternateSetting: number,
): AltSetting | undefined {
  return configuration.interfaces
    .find((usbInterface) => usbInterface.number === interfaceNumber)
    ?.altSettings.find((altSetting) => altSetting.alternateSetting === alternateSetting);
}

export interface DataEndpoints {
  readonly altSetting: AltSetting;
  readonly bulkIn: EndpointDescriptor;
  readonly bulkOut: EndpointDescriptor;
  readonly interruptIn: EndpointDescriptor | undefined;
}

/**
 * `usbnet_get_endpoints` (spec 2.3): the first altsetting with bulk endpoints both ways; endpoints without a packet
 * size don't count.
 */
export function findDataEndpoints(
  configuration: ConfigurationDescriptor,
  interfaceNumber: number,
): DataEndpoints | undefined {
  const usbInterface = configuration.interfaces.find((candidate) => candidate.number === interfaceNumber);
  for (const altSetting of usbInterface?.altSettings ?? []) {
    const usable = altSetting.endpoints.filter((endpoint) => endpoint.maxPacketSize > 0);
    const bulkIn = usable.find((endpoint) => endpoint.type === 'bulk' && endpoint.direction === 'in');
    const bulkOut = usable.find((endpoint) => endpoint.type === 'bulk' && endpoint.direction === 'out');
    const interruptIn = usable.find(
      (endpoint) => endpoint.type === 'interrupt' && endpoint.direction === 'in',
    );
    if (bulkIn !== undefined && bulkOut !== undefined) return { altSetting, bulkIn, bulkOut, interruptIn };
  }
  return undefined;
}
