import { readUint16Le, readUint32Le, writeUint16Le, writeUint32Le } from './byte-order.ts';
import { descriptorTypes } from './usb-descriptor.ts';

/**
 * CDC functional descriptors (spec 3.0): the class-specific descriptors around a control interface that say what the
 * function is made of. Numbers that are called `version` are binary coded decimals (0x0110 is 1.10).
 */
export interface CdcFunctional {
  readonly header?: { readonly version: number };
  readonly callManagement?: { readonly capabilities: number; readonly dataInterface: number };
  readonly acm?: { readonly capabilities: number };
  readonly union?: CdcUnion;
  readonly ethernet?: CdcEthernet;
  readonly mdlm?: { readonly version: number; readonly guid: Uint8Array };
  readonly mdlmDetail?: { readonly guidDescriptorType: number; readonly detail: Uint8Array };
  readonly ncm?: { readonly version: number; readonly capabilities: number };
  readonly mbim?: CdcMbim;
  readonly mbimExtended?: CdcMbimExtended;
  /** Descriptors of a kind that had come before; the first one counts. */
  readonly duplicates: number;
  /** Descriptors that are too short for their kind or have an impossible length; they are passed over. */
  readonly malformed: number;
}

/** `bMasterInterface` and the `bSlaveInterface`s. */
export interface CdcUnion {
  readonly controlInterface: number;
  readonly dataInterfaces: readonly number[];
}

export interface CdcEthernet {
  /** The string with the MAC address, twelve hexadecimal digits. */
  readonly macAddressIndex: number;
  /** `bmEthernetStatistics`. */
  readonly statistics: number;
  /** Bytes, with the Ethernet header and without the FCS: 1514 as a rule. */
  readonly maxSegmentSize: number;
  /** `wNumberMCFilters` as it stands there: the number of filters, and in bit 15 whether they are exact or hashed. */
  readonly multicastFilters: number;
  readonly powerFilters: number;
}

export interface CdcMbim {
  readonly version: number;
  /** Bytes of the longest control message fragment. */
  readonly maxControlMessage: number;
  readonly filterCount: number;
  readonly maxFilterSize: number;
  /** Bytes. */
  readonly maxSegmentSize: number;
  readonly capabilities: number;
}

export interface CdcMbimExtended {
  readonly version: number;
  readonly maxOutstandingCommands: number;
  /** Bytes; 0 says nothing. */
  readonly mtu: number;
}

const subtypes = {
  header: 0x00,
  callManagement: 0x01,
  acm: 0x02,
  union: 0x06,
  ethernet: 0x0f,
  mdlm: 0x12,
  mdlmDetail: 0x13,
  ncm: 0x1a,
  mbim: 0x1b,
  mbimExtended: 0x1c,
} as const;

type Kind = keyof typeof subtypes;

/** bLength, bDescriptorType, bDescriptorSubtype. */
const prefixLength = 3;
const guidLength = 16;

/** The whole lengths, for those with a variable part the least ones. */
const minLengths: Readonly<Record<Kind, number>> = {
  header: 5,
  callManagement: 5,
  acm: 4,
  union: 5,
  ethernet: 13,
  mdlm: prefixLength + 2 + guidLength,
  mdlmDetail: 4,
  ncm: 6,
  mbim: 12,
  mbimExtended: 8,
};

function kindOfSubtype(subtype: number | undefined): Kind | undefined {
  return (Object.keys(subtypes) as Kind[]).find((kind) => subtypes[kind] === subtype);
}

/**
 * Collects the functional descriptors in the extra bytes of an interface; if devices put them in several places, all
 * of these may be given, the most trusted one first. Descriptors of other types and subtypes are passed over.
 */
