import { findAltSetting } from '../usbnet/endpoints.ts';
import type { ConfigurationDescriptor } from '../wire/usb-descriptor.ts';

const notificationBytes = 8;

/**
 * The interrupt IN endpoint of a CDC control interface. One whose packets can't hold a notification, or that is never
 * polled, is ignored as a bad one (spec 3.1).
 */
export function findStatusEndpoint(
  configuration: ConfigurationDescriptor,
  controlInterface: number,
): number | undefined {
  const endpoints = findAltSetting(configuration, controlInterface, 0)?.endpoints ?? [];
  const endpoint = endpoints.find(
    (candidate) => candidate.type === 'interrupt' && candidate.direction === 'in',
  );
  if (endpoint === undefined || endpoint.maxPacketSize < notificationBytes || endpoint.interval === 0) {
    return undefined;
  }
  return endpoint.address;
}
