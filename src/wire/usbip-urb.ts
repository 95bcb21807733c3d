import { readUint32Be, writeUint32Be } from './byte-order.ts';

/**
 * USB/IP, the second phase of a connection: transfers of one device (spec 6.4). Every message is a header of 48 bytes,
 * big-endian but for the setup packet, and then the data that go in its direction. Accessors take the offset of the header.
 */

export const urbHeaderLength = 48;

export const urbCommands = { submit: 1, unlink: 2, submitReply: 3, unlinkReply: 4 } as const;

/** `transfer_flags`, Linux's numbers. */
export const urbFlags = {
  /** A transfer IN that ends short has failed. */
  shortNotOk: 0x0001,
  /** A transfer OUT that ends on a packet boundary is followed by an empty packet. */
  zeroPacket: 0x0040,
} as const;

const seqnumOffset = 4;
const deviceIdOffset = 8;
const directionOffset = 12;
const endpointOffset = 16;
const flagsOffset = 20;
const bufferLengthOffset = 24;
const packetCountOffset = 32;
const intervalOffset = 36;
const statusOffset = 20;
const actualLengthOffset = 24;
const unlinkSeqnumOffset = 20;
/** Where the setup packet of a control transfer is, relative to its header. */
export const urbSetupOffset = 40;

const directionIn = 1;
const endpointDirectionBit = 0x80;
const endpointNumberMask = 0x0f;

/** What stands for "not isochronous"; Linux's own client writes 0. */
export const noPacketCount = 0xffff_ffff;

/** Which device of the server a connection is about: its bus and its number there. */
export function deviceIdOf(busNumber: number, deviceNumber: number): number {
  return ((busNumber << 16) | (deviceNumber & 0xffff)) >>> 0;
}

export function urbCommand(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset);
}

export function urbSeqnum(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + seqnumOffset);
}

export function urbDeviceId(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + deviceIdOffset);
}

/** The direction field; replies may leave it at 0. */
export function urbIsIn(bytes: Uint8Array, offset: number): boolean {
  return readUint32Be(bytes, offset + directionOffset) === directionIn;
}

/** Number of the endpoint with the direction in bit 7; a number beyond 15 gives -1. */
export function urbEndpointAddress(bytes: Uint8Array, offset: number): number {
  const endpoint = readUint32Be(bytes, offset + endpointOffset);
  if (endpoint > endpointNumberMask) return -1;
  return urbIsIn(bytes, offset) ? endpoint | endpointDirectionBit : endpoint;
}

/** Of a SUBMIT. */
export function urbTransferFlags(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + flagsOffset);
}

/** Of a SUBMIT: the bytes to send, or to ask for. */
export function urbBufferLength(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + bufferLengthOffset);
}

/** Of a SUBMIT or its reply: packets of an isochronous transfer; else {@link noPacketCount} or 0. */
export function urbPacketCount(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + packetCountOffset);
}

export function urbIsIsochronous(bytes: Uint8Array, offset: number): boolean {
  const packets = urbPacketCount(bytes, offset);
  return packets !== 0 && packets !== noPacketCount;
}

/** Of a SUBMIT: between two polls of an interrupt endpoint, in frames (full speed) or microframes. */
export function urbInterval(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + intervalOffset);
}

/** Of a reply: 0, or a negative errno of Linux. */
export function urbStatus(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + statusOffset) | 0;
}

/** Of the reply to a SUBMIT. */
export function urbActualLength(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + actualLengthOffset);
}

/** Of an UNLINK: the SUBMIT that is to end. */
export function urbUnlinkSeqnum(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + unlinkSeqnumOffset);
}

/**
 * A SUBMIT that is not isochronous, with an empty setup packet; its data follow if it is OUT.
 * @param endpointAddress with the direction bit, also for endpoint 0
 * @param interval see {@link urbInterval}; 0 unless it is an interrupt transfer
 */
export function writeUrbSubmit(
  bytes: Uint8Array,
  offset: number,
  seqnum: number,
  deviceId: number,
  endpointAddress: number,
  flags: number,
  bufferLength: number,
  interval: number,
): void {
  writeBase(bytes, offset, urbCommands.submit, seqnum, deviceId, endpointAddress);
  writeUint32Be(bytes, offset + flagsOffset, flags);
  writeUint32Be(bytes, offset + bufferLengthOffset, bufferLength);
  writeUint32Be(bytes, offset + packetCountOffset, noPacketCount);
  writeUint32Be(bytes, offset + intervalOffset, interval);
}

/** The eight bytes of a setup packet, little-endian as on the bus, into a header. */
export function writeUrbSetup(
  bytes: Uint8Array,
  offset: number,
  requestType: number,
  request: number,
  value: number,
  index: number,
  length: number,
): void {
  const at = offset + urbSetupOffset;
  bytes[at] = requestType;
  bytes[at + 1] = request;
  bytes[at + 2] = value;
  bytes[at + 3] = value >>> 8;
  bytes[at + 4] = index;
  bytes[at + 5] = index >>> 8;
  bytes[at + 6] = length;
  bytes[at + 7] = length >>> 8;
}

/** @param unlinkSeqnum the SUBMIT that is to end */
export function writeUrbUnlink(
  bytes: Uint8Array,
  offset: number,
  seqnum: number,
  deviceId: number,
  endpointAddress: number,
  unlinkSeqnum: number,
): void {
  writeBase(bytes, offset, urbCommands.unlink, seqnum, deviceId, endpointAddress);
  writeUint32Be(bytes, offset + unlinkSeqnumOffset, unlinkSeqnum);
}

/** @param packetCount as it was in the SUBMIT */
export function writeUrbSubmitReply(
  bytes: Uint8Array,
  offset: number,
  seqnum: number,
  status: number,
  actualLength: number,
  packetCount: number,
): void {
  writeBase(bytes, offset, urbCommands.submitReply, seqnum, 0, 0);
  writeUint32Be(bytes, offset + statusOffset, status);
  writeUint32Be(bytes, offset + actualLengthOffset, actualLength);
  writeUint32Be(bytes, offset + packetCountOffset, packetCount);
}

export function writeUrbUnlinkReply(bytes: Uint8Array, offset: number, seqnum: number, status: number): void {
  writeBase(bytes, offset, urbCommands.unlinkReply, seqnum, 0, 0);
  writeUint32Be(bytes, offset + statusOffset, status);
}

function writeBase(
  bytes: Uint8Array,
  offset: number,
  command: number,
  seqnum: number,
  deviceId: number,
  endpointAddress: number,
): void {
  bytes.fill(0, offset, offset + urbHeaderLength);
  writeUint32Be(bytes, offset, command);
  writeUint32Be(bytes, offset + seqnumOffset, seqnum);
  writeUint32Be(bytes, offset + deviceIdOffset, deviceId);
  writeUint32Be(
    bytes,
    offset + directionOffset,
    (endpointAddress & endpointDirectionBit) === 0 ? 0 : directionIn,
  );
  writeUint32Be(bytes, offset + endpointOffset, endpointAddress & endpointNumberMask);
}
