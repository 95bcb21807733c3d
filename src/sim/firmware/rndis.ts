import { readUint32Le, writeUint32Le } from '../../wire/byte-order.ts';
import {
  cdcProtocols,
  cdcRequests,
  cdcRequestTypes,
  cdcSubclasses,
  packetFilterBits,
  usbClasses,
} from '../../wire/cdc-class.ts';
import { encodeCdcFunctional } from '../../wire/cdc-functional.ts';
import {
  encodeRndisMessage,
  parseRndisMessage,
  readRndisPackets,
  rndisFilterBits,
  type RndisMessage,
  rndisOids,
  rndisPacketHeaderLength,
  rndisStatuses,
  writeRndisPacketHeader,
} from '../../wire/rndis.ts';
import type { DeviceEndpoint } from '../device-endpoint.ts';
import { frameCapacityBytes, type FrameQueue } from '../frame.ts';
import type { SimSpeed } from '../sim-device.ts';
import {
  associatedDevice,
  associationOf,
  bulkEndpoints,
  bulkInPacketSize,
  cdcAddresses,
  cdcStrings,
  cdcVersion,
  statusEndpoint,
  stringIndices,
} from './cdc-descriptors.ts';
import { describeDevice, type DeviceIdentity, noExtra } from './device-description.ts';
import { CdcNetwork, type CdcNetworkOptions } from './cdc-network.ts';
import type { DeviceDescriptors, Firmware, SetupPacket } from './firmware.ts';
import { CdcMessageSink } from './cdc-message-sink.ts';
import { MessageSource } from './message-source.ts';
import { RndisResponses } from './rndis-responses.ts';

/**
 * Bad habits of devices in the field:
 * - `no-notification`: a response that is there is not announced
 * - `stale-answer`: before the answer comes one to a command that nobody gave
 * - `fragments`: responses come in pieces of 20 bytes
 * - `empty-answer`: the first time that an answer is asked for, there is nothing
 * - `short-answer`: the answer to INITIALIZE is cut off behind what matters, and still says that it is whole
 * - `lost-answer`: the answer to the first command of each kind never comes
 * - `asks-keep-alive`: it asks whether the host is there before it answers, and waits for that
 * - `long-header`: the data of a packet begin later than they must
 * - `filter-lost`: the packet filter is forgotten once the answer to it has been fetched, the first time
 */
export type RndisFault =
  | 'no-notification'
  | 'stale-answer'
  | 'fragments'
  | 'empty-answer'
  | 'short-answer'
  | 'lost-answer'
  | 'asks-keep-alive'
  | 'long-header'
  | 'filter-lost';

export interface RndisOptions {
  /** Which triple the control interface has: that of Microsoft's first devices, or that of Android's. */
  readonly triple?: 'acm' | 'wireless';
  /** Packets that may go to the host in one transfer; 1 if not given. */
  readonly packetsPerTransfer?: number;
  readonly faults?: readonly RndisFault[];
}

const acmTriple = [usbClasses.communications, cdcSubclasses.acm, cdcProtocols.vendor] as const;
const wirelessTriple = [usbClasses.wirelessController, 0x01, 0x03] as const;

const maxFrameBytes = 1514;
/** What Linux's gadget and QEMU tell the host: a frame, its header, and 22 bytes to spare (spec 6.1). */
const maxTransferBytes = maxFrameBytes + rndisPacketHeaderLength + 22;
/** What it has room for. */
const sinkBytes = frameCapacityBytes + rndisPacketHeaderLength + 1;
const longHeaderGap = 4;
const fragmentBytes = 20;
/** INITIALIZE_C up to and with MaxTransferSize. */
const shortInitializeBytes = 40;
const vendorId = 0x00ff_ffff;
const bitsPerSpeedUnit = 100;

const noData = new Uint8Array(0);

