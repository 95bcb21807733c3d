import { readUint16Be, readUint32Be, writeUint16Be, writeUint32Be } from './byte-order.ts';
import { etherTypeIpv4 } from './ethernet.ts';
import { copyMacAddress, macAddressLength } from './mac-address.ts';

/** ARP for IPv4 over Ethernet (RFC 826). */
export const arpLength = 28;

export const arpRequest = 1;
export const arpReply = 2;

const hardwareEthernet = 1;
const ipv4AddressLength = 4;

const protocolOffset = 2;
const hardwareLengthOffset = 4;
const protocolLengthOffset = 5;
const operationOffset = 6;
const senderMacOffset = 8;
const senderIpOffset = 14;
const targetMacOffset = 18;
const targetIpOffset = 24;

/**
 * The length of the message, 28, or -1 unless it is a whole ARP message for IPv4 over Ethernet. Any operation is
 * accepted, and padding behind it.
 */
export function checkArp(bytes: Uint8Array, offset: number, length: number): number {
  if (length < arpLength || offset < 0 || offset + length > bytes.length) return -1;
  if (readUint16Be(bytes, offset) !== hardwareEthernet) return -1;
  if (readUint16Be(bytes, offset + protocolOffset) !== etherTypeIpv4) return -1;
  if (bytes[offset + hardwareLengthOffset] !== macAddressLength) return -1;
  if (bytes[offset + protocolLengthOffset] !== ipv4AddressLength) return -1;
  return arpLength;
}

/** {@link arpRequest}, {@link arpReply}, or something else that is to be ignored. */
export function arpOperation(bytes: Uint8Array, offset: number): number {
  return readUint16Be(bytes, offset + operationOffset);
}

export function copyArpSenderMac(bytes: Uint8Array, offset: number, to: Uint8Array): void {
  copyMacAddress(bytes, offset + senderMacOffset, to, 0);
}

export function arpSenderIp(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + senderIpOffset);
}

export function copyArpTargetMac(bytes: Uint8Array, offset: number, to: Uint8Array): void {
  copyMacAddress(bytes, offset + targetMacOffset, to, 0);
}

export function arpTargetIp(bytes: Uint8Array, offset: number): number {
  return readUint32Be(bytes, offset + targetIpOffset);
}

/** Writes a message and returns its length. The target MAC of a request is by custom all zeros. */
export function writeArp(
  bytes: Uint8Array,
  offset: number,
  operation: number,
  senderMac: Uint8Array,
  senderIp: number,
  targetMac: Uint8Array,
  targetIp: number,
): number {
  writeUint16Be(bytes, offset, hardwareEthernet);
  writeUint16Be(bytes, offset + protocolOffset, etherTypeIpv4);
  bytes[offset + hardwareLengthOffset] = macAddressLength;
  bytes[offset + protocolLengthOffset] = ipv4AddressLength;
  writeUint16Be(bytes, offset + operationOffset, operation);
  copyMacAddress(senderMac, 0, bytes, offset + senderMacOffset);
  writeUint32Be(bytes, offset + senderIpOffset, senderIp);
  copyMacAddress(targetMac, 0, bytes, offset + targetMacOffset);
  writeUint32Be(bytes, offset + targetIpOffset, targetIp);
  return arpLength;
}
