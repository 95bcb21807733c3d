import type { DriverHost } from '../usbnet/minidriver.ts';
import type { Packet } from '../usbnet/packet.ts';
import type { Transfer } from '../usbnet/transfer.ts';
import { asixEmptyHeader, asixHeader, asixHeaderLength, asixRxLength } from '../wire/asix.ts';
import { readUint16Le, readUint32Le, writeUint32Le } from '../wire/byte-order.ts';

/**
 * Why received bytes were no frame. `bad-header`: its halves are no complements. `too-long`: its length is more than any
 * frame's. `out-of-sync`: where the next header should be is none, so the rest of a frame was lost. `odd-transfer`: bytes
 * are left over at its end, or missing.
 */
export type AsixFault = 'bad-header' | 'too-long' | 'out-of-sync' | 'odd-transfer';

/**
 * Fills a transfer with a packet behind its header (spec 3.8); where that would end on a packet boundary, a header of no
 * frame follows. Undefined, with the packet given up: there is no transfer.
 */
export function frameToAsix(
  host: DriverHost,
  packet: Packet | null,
  maxPacketBytes: number,
  nowUs: number,
): Transfer | undefined {
  if (packet === null) return undefined;
  const transfer = host.takeTxTransfer();
  if (transfer === undefined) {
    packet.release();
    // Usbnet counts what a driver without collecting gives up, but takes this one to collect.
    host.stats.txDropped++;
    return undefined;
  }
  const { buffer } = transfer;
  const length = asixHeaderLength + packet.length;
  writeUint32Le(buffer, 0, asixHeader(packet.length));
  buffer.set(packet.frame, asixHeaderLength);
  transfer.length = length;
  if (length % maxPacketBytes === 0) {
    writeUint32Le(buffer, length, asixEmptyHeader);
    transfer.length += asixHeaderLength;
  }
  transfer.payloadBytes = packet.length;
  transfer.addPacket(packet.tag, nowUs);
  packet.release();
  return transfer;
}

/**
 * Finds the frames in a stream of headers and frames that goes on from one transfer to the next (spec 3.8): a frame, and
 * even a header, may be cut in two. Each frame starts on an even offset. After a fault the next transfer is taken to start
 * with a header.
 */
export class AsixReader {
  readonly #host: DriverHost;
  readonly #maxFrameBytes: number;
  /** A frame that began in an earlier transfer, as far as it has come. */
  readonly #frame: Uint8Array;
  #frameBytes = 0;
  #missingBytes = 0;
  /** The first half of a header, or -1. */
  #headerHalf = -1;

  constructor(host: DriverHost, maxFrameBytes: number) {
    this.#host = host;
    this.#maxFrameBytes = maxFrameBytes;
    this.#frame = new Uint8Array(maxFrameBytes);
  }

  /** Forgets what has not come to its end. */
  reset(): void {
    this.#frameBytes = 0;
    this.#missingBytes = 0;
    this.#headerHalf = -1;
  }

  /** Reads on. False: a fault ended it; what was good before has been handed up. */
  read(buffer: Uint8Array, length: number, nowUs: number): boolean {
    if (this.#hasLostSync(buffer, length)) {
      // What follows may be good: the transfer may well start with a header.
      this.#host.stats.rxErrors++;
      this.#refuse('out-of-sync');
    }
    let offset = 0;
    while (offset + 2 <= length) {
      if (this.#missingBytes === 0) {
        if (length - offset === 2 && this.#headerHalf < 0) {
          this.#headerHalf = readUint16Le(buffer, offset);
          return true;
        }
        const headerBytes = this.#headerHalf < 0 ? asixHeaderLength : 2;
        if (headerBytes > length - offset) return this.#refuse('odd-transfer');
        const frameBytes = asixRxLength(this.#takeHeader(buffer, offset));
        offset += headerBytes;
        if (frameBytes < 0) return this.#refuse('bad-header');
        if (frameBytes > this.#maxFrameBytes) return this.#refuse('too-long');
        if (frameBytes === 0) continue;
        if (frameBytes <= length - offset) {
          this.#host.receive(buffer, offset, frameBytes, nowUs);
          offset += evenly(frameBytes);
          continue;
        }
        this.#missingBytes = frameBytes;
      }
      offset += evenly(this.#append(buffer, offset, length - offset, nowUs));
    }
    return offset === length || this.#refuse('odd-transfer');
  }

  /** Where the frame that is being put together ends there must be a header; if the transfer reaches that far. */
  #hasLostSync(buffer: Uint8Array, length: number): boolean {
    if (this.#missingBytes === 0) return false;
    const next = evenly(this.#missingBytes);
    return next + asixHeaderLength <= length && asixRxLength(readUint32Le(buffer, next)) < 0;
  }

  #takeHeader(buffer: Uint8Array, offset: number): number {
    if (this.#headerHalf < 0) return readUint32Le(buffer, offset);
    const header = (this.#headerHalf | (readUint16Le(buffer, offset) << 16)) >>> 0;
    this.#headerHalf = -1;
    return header;
  }

  /** Adds to the frame that is being put together, and hands it up if that was its end. @returns bytes taken */
  #append(buffer: Uint8Array, offset: number, available: number, nowUs: number): number {
    const bytes = Math.min(this.#missingBytes, available);
    this.#frame.set(buffer.subarray(offset, offset + bytes), this.#frameBytes);
    this.#frameBytes += bytes;
    this.#missingBytes -= bytes;
    if (this.#missingBytes === 0) {
      const frameBytes = this.#frameBytes;
      this.#frameBytes = 0;
      this.#host.receive(this.#frame, 0, frameBytes, nowUs);
    }
    return bytes;
  }

  #refuse(fault: AsixFault): false {
    this.#host.stats.countRxFault(fault);
    this.reset();
    return false;
  }
}

function evenly(bytes: number): number {
  return (bytes + 1) & ~1;
}