export function parseCdcFunctional(...extras: readonly Uint8Array[]): CdcFunctional {
  const found = new Map<Kind, Uint8Array>();
  let duplicates = 0;
  let malformed = 0;
  for (const extra of extras) {
    let position = 0;
    while (position < extra.length) {
      const length = extra[position] ?? 0;
      if (length < 2 || position + length > extra.length) {
        malformed++;
        break;
      }
      const bytes = extra.subarray(position, position + length);
      position += length;
      if (bytes[1] !== descriptorTypes.classSpecificInterface) continue;
      const kind = kindOfSubtype(bytes[2]);
      if (bytes.length < (kind === undefined ? prefixLength : minLengths[kind])) malformed++;
      else if (kind === undefined) continue;
      else if (found.has(kind)) duplicates++;
      else found.set(kind, bytes);
    }
  }

  const functional: { -readonly [Key in keyof CdcFunctional]: CdcFunctional[Key] } = {
    duplicates,
    malformed,
  };
  for (const [kind, bytes] of found) {
    switch (kind) {
      case 'header':
        functional.header = { version: readUint16Le(bytes, 3) };
        break;
      case 'callManagement':
        functional.callManagement = { capabilities: bytes[3] ?? 0, dataInterface: bytes[4] ?? 0 };
        break;
      case 'acm':
        functional.acm = { capabilities: bytes[3] ?? 0 };
        break;
      case 'union':
        functional.union = { controlInterface: bytes[3] ?? 0, dataInterfaces: Array.from(bytes.subarray(4)) };
        break;
      case 'ethernet':
        functional.ethernet = {
          macAddressIndex: bytes[3] ?? 0,
          statistics: readUint32Le(bytes, 4),
          maxSegmentSize: readUint16Le(bytes, 8),
          multicastFilters: readUint16Le(bytes, 10),
          powerFilters: bytes[12] ?? 0,
        };
        break;
      case 'mdlm':
        functional.mdlm = { version: readUint16Le(bytes, 3), guid: bytes.slice(5, 5 + guidLength) };
        break;
      case 'mdlmDetail':
        functional.mdlmDetail = { guidDescriptorType: bytes[3] ?? 0, detail: bytes.slice(4) };
        break;
      case 'ncm':
        functional.ncm = { version: readUint16Le(bytes, 3), capabilities: bytes[5] ?? 0 };
        break;
      case 'mbim':
        functional.mbim = {
          version: readUint16Le(bytes, 3),
          maxControlMessage: readUint16Le(bytes, 5),
          filterCount: bytes[7] ?? 0,
          maxFilterSize: bytes[8] ?? 0,
          maxSegmentSize: readUint16Le(bytes, 9),
          capabilities: bytes[11] ?? 0,
        };
        break;
      case 'mbimExtended':
        functional.mbimExtended = {
          version: readUint16Le(bytes, 3),
          maxOutstandingCommands: bytes[5] ?? 0,
          mtu: readUint16Le(bytes, 6),
        };
        break;
    }
  }
  return functional;
}

/**
 * The bytes of the descriptors that are there, in the order of {@link CdcFunctional}. A union may have up to 251 data
 * interfaces and a detail up to 251 bytes; a GUID has 16.
 */
export function encodeCdcFunctional(functional: Omit<CdcFunctional, 'duplicates' | 'malformed'>): Uint8Array {
  const parts: Uint8Array[] = [];
  const add = (kind: Kind, length: number = minLengths[kind]): Uint8Array => {
    const bytes = new Uint8Array(length);
    bytes[0] = length;
    bytes[1] = descriptorTypes.classSpecificInterface;
    bytes[2] = subtypes[kind];
    parts.push(bytes);
    return bytes;
  };

  const { header, callManagement, acm, union, ethernet, mdlm, mdlmDetail, ncm, mbim, mbimExtended } =
    functional;
  if (header !== undefined) writeUint16Le(add('header'), 3, header.version);
  if (callManagement !== undefined) {
    add('callManagement').set([callManagement.capabilities, callManagement.dataInterface], 3);
  }
  if (acm !== undefined) add('acm').set([acm.capabilities], 3);
  if (union !== undefined) {
    add('union', prefixLength + 1 + union.dataInterfaces.length).set(
      [union.controlInterface, ...union.dataInterfaces],
      3,
    );
  }
  if (ethernet !== undefined) {
    const bytes = add('ethernet');
    bytes[3] = ethernet.macAddressIndex;
    writeUint32Le(bytes, 4, ethernet.statistics);
    writeUint16Le(bytes, 8, ethernet.maxSegmentSize);
    writeUint16Le(bytes, 10, ethernet.multicastFilters);
    bytes[12] = ethernet.powerFilters;
  }
  if (mdlm !== undefined) {
    const bytes = add('mdlm');
    writeUint16Le(bytes, 3, mdlm.version);
    bytes.set(mdlm.guid.subarray(0, guidLength), 5);
  }
  if (mdlmDetail !== undefined) {
    const bytes = add('mdlmDetail', minLengths.mdlmDetail + mdlmDetail.detail.length);
    bytes[3] = mdlmDetail.guidDescriptorType;
    bytes.set(mdlmDetail.detail, 4);
  }
  if (ncm !== undefined) {
    const bytes = add('ncm');
    writeUint16Le(bytes, 3, ncm.version);
    bytes[5] = ncm.capabilities;
  }
  if (mbim !== undefined) {
    const bytes = add('mbim');
    writeUint16Le(bytes, 3, mbim.version);
    writeUint16Le(bytes, 5, mbim.maxControlMessage);
    bytes[7] = mbim.filterCount;
    bytes[8] = mbim.maxFilterSize;
    writeUint16Le(bytes, 9, mbim.maxSegmentSize);
    bytes[11] = mbim.capabilities;
  }
  if (mbimExtended !== undefined) {
    const bytes = add('mbimExtended');
    writeUint16Le(bytes, 3, mbimExtended.version);
    bytes[5] = mbimExtended.maxOutstandingCommands;
    writeUint16Le(bytes, 6, mbimExtended.mtu);
  }

  const encoded = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let position = 0;
  for (const part of parts) {
    encoded.set(part, position);
    position += part.length;
  }
  return encoded;
}
