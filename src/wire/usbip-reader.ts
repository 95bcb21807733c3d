import { readUint32Be } from './byte-order.ts';
import {
  deviceListHeaderLength,
  deviceRecordLength,
  type InterfaceTriple,
  interfaceRecordLength,
  opCode,
  opCodes,
  opHeaderLength,
  opStatus,
  opStatuses,
  opVersion,
  readDeviceRecord,
  readTriple,
  type UsbipDevice,
  type UsbipListedDevice,
  usbipVersion,
} from './usbip.ts';
import { urbHeaderLength } from './usbip-urb.ts';

/** Cuts the byte stream of a USB/IP connection into messages. Nothing but the piece that is being read is kept. */

/** Gathers a piece of known length from a stream that comes in parts. */
export class PieceReader {
  readonly bytes: Uint8Array;
  #wanted: number;
  #length = 0;

  /** @param wanted length of the first piece */
  constructor(capacity: number, wanted: number) {
    this.bytes = new Uint8Array(capacity);
    this.#wanted = wanted;
  }

  get isComplete(): boolean {
    return this.#length === this.#wanted;
  }

  /** Starts the next piece. @param keep leaves what is there in place: the piece goes on up to `wanted` */
  want(wanted: number, keep = false): void {
    this.#wanted = Math.min(wanted, this.bytes.length);
    if (!keep) this.#length = 0;
  }

