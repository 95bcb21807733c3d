import { errnoOfStatus, linuxErrno } from '../usbnet/linux-errno.ts';
import type { Transfer } from '../usbnet/transfer.ts';
import type {
  DeviceRequest,
  RequestResult,
  SubmitResult,
  Transport,
  TransportHandler,
} from '../usbnet/transport.ts';
import { readUint16Le } from '../wire/byte-order.ts';
import type { UrbSink } from '../wire/usbip-reader.ts';
import {
  urbBufferLength,
  urbCommand,
  urbCommands,
  urbDeviceId,
  urbEndpointAddress,
  urbFlags,
  urbHeaderLength,
  urbIsIn,
  urbIsIsochronous,
  urbPacketCount,
  urbSeqnum,
  urbSetupOffset,
  urbTransferFlags,
  urbUnlinkSeqnum,
  writeUrbSubmitReply,
  writeUrbUnlinkReply,
} from '../wire/usbip-urb.ts';
import type { OutputBuffer } from './output-buffer.ts';
import { standardRequests } from './sim-device.ts';

/** The longest transfer that makes sense: usbfs takes no more at a time, and drivers ask for far less. */
const maxUrbBytes = 16 * 1024 * 1024;
/** What one connection may have outstanding; beyond it transfers are refused for want of memory. */
const maxOutstandingUrbs = 8192;
const maxOutstandingBytes = 64 * 1024 * 1024;
/** Buffers are made for at least so much, so that they can be used again for other lengths. */
const leastBufferBytes = 2048;

const directionIn = 0x80;
const noUnlink = -1;
const empty = new Uint8Array(0);

/** How a host asks for the reset of a port: SET_FEATURE(PORT_RESET), to a hub. */
const portReset = { requestType: 0x23, request: standardRequests.setFeature, value: 4 } as const;

/** A bulk or interrupt transfer of the peer. */
interface ServedUrb {
  readonly transfer: Transfer;
  seqnum: number;
  packetCount: number;
  flags: number;
  /** The UNLINK that asked for its end. */
  unlinkSeqnum: number;
}

/** A control transfer of the peer. */
interface ControlUrb {
  readonly seqnum: number;
  readonly packetCount: number;
  readonly request: DeviceRequest;
  readonly isIn: boolean;
  readonly bufferLength: number;
}

/** What the peer has asked for, how it went, and how often it took back what it asked for. */
export class UrbCounters {
  submitted = 0;
  /** Refused: no such endpoint, or too much at a time. */
  refused = 0;
  completed = 0;
  /** Ended with anything but success; those that were unlinked are not among them. */
  failed = 0;
  unlinked = 0;
  /** UNLINKs that came too late. */
  unlinkedTooLate = 0;
}

/**
 * The transfers of a USB/IP connection, carried out on a device: this sits where a driver sits. Transfers of one endpoint
 * may be queued by the hundred; the bus serves them in order. Requests on endpoint 0 are carried out one after another.
 *
 * What is unlinked while it waits is ended, and answered with RET_UNLINK (-ECONNRESET) alone; what had ended by then keeps
 * its answer, and RET_UNLINK says 0.
 */
export class UrbServer implements UrbSink, TransportHandler {
  readonly counters = new UrbCounters();
  readonly #transport: Transport;
  readonly #deviceId: number;
  readonly #output: OutputBuffer;
  /** Endpoints of all altsettings. */
  readonly #endpoints: ReadonlySet<number>;
  readonly #pending = new Map<number, ServedUrb>();
  readonly #urbOf = new Map<Transfer, ServedUrb>();
  /** Those that are not out, by endpoint address. */
  readonly #free = new Map<number, ServedUrb[]>();
  #outstandingBytes = 0;

  readonly #controls: ControlUrb[] = [];
  #control: ControlUrb | undefined;
  /** The request that is out was unlinked: nobody waits for its result. */
  #controlAbandoned = false;
  #gone = false;

  // The message that is being read.
  #command = 0;
  #seqnum = 0;
  #packetCount = 0;
  #bufferLength = 0;
  #unlinkSeqnum = 0;
  /** Why it will not be carried out, a negative errno; 0: it will be. */
  #refusal = 0;
  #urb: ServedUrb | undefined;
  readonly #setup = new Uint8Array(8);
  #controlData = empty;
  #isIn = false;
  #dataLength = 0;

  constructor(transport: Transport, deviceId: number, output: OutputBuffer) {
    this.#transport = transport;
    this.#deviceId = deviceId;
    this.#output = output;
    const addresses = transport.device.configuration.interfaces.flatMap(({ altSettings }) =>
      altSettings.flatMap(({ endpoints }) => endpoints.map(({ address }) => address)),
    );
    this.#endpoints = new Set(addresses);
    transport.setHandler(this);
  }

  /** The device was unplugged. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Transfers that have not been answered. */
  get outstanding(): number {
    return this.#pending.size + this.#controls.length + (this.#control === undefined ? 0 : 1);
  }

  // ---- what comes from the peer ----