/** RNDIS, as Linux's gadget does it (spec 3.4, 6.2): the adapter is in use from the first packet filter that is not 0. */
export class RndisFirmware implements Firmware {
  readonly descriptors: DeviceDescriptors;
  readonly network: CdcNetwork;
  readonly #options: RndisOptions;
  readonly #macAddress: Uint8Array;
  readonly #linkBitsPerSecond: number;
  readonly #carrier: () => boolean;
  readonly #responses = new RndisResponses();
  readonly #out: CdcMessageSink;
  readonly #in: MessageSource;
  #initialized = false;
  /** The longest transfer that the host takes. */
  #hostBytes = maxTransferBytes;
  #filter = 0;
  #lostFilter = false;
  readonly #answeredKinds = new Set<string>();
  /** Fetched in vain before the next answer. */
  #emptyBefore = 0;
  /** Answers that wait for the host's keep-alive with that id. */
  #heldBack: { readonly requestId: number; readonly answers: Uint8Array[] } | undefined;
  #ownRequestId = 0x4b41_0000;

  constructor(
    speed: SimSpeed,
    identity: DeviceIdentity,
    options: CdcNetworkOptions,
    rndis: RndisOptions = {},
  ) {
    this.descriptors = rndisDescriptors(speed, identity, rndis.triple ?? 'wireless');
    this.#options = rndis;
    this.#macAddress = options.macAddress;
    this.#linkBitsPerSecond = options.network.link.downBitsPerSecond;
    this.#carrier = () => options.network.carrier;
    this.#responses.silent = this.#has('no-notification');
    const network = (): CdcNetwork => this.network;
    this.#out = new CdcMessageSink(network, sinkBytes, (bytes, length) => {
      const sendUp = (from: Uint8Array, offset: number, count: number): void =>
        this.#out.sendUp(from, offset, count);
      return readRndisPackets(bytes, length, sendUp) === 'ok';
    });
    this.#in = new MessageSource(network, bulkInPacketSize(this.descriptors), 65_536, (buffer, queue, take) =>
      this.#build(buffer, queue, take),
    );
    this.network = new CdcNetwork(options, this.#out, this.#in, this.#responses);
  }

  #has(fault: RndisFault): boolean {
    return this.#options.faults?.includes(fault) === true;
  }

  get endpoints(): readonly DeviceEndpoint[] {
    return this.network.endpoints;
  }

  handleRequest(setup: SetupPacket, data: Uint8Array, nowUs: number): Uint8Array | undefined {
    if (setup.index !== cdcAddresses.controlInterface) return undefined;
    const { requestType, request } = setup;
    if (requestType === cdcRequestTypes.out && request === cdcRequests.sendEncapsulatedCommand) {
      this.#handleCommand(parseRndisMessage(data), nowUs);
      return noData;
    }
    if (requestType === cdcRequestTypes.in && request === cdcRequests.getEncapsulatedResponse) {
      return this.#nextResponse(setup.length, nowUs);
    }
    return undefined;
  }

  #nextResponse(maxBytes: number, nowUs: number): Uint8Array | undefined {
    if (this.#emptyBefore > 0) {
      this.#emptyBefore--;
      return noData;
    }
    const response = this.#responses.take();
    // Nothing to say: refused.
    if (response === undefined) return undefined;
    if (this.#lostFilter && this.#has('filter-lost')) {
      this.#lostFilter = false;
      this.#setFilter(0, nowUs);
    }
    const count = Math.min(maxBytes, this.#has('fragments') ? fragmentBytes : response.length);
    if (count < response.length) this.#responses.putBack(response.subarray(count));
    return response.subarray(0, count);
  }

  #handleCommand(message: RndisMessage | undefined, nowUs: number): void {
    if (message?.kind === 'keep-alive-complete') {
      this.#release(message.requestId, nowUs);
      return;
    }
    const answer = message === undefined ? undefined : this.#carryOut(message, nowUs);
    if (message === undefined || answer === undefined) return;
    const isFirst = !this.#answeredKinds.has(message.kind);
    this.#answeredKinds.add(message.kind);
    if (isFirst && this.#has('lost-answer')) return;
    if (isFirst && message.kind === 'set') this.#lostFilter = true;
    let bytes = encodeRndisMessage(answer);
    if (answer.kind === 'initialize-complete' && this.#has('short-answer')) {
      bytes = bytes.subarray(0, shortInitializeBytes);
    }
    const answers = [bytes];
    if (this.#has('stale-answer')) {
      answers.unshift(
        encodeRndisMessage({ kind: 'set-complete', requestId: 0xdead, status: rndisStatuses.failure }),
      );
    }
    if (this.#has('empty-answer')) this.#emptyBefore = 1;
    if (this.#has('asks-keep-alive')) {
      const requestId = this.#ownRequestId++;
      this.#heldBack = { requestId, answers };
      this.#say([encodeRndisMessage({ kind: 'keep-alive', requestId })], nowUs);
      return;
    }
    this.#say(answers, nowUs);
  }

  #release(requestId: number, nowUs: number): void {
    if (this.#heldBack?.requestId !== requestId) return;
    const { answers } = this.#heldBack;
    this.#heldBack = undefined;
    this.#say(answers, nowUs);
  }

  #say(answers: readonly Uint8Array[], nowUs: number): void {
    for (const answer of answers) this.#responses.add(answer);
    this.network.notify(nowUs);
  }

  /** The answer; undefined: there is none to this command. */
  #carryOut(message: RndisMessage, nowUs: number): RndisMessage | undefined {
    switch (message.kind) {
      case 'initialize':
        this.#responses.clear();
        this.#setFilter(0, nowUs);
        this.#initialized = true;
        this.#hostBytes = message.maxTransferBytes;
        return {
          kind: 'initialize-complete',
          requestId: message.requestId,
          status: rndisStatuses.success,
          maxPacketsPerMessage: 1,
          maxTransferBytes,
          alignmentExponent: 0,
        };
      case 'halt':
        this.#reset(nowUs);
        return undefined;
      case 'query': {
        const information = this.#initialized ? this.#read(message.oid) : undefined;
        const status = information === undefined ? rndisStatuses.notSupported : rndisStatuses.success;
        return {
          kind: 'query-complete',
          requestId: message.requestId,
          status,
          information: information ?? noData,
        };
      }
      case 'set': {
        const { requestId } = message;
        const done = this.#initialized && this.#write(message.oid, message.information, nowUs);
        const status = done ? rndisStatuses.success : rndisStatuses.notSupported;
        return { kind: 'set-complete', requestId, status };
      }
      case 'reset':
        this.#setFilter(0, nowUs);
        return { kind: 'reset-complete', status: rndisStatuses.success, addressingReset: true };
      case 'keep-alive':
        return {
          kind: 'keep-alive-complete',
          requestId: message.requestId,
          status: rndisStatuses.success,
        };
      default:
        return undefined;
    }
  }

  #read(oid: number): Uint8Array | undefined {
    switch (oid) {
      case rndisOids.supportedList:
        return uint32(...readable);
      case rndisOids.permanentAddress:
      case rndisOids.currentAddress:
        return this.#macAddress;
      case rndisOids.vendorDescription:
        return Uint8Array.from('Queuescope\0', (character) => character.charCodeAt(0));
      case rndisOids.currentPacketFilter:
        return uint32(this.#filter);
      case rndisOids.linkSpeed:
        return uint32(Math.floor(this.#linkBitsPerSecond / bitsPerSpeedUnit));
      case rndisOids.mediaConnectStatus:
        return uint32(this.#carrier() ? 0 : 1);
      default: {
        const value = fixedValues.get(oid);
        return value === undefined ? undefined : uint32(value);
      }
    }
  }

  #write(oid: number, information: Uint8Array, nowUs: number): boolean {
    switch (oid) {
      case rndisOids.currentPacketFilter:
        if (information.length < 4) return false;
        this.#setFilter(readUint32Le(information, 0), nowUs);
        return true;
      case rndisOids.multicastList:
        return true;
      default:
        return false;
    }
  }

  #setFilter(filter: number, nowUs: number): void {
    this.#filter = filter;
    if (this.network.isOpen !== (filter !== 0)) this.#setOpen(filter !== 0, nowUs);
    if (filter !== 0) this.network.setPacketFilter(cdcFilterOf(filter));
  }

  handleSetInterface(): void {
    // There is one altsetting, and nothing to choose.
  }

  handleReset(nowUs: number): void {
    this.#reset(nowUs);
  }

  #reset(nowUs: number): void {
    this.#initialized = false;
    this.#filter = 0;
    this.#heldBack = undefined;
    this.#responses.clear();
    this.#setOpen(false, nowUs);
  }

  #setOpen(open: boolean, nowUs: number): void {
    this.#out.reset(nowUs);
    this.#in.reset();
    this.network.setOpen(open, nowUs);
  }

  #build(buffer: Uint8Array, queue: FrameQueue, take: () => void): number {
    const gap = this.#has('long-header') ? longHeaderGap : 0;
    const maxBytes = Math.min(buffer.length, this.#hostBytes);
    const maxFrames = this.#options.packetsPerTransfer ?? 1;
    let length = 0;
    let frames = 0;
    for (let frame = queue.peek(); frame !== undefined && frames < maxFrames; frame = queue.peek()) {
      const size = rndisPacketHeaderLength + gap + frame.length;
      if (length > 0 && length + size > maxBytes) break;
      writeRndisPacketHeader(buffer, length, frame.length);
      if (gap > 0) {
        writeUint32Le(buffer, length + 4, size);
        writeUint32Le(buffer, length + 8, readUint32Le(buffer, length + 8) + gap);
      }
      buffer.set(frame.bytes.subarray(0, frame.length), length + rndisPacketHeaderLength + gap);
      length += size;
      frames++;
      take();
    }
    return length;
  }
}

