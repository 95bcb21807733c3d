import { invariant } from '../base/errors.ts';
import { readUint16Le, writeUint16Le } from './byte-order.ts';
import type { ParseResult } from './parse-result.ts';

/**
 * USB device and configuration descriptors (USB 2.0 section 9.6, USB 3.2 section 9.6): parsers that take what real
 * devices send, and encoders for simulated ones. BOS and strings have files of their own.
 */

/** `bDescriptorType` values. */
export const descriptorTypes = {
  device: 0x01,
  configuration: 0x02,
  string: 0x03,
  interface: 0x04,
  endpoint: 0x05,
  deviceQualifier: 0x06,
  otherSpeedConfiguration: 0x07,
  interfaceAssociation: 0x0b,
  bos: 0x0f,
  deviceCapability: 0x10,
  classSpecificInterface: 0x24,
  classSpecificEndpoint: 0x25,
  superSpeedEndpointCompanion: 0x30,
} as const;

/** Lengths of the standard descriptors. */
const lengths = {
  device: 18,
  configuration: 9,
  interface: 9,
  endpoint: 7,
  interfaceAssociation: 8,
  superSpeedEndpointCompanion: 6,
  deviceQualifier: 10,
} as const;

export const deviceDescriptorLength = lengths.device;
/** What a first GET_DESCRIPTOR(configuration) asks for, to learn the total length from. */
export const configurationHeaderLength = lengths.configuration;

const directionInBit = 0x80;
const endpointNumberMask = 0x0f;
const transferTypes = ['control', 'isochronous', 'bulk', 'interrupt'] as const;
/** `bMaxPower` counts in these, by whether the device runs at SuperSpeed. */
const powerUnitMa = 2;
const superSpeedPowerUnitMa = 8;

export type EndpointDirection = 'in' | 'out';
export type EndpointType = (typeof transferTypes)[number];

export interface DeviceDescriptor {
  /** `bcdUSB`, a binary coded decimal: 0x0210 is 2.10. */
  readonly usbVersion: number;
  readonly deviceClass: number;
  readonly deviceSubclass: number;
  readonly deviceProtocol: number;
  /** As it stands there: bytes, but the exponent of two from USB 3 on (9 is 512 bytes). */
  readonly maxPacketSize0: number;
  readonly vendorId: number;
  readonly productId: number;
  /** `bcdDevice`. */
  readonly deviceVersion: number;
  /** String indices; 0 means that there is none. */
  readonly manufacturerIndex: number;
  readonly productIndex: number;
  readonly serialIndex: number;
  readonly configurationCount: number;
}

/** The SuperSpeed endpoint companion. */
export interface EndpointCompanion {
  /** Packets in a burst, less one (0 … 15). */
  readonly maxBurst: number;
  readonly attributes: number;
  readonly bytesPerInterval: number;
}

export interface EndpointDescriptor {
  /** Number, and direction in bit 7. */
  readonly address: number;
  readonly direction: EndpointDirection;
  readonly type: EndpointType;
  /** Bits 0-10 of `wMaxPacketSize`, bytes. */
  readonly maxPacketSize: number;
  /** Bits 11-12 of it: more packets in a microframe, of a high-speed periodic endpoint. Absent if 0. */
  readonly additionalTransactions?: number;
  /** Bits 2-7 of `bmAttributes` (synchronisation and usage), still in their places. Absent if 0. */
  readonly usageBits?: number;
  /** `bInterval` as it stands there; its unit depends on speed and type. */
  readonly interval: number;
  readonly companion?: EndpointCompanion;
  /** Descriptors of other types that follow, whole and unparsed. */
  readonly extra: Uint8Array;
}

export interface AltSetting {
  readonly interfaceNumber: number;
  readonly alternateSetting: number;
  readonly interfaceClass: number;
  readonly interfaceSubclass: number;
  readonly interfaceProtocol: number;
  readonly nameIndex: number;
  readonly endpoints: readonly EndpointDescriptor[];
  /** Descriptors between this one and its first endpoint (class-specific ones as a rule), whole and unparsed. */
  readonly extra: Uint8Array;
}

export interface UsbInterface {
  readonly number: number;
  readonly altSettings: readonly AltSetting[];
}