  handleUrbHeader(bytes: Uint8Array, offset: number): number {
    this.#command = urbCommand(bytes, offset);
    this.#seqnum = urbSeqnum(bytes, offset);
    if (urbDeviceId(bytes, offset) !== this.#deviceId) return -1;
    switch (this.#command) {
      case urbCommands.submit:
        return this.#beginSubmit(bytes, offset);
      case urbCommands.unlink:
        this.#unlinkSeqnum = urbUnlinkSeqnum(bytes, offset);
        return 0;
      default:
        return -1;
    }
  }

  #beginSubmit(bytes: Uint8Array, offset: number): number {
    const address = urbEndpointAddress(bytes, offset);
    const length = urbBufferLength(bytes, offset);
    if (address < 0 || length > maxUrbBytes || urbIsIsochronous(bytes, offset)) return -1;
    if (this.#pending.has(this.#seqnum)) return -1;
    this.#packetCount = urbPacketCount(bytes, offset);
    this.#bufferLength = length;
    this.#isIn = urbIsIn(bytes, offset);
    this.#dataLength = 0;
    this.#urb = undefined;
    this.#refusal = 0;
    this.counters.submitted++;
    const isControl = (address & ~directionIn) === 0;
    if (this.outstanding >= maxOutstandingUrbs || this.#outstandingBytes + length > maxOutstandingBytes) {
      this.#refusal = -linuxErrno.noMemory;
    } else if (isControl) {
      this.#setup.set(bytes.subarray(offset + urbSetupOffset, offset + urbSetupOffset + 8));
      this.#controlData = this.#isIn ? empty : new Uint8Array(length);
    } else if (this.#endpoints.has(address)) {
      this.#urb = this.#takeUrb(address, length);
      this.#urb.flags = urbTransferFlags(bytes, offset);
    } else {
      // Nothing answers there: what a host controller calls a protocol error.
      this.#refusal = -linuxErrno.protocol;
    }
    return this.#isIn ? 0 : length;
  }

  handleUrbData(bytes: Uint8Array, offset: number, length: number): void {
    if (this.#refusal !== 0) return;
    const to = this.#urb === undefined ? this.#controlData : this.#urb.transfer.buffer;
    to.set(bytes.subarray(offset, offset + length), this.#dataLength);
    this.#dataLength += length;
  }

  handleUrbEnd(nowUs: number): void {
    if (this.#command === urbCommands.unlink) this.#unlink(this.#seqnum, this.#unlinkSeqnum, nowUs);
    else if (this.#refusal !== 0) this.#refuse(this.#refusal);
    else if (this.#urb === undefined) this.#submitControl(nowUs);
    else this.#submit(this.#urb, nowUs);
  }

  #submit(urb: ServedUrb, nowUs: number): void {
    const { transfer } = urb;
    urb.seqnum = this.#seqnum;
    urb.packetCount = this.#packetCount;
    urb.unlinkSeqnum = noUnlink;
    transfer.length = this.#bufferLength;
    transfer.zeroPacket = (urb.flags & urbFlags.zeroPacket) !== 0;
    const result = this.#transport.submit(transfer, nowUs);
    if (result !== 'ok') {
      this.#giveUrb(urb);
      this.#refuse(errnoOfSubmit(result));
      return;
    }
    this.#outstandingBytes += transfer.length;
    this.#pending.set(urb.seqnum, urb);
  }

  #refuse(status: number): void {
    this.counters.refused++;
    this.#reply(this.#seqnum, status, 0, this.#packetCount);
  }

  #takeUrb(address: number, length: number): ServedUrb {
    const free = this.#free.get(address);
    for (let urb = free?.pop(); urb !== undefined; urb = free?.pop()) {
      if (urb.transfer.buffer.length >= length) return urb;
      // Too short for what this endpoint is used for now.
      this.#urbOf.delete(urb.transfer);
    }
    const transfer = this.#transport.makeTransfer(address, Math.max(length, leastBufferBytes), 0);
    const made: ServedUrb = { transfer, seqnum: 0, packetCount: 0, flags: 0, unlinkSeqnum: noUnlink };
    this.#urbOf.set(transfer, made);
    return made;
  }

  #giveUrb(urb: ServedUrb): void {
    const address = urb.transfer.endpointAddress;
    const free = this.#free.get(address);
    if (free === undefined) this.#free.set(address, [urb]);
    else free.push(urb);
  }

  // ---- endpoint 0 ----

  #submitControl(nowUs: number): void {
    this.#controls.push({
      seqnum: this.#seqnum,
      packetCount: this.#packetCount,
      request: requestOf(this.#setup, this.#controlData),
      isIn: this.#isIn,
      bufferLength: this.#bufferLength,
    });
    this.#nextControl(nowUs);
  }

