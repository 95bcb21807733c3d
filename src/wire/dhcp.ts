import { readUint16Be, readUint32Be, writeUint16Be, writeUint32Be } from './byte-order.ts';
import { macAddressLength } from './mac-address.ts';

/** DHCP for IPv4 over Ethernet (RFC 2131, options RFC 2132, split options RFC 3396), in both directions. */

export const dhcpServerPort = 67;
export const dhcpClientPort = 68;

/** Option 53, in the order of its values from 1 on. */
export const dhcpMessageTypes = [
  'discover',
  'offer',
  'request',
  'decline',
  'ack',
  'nak',
  'release',
  'inform',
] as const;

export type DhcpMessageType = (typeof dhcpMessageTypes)[number];

/** Option codes, as they stand in {@link DhcpMessage.parameterRequestList}. */
export const dhcpOptionCodes = {
  subnetMask: 1,
  routers: 3,
  dnsServers: 6,
  hostName: 12,
  interfaceMtu: 26,
  requestedAddress: 50,
  leaseTime: 51,
  overload: 52,
  messageType: 53,
  serverIdentifier: 54,
  parameterRequestList: 55,
  maxMessageSize: 57,
  renewalTime: 58,
  rebindingTime: 59,
  clientIdentifier: 61,
} as const;

/** A message; addresses are numbers, 0 where there is none. An option that is absent was not sent. */
export interface DhcpMessage {
  readonly type: DhcpMessageType;
  /** From a client, or from a server. */
  readonly operation: 'request' | 'reply';
  readonly transactionId: number;
  readonly secondsElapsed: number;
  /** Asks the server to broadcast its answer. */
  readonly broadcast: boolean;
  readonly clientAddress: number;
  readonly yourAddress: number;
  readonly serverAddress: number;
  readonly relayAddress: number;
  readonly clientMac: Uint8Array;

