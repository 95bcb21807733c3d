import { expect, test } from 'vitest';
import {
  checkEthernet,
  copyEthernetDestination,
  copyEthernetSource,
  ethernetDestinationIs,
  ethernetDestinationIsBroadcast,
  ethernetDestinationIsMulticast,
  ethernetType,
  etherTypeArp,
  writeEthernet,
} from '../../../src/wire/ethernet.ts';
import { broadcastMacAddress } from '../../../src/wire/mac-address.ts';
import { bytesOf, embedded } from './bytes-of.ts';

const source = bytesOf('02 00 00 00 00 01');
const golden = bytesOf('ff ff ff ff ff ff | 02 00 00 00 00 01 | 08 06');

test('writes the header of a broadcast ARP frame', () => {
  const frame = embedded(new Uint8Array(14), 3);
  expect(writeEthernet(frame, 3, broadcastMacAddress, source, etherTypeArp)).toBe(14);
  expect(frame).toEqual(embedded(golden, 3));
});

test('reads it back', () => {
  const frame = embedded(golden, 5);
  expect(checkEthernet(frame, 5, 14)).toBe(14);
  expect(ethernetType(frame, 5)).toBe(etherTypeArp);
  expect(ethernetDestinationIsBroadcast(frame, 5)).toBe(true);
  expect(ethernetDestinationIsMulticast(frame, 5)).toBe(true);
  expect(ethernetDestinationIs(frame, 5, broadcastMacAddress)).toBe(true);
  expect(ethernetDestinationIs(frame, 5, source)).toBe(false);
  const copy = new Uint8Array(6);
  copyEthernetSource(frame, 5, copy);
  expect(copy).toEqual(source);
  copyEthernetDestination(frame, 5, copy);
  expect(copy).toEqual(broadcastMacAddress);
});

test('refuses what is too short or not there', () => {
  expect(checkEthernet(golden, 0, 13)).toBe(-1);
  expect(checkEthernet(golden, 1, 14)).toBe(-1);
  expect(checkEthernet(golden, -1, 14)).toBe(-1);
});
