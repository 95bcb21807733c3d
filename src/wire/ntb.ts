import { readUint16Le, readUint32Le, writeUint16Le, writeUint32Le } from './byte-order.ts';

/**
 * Network Transfer Blocks of CDC NCM and MBIM (spec 3.0): a header (NTH) that leads to one or more datagram pointer
 * tables (NDP), each of which leads to datagrams anywhere in the block. This file has the numbers and the parameters;
 * `ntb-reader.ts` and `ntb-writer.ts` do the work.
 */

/** 16-bit or 32-bit lengths and offsets. */
export type NtbFormat = 'ntb16' | 'ntb32';

/** The value of SET_NTB_FORMAT and GET_NTB_FORMAT. */
export const ntbFormatValues: Readonly<Record<NtbFormat, number>> = { ntb16: 0, ntb32: 1 };
/** The bit of {@link NtbParameters.formats}. */
export const ntbFormatBits: Readonly<Record<NtbFormat, number>> = { ntb16: 0x01, ntb32: 0x02 };

/** Where things lie in one of the formats; all lengths and offsets in bytes. */
export interface NtbLayout {
  /** NTH: its signature, then its length (16 bits), then a sequence number (16 bits). */
  readonly headerSignature: number;
  readonly headerLength: number;
  readonly blockLengthOffset: number;
  readonly ndpIndexOffset: number;
  /** NDP without its entries: a signature, then the length of the NDP (16 bits). */
  readonly ndpHeaderLength: number;
  readonly nextNdpOffset: number;
  /** Offset and length of one datagram. */
  readonly entryLength: number;
  /** An NDP with one datagram and the terminating entry. */
  readonly minNdpLength: number;
}

export const ntbHeaderLengthOffset = 4;
export const ntbSequenceOffset = 6;
export const ndpLengthOffset = 4;

export const ntbLayouts: Readonly<Record<NtbFormat, NtbLayout>> = {
  ntb16: {
    headerSignature: 0x484d_434e,
    headerLength: 12,
    blockLengthOffset: 8,
    ndpIndexOffset: 10,
    ndpHeaderLength: 8,
    nextNdpOffset: 6,
    entryLength: 4,
    minNdpLength: 16,
  },
  ntb32: {
    headerSignature: 0x686d_636e,
    headerLength: 16,
    blockLengthOffset: 8,
    ndpIndexOffset: 12,
    ndpHeaderLength: 16,
    nextNdpOffset: 8,
    entryLength: 8,
    minNdpLength: 32,
  },
};

/** Signatures of an NDP of Ethernet frames without a CRC each ("NCM0", "ncm0"): the only kind that is used. */
export const ncmSignatures: Readonly<Record<NtbFormat, number>> = { ntb16: 0x304d_434e, ntb32: 0x306d_636e };
/** With a CRC-32 behind each frame ("NCM1", "ncm1"). */
export const ncmCrcSignatures: Readonly<Record<NtbFormat, number>> = {
  ntb16: 0x314d_434e,
  ntb32: 0x316d_636e,
};

const ipStreamSignatures: Readonly<Record<NtbFormat, number>> = { ntb16: 0x0053_5049, ntb32: 0x0073_7069 };
const deviceStreamSignatures: Readonly<Record<NtbFormat, number>> = {
  ntb16: 0x0053_5344,
  ntb32: 0x0073_7364,
};
const sessionShift = 24;
const kindMask = 0x00ff_ffff;

/** MBIM: the signature of an NDP of IP packets of a session (0 … 255): "IPS" and the session. */
export function ipStreamSignature(format: NtbFormat, session: number): number {
  return (ipStreamSignatures[format] | (session << sessionShift)) >>> 0;
}

/** MBIM: the signature of an NDP of a device service stream: "DSS" and the session. */
export function deviceStreamSignature(format: NtbFormat, session: number): number {
  return (deviceStreamSignatures[format] | (session << sessionShift)) >>> 0;
}

export function isIpStreamSignature(format: NtbFormat, signature: number): boolean {
  return (signature & kindMask) === ipStreamSignatures[format];
}

export function isDeviceStreamSignature(format: NtbFormat, signature: number): boolean {
  return (signature & kindMask) === deviceStreamSignatures[format];
}

/** The session that an MBIM signature names. */
export function sessionOfSignature(signature: number): number {
  return signature >>> sessionShift;
}

/** The length in bytes of an NDP with room for `datagrams` and the terminating entry (spec 3.2, bind step 6). */
export function ndpLengthFor(format: NtbFormat, datagrams: number): number {
  const layout = ntbLayouts[format];
  return layout.ndpHeaderLength + (datagrams + 1) * layout.entryLength;
}

/** The smallest position that is at least `position` and leaves `remainder` when divided by `modulus`. */
export function alignedPosition(position: number, modulus: number, remainder: number): number {
  const beyond = (position - remainder) % modulus;
  if (beyond === 0) return position;
  return position + (beyond < 0 ? -beyond : modulus - beyond);
}

export const ntbParametersLength = 28;

/** What GET_NTB_PARAMETERS answers. "In" is what the host receives, "out" what it sends; sizes in bytes. */
export interface NtbParameters {
  /** A sum of {@link ntbFormatBits}. */
  readonly formats: number;
  readonly inMaxSize: number;
  readonly inDivisor: number;
  readonly inPayloadRemainder: number;
  readonly inAlignment: number;
  readonly outMaxSize: number;
  readonly outDivisor: number;
  readonly outPayloadRemainder: number;
  readonly outAlignment: number;
  /** 0: no limit. */
  readonly outMaxDatagrams: number;
}

/** Undefined if less than 28 bytes came. The length that the structure itself names is not looked at. */
export function parseNtbParameters(bytes: Uint8Array): NtbParameters | undefined {
  if (bytes.length < ntbParametersLength) return undefined;
  return {
    formats: readUint16Le(bytes, 2),
    inMaxSize: readUint32Le(bytes, 4),
    inDivisor: readUint16Le(bytes, 8),
    inPayloadRemainder: readUint16Le(bytes, 10),
    inAlignment: readUint16Le(bytes, 12),
    outMaxSize: readUint32Le(bytes, 16),
    outDivisor: readUint16Le(bytes, 20),
    outPayloadRemainder: readUint16Le(bytes, 22),
    outAlignment: readUint16Le(bytes, 24),
    outMaxDatagrams: readUint16Le(bytes, 26),
  };
}

export function encodeNtbParameters(parameters: NtbParameters): Uint8Array {
  const bytes = new Uint8Array(ntbParametersLength);
  writeUint16Le(bytes, 0, ntbParametersLength);
  writeUint16Le(bytes, 2, parameters.formats);
  writeUint32Le(bytes, 4, parameters.inMaxSize);
  writeUint16Le(bytes, 8, parameters.inDivisor);
  writeUint16Le(bytes, 10, parameters.inPayloadRemainder);
  writeUint16Le(bytes, 12, parameters.inAlignment);
  writeUint32Le(bytes, 16, parameters.outMaxSize);
  writeUint16Le(bytes, 20, parameters.outDivisor);
  writeUint16Le(bytes, 22, parameters.outPayloadRemainder);
  writeUint16Le(bytes, 24, parameters.outAlignment);
  writeUint16Le(bytes, 26, parameters.outMaxDatagrams);
  return bytes;
}
