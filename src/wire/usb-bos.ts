import { readUint16Le, readUint32Le, writeUint16Le, writeUint32Le } from './byte-order.ts';
import type { ParseResult } from './parse-result.ts';
import { descriptorTypes } from './usb-descriptor.ts';

/** The Binary device Object Store: what a device can do beyond its descriptors (USB 3.2 section 9.6.2). */

const bosHeaderLength = 5;
const capabilityHeaderLength = 3;
const usb2ExtensionLength = 7;
const superSpeedLength = 10;

const capabilityTypes = { usb2Extension: 0x02, superSpeed: 0x03 } as const;

/** Bits of {@link SuperSpeedCapability.speedsSupported}. */
export const bosSpeeds = { low: 0x01, full: 0x02, high: 0x04, super: 0x08 } as const;

export interface SuperSpeedCapability {
  readonly attributes: number;
  /** A sum of {@link bosSpeeds}. */
  readonly speedsSupported: number;
  /** The slowest speed at which everything works: 0 low … 3 super. */
  readonly functionalitySupport: number;
  readonly u1ExitLatencyUs: number;
  readonly u2ExitLatencyUs: number;
}

/** Bit 1 of the attributes: link power management. */
export interface Usb2ExtensionCapability {
  readonly attributes: number;
}

/** A capability of another kind, and its bytes behind the three of its header. */
export interface OtherCapability {
  readonly type: number;
  readonly data: Uint8Array;
}

export interface BosDescriptor {
  readonly usb2Extension?: Usb2ExtensionCapability;
  readonly superSpeed?: SuperSpeedCapability;
  readonly others: readonly OtherCapability[];
}

/**
 * Parses a BOS descriptor with its capabilities; bytes behind its total length are ignored. A known capability that is
 * too short, or comes a second time, is among `others`.
 */
export function parseBosDescriptor(bytes: Uint8Array): ParseResult<BosDescriptor> {
  if (bytes.length < bosHeaderLength || (bytes[0] ?? 0) < bosHeaderLength) {
    return { ok: false, problem: 'the BOS descriptor is too short', offset: 0 };
  }
  if (bytes[1] !== descriptorTypes.bos) {
    return { ok: false, problem: `a BOS descriptor of type ${bytes[1] ?? 0}`, offset: 1 };
  }
  const end = readUint16Le(bytes, 2);
  if (end > bytes.length) {
    return {
      ok: false,
      problem: `the BOS descriptor ends after ${bytes.length} of ${end} bytes`,
      offset: bytes.length,
    };
  }
  let usb2Extension: Usb2ExtensionCapability | undefined;
  let superSpeed: SuperSpeedCapability | undefined;
  const others: OtherCapability[] = [];
  let position = bytes[0] ?? 0;
  while (position < end) {
    const length = bytes[position] ?? 0;
    if (length < capabilityHeaderLength || position + length > end) {
      return { ok: false, problem: `a capability has the impossible length ${length}`, offset: position };
    }
    // Descriptors of other types have no business here and are passed over.
    if (bytes[position + 1] === descriptorTypes.deviceCapability) {
      const type = bytes[position + 2] ?? 0;
      if (
        type === capabilityTypes.usb2Extension &&
        length >= usb2ExtensionLength &&
        usb2Extension === undefined
      ) {
        usb2Extension = { attributes: readUint32Le(bytes, position + 3) };
      } else if (
        type === capabilityTypes.superSpeed &&
        length >= superSpeedLength &&
        superSpeed === undefined
      ) {
        superSpeed = {
          attributes: bytes[position + 3] ?? 0,
          speedsSupported: readUint16Le(bytes, position + 4),
          functionalitySupport: bytes[position + 6] ?? 0,
          u1ExitLatencyUs: bytes[position + 7] ?? 0,
          u2ExitLatencyUs: readUint16Le(bytes, position + 8),
        };
      } else {
        others.push({ type, data: bytes.slice(position + capabilityHeaderLength, position + length) });
      }
    }
    position += length;
  }
  return {
    ok: true,
    value: {
      ...(usb2Extension === undefined ? {} : { usb2Extension }),
      ...(superSpeed === undefined ? {} : { superSpeed }),
      others,
    },
  };
}

/** The bytes of a BOS descriptor. The data of another capability may have up to 252 bytes. */
export function encodeBosDescriptor(bos: BosDescriptor): Uint8Array {
  const capabilities: Uint8Array[] = [];
  if (bos.usb2Extension !== undefined) {
    const bytes = newCapability(capabilityTypes.usb2Extension, usb2ExtensionLength);
    writeUint32Le(bytes, 3, bos.usb2Extension.attributes);
    capabilities.push(bytes);
  }
  if (bos.superSpeed !== undefined) {
    const bytes = newCapability(capabilityTypes.superSpeed, superSpeedLength);
    bytes[3] = bos.superSpeed.attributes;
    writeUint16Le(bytes, 4, bos.superSpeed.speedsSupported);
    bytes[6] = bos.superSpeed.functionalitySupport;
    bytes[7] = bos.superSpeed.u1ExitLatencyUs;
    writeUint16Le(bytes, 8, bos.superSpeed.u2ExitLatencyUs);
    capabilities.push(bytes);
  }
  for (const other of bos.others) {
    const bytes = newCapability(other.type, capabilityHeaderLength + other.data.length);
    bytes.set(other.data, capabilityHeaderLength);
    capabilities.push(bytes);
  }

  const totalLength = capabilities.reduce((sum, bytes) => sum + bytes.length, bosHeaderLength);
  const bytes = new Uint8Array(totalLength);
  bytes[0] = bosHeaderLength;
  bytes[1] = descriptorTypes.bos;
  writeUint16Le(bytes, 2, totalLength);
  bytes[4] = capabilities.length;
  let position = bosHeaderLength;
  for (const capability of capabilities) {
    bytes.set(capability, position);
    position += capability.length;
  }
  return bytes;
}

function newCapability(type: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  bytes[0] = length;
  bytes[1] = descriptorTypes.deviceCapability;
  bytes[2] = type;
  return bytes;
}
