import { readUint16Be, readUint32Be, writeUint16Be, writeUint32Be } from './byte-order.ts';

/**
 * USB/IP, the first phase of a connection: who asks, for which device (spec 6.4). All fields are big-endian. What follows
 * a successful import is in `usbip-urb.ts`.
 */

/** The TCP port of a server. */
export const usbipPort = 3240;
/** Protocol 1.1.1, the only one there has been since 2011. */
export const usbipVersion = 0x0111;

export const opCodes = {
  requestDeviceList: 0x8005,
  replyDeviceList: 0x0005,
  requestImport: 0x8003,
  replyImport: 0x0003,
} as const;

/** The status of a reply; 0 in a request. Linux's tools know these. */
export const opStatuses = {
  ok: 0,
  notAvailable: 1,
  busy: 2,
  deviceError: 3,
  noSuchDevice: 4,
  error: 5,
} as const;

const codeOffset = 2;
const statusOffset = 4;
export const opHeaderLength = 8;
export const busIdLength = 32;
export const opImportRequestLength = opHeaderLength + busIdLength;
/** Before the devices of a list: header and count. */
export const deviceListHeaderLength = opHeaderLength + 4;

const pathLength = 256;
const busNumberOffset = pathLength + busIdLength;
const deviceNumberOffset = busNumberOffset + 4;
const speedOffset = deviceNumberOffset + 4;
const vendorIdOffset = speedOffset + 4;
const productIdOffset = vendorIdOffset + 2;
const deviceVersionOffset = productIdOffset + 2;
const classOffset = deviceVersionOffset + 2;
const configurationValueOffset = classOffset + 3;
const configurationCountOffset = configurationValueOffset + 1;
const interfaceCountOffset = configurationCountOffset + 1;
/** A device in a list or in the reply to an import. */
export const deviceRecordLength = interfaceCountOffset + 1;
/** Each interface of a device in a list: its class triple, and a byte of padding. */
export const interfaceRecordLength = 4;

/** Linux's numbers of the speeds (`enum usb_device_speed`). */
const speeds = ['unknown', 'low', 'full', 'high', 'wireless', 'super', 'super-plus'] as const;
export type UsbipSpeed = (typeof speeds)[number];

/** The class triple of an interface: class, subclass, protocol. */
export type InterfaceTriple = readonly [number, number, number];

/** A device as a server describes it. */
export interface UsbipDevice {
  /** Where the server's system keeps it; for people. */
  readonly path: string;
  /** What it is asked for by: `1-1.4`. */
  readonly busId: string;
  readonly busNumber: number;
  readonly deviceNumber: number;
  readonly speed: UsbipSpeed;
  readonly vendorId: number;
  readonly productId: number;
  readonly deviceVersion: number;
  readonly deviceClass: InterfaceTriple;
  /** Of the active configuration; 0: the device is not configured. */
  readonly configurationValue: number;
  readonly configurationCount: number;
  readonly interfaceCount: number;
}

/** A device in a list, with the interfaces of its active configuration. */
export interface UsbipListedDevice extends UsbipDevice {
  readonly interfaces: readonly InterfaceTriple[];
}

export function opVersion(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset);
}

export function opCode(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + codeOffset);
}

export function opStatus(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + statusOffset);
}

export function writeOpHeader(bytes: Uint8Array, offset: number, code: number, status: number): void {
  writeUint16Be(bytes, offset, usbipVersion);
  writeUint16Be(bytes, offset + codeOffset, code);
  writeUint32Be(bytes, offset + statusOffset, status);
}

/** A header by itself: the request for the list, or a reply that says no. */
export function encodeOpHeader(code: number, status: number = opStatuses.ok): Uint8Array {
  const bytes = new Uint8Array(opHeaderLength);
  writeOpHeader(bytes, 0, code, status);
  return bytes;
}

export function encodeImportRequest(busId: string): Uint8Array {
  const bytes = new Uint8Array(opImportRequestLength);
  writeOpHeader(bytes, 0, opCodes.requestImport, opStatuses.ok);
  writeText(bytes, opHeaderLength, busIdLength, busId);
  return bytes;
}

/** The `busid` that starts at `offset`. */
export function readBusId(bytes: Uint8Array, offset: number): string {
  return readText(bytes, offset, busIdLength);
}