/** Objects with a value that never changes. */
const fixedValues: ReadonlyMap<number, number> = new Map([
  [rndisOids.hardwareStatus, 0],
  [rndisOids.mediaSupported, 0],
  [rndisOids.mediaInUse, 0],
  [rndisOids.maximumFrameSize, maxFrameBytes - 14],
  [rndisOids.transmitBlockSize, maxFrameBytes],
  [rndisOids.receiveBlockSize, maxFrameBytes],
  [rndisOids.maximumTotalSize, maxTransferBytes],
  [rndisOids.vendorId, vendorId],
  [rndisOids.vendorDriverVersion, 1],
  [rndisOids.physicalMedium, 0],
  [rndisOids.maximumListSize, 1],
]);
const readable: readonly number[] = [
  rndisOids.supportedList,
  ...fixedValues.keys(),
  rndisOids.linkSpeed,
  rndisOids.vendorDescription,
  rndisOids.currentPacketFilter,
  rndisOids.mediaConnectStatus,
  rndisOids.permanentAddress,
  rndisOids.currentAddress,
];

function uint32(...values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(4 * values.length);
  for (const [i, value] of values.entries()) writeUint32Le(bytes, 4 * i, value);
  return bytes;
}

function cdcFilterOf(filter: number): number {
  const pairs = [
    [rndisFilterBits.directed, packetFilterBits.directed],
    [rndisFilterBits.multicast, packetFilterBits.multicast],
    [rndisFilterBits.allMulticast, packetFilterBits.allMulticast],
    [rndisFilterBits.broadcast, packetFilterBits.broadcast],
    [rndisFilterBits.promiscuous, packetFilterBits.promiscuous],
  ] as const;
  return pairs.reduce((bits, [from, to]) => ((filter & from) === 0 ? bits : bits | to), 0);
}

