import { readUint16Le, readUint32Le, writeUint16Le, writeUint32Le } from './byte-order.ts';
import { cdcRequestTypes } from './cdc-class.ts';

/** CDC notifications: what a function says on its interrupt endpoint (spec 3.0). */

export const notificationHeaderLength = 8;
/** The data of a speed change: two 32-bit numbers. */
export const speedChangeDataLength = 8;

const notificationTypes = {
  networkConnection: 0x00,
  responseAvailable: 0x01,
  serialState: 0x20,
  speedChange: 0x2a,
} as const;

/** In the order of the CDC definition; cdc_ether of Linux takes the first one for the uplink (spec 3.1). */
export interface LinkSpeeds {
  readonly downlinkBitsPerSecond: number;
  readonly uplinkBitsPerSecond: number;
}

/** `interfaceNumber` is `wIndex`: the control interface. */
export type CdcNotification =
  | { readonly kind: 'network-connection'; readonly interfaceNumber: number; readonly connected: boolean }
  | { readonly kind: 'response-available'; readonly interfaceNumber: number }
  | {
      readonly kind: 'serial-state';
      readonly interfaceNumber: number;
      /** Undefined if the data did not come along. */
      readonly stateBits: number | undefined;
    }
  | {
      readonly kind: 'speed-change';
      readonly interfaceNumber: number;
      /** Undefined if the data did not come along: then they are the next thing that comes. */
      readonly speeds: LinkSpeeds | undefined;
    }
  | {
      readonly kind: 'other';
      readonly interfaceNumber: number;
      readonly notificationType: number;
      readonly value: number;
    };

/**
 * Reads the notification at the start of an interrupt transfer, or undefined if there are less than 8 bytes. As in
 * Linux, neither `bmRequestType` nor `wLength` is looked at.
 */
export function parseNotification(
  bytes: Uint8Array,
  offset: number,
  length: number,
): CdcNotification | undefined {
  if (length < notificationHeaderLength || offset < 0 || offset + length > bytes.length) return undefined;
  const notificationType = bytes[offset + 1] ?? 0;
  const value = readUint16Le(bytes, offset + 2);
  const interfaceNumber = readUint16Le(bytes, offset + 4);
  const dataOffset = offset + notificationHeaderLength;
  const dataLength = length - notificationHeaderLength;
  switch (notificationType) {
    case notificationTypes.networkConnection:
      return { kind: 'network-connection', interfaceNumber, connected: value !== 0 };
    case notificationTypes.responseAvailable:
      return { kind: 'response-available', interfaceNumber };
    case notificationTypes.serialState:
      return {
        kind: 'serial-state',
        interfaceNumber,
        stateBits: dataLength < 2 ? undefined : readUint16Le(bytes, dataOffset),
      };
    case notificationTypes.speedChange:
      return {
        kind: 'speed-change',
        interfaceNumber,
        speeds: parseSpeedChangeData(bytes, dataOffset, dataLength),
      };
    default:
      return { kind: 'other', interfaceNumber, notificationType, value };
  }
}

/** The data of a speed change, which some devices send in a transfer of their own. Undefined if less than 8 bytes. */
export function parseSpeedChangeData(
  bytes: Uint8Array,
  offset: number,
  length: number,
): LinkSpeeds | undefined {
  if (length < speedChangeDataLength || offset < 0 || offset + length > bytes.length) return undefined;
  return {
    downlinkBitsPerSecond: readUint32Le(bytes, offset),
    uplinkBitsPerSecond: readUint32Le(bytes, offset + 4),
  };
}

/** The bytes of a notification: 8, or 10 or 16 where data belong to it and are there. */
export function encodeNotification(notification: CdcNotification): Uint8Array {
  switch (notification.kind) {
    case 'network-connection':
      return withHeader(
        notificationTypes.networkConnection,
        notification.connected ? 1 : 0,
        notification.interfaceNumber,
        0,
        0,
      );
    case 'response-available':
      return withHeader(notificationTypes.responseAvailable, 0, notification.interfaceNumber, 0, 0);
    case 'serial-state': {
      const sent = notification.stateBits === undefined ? 0 : 2;
      const bytes = withHeader(notificationTypes.serialState, 0, notification.interfaceNumber, 2, sent);
      if (notification.stateBits !== undefined) {
        writeUint16Le(bytes, notificationHeaderLength, notification.stateBits);
      }
      return bytes;
    }
    case 'speed-change': {
      const { interfaceNumber, speeds } = notification;
      const sent = speeds === undefined ? 0 : speedChangeDataLength;
      const bytes = withHeader(
        notificationTypes.speedChange,
        0,
        interfaceNumber,
        speedChangeDataLength,
        sent,
      );
      if (speeds !== undefined) {
        writeUint32Le(bytes, notificationHeaderLength, speeds.downlinkBitsPerSecond);
        writeUint32Le(bytes, notificationHeaderLength + 4, speeds.uplinkBitsPerSecond);
      }
      return bytes;
    }
    case 'other':
      return withHeader(
        notification.notificationType,
        notification.value,
        notification.interfaceNumber,
        0,
        0,
      );
  }
}

/** @param sentLength how much of the data is sent along, of the `dataLength` that the header speaks of */
function withHeader(
  notificationType: number,
  value: number,
  interfaceNumber: number,
  dataLength: number,
  sentLength: number,
): Uint8Array {
  const bytes = new Uint8Array(notificationHeaderLength + sentLength);
  bytes[0] = cdcRequestTypes.in;
  bytes[1] = notificationType;
  writeUint16Le(bytes, 2, value);
  writeUint16Le(bytes, 4, interfaceNumber);
  writeUint16Le(bytes, 6, dataLength);
  return bytes;
}
