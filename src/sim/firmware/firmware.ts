import type { ConfigurationDescriptor, DeviceDescriptor } from '../../wire/usb-descriptor.ts';
import type { BosDescriptor } from '../../wire/usb-bos.ts';
import type { DeviceEndpoint } from '../device-endpoint.ts';

/** The eight bytes that start a control transfer. */
export interface SetupPacket {
  readonly requestType: number;
  readonly request: number;
  readonly value: number;
  readonly index: number;
  /** `wLength`. */
  readonly length: number;
}

/** Everything a device says of itself when it is asked for descriptors. */
export interface DeviceDescriptors {
  readonly device: DeviceDescriptor;
  /** The only configuration. */
  readonly configuration: ConfigurationDescriptor;
  /** From USB 2.1 on. */
  readonly bos?: BosDescriptor;
  /** String `i` of the descriptors is `strings[i - 1]`. */
  readonly strings: readonly string[];
}

/** The part of a device that makes it what it is: descriptors, endpoints and class requests. Standard requests are not its. */
export interface Firmware {
  readonly descriptors: DeviceDescriptors;
  /** All but endpoint 0, of all altsettings. */
  readonly endpoints: readonly DeviceEndpoint[];
  /** A class or vendor request: the data of the answer (empty if there is none), or undefined: STALL. */
  handleRequest(setup: SetupPacket, data: Uint8Array, nowUs: number): Uint8Array | undefined;
  /** An altsetting was chosen, be it the one that was in force already. */
  handleSetInterface(interfaceNumber: number, alternateSetting: number, nowUs: number): void;
  /** The device was configured anew, or reset: everything is at its start. */
  handleReset(nowUs: number): void;
}