  /** Takes what the piece still lacks. @returns how many bytes were taken */
  add(from: Uint8Array, offset: number, end: number): number {
    const count = Math.min(this.#wanted - this.#length, end - offset);
    this.bytes.set(from.subarray(offset, offset + count), this.#length);
    this.#length += count;
    return count;
  }
}

/** Who gets the messages of the second phase. */
export interface UrbSink {
  /**
   * A header of {@link urbHeaderLength} bytes; only lent.
   * @returns how many bytes of data follow it; -1: it makes no sense, so where the next one starts is unknown
   */
  handleUrbHeader(bytes: Uint8Array, offset: number, nowUs: number): number;
  /** The next part of its data; only lent. */
  handleUrbData(bytes: Uint8Array, offset: number, length: number): void;
  /** Header and data are complete. */
  handleUrbEnd(nowUs: number): void;
}

/** Reads the second phase of a connection, from either side. */
export class UrbReader {
  readonly #sink: UrbSink;
  readonly #header = new PieceReader(urbHeaderLength, urbHeaderLength);
  /** Of the message that is being read; -1: its header is not complete. */
  #dataLeft = -1;
  #broken = false;

  constructor(sink: UrbSink) {
    this.#sink = sink;
  }

  /** @returns false: what came makes no sense, and the stream is of no use any more */
  read(bytes: Uint8Array, start: number, end: number, nowUs: number): boolean {
    let position = start;
    while (!this.#broken && position < end) {
      if (this.#dataLeft < 0) position = this.#readHeader(bytes, position, end, nowUs);
      else position = this.#readData(bytes, position, end);
      if (this.#dataLeft === 0) {
        this.#dataLeft = -1;
        this.#sink.handleUrbEnd(nowUs);
      }
    }
    return !this.#broken;
  }

  #readHeader(bytes: Uint8Array, position: number, end: number, nowUs: number): number {
    const next = position + this.#header.add(bytes, position, end);
    if (!this.#header.isComplete) return next;
    this.#header.want(urbHeaderLength);
    this.#dataLeft = this.#sink.handleUrbHeader(this.#header.bytes, 0, nowUs);
    if (this.#dataLeft < 0) this.#broken = true;
    return next;
  }

  #readData(bytes: Uint8Array, position: number, end: number): number {
    const count = Math.min(this.#dataLeft, end - position);
    this.#sink.handleUrbData(bytes, position, count);
    this.#dataLeft -= count;
    return position + count;
  }
}

/** More devices than this are no list. */
const maxListedDevices = 1024;

/**
 * What became of a reply.
 * - `more`: it is not complete
 * - `refused`: the server said no
 * - `other-version`: the server speaks another version of the protocol
 * - `nonsense`: this is no such reply
 */
export type OpReply<T> =
  | { readonly kind: 'more' }
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'other-version'; readonly version: number }
  | { readonly kind: 'nonsense' };

const more = { kind: 'more' } as const;
const nonsense = { kind: 'nonsense' } as const;

/** Anything but a reply that goes on after its header; undefined: it does. */
function checkReply(bytes: Uint8Array, code: number): Exclude<OpReply<never>, { kind: 'more' }> | undefined {
  const version = opVersion(bytes, 0);
  // What is no USB/IP at all has no version either: other versions have had the same form.
  if (opCode(bytes, 0) !== code) return nonsense;
  if (version !== usbipVersion) return { kind: 'other-version', version };
  const status = opStatus(bytes, 0);
  return status === opStatuses.ok ? undefined : { kind: 'refused', status };
}

/** Reads a server's list of devices. */
export class DeviceListReplyReader {
  readonly #piece = new PieceReader(deviceRecordLength, opHeaderLength);
  readonly #devices: UsbipListedDevice[] = [];
  #reading: 'header' | 'count' | 'device' | 'interface' = 'header';
  #devicesLeft = 0;
  #device: UsbipDevice | undefined;
  #interfaces: InterfaceTriple[] = [];

  read(bytes: Uint8Array): OpReply<readonly UsbipListedDevice[]> {
    let position = 0;
    for (;;) {
      position += this.#piece.add(bytes, position, bytes.length);
      if (!this.#piece.isComplete) return more;
      const reply = this.#handlePiece(this.#piece.bytes);
      if (reply !== undefined) return reply;
    }
  }

  #handlePiece(piece: Uint8Array): OpReply<readonly UsbipListedDevice[]> | undefined {
    switch (this.#reading) {
      case 'header':
        this.#reading = 'count';
        this.#piece.want(deviceListHeaderLength, true);
        return checkReply(piece, opCodes.replyDeviceList);
      case 'count':
        this.#devicesLeft = readUint32Be(piece, opHeaderLength);
        if (this.#devicesLeft > maxListedDevices) return nonsense;
        return this.#nextDevice();
      case 'device':
        this.#device = readDeviceRecord(piece, 0);
        this.#interfaces = [];
        return this.#nextInterface(this.#device);
      case 'interface':
        this.#interfaces.push(readTriple(piece, 0));
        return this.#device === undefined ? nonsense : this.#nextInterface(this.#device);
    }
  }

  #nextDevice(): OpReply<readonly UsbipListedDevice[]> | undefined {
    if (this.#devicesLeft === 0) return { kind: 'done', value: this.#devices };
    this.#devicesLeft--;
    this.#reading = 'device';
    this.#piece.want(deviceRecordLength);
    return undefined;
  }

  #nextInterface(device: UsbipDevice): OpReply<readonly UsbipListedDevice[]> | undefined {
    if (this.#interfaces.length === device.interfaceCount) {
      this.#devices.push({ ...device, interfaces: this.#interfaces });
      return this.#nextDevice();
    }
    this.#reading = 'interface';
    this.#piece.want(interfaceRecordLength);
    return undefined;
  }
}

/** Reads the reply to an import. What follows it in the stream belongs to the second phase: {@link consumed} says where. */
export class ImportReplyReader {
  readonly #piece = new PieceReader(opHeaderLength + deviceRecordLength, opHeaderLength);
  #hasHeader = false;
  /** Bytes of the last part that belonged to the reply. */
  consumed = 0;

  read(bytes: Uint8Array): OpReply<UsbipDevice> {
    this.consumed = 0;
    for (;;) {
      this.consumed += this.#piece.add(bytes, this.consumed, bytes.length);
      if (!this.#piece.isComplete) return more;
      if (this.#hasHeader) {
        return { kind: 'done', value: readDeviceRecord(this.#piece.bytes, opHeaderLength) };
      }
      this.#hasHeader = true;
      const reply = checkReply(this.#piece.bytes, opCodes.replyImport);
      if (reply !== undefined) return reply;
      this.#piece.want(opHeaderLength + deviceRecordLength, true);
    }
  }
}
