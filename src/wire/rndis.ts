import { readUint32Le, writeUint32Le } from './byte-order.ts';

/**
 * RNDIS (spec 3.4): control messages, which travel in encapsulated commands and responses of CDC, and the header of a
 * packet on the bulk endpoints. Every number is a 32-bit one, little-endian; offsets inside a message count from its
 * byte 8.
 */

/** `MessageType`. */
export const rndisMessageTypes = {
  packet: 0x0000_0001,
  initialize: 0x0000_0002,
  halt: 0x0000_0003,
  query: 0x0000_0004,
  set: 0x0000_0005,
  reset: 0x0000_0006,
  indicate: 0x0000_0007,
  keepAlive: 0x0000_0008,
} as const;
/** Added to the type of a request in its answer. */
const completion = 0x8000_0000;

export const rndisStatuses = {
  success: 0x0000_0000,
  mediaConnect: 0x4001_000b,
  mediaDisconnect: 0x4001_000c,
  notSupported: 0xc000_00bb,
  failure: 0xc000_0001,
  invalidData: 0xc001_0015,
} as const;

/** Object identifiers, as many as a network adapter is asked for. */
export const rndisOids = {
  supportedList: 0x0001_0101,
  hardwareStatus: 0x0001_0102,
  mediaSupported: 0x0001_0103,
  mediaInUse: 0x0001_0104,
  maximumFrameSize: 0x0001_0106,
  /** In units of 100 bits per second. */
  linkSpeed: 0x0001_0107,
  transmitBlockSize: 0x0001_010a,
  receiveBlockSize: 0x0001_010b,
  vendorId: 0x0001_010c,
  vendorDescription: 0x0001_010d,
  currentPacketFilter: 0x0001_010e,
  maximumTotalSize: 0x0001_0111,
  /** 0: connected. */
  mediaConnectStatus: 0x0001_0114,
  vendorDriverVersion: 0x0001_0116,
  physicalMedium: 0x0001_0202,
  permanentAddress: 0x0101_0101,
  currentAddress: 0x0101_0102,
  multicastList: 0x0101_0103,
  maximumListSize: 0x0101_0104,
} as const;

/** Bits of {@link rndisOids.currentPacketFilter}. */
export const rndisFilterBits = {
  directed: 0x01,
  multicast: 0x02,
  allMulticast: 0x04,
  broadcast: 0x08,
  promiscuous: 0x20,
} as const;

/** `DeviceFlags`, and `Medium` of an Ethernet adapter. */
export const rndisConnectionless = 1;
export const rndisMedium8023 = 0;

export const rndisVersion = { major: 1, minor: 0 } as const;

/** The longest control message; GET_ENCAPSULATED_RESPONSE asks for one byte more (spec 3.4). */
export const maxRndisControlBytes = 1024;

/** A control message; `requestId` is what an answer repeats. */
export type RndisMessage =
  | {
      readonly kind: 'initialize';
      readonly requestId: number;
      /** The longest transfer that the host takes. */
      readonly maxTransferBytes: number;
    }
  | {
      readonly kind: 'initialize-complete';
      readonly requestId: number;
      readonly status: number;
      readonly maxPacketsPerMessage: number;
      /** The longest transfer that the device takes; 0 in an answer that ends before it. */
      readonly maxTransferBytes: number;
      /** Messages in one transfer begin at multiples of two to this power. */
      readonly alignmentExponent: number;
    }
  | { readonly kind: 'halt'; readonly requestId: number }
  | {
      readonly kind: 'query';
      readonly requestId: number;
      readonly oid: number;
      readonly information: Uint8Array;
    }
  | {
      readonly kind: 'set';
      readonly requestId: number;
      readonly oid: number;
      readonly information: Uint8Array;
    }
  | {
      readonly kind: 'query-complete';
      readonly requestId: number;
      readonly status: number;
      /** Undefined if it is said to lie outside of the message. */
      readonly information: Uint8Array | undefined;
    }
  | { readonly kind: 'set-complete'; readonly requestId: number; readonly status: number }
  | { readonly kind: 'keep-alive-complete'; readonly requestId: number; readonly status: number }
  | { readonly kind: 'reset' }
  | { readonly kind: 'reset-complete'; readonly status: number; readonly addressingReset: boolean }
  | { readonly kind: 'indicate'; readonly status: number }
  | { readonly kind: 'keep-alive'; readonly requestId: number };

export type RndisKind = RndisMessage['kind'];

