import { invariant } from '../base/errors.ts';
import type { UsbSpeed } from '../usbnet/transport.ts';
import { encodeBosDescriptor } from '../wire/usb-bos.ts';
import {
  type AltSetting,
  descriptorTypes,
  encodeConfigurationDescriptor,
  encodeDeviceDescriptor,
  encodeDeviceQualifier,
} from '../wire/usb-descriptor.ts';
import {
  encodeLanguageList,
  encodeStringDescriptor,
  languageEnglishUnitedStates,
} from '../wire/usb-string.ts';
import type { DeviceEndpoint } from './device-endpoint.ts';
import type { Firmware, SetupPacket } from './firmware/firmware.ts';

/** The speeds that devices are simulated at. */
export type SimSpeed = Extract<UsbSpeed, 'full' | 'high' | 'super'>;

/** Standard requests (USB 2.0 table 9-4, USB 3.2 table 9-5). */
export const standardRequests = {
  getStatus: 0,
  clearFeature: 1,
  setFeature: 3,
  setAddress: 5,
  getDescriptor: 6,
  getConfiguration: 8,
  setConfiguration: 9,
  getInterface: 10,
  setInterface: 11,
  setSel: 48,
  setIsochronousDelay: 49,
} as const;

const requestTypeMask = 0x60;
const recipientMask = 0x1f;
const recipients = { device: 0, interface: 1, endpoint: 2 } as const;
const directionIn = 0x80;

/** Feature selectors. */
const endpointHalt = 0;
const functionSuspend = 0;
const remoteWakeup = 1;
/** U1 enable, U2 enable, latency tolerance messages. */
const superSpeedFeatures: readonly number[] = [48, 49, 50];

const selfPoweredAttribute = 0x40;

const empty = new Uint8Array(0);

/**
 * A USB device: descriptors, the standard requests on endpoint 0, and a firmware that does the rest. It does not know
 * who drives it, or over what bus.
 */
export class SimDevice {
  readonly speed: SimSpeed;
  readonly firmware: Firmware;
  readonly #deviceBytes: Uint8Array;
  readonly #configurationBytes: Uint8Array;
  readonly #bosBytes: Uint8Array | undefined;
  readonly #endpoints = new Map<number, DeviceEndpoint>();
  /** Altsetting in force by interface number. */
  readonly #altSettings = new Map<number, number>();
  #configurationValue = 0;
  #remoteWakeup = false;
  #stallNextRequest = false;
  /** Endpoint 0 answers nothing before this time. */
  #controlSilentUntilUs = 0;