  #nextControl(nowUs: number): void {
    if (this.#control !== undefined) return;
    this.#control = this.#controls.shift();
    this.#controlAbandoned = false;
    if (this.#control !== undefined) this.#transport.request(this.#control.request, nowUs);
  }

  // ---- unlinking ----

  #unlink(seqnum: number, target: number, nowUs: number): void {
    const urb = this.#pending.get(target);
    if (urb !== undefined && urb.unlinkSeqnum === noUnlink) {
      urb.unlinkSeqnum = seqnum;
      this.#transport.cancel(urb.transfer, nowUs);
      return;
    }
    if (this.#unlinkControl(target)) {
      this.counters.unlinked++;
      this.#replyToUnlink(seqnum, -linuxErrno.connectionReset);
      return;
    }
    this.counters.unlinkedTooLate++;
    this.#replyToUnlink(seqnum, 0);
  }

  /** A request that is out already goes on; but its result is not told. */
  #unlinkControl(target: number): boolean {
    if (this.#control?.seqnum === target && !this.#controlAbandoned) {
      this.#controlAbandoned = true;
      return true;
    }
    const index = this.#controls.findIndex(({ seqnum }) => seqnum === target);
    if (index < 0) return false;
    this.#controls.splice(index, 1);
    return true;
  }

  // ---- what comes from the device ----

  handleTransferDone(transfer: Transfer, _nowUs: number): void {
    const urb = this.#urbOf.get(transfer);
    if (urb === undefined) return;
    this.#pending.delete(urb.seqnum);
    this.#outstandingBytes -= transfer.length;
    const unlinking = urb.unlinkSeqnum !== noUnlink;
    if (unlinking && transfer.status === 'cancelled') {
      this.counters.unlinked++;
      this.#replyToUnlink(urb.unlinkSeqnum, -linuxErrno.connectionReset);
    } else {
      this.#replyToTransfer(urb, transfer);
      if (unlinking) {
        this.counters.unlinkedTooLate++;
        this.#replyToUnlink(urb.unlinkSeqnum, 0);
      }
    }
    this.#giveUrb(urb);
  }

  #replyToTransfer(urb: ServedUrb, transfer: Transfer): void {
    const { actualLength } = transfer;
    let status = errnoOfStatus(transfer.status);
    const tooShort = (urb.flags & urbFlags.shortNotOk) !== 0 && actualLength < transfer.length;
    if (status === 0 && transfer.isIn && tooShort) status = -linuxErrno.remoteIo;
    this.#reply(
      urb.seqnum,
      status,
      actualLength,
      urb.packetCount,
      transfer.isIn ? transfer.buffer : undefined,
    );
    this.#count(status);
  }

  handleRequestDone(result: RequestResult, nowUs: number): void {
    const control = this.#control;
    this.#control = undefined;
    if (control !== undefined && !this.#controlAbandoned) {
      const status = errnoOfStatus(result.status);
      const length = control.isIn
        ? Math.min(result.data.length, control.bufferLength)
        : status === 0
          ? control.bufferLength
          : 0;
      this.#reply(
        control.seqnum,
        status,
        length,
        control.packetCount,
        control.isIn ? result.data : undefined,
      );
      this.#count(status);
    }
    this.#nextControl(nowUs);
  }

  handleGone(_nowUs: number): void {
    this.#gone = true;
  }

  #count(status: number): void {
    if (status === 0) this.counters.completed++;
    else this.counters.failed++;
  }

  /** @param data of a transfer IN: what goes along are its first `actualLength` bytes */
  #reply(seqnum: number, status: number, actualLength: number, packetCount: number, data?: Uint8Array): void {
    const dataLength = data === undefined ? 0 : actualLength;
    const offset = this.#output.reserve(urbHeaderLength + dataLength);
    const { bytes } = this.#output;
    writeUrbSubmitReply(bytes, offset, seqnum, status, actualLength, packetCount);
    if (data !== undefined) bytes.set(data.subarray(0, dataLength), offset + urbHeaderLength);
  }

  #replyToUnlink(seqnum: number, status: number): void {
    const offset = this.#output.reserve(urbHeaderLength);
    writeUrbUnlinkReply(this.#output.bytes, offset, seqnum, status);
  }
}

function errnoOfSubmit(result: Exclude<SubmitResult, 'ok'>): number {
  switch (result) {
    case 'gone':
      return -linuxErrno.shutdown;
    case 'stall':
      return -linuxErrno.brokenPipe;
    case 'no-memory':
      return -linuxErrno.noMemory;
    case 'failed':
      // No altsetting in force has the endpoint: nothing answers there.
      return -linuxErrno.protocol;
  }
}

/** What a setup packet asks for. Whoever unlinks it does so when its own time is up, so it has none here. */
function requestOf(setup: Uint8Array, data: Uint8Array): DeviceRequest {
  const requestType = setup[0] ?? 0;
  const request = setup[1] ?? 0;
  const value = readUint16Le(setup, 2);
  const index = readUint16Le(setup, 4);
  const length = readUint16Le(setup, 6);
  const timeoutMs = 0;
  if (requestType === portReset.requestType && request === portReset.request && value === portReset.value) {
    return { kind: 'reset', timeoutMs };
  }
  return (requestType & directionIn) === 0
    ? { kind: 'control-out', requestType, request, value, index, data: data.subarray(0, length), timeoutMs }
    : { kind: 'control-in', requestType, request, value, index, length, timeoutMs };
}
