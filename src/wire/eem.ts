import {
  readUint16Le,
  readUint32Be,
  readUint32Le,
  writeUint16Le,
  writeUint32Be,
  writeUint32Le,
} from './byte-order.ts';
import { crc32 } from './crc32.ts';

/**
 * CDC EEM (spec 3.10): a transfer is a bundle of packets, each with a header of two bytes. A data packet is an Ethernet
 * frame with four bytes behind it, a CRC or a word that stands for none; all others are commands about the link.
 */

export const eemHeaderLength = 2;
export const eemCrcLength = 4;

const commandBit = 0x8000;
/** Of a data packet: the last four bytes are a CRC-32. */
const crcBit = 0x4000;
const dataLengthMask = 0x3fff;
/** Of a command: must be 0. */
const reservedBit = 0x4000;
const commandShift = 11;
const commandMask = 0x07;
const parameterMask = 0x07ff;
/** In the place of the CRC, big-endian, where there is none. */
const noCrc = 0xdead_beef;
const leastFrameBytes = 14;

/** `bmEEMCmd`. */
export const eemCommands = {
  echo: 0,
  echoResponse: 1,
  suspendHint: 2,
  responseHint: 3,
  responseCompleteHint: 4,
  tickle: 5,
} as const;

/** The most bytes that an echo can carry. */
export const maxEemEchoBytes = parameterMask;

/** Writes the header of a frame of `length` bytes. */
export function writeEemDataHeader(
  bytes: Uint8Array,
  offset: number,
  length: number,
  withCrc: boolean,
): void {
  writeUint16Le(bytes, offset, (withCrc ? crcBit : 0) | (length + eemCrcLength));
}

/** Writes what follows the frame of `length` bytes at `offset`. */
export function writeEemCrc(bytes: Uint8Array, offset: number, length: number, withCrc: boolean): void {
  if (withCrc) writeUint32Le(bytes, offset + length, crc32(bytes, offset, length));
  else writeUint32Be(bytes, offset + length, noCrc);
}

/** Writes the header of a command; the data of an echo, `parameter` bytes, follow it. */
export function writeEemCommand(bytes: Uint8Array, offset: number, command: number, parameter: number): void {
  writeUint16Le(bytes, offset, commandBit | (command << commandShift) | parameter);
}

/** A packet without anything in it, which a receiver passes over. */
export function writeEemPadding(bytes: Uint8Array, offset: number): void {
  writeUint16Le(bytes, offset, 0);
}

/** What is in a bundle. All bytes are only lent, and lie within what was handed to `readEemBundle`. */
export interface EemSink {
  /** A frame whose CRC is right, or that has none. */
  handleFrame(bytes: Uint8Array, offset: number, length: number): void;
  /** A command; of an echo and its response, the parameter is the number of bytes from `offset`. */
  handleCommand(command: number, parameter: number, bytes: Uint8Array, offset: number): void;
  /** A packet that is of no use; what follows it is read on. */
  handleBadPacket(reason: EemBadPacket): void;
}

/**
 * - `runt`: a data packet that is too short for an Ethernet frame
 * - `bad-crc`: not the CRC of the frame
 * - `bad-sentinel`: no CRC, and not the word that stands for none
 * - `reserved-command`: a command with a bit that must be 0
 */
export type EemBadPacket = 'runt' | 'bad-crc' | 'bad-sentinel' | 'reserved-command';

/**
 * How the reading of a bundle ended. Anything but `ok`: the rest can't be read, since nobody knows where a packet begins.
 * - `cut-header`: one byte is left, which is half a header
 * - `overrun`: a packet that is longer than the rest of the transfer
 */
export type EemReadResult = 'ok' | 'cut-header' | 'overrun';

/** Takes a bundle apart. Zero-length packets are passed over. */
export function readEemBundle(bytes: Uint8Array, length: number, sink: EemSink): EemReadResult {
  const end = Math.min(length, bytes.length);
  let position = 0;
  while (position < end) {
    if (end - position < eemHeaderLength) return 'cut-header';
    const header = readUint16Le(bytes, position);
    position += eemHeaderLength;
    if (header === 0) continue;
    if ((header & commandBit) !== 0) {
      const parameter = header & parameterMask;
      if ((header & reservedBit) !== 0) {
        sink.handleBadPacket('reserved-command');
        continue;
      }
      const command = (header >> commandShift) & commandMask;
      const hasData = command === eemCommands.echo || command === eemCommands.echoResponse;
      if (hasData && position + parameter > end) return 'overrun';
      sink.handleCommand(command, parameter, bytes, position);
      if (hasData) position += parameter;
      continue;
    }
    const dataLength = header & dataLengthMask;
    if (position + dataLength > end) return 'overrun';
    readDataPacket(bytes, position, dataLength, (header & crcBit) !== 0, sink);
    position += dataLength;
  }
  return 'ok';
}

function readDataPacket(
  bytes: Uint8Array,
  offset: number,
  dataLength: number,
  withCrc: boolean,
  sink: EemSink,
): void {
  const length = dataLength - eemCrcLength;
  if (length < leastFrameBytes) {
    sink.handleBadPacket('runt');
  } else if (withCrc && crc32(bytes, offset, length) !== readUint32Le(bytes, offset + length)) {
    sink.handleBadPacket('bad-crc');
  } else if (!withCrc && readUint32Be(bytes, offset + length) !== noCrc) {
    sink.handleBadPacket('bad-sentinel');
  } else {
    sink.handleFrame(bytes, offset, length);
  }
}