const types: Readonly<Record<RndisKind, number>> = {
  initialize: rndisMessageTypes.initialize,
  'initialize-complete': rndisMessageTypes.initialize + completion,
  halt: rndisMessageTypes.halt,
  query: rndisMessageTypes.query,
  'query-complete': rndisMessageTypes.query + completion,
  set: rndisMessageTypes.set,
  'set-complete': rndisMessageTypes.set + completion,
  reset: rndisMessageTypes.reset,
  'reset-complete': rndisMessageTypes.reset + completion,
  indicate: rndisMessageTypes.indicate,
  'keep-alive': rndisMessageTypes.keepAlive,
  'keep-alive-complete': rndisMessageTypes.keepAlive + completion,
};
const kinds: ReadonlyMap<number, RndisKind> = new Map(
  (Object.keys(types) as RndisKind[]).map((kind) => [types[kind], kind]),
);

/** Whole lengths, without the information where there is some. */
const lengths: Readonly<Record<RndisKind, number>> = {
  initialize: 24,
  'initialize-complete': 52,
  halt: 12,
  query: 28,
  'query-complete': 24,
  set: 28,
  'set-complete': 16,
  reset: 12,
  'reset-complete': 16,
  indicate: 20,
  'keep-alive': 12,
  'keep-alive-complete': 16,
};
/** Of an answer that is cut off, the least that says something: id and status. */
const leastLengths: Readonly<Partial<Record<RndisKind, number>>> = {
  'initialize-complete': 16,
  'query-complete': 16,
  'reset-complete': 12,
  indicate: 12,
};

export const rndisHeaderLength = 8;
/** Where offsets inside a message are counted from. */
const offsetBase = 8;

/** What the header of a message says: undefined if there is none, or if no message could be like that. */
export function readRndisHeader(
  bytes: Uint8Array,
): { readonly kind: RndisKind; readonly length: number } | undefined {
  if (bytes.length < rndisHeaderLength) return undefined;
  const kind = kinds.get(readUint32Le(bytes, 0));
  const length = readUint32Le(bytes, 4);
  if (kind === undefined || length < rndisHeaderLength || length > maxRndisControlBytes) return undefined;
  return { kind, length };
}

/**
 * Reads a control message. An answer may end early, as some devices' do: what is missing is 0. Undefined if it is no
 * message, or too short to be one. The length that it says it has is not looked at.
 */
export function parseRndisMessage(bytes: Uint8Array): RndisMessage | undefined {
  if (bytes.length < rndisHeaderLength) return undefined;
  const kind = kinds.get(readUint32Le(bytes, 0));
  if (kind === undefined || bytes.length < (leastLengths[kind] ?? lengths[kind])) return undefined;
  const requestId = readUint32Le(bytes, 8);
  switch (kind) {
    case 'initialize':
      return { kind, requestId, maxTransferBytes: readUint32Le(bytes, 20) };
    case 'initialize-complete':
      return {
        kind,
        requestId,
        status: readUint32Le(bytes, 12),
        maxPacketsPerMessage: readUint32Le(bytes, 32),
        maxTransferBytes: readUint32Le(bytes, 36),
        alignmentExponent: readUint32Le(bytes, 40),
      };
    case 'query':
    case 'set': {
      const information = informationOf(bytes, readUint32Le(bytes, 20), readUint32Le(bytes, 16));
      if (information === undefined) return undefined;
      return { kind, requestId, oid: readUint32Le(bytes, 12), information };
    }
    case 'query-complete':
      return {
        kind,
        requestId,
        status: readUint32Le(bytes, 12),
        information: informationOf(bytes, readUint32Le(bytes, 20), readUint32Le(bytes, 16)),
      };
    case 'set-complete':
    case 'keep-alive-complete':
      return { kind, requestId, status: readUint32Le(bytes, 12) };
    case 'halt':
    case 'keep-alive':
      return { kind, requestId };
    case 'reset':
      return { kind };
    case 'reset-complete':
      return { kind, status: requestId, addressingReset: readUint32Le(bytes, 12) !== 0 };
    case 'indicate':
      return { kind, status: requestId };
  }
}

function informationOf(bytes: Uint8Array, offset: number, length: number): Uint8Array | undefined {
  if (length === 0) return new Uint8Array(0);
  const begin = offsetBase + offset;
  return begin + length > bytes.length ? undefined : bytes.slice(begin, begin + length);
}

