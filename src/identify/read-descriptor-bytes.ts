import type { DescriptorGaps } from '../minidrivers/described-device.ts';
import {
  type ConfigurationDescriptor,
  configurationTotalLength,
  deviceDescriptorLength,
  descriptorTypes,
  type DeviceDescriptor,
  parseConfigurationDescriptor,
  parseDeviceDescriptor,
} from '../wire/usb-descriptor.ts';
import type { ReadWarning } from './printed-descriptor.ts';
import type { ReadDevice } from './read-device.ts';

/** What came of reading bytes. */
export type BytesResult =
  | { readonly ok: true; readonly devices: readonly ReadDevice[] }
  | { readonly ok: false; readonly problem: string; readonly offset: number };

/** Whether bytes begin like a device descriptor or a configuration. */
export function looksLikeDescriptors(bytes: Uint8Array): boolean {
  return startsDevice(bytes, 0) || startsConfiguration(bytes, 0);
}

function startsDevice(bytes: Uint8Array, offset: number): boolean {
  return bytes[offset] === deviceDescriptorLength && bytes[offset + 1] === descriptorTypes.device;
}

function startsConfiguration(bytes: Uint8Array, offset: number): boolean {
  return bytes[offset] === 9 && bytes[offset + 1] === descriptorTypes.configuration;
}

const unknownDevice: DeviceDescriptor = {
  usbVersion: 0,
  deviceClass: 0,
  deviceSubclass: 0,
  deviceProtocol: 0,
  maxPacketSize0: 0,
  vendorId: 0,
  productId: 0,
  deviceVersion: 0,
  manufacturerIndex: 0,
  productIndex: 0,
  serialIndex: 0,
  configurationCount: 0,
};

interface Draft {
  readonly descriptor: DeviceDescriptor | undefined;
  readonly position: number;
  readonly configurations: ConfigurationDescriptor[];
  /** Those of {@link configurations} that are longer than what is there. */
  readonly cutOff: Set<ConfigurationDescriptor>;
  readonly warnings: ReadWarning[];
}

/**
 * Reads descriptors as the kernel keeps them (sysfs' `descriptors`): a device descriptor with its configurations behind
 * it, one device or several. Other descriptors between them (BOS, qualifiers) are passed over. Warnings have the
 * offset of the byte as their line.
 */
export function readDescriptorBytes(bytes: Uint8Array): BytesResult {
  const drafts: Draft[] = [];
  const draftAt = (position: number, descriptor?: DeviceDescriptor): Draft => {
    const draft: Draft = { descriptor, position, configurations: [], cutOff: new Set(), warnings: [] };
    drafts.push(draft);
    return draft;
  };

  let offset = 0;
  while (offset < bytes.length) {
    const rest = bytes.subarray(offset);
    const length = rest[0] ?? 0;
    if (startsDevice(rest, 0)) {
      const parsed = parseDeviceDescriptor(rest);
      if (!parsed.ok) {
        if (drafts.length === 0) return { ...parsed, offset: offset + parsed.offset };
        drafts.at(-1)?.warnings.push({ line: offset + parsed.offset, message: parsed.problem });
        break;
      }
      draftAt(offset, parsed.value);
      offset += length;
    } else if (startsConfiguration(rest, 0)) {
      const draft = drafts.at(-1) ?? draftAt(offset);
      const parsed = parseConfigurationDescriptor(rest);
      const totalLength = Math.max(configurationTotalLength(rest) ?? 0, length);
      if (parsed.ok) {
        draft.configurations.push(parsed.value);
        if (totalLength > rest.length) {
          draft.cutOff.add(parsed.value);
          draft.warnings.push({
            line: offset,
            message: `configuration ${parsed.value.value} promises ${totalLength} bytes, ${rest.length} are there`,
          });
        }
      } else draft.warnings.push({ line: offset + parsed.offset, message: parsed.problem });
      offset += totalLength;
    } else if (length >= 2) offset += length;
    else {
      if (drafts.length === 0) {
        return { ok: false, problem: `a descriptor has the impossible length ${length}`, offset };
      }
      drafts
        .at(-1)
        ?.warnings.push({ line: offset, message: `a descriptor has the impossible length ${length}` });
      break;
    }
  }
  const [first] = drafts;
  if (first === undefined) return { ok: false, problem: 'there is no descriptor of a device', offset: 0 };
  const isNothing = first.descriptor === undefined && first.configurations.length === 0;
  const [warning] = first.warnings;
  if (drafts.length === 1 && isNothing && warning !== undefined) {
    return { ok: false, problem: warning.message, offset: warning.line };
  }
  return { ok: true, devices: drafts.map(build) };
}

function build({ descriptor, position, configurations, cutOff, warnings }: Draft): ReadDevice {
  const gaps: DescriptorGaps = {
    endpointCounts: new Map(
      configurations.flatMap(({ interfaces }) =>
        interfaces.flatMap(({ altSettings }) =>
          altSettings.map((altSetting) => [altSetting, altSetting.endpoints.length] as const),
        ),
      ),
    ),
    unlistedInterfaces: cutOff,
    onlyCurrentAltSettings: false,
    kernelDrivers: new Map(),
  };
  const promised = descriptor?.configurationCount ?? 0;
  const missing: ReadWarning[] = [];
  if (descriptor === undefined) {
    missing.push({ line: position, message: 'the device descriptor is not there' });
  }
  if (configurations.length < promised || configurations.length === 0) {
    missing.push({
      line: position,
      message: `the device promises ${promised} configurations, ${configurations.length} are there`,
    });
  }
  return {
    described: {
      descriptor: descriptor ?? unknownDevice,
      configurations,
      ...(cutOff.size === 0 ? {} : { gaps }),
    },
    position,
    manufacturer: undefined,
    product: undefined,
    activeConfiguration: undefined,
    hasIds: descriptor !== undefined,
    complete: missing.length === 0 && warnings.length === 0,
    warnings: [...warnings, ...missing],
  };
}
