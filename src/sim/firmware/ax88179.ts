import {
  ax88179Access,
  ax88179MediumBits,
  ax88179OffloadBits,
  ax88179PhyAddress,
  ax88179PhyPowerBits,
  ax88179PhyRegisters,
  ax88179PhyStatusBits,
  ax88179Registers,
  ax88179RxAlignment,
  ax88179RxControlBits,
  ax88179RxEntryBits,
  ax88179RxEntryLength,
  ax88179RxPrefixLength,
  ax88179RxTrailerLength,
  ax88179StatusLength,
  ax88179StatusLinkByte,
  ax88179TxHeaderBits,
  ax88179TxHeaderLength,
  ax88179UsbSpeedBits,
} from '../../wire/ax88179.ts';
import { readUint16Le, readUint32Le, writeUint16Le, writeUint32Le } from '../../wire/byte-order.ts';
import { macAddressLength } from '../../wire/mac-address.ts';
import type { DeviceEndpoint, InSource } from '../device-endpoint.ts';
import { frameCapacityBytes, type FrameQueue } from '../frame.ts';
import type { SimSpeed } from '../sim-device.ts';
import { adapterDescriptors, adapterPacketSizes } from './adapter-descriptors.ts';
import { type AdapterChip, AdapterNetwork } from './adapter-network.ts';
import type { DeviceNetworkOptions } from './device-network.ts';
import { MessageSink } from './message-sink.ts';
import { MessageSource } from './message-source.ts';
import type { DeviceIdentity } from './device-description.ts';
import { minFrameBytes } from './cdc-network.ts';
import type { DeviceDescriptors, Firmware, SetupPacket } from './firmware.ts';
import {
  FrameHeaders,
  ipChecksumIsGood,
  segmentTcp,
  transportChecksumIsGood,
  writeChecksums,
} from './frame-offload.ts';
import { MiiPhy } from './mii-phy.ts';
import { passesReceiveFilter } from './receive-filter.ts';

const requestTypes = { in: 0xc0, out: 0x40 } as const;
const deviceVersion = 0x0100;
const phyIdentifier = 0x001c_c915;
const registerFileBytes = 256;
const efuseBytes = 64;
/** EEPROM and eFuse hold nothing. */
const unprogrammed = 0xff;
/** The largest segment that a host may hand over to be cut, with its headers. */
const longestMessageBytes = 64 * 1024;
const bulkInSizeIndex = 3;
const defaultBulkIn = [0x07, 0x4f, 0x00, 0x12, 0xff] as const;
/** An entry for each frame is followed by one that stands for nothing, and the last word shares eight bytes with filler. */
const entryBytes = 2 * ax88179RxEntryLength;
const trailerBytes = 2 * ax88179RxTrailerLength;

const usbSpeedBits: Readonly<Record<SimSpeed, number>> = {
  full: ax88179UsbSpeedBits.full,
  high: ax88179UsbSpeedBits.high,
  super: ax88179UsbSpeedBits.super,
};

const noData = new Uint8Array(0);

/**
 * An AX88179: a gigabit chip with a register file, a PHY behind it, frames collected into transfers to the host, and a
 * chip's help with checksums and long TCP segments (spec 3.9).
 */
export class Ax88179Firmware implements Firmware, AdapterChip {
  readonly descriptors: DeviceDescriptors;
  readonly network: AdapterNetwork;
  readonly sink: MessageSink;
  readonly source: MessageSource;
  readonly status: InSource;
  readonly phy: MiiPhy;
  readonly #registers = new Uint8Array(registerFileBytes);
  readonly #ownAddress: Uint8Array;
  readonly #speed: SimSpeed;
  readonly #headers = new FrameHeaders();
  readonly #piece = new Uint8Array(frameCapacityBytes);
  readonly #sendPiece = (frame: Uint8Array, length: number): void => this.#sendFrame(frame, 0, length);
  /** Offsets and entries of the block that is being built. */
  readonly #entries: number[] = [];