function rndisDescriptors(
  speed: SimSpeed,
  identity: DeviceIdentity,
  triple: 'acm' | 'wireless',
): DeviceDescriptors {
  const { controlInterface, dataInterface } = cdcAddresses;
  const control = triple === 'acm' ? acmTriple : wirelessTriple;
  const [interfaceClass, interfaceSubclass, interfaceProtocol] = control;
  return describeDevice({
    speed,
    identity,
    deviceClass: associatedDevice,
    associations: [associationOf(control)],
    interfaces: [
      {
        number: controlInterface,
        altSettings: [
          {
            interfaceNumber: controlInterface,
            alternateSetting: 0,
            interfaceClass,
            interfaceSubclass,
            interfaceProtocol,
            nameIndex: stringIndices.control,
            endpoints: [statusEndpoint(speed)],
            extra: encodeCdcFunctional({
              header: { version: cdcVersion },
              callManagement: { capabilities: 0, dataInterface },
              acm: { capabilities: 0 },
              union: { controlInterface, dataInterfaces: [dataInterface] },
            }),
          },
        ],
      },
      {
        number: dataInterface,
        altSettings: [
          {
            interfaceNumber: dataInterface,
            alternateSetting: 0,
            interfaceClass: usbClasses.data,
            interfaceSubclass: 0,
            interfaceProtocol: 0,
            nameIndex: stringIndices.data,
            endpoints: bulkEndpoints(speed),
            extra: noExtra,
          },
        ],
      },
    ],
    strings: cdcStrings(identity, ['RNDIS Communications Control', 'RNDIS Ethernet Data']),
  });
}
