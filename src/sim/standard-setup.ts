import type { DeviceRequest } from '../usbnet/transport.ts';
import type { SetupPacket } from './firmware/firmware.ts';
import { standardRequests } from './sim-device.ts';

const requestTypes = { deviceIn: 0x80, deviceOut: 0x00, interfaceOut: 0x01, endpointOut: 0x02 } as const;
const endpointHalt = 0;

/** GET_DESCRIPTOR. */
export function getDescriptorSetup(type: number, length: number): SetupPacket {
  return {
    requestType: requestTypes.deviceIn,
    request: standardRequests.getDescriptor,
    value: type << 8,
    index: 0,
    length,
  };
}

export function setConfigurationSetup(value: number): SetupPacket {
  return {
    requestType: requestTypes.deviceOut,
    request: standardRequests.setConfiguration,
    value,
    index: 0,
    length: 0,
  };
}

export function setInterfaceSetup(interfaceNumber: number, alternateSetting: number): SetupPacket {
  return {
    requestType: requestTypes.interfaceOut,
    request: standardRequests.setInterface,
    value: alternateSetting,
    index: interfaceNumber,
    length: 0,
  };
}

export function isSetConfiguration({ requestType, request }: SetupPacket): boolean {
  return requestType === requestTypes.deviceOut && request === standardRequests.setConfiguration;
}

export function isSetInterface({ requestType, request }: SetupPacket): boolean {
  return requestType === requestTypes.interfaceOut && request === standardRequests.setInterface;
}

/** What goes over endpoint 0 for a request. A reset is no control transfer. */
export function setupOf(request: Exclude<DeviceRequest, { kind: 'reset' }>): SetupPacket {
  switch (request.kind) {
    case 'control-in': {
      const { requestType, value, index, length } = request;
      return { requestType, request: request.request, value, index, length };
    }
    case 'control-out': {
      const { requestType, value, index, data } = request;
      return { requestType, request: request.request, value, index, length: data.length };
    }
    case 'set-interface':
      return setInterfaceSetup(request.interfaceNumber, request.alternateSetting);
    case 'clear-halt':
      return {
        requestType: requestTypes.endpointOut,
        request: standardRequests.clearFeature,
        value: endpointHalt,
        index: request.endpointAddress,
        length: 0,
      };
  }
}