  constructor(speed: SimSpeed, identity: DeviceIdentity, options: DeviceNetworkOptions) {
    this.#speed = speed;
    this.#ownAddress = identity.macAddress;
    this.descriptors = adapterDescriptors(speed, identity, deviceVersion);
    this.phy = new MiiPhy({
      identifier: phyIdentifier,
      gigabit: true,
      pageRegister: ax88179PhyRegisters.pageSelect,
      carrier: () => this.network.carrier,
    });
    this.sink = new MessageSink(
      () => this.network,
      longestMessageBytes,
      (bytes, length) => this.#handleMessage(bytes, length),
    );
    this.source = new MessageSource(
      () => this.network,
      adapterPacketSizes[speed],
      longestMessageBytes,
      (block, queue, take) => (queue.length === 0 ? 0 : this.#build(block, queue, take)),
    );
    this.status = {
      pendingBytes: () => ax88179StatusLength,
      transmit: (to, offset, length, nowUs) => {
        to.fill(0, offset, offset + length);
        to[offset + ax88179StatusLinkByte] = this.phy.linkUp(nowUs) ? 1 : 0;
      },
    };
    this.network = new AdapterNetwork(options, this);
    this.#setDefaults();
  }

  get endpoints(): readonly DeviceEndpoint[] {
    return this.network.endpoints;
  }

  #register(register: number): number {
    return readUint16Le(this.#registers, register);
  }

  // ---- requests ----

  handleRequest(setup: SetupPacket, data: Uint8Array, nowUs: number): Uint8Array | undefined {
    switch (setup.requestType) {
      case requestTypes.in:
        return this.#read(setup, nowUs);
      case requestTypes.out:
        return this.#write(setup, data, nowUs) ? noData : undefined;
      default:
        return undefined;
    }
  }

  #read({ request, value, index, length }: SetupPacket, nowUs: number): Uint8Array | undefined {
    switch (request) {
      case ax88179Access.mac:
        return value + length <= registerFileBytes ? this.#registers.slice(value, value + length) : undefined;
      case ax88179Access.phy: {
        if (value !== ax88179PhyAddress || length !== 2) return undefined;
        const bytes = new Uint8Array(2);
        writeUint16Le(bytes, 0, this.#readPhy(index, nowUs));
        return bytes;
      }
      case ax88179Access.eeprom:
        return new Uint8Array(2).fill(unprogrammed);
      case ax88179Access.efuse:
        return new Uint8Array(efuseBytes).fill(unprogrammed);
      case ax88179Access.memory:
        // Nothing is left.
        return new Uint8Array(4);
      default:
        return undefined;
    }
  }

  #readPhy(register: number, nowUs: number): number {
    const atPage0 = this.phy.read(ax88179PhyRegisters.pageSelect, nowUs) === 0;
    if (register !== ax88179PhyRegisters.specificStatus || !atPage0) return this.phy.read(register, nowUs);
    if (!this.phy.linkUp(nowUs)) return 0;
    const { speedMbit, fullDuplex } = this.phy.mode();
    let bits: number = ax88179PhyStatusBits.linkUp;
    if (speedMbit === 1000) bits |= ax88179PhyStatusBits.gigabit;
    if (speedMbit === 100) bits |= ax88179PhyStatusBits.speed100;
    return fullDuplex ? bits | ax88179PhyStatusBits.fullDuplex : bits;
  }