/** Interfaces that make up one function. */
export interface InterfaceAssociation {
  readonly firstInterface: number;
  readonly interfaceCount: number;
  readonly functionClass: number;
  readonly functionSubclass: number;
  readonly functionProtocol: number;
  readonly nameIndex: number;
}

export interface ConfigurationDescriptor {
  /** `bConfigurationValue`. */
  readonly value: number;
  readonly nameIndex: number;
  readonly attributes: number;
  readonly maxPowerMa: number;
  /** In the order in which their numbers first appear. */
  readonly interfaces: readonly UsbInterface[];
  readonly associations: readonly InterfaceAssociation[];
  /** Descriptors before the first interface, associations left out, whole and unparsed. */
  readonly extra: Uint8Array;
}

/** Bytes behind the 18 are ignored. */
export function parseDeviceDescriptor(bytes: Uint8Array): ParseResult<DeviceDescriptor> {
  const problem = headerProblem(bytes, 'device', descriptorTypes.device, lengths.device);
  if (problem !== undefined) return problem;
  const value: DeviceDescriptor = {
    usbVersion: readUint16Le(bytes, 2),
    deviceClass: bytes[4] ?? 0,
    deviceSubclass: bytes[5] ?? 0,
    deviceProtocol: bytes[6] ?? 0,
    maxPacketSize0: bytes[7] ?? 0,
    vendorId: readUint16Le(bytes, 8),
    productId: readUint16Le(bytes, 10),
    deviceVersion: readUint16Le(bytes, 12),
    manufacturerIndex: bytes[14] ?? 0,
    productIndex: bytes[15] ?? 0,
    serialIndex: bytes[16] ?? 0,
    configurationCount: bytes[17] ?? 0,
  };
  return { ok: true, value };
}

export function encodeDeviceDescriptor(device: DeviceDescriptor): Uint8Array {
  const bytes = new Uint8Array(lengths.device);
  bytes[0] = lengths.device;
  bytes[1] = descriptorTypes.device;
  writeUint16Le(bytes, 2, device.usbVersion);
  bytes[4] = device.deviceClass;
  bytes[5] = device.deviceSubclass;
  bytes[6] = device.deviceProtocol;
  bytes[7] = device.maxPacketSize0;
  writeUint16Le(bytes, 8, device.vendorId);
  writeUint16Le(bytes, 10, device.productId);
  writeUint16Le(bytes, 12, device.deviceVersion);
  bytes[14] = device.manufacturerIndex;
  bytes[15] = device.productIndex;
  bytes[16] = device.serialIndex;
  bytes[17] = device.configurationCount;
  return bytes;
}

/**
 * The device qualifier: what a device that knows high speed would be at the other speed. The fields of `device` that it
 * repeats are taken to be the same there.
 * @param configurationCount of the other speed; 0: it runs at no other
 */
export function encodeDeviceQualifier(device: DeviceDescriptor, configurationCount: number): Uint8Array {
  const bytes = new Uint8Array(lengths.deviceQualifier);
  bytes[0] = lengths.deviceQualifier;
  bytes[1] = descriptorTypes.deviceQualifier;
  writeUint16Le(bytes, 2, device.usbVersion);
  bytes[4] = device.deviceClass;
  bytes[5] = device.deviceSubclass;
  bytes[6] = device.deviceProtocol;
  bytes[7] = device.maxPacketSize0;
  bytes[8] = configurationCount;
  return bytes;
}

/** `wTotalLength` of a configuration of which at least the first four bytes came; undefined otherwise. */
export function configurationTotalLength(bytes: Uint8Array): number | undefined {
  return bytes.length < 4 || bytes[1] !== descriptorTypes.configuration ? undefined : readUint16Le(bytes, 2);
}

export interface ParseConfigurationOptions {
  /**
   * Whether the device runs at SuperSpeed, where power counts in units of 8 mA and not of 2. If it is not said, a
   * configuration with an endpoint companion is taken for one of SuperSpeed.
   */
  readonly superSpeed?: boolean | undefined;
}

/**
 * Parses a configuration with all that follows it. Whoever wrote a device's descriptors was not always careful, and
 * what a host can make sense of is taken:
 * - Bytes behind `wTotalLength` are ignored. Counts that promise more than there is are ignored, as long as the
 *   descriptors themselves end where `wTotalLength` says.
 * - A configuration that is cut off, or in which a descriptor has an impossible length, is used up to there if all
 *   the interfaces and endpoints that it promises had come by then; otherwise it is a problem.
 * - Altsettings may come in any order. One that came before is ignored with its endpoints.
 * - A descriptor that is too short for its type, an endpoint 0, and a second companion count as unknown; what is
 *   unknown is kept in `extra` of what it follows.
 * - What a standard descriptor has beyond its standard length (audio endpoints) is dropped.
 */
