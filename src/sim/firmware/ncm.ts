import {
  cdcProtocols,
  cdcRequests,
  cdcRequestTypes,
  cdcSubclasses,
  ncmCapabilityBits,
} from '../../wire/cdc-class.ts';
import { crc32 } from '../../wire/crc32.ts';
import { readUint32Le, writeUint16Le, writeUint32Le } from '../../wire/byte-order.ts';
import {
  encodeNtbParameters,
  ncmCrcSignatures,
  ncmSignatures,
  ntbFormatBits,
  type NtbFormat,
  ntbFormatValues,
  type NtbParameters,
} from '../../wire/ntb.ts';
import { NtbReader } from '../../wire/ntb-reader.ts';
import { NtbWriter } from '../../wire/ntb-writer.ts';
import type { DeviceEndpoint, OutSink } from '../device-endpoint.ts';
import { frameCapacityBytes, type FrameQueue } from '../frame.ts';
import type { SimSpeed } from '../sim-device.ts';
import { AtChannel } from './at-channel.ts';
import { bulkInPacketSize, cdcAddresses, cdcDescriptors } from './cdc-descriptors.ts';
import type { DeviceIdentity } from './device-description.ts';
import { CdcNetwork, type CdcNetworkOptions, minFrameBytes } from './cdc-network.ts';

import { CdcNotifier } from './cdc-notifier.ts';
import type { DeviceDescriptors, Firmware, SetupPacket } from './firmware.ts';
import { MessageSource } from './message-source.ts';
import { keepsRules, type NtbRules } from './ntb-rules.ts';

const ncmVersion = 0x0100;
const maxSegmentSize = 1514;
/** The least that a host may ask for (spec 3.0). */
const minInSize = 2048;
/** Datagrams in an NTB to the host, as Linux's gadget has it. */
const inMaxDatagrams = 32;
const crcLength = 4;
/** Divisor 4 and remainder 0 count for what follows the Ethernet header (spec 3.2, bind step 9). */
const alignment = 4;
const datagramRemainder = 2;

/** Vendor-specific; Linux knows it with Huawei's vendor id alone (spec 3.7). */
const huaweiTriple = [0xff, 0x02, 0x16] as const;

const noData = new Uint8Array(0);

/** What a device wants otherwise than Linux's gadget does; each is enforced on what the host does. */
export interface NcmOptions {
  /** NTBs that are laid out otherwise are malformed. The alignments are what its NTB parameters say. */
  readonly rules?: NtbRules;
  /** NTBs of the other format are malformed, and it can't be chosen. */
  readonly onlyFormat?: NtbFormat;
  /** Frames always carry a CRC: SET_CRC_MODE is refused. */
  readonly alwaysCrc?: boolean;
  /** An NTB that ends on a packet boundary ends with an empty packet, however long it is. */
  readonly needsEmptyPacket?: boolean;
  /**
   * `needed`: the function only starts once the data altsetting has been chosen and left again. `fatal`: it never works
   * again after that.
   */
  readonly toggle?: 'needed' | 'fatal';
  /** As Huawei's sticks have it: one vendor-specific interface, and AT commands beside the data. */
  readonly huawei?: {
    /** No data flow before the host has told it to connect. */
    readonly needsCall?: boolean;
  };
}

export interface NtbSizes {
  readonly inMaxBytes: number;
  readonly outMaxBytes: number;
}

/** What the host has chosen; it holds from one opening of the data interface to its closing. */
interface NtbState {
  format: NtbFormat;
  /** Frames carry a CRC-32 in the NTBs. */
  crc: boolean;
  /** `dwNtbInMaxSize` as the host has set it. */
  inBytes: number;
}

/**
 * CDC NCM, as Linux's gadget does it (spec 3.2, 6.2): frames packed into NTBs both ways. To the host, what waits when a
 * transfer is there to be filled goes into one NTB, so the aggregation grows with the load and a lone frame waits for
 * nothing.
 */
export class NcmFirmware implements Firmware {
  readonly descriptors: DeviceDescriptors;
  readonly network: CdcNetwork;
  readonly #sizes: NtbSizes;
  readonly #parameters: NtbParameters;
  readonly #state: NtbState;
  readonly #out: NcmSink;
  readonly #packer: NtbPacker;
  readonly #in: MessageSource;
  readonly #variant: NcmOptions;
  readonly #notifier: CdcNotifier;
  readonly #at: AtChannel | undefined;
  readonly #dataInterface: number;
  #altSetting = 0;
  /** How far the toggling of the altsetting has come since the reset. */
  #toggled: 'no' | 'chosen' | 'chosen-and-left' = 'no';
  #connected = false;

