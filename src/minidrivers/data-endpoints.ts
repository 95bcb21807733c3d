import { type DataEndpoints, findDataEndpoints } from '../usbnet/endpoints.ts';
import { DriverError } from '../usbnet/procedure.ts';
import type { ConfigurationDescriptor } from '../wire/usb-descriptor.ts';

/** The data endpoints of an interface. @throws DriverError where it has none: such a device cannot be driven */
export function requireDataEndpoints(
  configuration: ConfigurationDescriptor,
  interfaceNumber: number,
): DataEndpoints {
  const data = findDataEndpoints(configuration, interfaceNumber);
  if (data === undefined) {
    throw new DriverError('bind', `interface ${interfaceNumber} has no pair of bulk endpoints`);
  }
  return data;
}