export function parseConfigurationDescriptor(
  bytes: Uint8Array,
  options: ParseConfigurationOptions = {},
): ParseResult<ConfigurationDescriptor> {
  const problem = headerProblem(bytes, 'configuration', descriptorTypes.configuration, lengths.configuration);
  if (problem !== undefined) return problem;
  const totalLength = readUint16Le(bytes, 2);
  if (totalLength < lengths.configuration) {
    return { ok: false, problem: `the configuration says that it has ${totalLength} bytes`, offset: 2 };
  }

  const end = Math.min(totalLength, bytes.length);
  let position = bytes[0] ?? 0;
  if (position > end) {
    return { ok: false, problem: `the configuration descriptor has the length ${position}`, offset: 0 };
  }
  const draft = new ConfigurationDraft();
  while (position < end) {
    const length = bytes[position] ?? 0;
    if (length < 2 || position + length > end) break;
    draft.add(bytes.subarray(position, position + length));
    position += length;
  }
  if (position !== totalLength && !draft.isComplete(bytes[4] ?? 0)) {
    const isCutOff = bytes.length < totalLength && (bytes[position] ?? 2) >= 2;
    return isCutOff
      ? {
          ok: false,
          problem: `the configuration ends after ${bytes.length} of ${totalLength} bytes`,
          offset: bytes.length,
        }
      : {
          ok: false,
          problem: `a descriptor has the impossible length ${bytes[position] ?? 0}`,
          offset: position,
        };
  }

  const superSpeed = options.superSpeed ?? draft.hasCompanion;
  const value: ConfigurationDescriptor = {
    value: bytes[5] ?? 0,
    nameIndex: bytes[6] ?? 0,
    attributes: bytes[7] ?? 0,
    maxPowerMa: (bytes[8] ?? 0) * (superSpeed ? superSpeedPowerUnitMa : powerUnitMa),
    interfaces: draft.interfaces(),
    associations: draft.associations,
    extra: joined(draft.extra),
  };
  return { ok: true, value };
}

/**
 * The bytes of a configuration. Each association stands before the first altsetting of its first interface, or at the
 * end if there is no such interface. With `superSpeed`, every endpoint gets a companion (one of zeros if it has none)
 * and power counts in units of 8 mA; without, companions are left out.
 * @throws InvariantError if that makes more than 65,535 bytes.
 */
export function encodeConfigurationDescriptor(
  configuration: ConfigurationDescriptor,
  options: { readonly superSpeed: boolean },
): Uint8Array {
  const powerUnit = options.superSpeed ? superSpeedPowerUnitMa : powerUnitMa;
  const header = new Uint8Array(lengths.configuration);
  header[0] = lengths.configuration;
  header[1] = descriptorTypes.configuration;
  header[4] = configuration.interfaces.length;
  header[5] = configuration.value;
  header[6] = configuration.nameIndex;
  header[7] = configuration.attributes;
  header[8] = Math.min(255, Math.ceil(configuration.maxPowerMa / powerUnit));

  const parts: Uint8Array[] = [header, configuration.extra];
  const associations = new Set(configuration.associations);
  for (const usbInterface of configuration.interfaces) {
    for (const association of associations) {
      if (association.firstInterface !== usbInterface.number) continue;
      parts.push(encodeAssociation(association));
      associations.delete(association);
    }
    for (const altSetting of usbInterface.altSettings) addAltSetting(parts, altSetting, options.superSpeed);
  }
  for (const association of associations) parts.push(encodeAssociation(association));

  const bytes = joined(parts);
  invariant(bytes.length <= 0xffff, `a configuration of ${bytes.length} bytes`);
  writeUint16Le(bytes, 2, bytes.length);
  return bytes;
}

