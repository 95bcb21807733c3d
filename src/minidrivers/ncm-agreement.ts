import { formatCount, formatDuration } from '../base/units.ts';
import { ethernetHeaderLength } from '../wire/ethernet.ts';
import {
  alignedPosition,
  ndpLengthFor,
  type NtbFormat,
  ntbFormatBits,
  ntbLayouts,
  type NtbParameters,
} from '../wire/ntb.ts';
import type { NtbGeometry } from '../wire/ntb-writer.ts';

// Sizes in bytes, as Linux has them (spec 3.2).
const ntbMaxBytes = 65_536;
const ntbDefaultBytes = 16_384;
const ntbMinBytes = 2048;
const minDatagramBytes = 1514;
const maxDatagramBytes = 8192;
const maxDatagramsPerNtb = 40;
const minTxPacketBytes = 512;
/** The NDP's alignment where the device names none that can be used. */
const defaultModulus = 4;
const defaultRemainder = -ethernetHeaderLength & (defaultModulus - 1);

/** What host and device agree on: sizes of NTBs each way and how they are laid out. */
export interface NcmAgreement {
  readonly format: NtbFormat;
  readonly rxMaxBytes: number;
  readonly txMaxBytes: number;
  readonly maxDatagramBytes: number;
  readonly minTxPacketBytes: number;
  readonly geometry: NtbGeometry;
}

/** What is done otherwise than usual for a device (spec 3.2, `drvflags`). */
export interface NtbPreferences {
  /** The one NDP stands behind the datagrams (NDP_TO_END). */
  readonly ndpToEnd: boolean;
  /** NTB32 where the device has it (PREFER_NTB32). */
  readonly preferNtb32: boolean;
}

const usualPreferences: NtbPreferences = { ndpToEnd: false, preferNtb32: false };

function clamp(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(value, high));
}

/** A modulus that can be used: a power of two from 4 up to the size of an NTB; else 4. */
function usableModulus(value: number, txMaxBytes: number): number {
  const isPowerOfTwo = value > 0 && (value & (value - 1)) === 0;
  return isPowerOfTwo && value >= defaultModulus && value <= txMaxBytes ? value : defaultModulus;
}

/** NTB16 is what every device has, even one that says nothing; Linux prefers it, unless told otherwise. */
function chooseFormat(formats: number, preferNtb32: boolean): NtbFormat {
  const { ntb16, ntb32 } = ntbFormatBits;
  if ((formats & ntb32) === 0) return 'ntb16';
  return preferNtb32 || (formats & ntb16) === 0 ? 'ntb32' : 'ntb16';
}

/**
 * What Linux makes of a device's NTB parameters (spec 3.2, bind steps 6 and 9).
 * @param maxSegmentBytes `wMaxSegmentSize` of the Ethernet functional descriptor
 * @param maxPacketBytes wMaxPacketSize of the bulk OUT endpoint
 */
export function agreeOnNtbs(
  parameters: NtbParameters,
  maxSegmentBytes: number,
  maxPacketBytes: number,
  preferences: NtbPreferences = usualPreferences,
): NcmAgreement {
  const format = chooseFormat(parameters.formats, preferences.preferNtb32);
  const maxDatagrams =
    parameters.outMaxDatagrams === 0 || parameters.outMaxDatagrams > maxDatagramsPerNtb
      ? maxDatagramsPerNtb
      : parameters.outMaxDatagrams;
  const datagramBytes = clamp(maxSegmentBytes, minDatagramBytes, maxDatagramBytes);

  const rxMaxBytes = clamp(
    Math.min(ntbDefaultBytes, parameters.inMaxSize),
    ntbMinBytes,
    Math.max(ntbMinBytes, Math.min(ntbMaxBytes, parameters.inMaxSize)),
  );
  const outMaxBytes = Math.max(ntbMinBytes, Math.min(ntbMaxBytes, parameters.outMaxSize));
  const lowest = datagramBytes + ndpLengthFor(format, maxDatagrams) + ntbLayouts[format].headerLength;
  let txMaxBytes = clamp(
    Math.min(ntbDefaultBytes, parameters.outMaxSize),
    Math.min(lowest, outMaxBytes),
    outMaxBytes,
  );
  if (txMaxBytes !== parameters.outMaxSize && txMaxBytes % maxPacketBytes === 0) {
    // Not the device's own maximum, so a full NTB has to end with a short packet.
    txMaxBytes++;
  }

  return {
    format,
    rxMaxBytes,
    txMaxBytes,
    maxDatagramBytes: datagramBytes,
    minTxPacketBytes: clamp(txMaxBytes - 3 * maxPacketBytes, minTxPacketBytes, txMaxBytes),
    geometry: agreeOnGeometry(format, parameters, maxDatagrams, txMaxBytes, preferences.ndpToEnd),
  };
}

/** How NTBs are laid out: as the device asks, unless no frame would have room in one then. */
function agreeOnGeometry(
  format: NtbFormat,
  parameters: NtbParameters,
  maxDatagrams: number,
  txMaxBytes: number,
  ndpToEnd: boolean,
): NtbGeometry {
  const ndpModulus = usableModulus(parameters.outAlignment, txMaxBytes);
  const modulus = usableModulus(parameters.outDivisor, txMaxBytes);
  const asked = parameters.outPayloadRemainder < modulus ? parameters.outPayloadRemainder : 0;
  // What is aligned is the payload behind the Ethernet header.
  const remainder = (asked - ethernetHeaderLength) & (modulus - 1);
  const geometry: NtbGeometry = { format, ndpModulus, modulus, remainder, maxDatagrams, ndpToEnd };
  const byDefault = { ndpModulus: defaultModulus, modulus: defaultModulus, remainder: defaultRemainder };
  return bytesForOne(geometry) <= txMaxBytes ? geometry : { ...geometry, ...byDefault };
}

/** The length of an NTB with one frame of the usual size. */
function bytesForOne(geometry: NtbGeometry): number {
  const { format, ndpModulus, modulus, remainder, maxDatagrams, ndpToEnd } = geometry;
  const { headerLength } = ntbLayouts[format];
  const ndpLength = ndpLengthFor(format, maxDatagrams);
  if (ndpToEnd) {
    const end = alignedPosition(headerLength, modulus, remainder) + minDatagramBytes;
    return alignedPosition(end, ndpModulus, 0) + ndpLength;
  }
  const ndpEnd = alignedPosition(headerLength, ndpModulus, 0) + ndpLength;
  return alignedPosition(ndpEnd, modulus, remainder) + minDatagramBytes;
}

/** What was agreed on, in words. */
export function describeNtbs(
  parameters: NtbParameters,
  agreement: NcmAgreement,
  txTimerUs: number,
): Readonly<Record<string, string>> {
  const { format, txMaxBytes, rxMaxBytes, geometry } = agreement;
  const sizes = (used: number, offered: number): string =>
    `${formatCount(used)} bytes, of ${formatCount(offered)} offered`;
  return {
    'NTB format': format === 'ntb16' ? 'NTB16' : 'NTB32',
    'NTB sent': sizes(txMaxBytes, parameters.outMaxSize),
    'NTB received': sizes(rxMaxBytes, parameters.inMaxSize),
    'Datagrams an NTB': `at most ${formatCount(geometry.maxDatagrams)}`,
    'NTB sent after': txTimerUs === 0 ? 'the last packet at hand' : formatDuration(txTimerUs),
  };
}