  #write({ request, value, index }: SetupPacket, data: Uint8Array, nowUs: number): boolean {
    switch (request) {
      case ax88179Access.mac:
        return this.#writeRegisters(value, data, nowUs);
      case ax88179Access.phy:
        if (value !== ax88179PhyAddress || data.length !== 2) return false;
        this.phy.write(index, readUint16Le(data, 0), nowUs);
        return true;
      default:
        return false;
    }
  }

  #writeRegisters(register: number, data: Uint8Array, nowUs: number): boolean {
    if (register + data.length > registerFileBytes) return false;
    const { usbLink, phyPower, sromCommand, sromData } = ax88179Registers;
    this.#registers.set(data, register);
    // What can't be written.
    this.#registers[usbLink] = usbSpeedBits[this.#speed];
    this.#registers[sromCommand] = 0;
    this.#registers.fill(unprogrammed, sromData, sromData + 2);
    this.phy.setPower((this.#register(phyPower) & ax88179PhyPowerBits.on) !== 0, nowUs);
    this.#updateReceiver();
    return true;
  }

  #updateReceiver(): void {
    const started = (this.#register(ax88179Registers.rxControl) & ax88179RxControlBits.start) !== 0;
    const receives = (this.#register(ax88179Registers.medium) & ax88179MediumBits.receive) !== 0;
    this.network.setReceiving(started && receives);
  }

  handleSetInterface(): void {
    // There is only the one altsetting, and choosing it changes nothing.
  }

  handleReset(nowUs: number): void {
    this.#setDefaults();
    this.phy.setPower(false, nowUs);
    this.sink.reset(nowUs);
    this.source.reset();
    this.#updateReceiver();
  }

  #setDefaults(): void {
    const { usbLink, nodeId, bulkInControl, sromData } = ax88179Registers;
    this.#registers.fill(0);
    this.#registers[usbLink] = usbSpeedBits[this.#speed];
    this.#registers.set(this.#ownAddress, nodeId);
    this.#registers.set(defaultBulkIn, bulkInControl);
    this.#registers.fill(unprogrammed, sromData, sromData + 2);
  }

  // ---- from the host ----

  #handleMessage(bytes: Uint8Array, length: number): boolean {
    if (length < ax88179TxHeaderLength) return false;
    const frameLength = readUint32Le(bytes, 0);
    const options = readUint32Le(bytes, 4);
    const padding = (options & ax88179TxHeaderBits.padded) >>> 0 === ax88179TxHeaderBits.padded ? 1 : 0;
    if (frameLength < minFrameBytes || ax88179TxHeaderLength + frameLength + padding !== length) return false;
    const frame = bytes.subarray(ax88179TxHeaderLength, ax88179TxHeaderLength + frameLength);
    const segmentBytes = options & ax88179TxHeaderBits.segmentMask;
    if (segmentBytes === 0) {
      if (frameLength > frameCapacityBytes) return false;
      this.#sendFrame(frame, 0, frameLength);
      return true;
    }
    this.#headers.parse(frame, frameLength);
    return segmentTcp(frame, this.#headers, segmentBytes, this.#piece, this.#sendPiece);
  }

  #sendFrame(frame: Uint8Array, offset: number, length: number): void {
    const offload = this.#registers[ax88179Registers.txOffload] ?? 0;
    if (offload !== 0) {
      const headers = this.#offloadHeaders;
      headers.parse(frame, length);
      writeChecksums(frame, headers, offloaded(offload, headers));
    }
    this.sink.sendUp(frame, offset, length);
  }
  /** Of a piece of a segment, while the headers of the whole are still needed. */
  readonly #offloadHeaders = new FrameHeaders();

  // ---- to the host ----

  passes(bytes: Uint8Array): boolean {
    const { nodeId, rxControl, multicastFilter } = ax88179Registers;
    return passesReceiveFilter(
      this.#register(rxControl),
      bytes,
      this.#registers.subarray(nodeId, nodeId + macAddressLength),
      this.#registers.subarray(multicastFilter, multicastFilter + 8),
    );
  }

  /** As many frames as the host wants in one transfer, a table of them, and where that is. */
  #build(block: Uint8Array, queue: FrameQueue, take: () => void): number {
    const kibibytes = this.#registers[ax88179Registers.bulkInControl + bulkInSizeIndex] ?? 0;
    const maxBytes = Math.max(frameCapacityBytes + trailerBytes + 2 * entryBytes, 1024 * kibibytes);
    const aligned = (this.#register(ax88179Registers.rxControl) & ax88179RxControlBits.alignIp) !== 0;
    const prefix = aligned ? ax88179RxPrefixLength : 0;
    this.#entries.length = 0;
    let offset = 0;
    for (let frame = queue.peek(); frame !== undefined; frame = queue.peek()) {
      const { bytes, length } = frame;
      const next = roundUp(offset + prefix + length);
      if (next + (this.#entries.length + 1) * entryBytes + trailerBytes > maxBytes) break;
      block.fill(0, offset, offset + prefix);
      block.set(bytes.subarray(0, length), offset + prefix);
      block.fill(0, offset + prefix + length, next);
      this.#entries.push(
        (((prefix + length) << ax88179RxEntryBits.lengthShift) | this.#receiveBits(bytes, length)) >>> 0,
      );
      offset = next;
      take();
    }
    const table = offset;
    for (const entry of this.#entries) {
      writeUint32Le(block, offset, entry);
      writeUint32Le(block, offset + ax88179RxEntryLength, ax88179RxEntryBits.dropped);
      offset += entryBytes;
    }
    writeUint32Le(block, offset, 0);
    writeUint32Le(block, offset + ax88179RxTrailerLength, ((table << 16) | (2 * this.#entries.length)) >>> 0);
    return offset + trailerBytes;
  }

  /** What the chip found out of a frame's checksums, if it is to. */
  #receiveBits(bytes: Uint8Array, length: number): number {
    const offload = this.#registers[ax88179Registers.rxOffload] ?? 0;
    if (offload === 0) return 0;
    const headers = this.#headers;
    headers.parse(bytes, length);
    const which = offloaded(offload, headers);
    const { l3ChecksumBad, l4ChecksumBad, tcp, udp } = ax88179RxEntryBits;
    let bits = which.ip && !ipChecksumIsGood(bytes, headers) ? l3ChecksumBad : 0;
    const { protocol } = headers;
    if (protocol === undefined || !which[protocol]) return bits;
    bits |= protocol === 'tcp' ? tcp : udp;
    return transportChecksumIsGood(bytes, headers) ? bits : bits | l4ChecksumBad;
  }
}

function offloaded(
  bits: number,
  { ipVersion }: FrameHeaders,
): { readonly ip: boolean; readonly tcp: boolean; readonly udp: boolean } {
  const { ip, tcp, udp, tcp6, udp6 } = ax88179OffloadBits;
  return {
    ip: (bits & ip) !== 0,
    tcp: (bits & (ipVersion === 4 ? tcp : tcp6)) !== 0,
    udp: (bits & (ipVersion === 4 ? udp : udp6)) !== 0,
  };
}

function roundUp(bytes: number): number {
  return (bytes + ax88179RxAlignment - 1) & ~(ax88179RxAlignment - 1);
}