function addAltSetting(parts: Uint8Array[], altSetting: AltSetting, superSpeed: boolean): void {
  parts.push(
    Uint8Array.of(
      lengths.interface,
      descriptorTypes.interface,
      altSetting.interfaceNumber,
      altSetting.alternateSetting,
      altSetting.endpoints.length,
      altSetting.interfaceClass,
      altSetting.interfaceSubclass,
      altSetting.interfaceProtocol,
      altSetting.nameIndex,
    ),
    altSetting.extra,
  );
  for (const endpoint of altSetting.endpoints) {
    parts.push(encodeEndpoint(endpoint));
    if (superSpeed) parts.push(encodeCompanion(endpoint.companion));
    parts.push(endpoint.extra);
  }
}

function encodeEndpoint(endpoint: EndpointDescriptor): Uint8Array {
  const bytes = new Uint8Array(lengths.endpoint);
  bytes[0] = lengths.endpoint;
  bytes[1] = descriptorTypes.endpoint;
  bytes[2] = endpoint.address;
  bytes[3] = transferTypes.indexOf(endpoint.type) | (endpoint.usageBits ?? 0);
  writeUint16Le(bytes, 4, endpoint.maxPacketSize | ((endpoint.additionalTransactions ?? 0) << 11));
  bytes[6] = endpoint.interval;
  return bytes;
}

function encodeCompanion(companion: EndpointCompanion | undefined): Uint8Array {
  const bytes = new Uint8Array(lengths.superSpeedEndpointCompanion);
  bytes[0] = lengths.superSpeedEndpointCompanion;
  bytes[1] = descriptorTypes.superSpeedEndpointCompanion;
  if (companion !== undefined) {
    bytes[2] = companion.maxBurst;
    bytes[3] = companion.attributes;
    writeUint16Le(bytes, 4, companion.bytesPerInterval);
  }
  return bytes;
}

function encodeAssociation(association: InterfaceAssociation): Uint8Array {
  return Uint8Array.of(
    lengths.interfaceAssociation,
    descriptorTypes.interfaceAssociation,
    association.firstInterface,
    association.interfaceCount,
    association.functionClass,
    association.functionSubclass,
    association.functionProtocol,
    association.nameIndex,
  );
}

/** What is wrong with the descriptor at the start of `bytes`, if anything. */
function headerProblem(
  bytes: Uint8Array,
  name: string,
  type: number,
  minLength: number,
): { readonly ok: false; readonly problem: string; readonly offset: number } | undefined {
  if (bytes.length < minLength) {
    return {
      ok: false,
      problem: `the ${name} descriptor ends after ${bytes.length} bytes`,
      offset: bytes.length,
    };
  }
  const length = bytes[0] ?? 0;
  if (length < minLength) {
    return { ok: false, problem: `the ${name} descriptor has the length ${length}`, offset: 0 };
  }
  if (bytes[1] !== type) {
    return { ok: false, problem: `a ${name} descriptor of type ${bytes[1] ?? 0}`, offset: 1 };
  }
  return undefined;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const bytes = new Uint8Array(length);
  let position = 0;
  for (const part of parts) {
    bytes.set(part, position);
    position += part.length;
  }
  return bytes;
}

interface EndpointDraft {
  readonly descriptor: Omit<EndpointDescriptor, 'companion' | 'extra'>;
  companion: EndpointCompanion | undefined;
  readonly extra: Uint8Array[];
}

interface AltSettingDraft {
  readonly descriptor: Omit<AltSetting, 'endpoints' | 'extra'>;
  readonly promisedEndpoints: number;
  readonly endpoints: EndpointDraft[];
  readonly extra: Uint8Array[];
}

/** Sorts the descriptors of a configuration into the tree that they stand for. */
class ConfigurationDraft {
  readonly associations: InterfaceAssociation[] = [];
  readonly extra: Uint8Array[] = [];
  hasCompanion = false;
  /** By interface number, then by alternate setting; maps keep the order of arrival. */
  readonly #interfaces = new Map<number, Map<number, AltSettingDraft>>();
  #altSetting: AltSettingDraft | undefined;
  #endpoint: EndpointDraft | undefined;
  /** Where unknown descriptors go. */
  #extra: Uint8Array[] = this.extra;

