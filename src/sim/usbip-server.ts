import { neverUs, type Polled } from '../base/clock.ts';
import {
  busIdLength,
  encodeDeviceListReply,
  encodeImportReply,
  encodeOpHeader,
  opCode,
  opCodes,
  opHeaderLength,
  opImportRequestLength,
  opStatuses,
  opVersion,
  readBusId,
  usbipVersion,
} from '../wire/usbip.ts';
import { PieceReader, UrbReader } from '../wire/usbip-reader.ts';
import { OutputBuffer } from './output-buffer.ts';
import { UrbServer } from './urb-server.ts';
import type { UsbipExport, UsbipExports } from './usbip-exports.ts';

/**
 * One connection of a USB/IP server: bytes in, bytes out, without a clock or a socket. It begins with a question (which
 * devices are there, give me this one); after an import the rest of the stream are the transfers of that device, whose
 * simulation this drives.
 */
export class UsbipServerSession implements Polled {
  readonly #exports: UsbipExports;
  readonly #output = new OutputBuffer();
  readonly #question = new PieceReader(opHeaderLength + busIdLength, opHeaderLength);
  /** The header of the question has come, and was that of an import. */
  #wantsBusId = false;
  #export: UsbipExport | undefined;
  #urbs: UrbServer | undefined;
  #reader: UrbReader | undefined;
  #finished = false;
  #failure: string | undefined;

  constructor(exports: UsbipExports) {
    this.#exports = exports;
  }

  /** There is nothing more to say: the connection is to be closed once {@link takeOutput} has been sent. */
  get finished(): boolean {
    return this.#finished;
  }

  /** What was wrong with what came, in words for a log; undefined: nothing. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** The device that this connection has. */
  get attached(): UsbipExport | undefined {
    return this.#finished ? undefined : this.#export;
  }

  /** The transfers of that device. */
  get urbs(): UrbServer | undefined {
    return this.#urbs;
  }

  /** Bytes for the peer, if there are any. */
  takeOutput(): Uint8Array | undefined {
    return this.#output.take();
  }

  handleBytes(bytes: Uint8Array, nowUs: number): void {
    let position = 0;
    while (this.#reader === undefined && !this.#finished && position < bytes.length) {
      position += this.#question.add(bytes, position, bytes.length);
      if (this.#question.isComplete) this.#handleQuestion(this.#question.bytes, nowUs);
    }
    if (this.#finished || this.#reader === undefined) return;
    const makesSense = this.#reader.read(bytes, position, bytes.length, nowUs);
    if (!makesSense) this.#fail('a transfer that makes no sense');
  }

  /** The connection has ended, or is to end: the device is given back. */
  close(): void {
    this.#finished = true;
    this.#export?.release();
    this.#export = undefined;
  }

  // ---- the question ----

  #handleQuestion(bytes: Uint8Array, nowUs: number): void {
    const code = opCode(bytes, 0);
    if (code !== opCodes.requestDeviceList && code !== opCodes.requestImport) {
      this.#fail(`an unknown request (0x${code.toString(16)})`);
      return;
    }
    if (opVersion(bytes, 0) !== usbipVersion) {
      this.#output.append(encodeOpHeader(code & ~0x8000, opStatuses.error));
      this.#fail(`version 0x${opVersion(bytes, 0).toString(16)} of the protocol`);
      return;
    }
    if (code === opCodes.requestDeviceList) {
      this.#output.append(encodeDeviceListReply(this.#exports.list()));
      this.close();
      return;
    }
    if (!this.#wantsBusId) {
      this.#wantsBusId = true;
      this.#question.want(opImportRequestLength, true);
      return;
    }
    this.#import(readBusId(bytes, opHeaderLength), nowUs);
  }

  #import(busId: string, nowUs: number): void {
    const taken = this.#exports.take(busId, nowUs);
    if (typeof taken === 'string') {
      const status = taken === 'busy' ? opStatuses.busy : opStatuses.noSuchDevice;
      this.#output.append(encodeOpHeader(opCodes.replyImport, status));
      this.close();
      return;
    }
    this.#export = taken;
    this.#urbs = new UrbServer(taken.device.transport, taken.deviceId, this.#output);
    this.#reader = new UrbReader(this.#urbs);
    this.#output.append(encodeImportReply(taken.record));
  }

  #fail(failure: string): void {
    this.#failure = failure;
    this.close();
  }

  // ---- time ----

  poll(nowUs: number): void {
    for (const part of this.attached?.device.polled ?? []) {
      if (part.pollAtUs() <= nowUs) part.poll(nowUs);
    }
    if (this.#urbs?.gone === true) this.close();
  }

  pollAtUs(): number {
    let atUs = neverUs;
    for (const part of this.attached?.device.polled ?? []) atUs = Math.min(atUs, part.pollAtUs());
    return atUs;
  }
}