/** The bytes of a control message. Information has at most 996 of them. */
export function encodeRndisMessage(message: RndisMessage): Uint8Array {
  const { kind } = message;
  const fixed = lengths[kind];
  const information = 'information' in message ? message.information : undefined;
  const bytes = new Uint8Array(fixed + (information?.length ?? 0));
  writeUint32Le(bytes, 0, types[kind]);
  writeUint32Le(bytes, 4, bytes.length);
  if ('requestId' in message) writeUint32Le(bytes, 8, message.requestId);
  switch (kind) {
    case 'initialize':
      writeUint32Le(bytes, 12, rndisVersion.major);
      writeUint32Le(bytes, 16, rndisVersion.minor);
      writeUint32Le(bytes, 20, message.maxTransferBytes);
      break;
    case 'initialize-complete':
      writeUint32Le(bytes, 12, message.status);
      writeUint32Le(bytes, 16, rndisVersion.major);
      writeUint32Le(bytes, 20, rndisVersion.minor);
      writeUint32Le(bytes, 24, rndisConnectionless);
      writeUint32Le(bytes, 28, rndisMedium8023);
      writeUint32Le(bytes, 32, message.maxPacketsPerMessage);
      writeUint32Le(bytes, 36, message.maxTransferBytes);
      writeUint32Le(bytes, 40, message.alignmentExponent);
      break;
    case 'query':
    case 'set':
      writeUint32Le(bytes, 12, message.oid);
      writeUint32Le(bytes, 16, message.information.length);
      writeUint32Le(bytes, 20, fixed - offsetBase);
      break;
    case 'query-complete':
      writeUint32Le(bytes, 12, message.status);
      writeUint32Le(bytes, 16, information?.length ?? 0);
      writeUint32Le(bytes, 20, information === undefined ? 0 : fixed - offsetBase);
      break;
    case 'set-complete':
    case 'keep-alive-complete':
      writeUint32Le(bytes, 12, message.status);
      break;
    case 'reset-complete':
      writeUint32Le(bytes, 8, message.status);
      writeUint32Le(bytes, 12, message.addressingReset ? 1 : 0);
      break;
    case 'indicate':
      writeUint32Le(bytes, 8, message.status);
      break;
    default:
      break;
  }
  if (information !== undefined) bytes.set(information, fixed);
  return bytes;
}

// ---- packets on the bulk endpoints ----

/** What stands in front of every packet. */
export const rndisPacketHeaderLength = 44;

/** Writes the header of a packet of `length` bytes that follows it. */
export function writeRndisPacketHeader(bytes: Uint8Array, offset: number, length: number): void {
  bytes.fill(0, offset, offset + rndisPacketHeaderLength);
  writeUint32Le(bytes, offset, rndisMessageTypes.packet);
  writeUint32Le(bytes, offset + 4, rndisPacketHeaderLength + length);
  writeUint32Le(bytes, offset + 8, rndisPacketHeaderLength - offsetBase);
  writeUint32Le(bytes, offset + 12, length);
}

/** Where the packets of a transfer go: `length` bytes from `offset`, which lie within the transfer. */
export type RndisPacketSink = (bytes: Uint8Array, offset: number, length: number) => void;

/**
 * How the reading of a transfer ended; packets before the fault have been handed out by then.
 * - `short`: no room for the header of a packet
 * - `not-a-packet`: a message of another type
 * - `bad-length`: a message that is shorter than its header, or longer than the transfer
 * - `bad-data`: data that are said to lie outside of their message
 */
export type RndisReadResult = 'ok' | 'short' | 'not-a-packet' | 'bad-length' | 'bad-data';

/**
 * Takes the packets out of a transfer. There may be several, each with out-of-band data and gaps as it likes; zeros behind
 * the last one that are no header are padding, such as the byte that keeps a transfer off a packet boundary.
 */
export function readRndisPackets(bytes: Uint8Array, length: number, sink: RndisPacketSink): RndisReadResult {
  const end = Math.min(length, bytes.length);
  let position = 0;
  do {
    if (position > 0 && isPadding(bytes, position, end)) return 'ok';
    if (end - position < rndisPacketHeaderLength) return 'short';
    if (readUint32Le(bytes, position) !== rndisMessageTypes.packet) return 'not-a-packet';
    const messageLength = readUint32Le(bytes, position + 4);
    if (messageLength < rndisPacketHeaderLength || position + messageLength > end) return 'bad-length';
    const dataOffset = offsetBase + readUint32Le(bytes, position + 8);
    const dataLength = readUint32Le(bytes, position + 12);
    if (dataOffset + dataLength > messageLength) return 'bad-data';
    sink(bytes, position + dataOffset, dataLength);
    position += messageLength;
  } while (position < end);
  return 'ok';
}

function isPadding(bytes: Uint8Array, position: number, end: number): boolean {
  // The first byte of a header is never 0.
  if (bytes[position] !== 0) return false;
  for (let i = position + 1; i < end; i++) if (bytes[i] !== 0) return false;
  return true;
}