export function encodeImportReply(device: UsbipDevice): Uint8Array {
  const bytes = new Uint8Array(opHeaderLength + deviceRecordLength);
  writeOpHeader(bytes, 0, opCodes.replyImport, opStatuses.ok);
  writeDeviceRecord(bytes, opHeaderLength, device);
  return bytes;
}

export function encodeDeviceListReply(devices: readonly UsbipListedDevice[]): Uint8Array {
  let length = deviceListHeaderLength;
  for (const { interfaces } of devices) {
    length += deviceRecordLength + interfaces.length * interfaceRecordLength;
  }
  const bytes = new Uint8Array(length);
  writeOpHeader(bytes, 0, opCodes.replyDeviceList, opStatuses.ok);
  writeUint32Be(bytes, opHeaderLength, devices.length);
  let position = deviceListHeaderLength;
  for (const device of devices) {
    writeDeviceRecord(bytes, position, { ...device, interfaceCount: device.interfaces.length });
    position += deviceRecordLength;
    for (const triple of device.interfaces) {
      bytes.set(triple, position);
      position += interfaceRecordLength;
    }
  }
  return bytes;
}

/** The device whose {@link deviceRecordLength} bytes start at `offset`. */
export function readDeviceRecord(bytes: Uint8Array, offset: number): UsbipDevice {
  return {
    path: readText(bytes, offset, pathLength),
    busId: readText(bytes, offset + pathLength, busIdLength),
    busNumber: readUint32Be(bytes, offset + busNumberOffset),
    deviceNumber: readUint32Be(bytes, offset + deviceNumberOffset),
    speed: speeds[readUint32Be(bytes, offset + speedOffset)] ?? 'unknown',
    vendorId: readUint16Be(bytes, offset + vendorIdOffset),
    productId: readUint16Be(bytes, offset + productIdOffset),
    deviceVersion: readUint16Be(bytes, offset + deviceVersionOffset),
    deviceClass: readTriple(bytes, offset + classOffset),
    configurationValue: bytes[offset + configurationValueOffset] ?? 0,
    configurationCount: bytes[offset + configurationCountOffset] ?? 0,
    interfaceCount: bytes[offset + interfaceCountOffset] ?? 0,
  };
}

export function readTriple(bytes: Uint8Array, offset: number): InterfaceTriple {
  return [bytes[offset] ?? 0, bytes[offset + 1] ?? 0, bytes[offset + 2] ?? 0];
}

function writeDeviceRecord(bytes: Uint8Array, offset: number, device: UsbipDevice): void {
  writeText(bytes, offset, pathLength, device.path);
  writeText(bytes, offset + pathLength, busIdLength, device.busId);
  writeUint32Be(bytes, offset + busNumberOffset, device.busNumber);
  writeUint32Be(bytes, offset + deviceNumberOffset, device.deviceNumber);
  writeUint32Be(bytes, offset + speedOffset, speeds.indexOf(device.speed));
  writeUint16Be(bytes, offset + vendorIdOffset, device.vendorId);
  writeUint16Be(bytes, offset + productIdOffset, device.productId);
  writeUint16Be(bytes, offset + deviceVersionOffset, device.deviceVersion);
  bytes.set(device.deviceClass, offset + classOffset);
  bytes[offset + configurationValueOffset] = device.configurationValue;
  bytes[offset + configurationCountOffset] = device.configurationCount;
  bytes[offset + interfaceCountOffset] = device.interfaceCount;
}

const firstPrintable = 0x20;
const lastPrintable = 0x7e;

/** Text up to the first zero byte; what is not printable ASCII is shown as a question mark. */
function readText(bytes: Uint8Array, offset: number, maxLength: number): string {
  let text = '';
  for (let i = 0; i < maxLength; i++) {
    const code = bytes[offset + i] ?? 0;
    if (code === 0) break;
    text += code >= firstPrintable && code <= lastPrintable ? String.fromCharCode(code) : '?';
  }
  return text;
}

/** Cut off where it has no room with a zero byte behind it. */
function writeText(bytes: Uint8Array, offset: number, maxLength: number, text: string): void {
  for (let i = 0; i < Math.min(text.length, maxLength - 1); i++) bytes[offset + i] = text.charCodeAt(i);
}