  constructor(firmware: Firmware, speed: SimSpeed) {
    this.firmware = firmware;
    this.speed = speed;
    const { device, configuration, bos } = firmware.descriptors;
    this.#deviceBytes = encodeDeviceDescriptor(device);
    this.#configurationBytes = encodeConfigurationDescriptor(configuration, {
      superSpeed: speed === 'super',
    });
    this.#bosBytes = bos === undefined ? undefined : encodeBosDescriptor(bos);
    for (const endpoint of firmware.endpoints) this.#endpoints.set(endpoint.address, endpoint);
  }

  /** 0: not configured. */
  get configurationValue(): number {
    return this.#configurationValue;
  }
  get controlSilentUntilUs(): number {
    return this.#controlSilentUntilUs;
  }

  /** The altsetting of an interface that is in force; undefined if there is no such interface, or no configuration. */
  altSettingOf(interfaceNumber: number): number | undefined {
    return this.#altSettings.get(interfaceNumber);
  }

  /** The endpoint of that address, if the altsetting that has it is in force. */
  endpoint(address: number): DeviceEndpoint | undefined {
    return this.#activeEndpoints().has(address) ? this.#endpoints.get(address) : undefined;
  }

  // ---- faults that only a device can have; for tests ----

  /** Halts an endpoint, as a device in trouble would. Address 0: the next request on endpoint 0 is stalled. */
  injectStall(endpointAddress: number, nowUs: number): void {
    if (endpointAddress === 0) {
      this.#stallNextRequest = true;
      return;
    }
    const endpoint = this.#endpoints.get(endpointAddress);
    invariant(endpoint !== undefined, `no endpoint ${endpointAddress}`);
    endpoint.halted = true;
    endpoint.ready(nowUs);
  }

  /** The endpoint answers only NAK for a while: nothing moves, nothing fails. Address 0: requests are not answered. */
  injectSilence(endpointAddress: number, us: number, nowUs: number): void {
    if (endpointAddress === 0) {
      this.#controlSilentUntilUs = nowUs + us;
      return;
    }
    const endpoint = this.#endpoints.get(endpointAddress);
    invariant(endpoint !== undefined, `no endpoint ${endpointAddress}`);
    endpoint.silentUntilUs = nowUs + us;
    endpoint.ready(nowUs);
  }

  // ---- the bus ----

  /** The bus was reset: back to the state after power-on. */
  handleBusReset(nowUs: number): void {
    this.#configurationValue = 0;
    this.#remoteWakeup = false;
    this.#altSettings.clear();
    this.#clearHalts(this.#endpoints.values());
    this.firmware.handleReset(nowUs);
  }

  /**
   * Carries out a request on endpoint 0.
   * @param data what the host sends along, of a request to the device
   * @returns the data of the answer, at most `setup.length` bytes (empty for a request to the device); undefined: STALL
   */
  control(setup: SetupPacket, data: Uint8Array, nowUs: number): Uint8Array | undefined {
    if (this.#stallNextRequest) {
      this.#stallNextRequest = false;
      return undefined;
    }
    const answer =
      (setup.requestType & requestTypeMask) === 0
        ? this.#handleStandardRequest(setup, nowUs)
        : this.#handleOtherRequest(setup, data, nowUs);
    return answer === undefined || answer.length <= setup.length ? answer : answer.subarray(0, setup.length);
  }

  #handleOtherRequest(setup: SetupPacket, data: Uint8Array, nowUs: number): Uint8Array | undefined {
    return this.#configurationValue === 0 ? undefined : this.firmware.handleRequest(setup, data, nowUs);
  }

  #handleStandardRequest(setup: SetupPacket, nowUs: number): Uint8Array | undefined {
    const { requestType, request, value, index } = setup;
    const isIn = (requestType & directionIn) !== 0;
    const recipient = requestType & recipientMask;
    if (isIn) {
      switch (request) {
        case standardRequests.getStatus:
          return this.#status(recipient, index);
        case standardRequests.getDescriptor:
          return this.#descriptor(value >>> 8, value & 0xff);
        case standardRequests.getConfiguration:
          return Uint8Array.of(this.#configurationValue);
        case standardRequests.getInterface: {
          const altSetting = this.#altSettings.get(index);
          return altSetting === undefined ? undefined : Uint8Array.of(altSetting);
        }
        default:
          return undefined;
      }
    }
    switch (request) {
      case standardRequests.setAddress:
      // Times for power saving and isochronous transfers, which nothing here makes use of.
      case standardRequests.setSel:
      case standardRequests.setIsochronousDelay:
        return empty;
      case standardRequests.setConfiguration:
        return this.#setConfiguration(value, nowUs);
      case standardRequests.setInterface:
        return this.#setInterface(index, value, nowUs);
      case standardRequests.setFeature:
      case standardRequests.clearFeature:
        return this.#setFeature(recipient, value, index, request === standardRequests.setFeature, nowUs);
      default:
        return undefined;
    }
  }

  #descriptor(type: number, index: number): Uint8Array | undefined {
    switch (type) {
      case descriptorTypes.device:
        return this.#deviceBytes;
      case descriptorTypes.configuration:
        return index === 0 ? this.#configurationBytes : undefined;
      case descriptorTypes.bos:
        return this.#bosBytes;
      case descriptorTypes.deviceQualifier:
        // Only who knows high speed may answer; it is simulated at one speed, so there is no other configuration.
        return this.speed === 'high' ? encodeDeviceQualifier(this.firmware.descriptors.device, 0) : undefined;
      case descriptorTypes.string: {
        if (index === 0) return encodeLanguageList([languageEnglishUnitedStates]);
        const text = this.firmware.descriptors.strings[index - 1];
        return text === undefined ? undefined : encodeStringDescriptor(text);
      }
      default:
        return undefined;
    }
  }

  #status(recipient: number, index: number): Uint8Array | undefined {
    switch (recipient) {
      case recipients.device: {
        const selfPowered = (this.firmware.descriptors.configuration.attributes & selfPoweredAttribute) !== 0;
        return Uint8Array.of((selfPowered ? 1 : 0) | (this.#remoteWakeup ? 2 : 0), 0);
      }
      case recipients.interface:
        return this.#altSettings.has(index & 0xff) ? Uint8Array.of(0, 0) : undefined;
      case recipients.endpoint: {
        if ((index & 0x7f) === 0) return Uint8Array.of(0, 0);
        const endpoint = this.endpoint(index & 0xff);
        return endpoint === undefined ? undefined : Uint8Array.of(endpoint.halted ? 1 : 0, 0);
      }
      default:
        return undefined;
    }
  }

  #setFeature(
    recipient: number,
    feature: number,
    index: number,
    on: boolean,
    nowUs: number,
  ): Uint8Array | undefined {
    switch (recipient) {
      case recipients.device:
        if (feature === remoteWakeup) this.#remoteWakeup = on;
        else if (this.speed !== 'super' || !superSpeedFeatures.includes(feature)) return undefined;
        return empty;
      case recipients.interface:
        return this.speed === 'super' && feature === functionSuspend ? empty : undefined;
      case recipients.endpoint: {
        if (feature !== endpointHalt) return undefined;
        if ((index & 0x7f) === 0) return empty;
        const endpoint = this.endpoint(index & 0xff);
        if (endpoint === undefined) return undefined;
        endpoint.halted = on;
        endpoint.ready(nowUs);
        return empty;
      }
      default:
        return undefined;
    }
  }

  #setConfiguration(value: number, nowUs: number): Uint8Array | undefined {
    const { configuration } = this.firmware.descriptors;
    if (value !== 0 && value !== configuration.value) return undefined;
    this.#configurationValue = value;
    this.#altSettings.clear();
    this.#clearHalts(this.#endpoints.values());
    if (value !== 0) for (const { number } of configuration.interfaces) this.#altSettings.set(number, 0);
    this.firmware.handleReset(nowUs);
    return empty;
  }

  #setInterface(interfaceNumber: number, alternateSetting: number, nowUs: number): Uint8Array | undefined {
    const altSetting = this.#altSettings.has(interfaceNumber)
      ? this.#findAltSetting(interfaceNumber, alternateSetting)
      : undefined;
    if (altSetting === undefined) return undefined;
    this.#altSettings.set(interfaceNumber, alternateSetting);
    for (const { address } of altSetting.endpoints) {
      const endpoint = this.#endpoints.get(address);
      if (endpoint !== undefined) endpoint.halted = false;
    }
    this.firmware.handleSetInterface(interfaceNumber, alternateSetting, nowUs);
    return empty;
  }

  #clearHalts(endpoints: Iterable<DeviceEndpoint>): void {
    for (const endpoint of endpoints) endpoint.halted = false;
  }

  #findAltSetting(interfaceNumber: number, alternateSetting: number): AltSetting | undefined {
    return this.firmware.descriptors.configuration.interfaces
      .find(({ number }) => number === interfaceNumber)
      ?.altSettings.find((candidate) => candidate.alternateSetting === alternateSetting);
  }

  #activeEndpoints(): Set<number> {
    const addresses = new Set<number>();
    for (const [interfaceNumber, alternateSetting] of this.#altSettings) {
      const altSetting = this.#findAltSetting(interfaceNumber, alternateSetting);
      for (const { address } of altSetting?.endpoints ?? []) addresses.add(address);
    }
    return addresses;
  }
}
