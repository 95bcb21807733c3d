import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  encodeNotification,
  parseNotification,
  parseSpeedChangeData,
  type CdcNotification,
} from '../../../src/wire/cdc-notification.ts';
import { bytesOf, embedded } from './bytes-of.ts';

const golden: readonly (readonly [string, CdcNotification])[] = [
  ['a1 00 01 00 02 00 00 00', { kind: 'network-connection', interfaceNumber: 2, connected: true }],
  ['a1 00 00 00 02 00 00 00', { kind: 'network-connection', interfaceNumber: 2, connected: false }],
  ['a1 01 00 00 05 00 00 00', { kind: 'response-available', interfaceNumber: 5 }],
  ['a1 20 00 00 03 00 02 00 03 00', { kind: 'serial-state', interfaceNumber: 3, stateBits: 3 }],
  ['a1 20 00 00 03 00 02 00', { kind: 'serial-state', interfaceNumber: 3, stateBits: undefined }],
  [
    'a1 2a 00 00 00 00 08 00 00 94 35 77 00 ca 9a 3b',
    {
      kind: 'speed-change',
      interfaceNumber: 0,
      speeds: { downlinkBitsPerSecond: 2_000_000_000, uplinkBitsPerSecond: 1_000_000_000 },
    },
  ],
  ['a1 2a 00 00 00 00 08 00', { kind: 'speed-change', interfaceNumber: 0, speeds: undefined }],
  ['a1 28 34 12 01 00 00 00', { kind: 'other', interfaceNumber: 1, notificationType: 0x28, value: 0x1234 }],
];

test.each(golden)('%s', (hex, notification) => {
  const bytes = bytesOf(hex);
  expect(parseNotification(embedded(bytes, 4), 4, bytes.length)).toEqual(notification);
  expect(encodeNotification(notification)).toEqual(bytes);
});

test('any connection value but 0 is a connection', () => {
  expect(parseNotification(bytesOf('a1 00 00 01 00 00 00 00'), 0, 8)).toMatchObject({ connected: true });
});

test('the data of a speed change may come by themselves', () => {
  const data = bytesOf('ff ff ff ff 00 00 00 00');
  expect(parseSpeedChangeData(embedded(data, 2), 2, 8)).toEqual({
    downlinkBitsPerSecond: 4_294_967_295,
    uplinkBitsPerSecond: 0,
  });
  expect(parseSpeedChangeData(data, 0, 7)).toBeUndefined();
});

test('less than a header is no notification', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 16 }), fc.nat(20), fc.nat(20), (bytes, offset, length) => {
      const isWhole = length >= 8 && offset + length <= bytes.length;
      expect(parseNotification(bytes, offset, length) !== undefined).toBe(isWhole);
    }),
  );
});