  readonly subnetMask?: number;
  readonly routers?: readonly number[];
  readonly dnsServers?: readonly number[];
  /** One character a byte. */
  readonly hostName?: string;
  /** Bytes. */
  readonly interfaceMtu?: number;
  readonly requestedAddress?: number;
  /** 0xffffffff is for ever. */
  readonly leaseTimeSeconds?: number;
  readonly serverIdentifier?: number;
  readonly parameterRequestList?: readonly number[];
  /** Bytes. */
  readonly maxMessageSize?: number;
  readonly renewalTimeSeconds?: number;
  readonly rebindingTimeSeconds?: number;
  readonly clientIdentifier?: Uint8Array;
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

const operations = { request: 1, reply: 2 } as const;
const hardwareEthernet = 1;
const magicCookie = 0x6382_5363;
const broadcastFlag = 0x8000;
const optionPad = 0;
const optionEnd = 255;
const maxOptionLength = 255;

const fields = {
  hardwareType: 1,
  hardwareLength: 2,
  transactionId: 4,
  seconds: 8,
  flags: 10,
  clientAddress: 12,
  yourAddress: 16,
  serverAddress: 20,
  relayAddress: 24,
  hardwareAddress: 28,
  serverName: 44,
  file: 108,
  cookie: 236,
  options: 240,
} as const;

/** Bits of option 52: which of the fixed fields hold options too. */
const overloadFile = 1;
const overloadServerName = 2;

/** BOOTP relays and old servers drop what is shorter (RFC 1542 section 2.1). */
const minMessageLength = 300;

/**
 * Parses a UDP payload. Undefined if it is no DHCP message for Ethernet or is malformed: too short, another cookie, an
 * option that runs past its field, no message type or an unknown one. A missing end option is tolerated, and an option of
 * another kind whose length is wrong counts as not sent: the rest of a lease is still worth having.
 */
export function parseDhcpMessage(
  bytes: Uint8Array,
  offset = 0,
  length = bytes.length - offset,
): DhcpMessage | undefined {
  if (length < fields.options || offset < 0 || offset + length > bytes.length) return undefined;
  const message = bytes.subarray(offset, offset + length);
  const operation = message[0];
  if (operation !== operations.request && operation !== operations.reply) return undefined;
  if (message[fields.hardwareType] !== hardwareEthernet) return undefined;
  if (message[fields.hardwareLength] !== macAddressLength) return undefined;
  if (readUint32Be(message, fields.cookie) !== magicCookie) return undefined;

  const options = collectOptions(message);
  const typeData = options?.get(dhcpOptionCodes.messageType);
  if (options === undefined || typeData?.length !== 1) return undefined;
  const type = dhcpMessageTypes[(typeData[0] ?? 0) - 1];
  if (type === undefined) return undefined;

  const parsed: Writable<DhcpMessage> = {
    type,
    operation: operation === operations.request ? 'request' : 'reply',
    transactionId: readUint32Be(message, fields.transactionId),
    secondsElapsed: readUint16Be(message, fields.seconds),
    broadcast: (readUint16Be(message, fields.flags) & broadcastFlag) !== 0,
    clientAddress: readUint32Be(message, fields.clientAddress),
    yourAddress: readUint32Be(message, fields.yourAddress),
    serverAddress: readUint32Be(message, fields.serverAddress),
    relayAddress: readUint32Be(message, fields.relayAddress),
    clientMac: message.slice(fields.hardwareAddress, fields.hardwareAddress + macAddressLength),
  };
  for (const [code, data] of options) setOption(parsed, code, Uint8Array.from(data));
  return parsed;
}

function setOption(message: Writable<DhcpMessage>, code: number, data: Uint8Array): void {
  const is16Bits = data.length === 2;
  const is32Bits = data.length === 4;
  const isAddressList = data.length > 0 && data.length % 4 === 0;
  switch (code) {
    case dhcpOptionCodes.subnetMask:
      if (is32Bits) message.subnetMask = readUint32Be(data, 0);
      break;
    case dhcpOptionCodes.routers:
      if (isAddressList) message.routers = addressesOf(data);
      break;
    case dhcpOptionCodes.dnsServers:
      if (isAddressList) message.dnsServers = addressesOf(data);
      break;
    case dhcpOptionCodes.hostName: {
      // Some servers send the terminating zero of their own string along.
      const hostName = Array.from(data, (byte) => String.fromCharCode(byte))
        .join('')
        .replace(/\0+$/, '');
      if (hostName !== '') message.hostName = hostName;
      break;
    }
    case dhcpOptionCodes.interfaceMtu:
      if (is16Bits) message.interfaceMtu = readUint16Be(data, 0);
      break;
    case dhcpOptionCodes.requestedAddress:
      if (is32Bits) message.requestedAddress = readUint32Be(data, 0);
      break;
    case dhcpOptionCodes.leaseTime:
      if (is32Bits) message.leaseTimeSeconds = readUint32Be(data, 0);
      break;
    case dhcpOptionCodes.serverIdentifier:
      if (is32Bits) message.serverIdentifier = readUint32Be(data, 0);
      break;
    case dhcpOptionCodes.parameterRequestList:
      if (data.length > 0) message.parameterRequestList = Array.from(data);
      break;
    case dhcpOptionCodes.maxMessageSize:
      if (is16Bits) message.maxMessageSize = readUint16Be(data, 0);
      break;
    case dhcpOptionCodes.renewalTime:
      if (is32Bits) message.renewalTimeSeconds = readUint32Be(data, 0);
      break;
    case dhcpOptionCodes.rebindingTime:
      if (is32Bits) message.rebindingTimeSeconds = readUint32Be(data, 0);
      break;
    case dhcpOptionCodes.clientIdentifier:
      if (data.length > 0) message.clientIdentifier = data;
      break;
  }
}

function addressesOf(data: Uint8Array): number[] {
  return Array.from({ length: data.length / 4 }, (_, i) => readUint32Be(data, 4 * i));
}

/** The data of each option, parts of a split one joined; undefined if an option runs past its field. */
function collectOptions(message: Uint8Array): Map<number, number[]> | undefined {
  const options = new Map<number, number[]>();
  if (!addOptions(options, message.subarray(fields.options))) return undefined;
  // Joined in this order: options, file, server name (RFC 3396 section 5).
  const overload = options.get(dhcpOptionCodes.overload)?.[0] ?? 0;
  if ((overload & overloadFile) !== 0) {
    if (!addOptions(options, message.subarray(fields.file, fields.cookie))) return undefined;
  }
  if ((overload & overloadServerName) !== 0) {
    if (!addOptions(options, message.subarray(fields.serverName, fields.file))) return undefined;
  }
  return options;
}

function addOptions(options: Map<number, number[]>, field: Uint8Array): boolean {
  let position = 0;
  while (position < field.length) {
    const code = field[position++];
    if (code === optionEnd) return true;
    if (code === optionPad || code === undefined) continue;
    const length = field[position++];
    if (length === undefined || position + length > field.length) return false;
    const data = options.get(code) ?? [];
    for (const byte of field.subarray(position, position + length)) data.push(byte);
    options.set(code, data);
    position += length;
  }
  return true;
}

/** The UDP payload of a message, at least 300 bytes. Options longer than 255 bytes are split, empty ones left out. */
export function encodeDhcpMessage(message: DhcpMessage): Uint8Array {
  const options: number[] = [];
  addOption(options, dhcpOptionCodes.messageType, [dhcpMessageTypes.indexOf(message.type) + 1]);
  addUint32s(options, dhcpOptionCodes.serverIdentifier, message.serverIdentifier);
  addUint32s(options, dhcpOptionCodes.requestedAddress, message.requestedAddress);
  addUint32s(options, dhcpOptionCodes.leaseTime, message.leaseTimeSeconds);
  addUint32s(options, dhcpOptionCodes.renewalTime, message.renewalTimeSeconds);
  addUint32s(options, dhcpOptionCodes.rebindingTime, message.rebindingTimeSeconds);
  addUint32s(options, dhcpOptionCodes.subnetMask, message.subnetMask);
  addUint32s(options, dhcpOptionCodes.routers, ...(message.routers ?? []));
  addUint32s(options, dhcpOptionCodes.dnsServers, ...(message.dnsServers ?? []));
  addUint16(options, dhcpOptionCodes.interfaceMtu, message.interfaceMtu);
  addUint16(options, dhcpOptionCodes.maxMessageSize, message.maxMessageSize);
  addOption(options, dhcpOptionCodes.clientIdentifier, message.clientIdentifier ?? []);
  addOption(
    options,
    dhcpOptionCodes.hostName,
    Array.from({ length: message.hostName?.length ?? 0 }, (_, i) => message.hostName?.charCodeAt(i) ?? 0),
  );
  addOption(options, dhcpOptionCodes.parameterRequestList, message.parameterRequestList ?? []);
  options.push(optionEnd);

  const bytes = new Uint8Array(Math.max(minMessageLength, fields.options + options.length));
  bytes[0] = operations[message.operation];
  bytes[fields.hardwareType] = hardwareEthernet;
  bytes[fields.hardwareLength] = macAddressLength;
  writeUint32Be(bytes, fields.transactionId, message.transactionId);
  writeUint16Be(bytes, fields.seconds, message.secondsElapsed);
  writeUint16Be(bytes, fields.flags, message.broadcast ? broadcastFlag : 0);
  writeUint32Be(bytes, fields.clientAddress, message.clientAddress);
  writeUint32Be(bytes, fields.yourAddress, message.yourAddress);
  writeUint32Be(bytes, fields.serverAddress, message.serverAddress);
  writeUint32Be(bytes, fields.relayAddress, message.relayAddress);
  bytes.set(message.clientMac.subarray(0, macAddressLength), fields.hardwareAddress);
  writeUint32Be(bytes, fields.cookie, magicCookie);
  bytes.set(options, fields.options);
  return bytes;
}

function addOption(options: number[], code: number, data: ArrayLike<number>): void {
  for (let start = 0; start < data.length; start += maxOptionLength) {
    const end = Math.min(data.length, start + maxOptionLength);
    options.push(code, end - start);
    for (let i = start; i < end; i++) options.push(data[i] ?? 0);
  }
}

function addUint16(options: number[], code: number, value: number | undefined): void {
  if (value !== undefined) addOption(options, code, [value >>> 8, value & 0xff]);
}

function addUint32s(options: number[], code: number, ...values: readonly (number | undefined)[]): void {
  const data: number[] = [];
  for (const value of values) {
    if (value === undefined) continue;
    data.push(value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff);
  }
  addOption(options, code, data);
}