  /** @param bytes one whole descriptor */
  add(bytes: Uint8Array): void {
    const type = bytes[1];
    if (type === descriptorTypes.interface && bytes.length >= lengths.interface) this.#addInterface(bytes);
    else if (type === descriptorTypes.interfaceAssociation && bytes.length >= lengths.interfaceAssociation) {
      this.#addAssociation(bytes);
    } else if (type === descriptorTypes.endpoint && this.#addEndpoint(bytes)) return;
    else if (type === descriptorTypes.superSpeedEndpointCompanion && this.#addCompanion(bytes)) return;
    else this.#extra.push(bytes);
  }

  /** Whether there are at least as many interfaces and endpoints as the descriptors say. */
  isComplete(promisedInterfaces: number): boolean {
    if (this.#interfaces.size < promisedInterfaces) return false;
    for (const altSettings of this.#interfaces.values()) {
      for (const altSetting of altSettings.values()) {
        if (altSetting.endpoints.length < altSetting.promisedEndpoints) return false;
      }
    }
    return true;
  }

  interfaces(): UsbInterface[] {
    return Array.from(this.#interfaces, ([number, altSettings]) => ({
      number,
      altSettings: Array.from(altSettings.values(), ({ descriptor, endpoints, extra }) => ({
        ...descriptor,
        endpoints: endpoints.map((endpoint) => ({
          ...endpoint.descriptor,
          ...(endpoint.companion === undefined ? {} : { companion: endpoint.companion }),
          extra: joined(endpoint.extra),
        })),
        extra: joined(extra),
      })),
    }));
  }

  #addInterface(bytes: Uint8Array): void {
    const interfaceNumber = bytes[2] ?? 0;
    const alternateSetting = bytes[3] ?? 0;
    let altSettings = this.#interfaces.get(interfaceNumber);
    if (altSettings === undefined) {
      altSettings = new Map();
      this.#interfaces.set(interfaceNumber, altSettings);
    }
    this.#endpoint = undefined;
    if (altSettings.has(alternateSetting)) {
      // What follows belongs to an altsetting that is known already: collected where nobody looks.
      this.#altSetting = undefined;
      this.#extra = [];
      return;
    }
    this.#altSetting = {
      descriptor: {
        interfaceNumber,
        alternateSetting,
        interfaceClass: bytes[5] ?? 0,
        interfaceSubclass: bytes[6] ?? 0,
        interfaceProtocol: bytes[7] ?? 0,
        nameIndex: bytes[8] ?? 0,
      },
      promisedEndpoints: bytes[4] ?? 0,
      endpoints: [],
      extra: [],
    };
    altSettings.set(alternateSetting, this.#altSetting);
    this.#extra = this.#altSetting.extra;
  }

  #addAssociation(bytes: Uint8Array): void {
    this.associations.push({
      firstInterface: bytes[2] ?? 0,
      interfaceCount: bytes[3] ?? 0,
      functionClass: bytes[4] ?? 0,
      functionSubclass: bytes[5] ?? 0,
      functionProtocol: bytes[6] ?? 0,
      nameIndex: bytes[7] ?? 0,
    });
  }

  #addEndpoint(bytes: Uint8Array): boolean {
    const address = bytes[2] ?? 0;
    if (this.#altSetting === undefined || bytes.length < lengths.endpoint) return false;
    if ((address & endpointNumberMask) === 0) return false;
    const attributes = bytes[3] ?? 0;
    const usageBits = attributes & ~0x03;
    const packetSize = readUint16Le(bytes, 4);
    const additionalTransactions = (packetSize >>> 11) & 0x03;
    this.#endpoint = {
      descriptor: {
        address,
        direction: (address & directionInBit) !== 0 ? 'in' : 'out',
        type: transferTypes[attributes & 0x03] ?? 'control',
        maxPacketSize: packetSize & 0x07ff,
        ...(additionalTransactions === 0 ? {} : { additionalTransactions }),
        ...(usageBits === 0 ? {} : { usageBits }),
        interval: bytes[6] ?? 0,
      },
      companion: undefined,
      extra: [],
    };
    this.#altSetting.endpoints.push(this.#endpoint);
    this.#extra = this.#endpoint.extra;
    return true;
  }

  #addCompanion(bytes: Uint8Array): boolean {
    const endpoint = this.#endpoint;
    if (endpoint === undefined || endpoint.companion !== undefined) return false;
    if (bytes.length < lengths.superSpeedEndpointCompanion) return false;
    endpoint.companion = {
      maxBurst: bytes[2] ?? 0,
      attributes: bytes[3] ?? 0,
      bytesPerInterval: readUint16Le(bytes, 4),
    };
    this.hasCompanion = true;
    return true;
  }
}