  constructor(
    speed: SimSpeed,
    identity: DeviceIdentity,
    options: CdcNetworkOptions,
    sizes: NtbSizes,
    variant: NcmOptions = {},
  ) {
    this.descriptors = cdcDescriptors({
      speed,
      identity,
      subclass: cdcSubclasses.ncm,
      dataProtocol: cdcProtocols.ncmNtb,
      maxSegmentSize,
      functional: {
        ncm: {
          version: ncmVersion,
          capabilities: ncmCapabilityBits.ethernetFilter | ncmCapabilityBits.crcMode,
        },
      },
      controlName: 'CDC Network Control Model (NCM)',
      dataName: 'CDC Network Data',
      ...(variant.huawei === undefined ? {} : { single: huaweiTriple }),
    });
    this.#variant = variant;
    this.#dataInterface =
      variant.huawei === undefined ? cdcAddresses.dataInterface : cdcAddresses.controlInterface;
    this.#notifier = new CdcNotifier(cdcAddresses.controlInterface, options.network.link);
    if (variant.huawei !== undefined) {
      this.#at = new AtChannel({
        isConnected: () => this.#connected,
        setConnected: (connected) => {
          this.#connected = connected;
        },
      });
    }
    const { rules = {}, onlyFormat } = variant;
    this.#sizes = sizes;
    this.#parameters = {
      formats:
        onlyFormat === undefined ? ntbFormatBits.ntb16 | ntbFormatBits.ntb32 : ntbFormatBits[onlyFormat],
      inMaxSize: sizes.inMaxBytes,
      inDivisor: alignment,
      inPayloadRemainder: 0,
      inAlignment: alignment,
      outMaxSize: sizes.outMaxBytes,
      outDivisor: rules.divisor ?? alignment,
      outPayloadRemainder: rules.remainder ?? 0,
      outAlignment: rules.ndpAlignment ?? alignment,
      outMaxDatagrams: 0,
    };
    this.#state = {
      format: onlyFormat ?? 'ntb16',
      crc: variant.alwaysCrc === true,
      inBytes: sizes.inMaxBytes,
    };
    this.#out = new NcmSink(() => this.network, this.#state, sizes.outMaxBytes, variant);
    this.#packer = new NtbPacker(this.#state);
    this.#in = new MessageSource(
      () => this.network,
      bulkInPacketSize(this.descriptors),
      sizes.inMaxBytes,
      (block, queue, take) => this.#packer.pack(block, queue, take),
      // One that fills the host's transfer ends by that.
      (length) => length === this.#state.inBytes,
    );
    this.network = new CdcNetwork(options, this.#out, this.#in, this.#notifier);
  }

  get endpoints(): readonly DeviceEndpoint[] {
    return this.network.endpoints;
  }

  handleRequest(setup: SetupPacket, data: Uint8Array, nowUs: number): Uint8Array | undefined {
    if (setup.index !== cdcAddresses.controlInterface) return undefined;
    if (this.#at !== undefined) {
      const { requestType, request } = setup;
      if (requestType === cdcRequestTypes.out && request === cdcRequests.sendEncapsulatedCommand) {
        this.#handleAt(this.#at, data, nowUs);
        return noData;
      }
      if (requestType === cdcRequestTypes.in && request === cdcRequests.getEncapsulatedResponse) {
        return this.#at.take(setup.length) ?? noData;
      }
    }
    switch (setup.requestType) {
      case cdcRequestTypes.in:
        return this.#get(setup.request);
      case cdcRequestTypes.out:
        return this.#set(setup.request, setup.value, data) ? noData : this.network.handleRequest(setup);
      default:
        return undefined;
    }
  }

  #handleAt(at: AtChannel, data: Uint8Array, nowUs: number): void {
    const wasConnected = this.#connected;
    this.#notifier.announceResponses(at.add(data));
    if (this.#connected !== wasConnected && this.#variant.huawei?.needsCall === true) {
      this.#applyAltSetting(nowUs);
    }
    this.network.notify(nowUs);
  }

  #get(request: number): Uint8Array | undefined {
    const { format, crc, inBytes } = this.#state;
    switch (request) {
      case cdcRequests.getNtbParameters:
        return encodeNtbParameters(this.#parameters);
      case cdcRequests.getNtbFormat:
        return uint16(format === 'ntb32' ? 1 : 0);
      case cdcRequests.getCrcMode:
        return uint16(crc ? 1 : 0);
      case cdcRequests.getNtbInputSize: {
        const bytes = new Uint8Array(4);
        writeUint32Le(bytes, 0, inBytes);
        return bytes;
      }
      default:
        return undefined;
    }
  }

  #set(request: number, value: number, data: Uint8Array): boolean {
    const state = this.#state;
    switch (request) {
      case cdcRequests.setNtbFormat:
        if (value > 1) return false;
        if (this.#variant.onlyFormat !== undefined) {
          return value === ntbFormatValues[this.#variant.onlyFormat];
        }
        state.format = value === 1 ? 'ntb32' : 'ntb16';
        return true;
      case cdcRequests.setCrcMode:
        if (value > 1 || this.#variant.alwaysCrc === true) return false;
        state.crc = value === 1;
        return true;
      case cdcRequests.setNtbInputSize: {
        const inBytes = readUint32Le(data, 0);
        if (data.length !== 4 || inBytes < minInSize || inBytes > this.#sizes.inMaxBytes) return false;
        state.inBytes = inBytes;
        return true;
      }
      default:
        return false;
    }
  }

  /** Closing the data interface, or opening it again, makes the host's choices void; what it chooses before the first
   *  opening holds. */
  handleSetInterface(interfaceNumber: number, alternateSetting: number, nowUs: number): void {
    if (interfaceNumber !== this.#dataInterface) return;
    if (this.network.isOpen) this.#resetState();
    this.#altSetting = alternateSetting;
    if (alternateSetting === 1 && this.#toggled === 'no') this.#toggled = 'chosen';
    if (alternateSetting === 0 && this.#toggled === 'chosen') this.#toggled = 'chosen-and-left';
    this.#applyAltSetting(nowUs);
  }

  #applyAltSetting(nowUs: number): void {
    const { toggle, huawei } = this.#variant;
    const starts = toggle === undefined || (toggle === 'needed') === (this.#toggled === 'chosen-and-left');
    const called = huawei?.needsCall !== true || this.#connected;
    this.#setOpen(this.#altSetting === 1 && starts && called, nowUs);
  }

  handleReset(nowUs: number): void {
    this.#altSetting = 0;
    this.#toggled = 'no';
    this.#connected = false;
    this.#at?.clear();
    this.#resetState();
    this.#setOpen(false, nowUs);
  }

  #resetState(): void {
    this.#state.format = this.#variant.onlyFormat ?? 'ntb16';
    this.#state.crc = this.#variant.alwaysCrc === true;
    this.#state.inBytes = this.#sizes.inMaxBytes;
  }

  #setOpen(open: boolean, nowUs: number): void {
    this.#out.reset(nowUs);
    this.#in.reset();
    this.#packer.restartSequence();
    this.network.setOpen(open, nowUs);
  }
}

function uint16(value: number): Uint8Array {
  const bytes = new Uint8Array(2);
  writeUint16Le(bytes, 0, value);
  return bytes;
}

/** Puts NTBs together from packets, and takes them apart. */
class NcmSink implements OutSink {
  readonly #network: () => CdcNetwork;
  readonly #state: NtbState;
  readonly #variant: NcmOptions;
  readonly #block: Uint8Array;
  readonly #readers: Readonly<Record<NtbFormat, NtbReader>>;
  /** Of the NTB so far. */
  #bytes = 0;
  /** Of the frames that were found in the NTB being taken apart. */
  #frameBytes = 0;
  #nowUs = 0;

  constructor(network: () => CdcNetwork, state: NtbState, maxBytes: number, variant: NcmOptions) {
    this.#variant = variant;
    this.#network = network;
    this.#state = state;
    this.#block = new Uint8Array(maxBytes);
    this.#readers = { ntb16: this.#makeReader('ntb16'), ntb32: this.#makeReader('ntb32') };
  }

  #makeReader(format: NtbFormat): NtbReader {
    return new NtbReader({
      format,
      maxNtbBytes: this.#block.length,
      acceptsSignature: (signature) =>
        signature === (this.#state.crc ? ncmCrcSignatures : ncmSignatures)[format],
      sink: { handleDatagram: (bytes, offset, length) => this.#handleDatagram(bytes, offset, length) },
    });
  }

  admit(wantedBytes: number, packetBytes: number): number {
    return this.#network().fifo.admit(wantedBytes, packetBytes);
  }

  receive(bytes: Uint8Array, offset: number, length: number, endOfMessage: boolean, nowUs: number): void {
    this.#network().fifo.add(length);
    const end = offset + length;
    const { needsEmptyPacket = false } = this.#variant;
    let from = offset;
    do {
      const room = Math.max(0, this.#block.length - this.#bytes);
      const taken = needsEmptyPacket ? end - from : Math.min(end - from, room);
      this.#block.set(
        bytes.subarray(from, from + Math.min(taken, room)),
        Math.min(this.#bytes, this.#block.length),
      );
      this.#bytes += taken;
      from += taken;
      // A host does not end the transfer of an NTB that is as large as can be: there is nothing more to come. If its
      // beginning belongs to an NTB that was broken off, all that follows is out of step, as in a real device.
      const isFull = this.#bytes === this.#block.length && !needsEmptyPacket;
      if (isFull || (from === end && endOfMessage)) this.#finish(nowUs);
    } while (from < end);
  }

  #finish(nowUs: number): void {
    const network = this.#network();
    const bytes = this.#bytes;
    this.#bytes = 0;
    this.#frameBytes = 0;
    this.#nowUs = nowUs;
    // The empty packet behind an NTB of full size.
    if (bytes === 0) return;
    network.counters.messagesFromHost++;
    if (!this.#read(bytes)) network.counters.malformedFromHost++;
    network.discard(bytes - this.#frameBytes, nowUs);
  }

  #read(bytes: number): boolean {
    if (bytes > this.#block.length) return false;
    const { format } = this.#state;
    const { rules } = this.#variant;
    if (rules !== undefined && !keepsRules(this.#block, bytes, format, rules)) return false;
    return this.#readers[format].read(this.#block, 0, bytes) === 'ok';
  }

  #handleDatagram(bytes: Uint8Array, offset: number, length: number): void {
    const network = this.#network();
    const frameLength = this.#state.crc ? length - crcLength : length;
    const good =
      frameLength >= minFrameBytes &&
      frameLength <= frameCapacityBytes &&
      (!this.#state.crc || crc32(bytes, offset, frameLength) === readUint32Le(bytes, offset + frameLength));
    if (!good) {
      network.counters.malformedFromHost++;
      return;
    }
    const frame = network.takeFrame();
    frame.bytes.set(bytes.subarray(offset, offset + frameLength));
    frame.length = frameLength;
    this.#frameBytes += frameLength;
    network.sendUp(frame, this.#nowUs);
  }

  reset(nowUs: number): void {
    const bytes = this.#bytes;
    this.#bytes = 0;
    this.#network().discard(bytes, nowUs);
    this.#readers.ntb16.restartSequence();
    this.#readers.ntb32.restartSequence();
  }
}

/** Packs what waits for the host into NTBs. */
class NtbPacker {
  readonly #state: NtbState;
  /** A frame and its CRC. */
  readonly #scratch = new Uint8Array(frameCapacityBytes + crcLength);
  readonly #writers: Readonly<Record<NtbFormat, NtbWriter>> = {
    ntb16: makeWriter('ntb16'),
    ntb32: makeWriter('ntb32'),
  };
  #sequence = 0;

  constructor(state: NtbState) {
    this.#state = state;
  }

  pack(block: Uint8Array, queue: FrameQueue, take: () => void): number {
    if (queue.length === 0) return 0;
    const { format, crc, inBytes } = this.#state;
    const writer = this.#writers[format];
    const signature = (crc ? ncmCrcSignatures : ncmSignatures)[format];
    writer.begin(block, inBytes, this.#sequence);
    for (let frame = queue.peek(); frame !== undefined; frame = queue.peek()) {
      let { bytes, length } = frame;
      if (crc) {
        this.#scratch.set(bytes.subarray(0, length));
        writeUint32Le(this.#scratch, length, crc32(bytes, 0, length));
        bytes = this.#scratch;
        length += crcLength;
      }
      if (!writer.tryAppend(signature, bytes, 0, length)) break;
      take();
    }
    this.#sequence = (this.#sequence + 1) & 0xffff;
    return writer.finish();
  }

  restartSequence(): void {
    this.#sequence = 0;
  }
}

function makeWriter(format: NtbFormat): NtbWriter {
  return new NtbWriter({
    format,
    ndpModulus: alignment,
    modulus: alignment,
    remainder: datagramRemainder,
    maxDatagrams: inMaxDatagrams,
    ndpToEnd: false,
  });
}
