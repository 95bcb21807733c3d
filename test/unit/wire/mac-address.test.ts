import { expect, test } from 'vitest';
import {
  broadcastMacAddress,
  copyMacAddress,
  formatMacAddress,
  macAddressesEqual,
  macAddressIsBroadcast,
  macAddressIsLocallyAdministered,
  macAddressIsMulticast,
  macAddressIsUsable,
  parseMacAddress,
} from '../../../src/wire/mac-address.ts';

const address = Uint8Array.of(0x02, 0x00, 0x5e, 0x10, 0x00, 0xab);

test.each(['02:00:5e:10:00:ab', '02-00-5E-10-00-AB', '02005E1000AB'])('parses %s', (text) => {
  expect(parseMacAddress(text)).toEqual(address);
});

test.each([
  '',
  '02:00:5e:10:00',
  '02:00:5e:10:00:ab:cd',
  '02:00:5e:10:00:ag',
  '0200:5e10:00ab',
  '02:00-5e:10:00:ab',
  '2:0:5e:10:0:ab',
  '02005e1000ab ',
])('does not parse "%s"', (text) => {
  expect(parseMacAddress(text)).toBeUndefined();
});

test('formats, from the middle of a frame too', () => {
  expect(formatMacAddress(address)).toBe('02:00:5e:10:00:ab');
  expect(formatMacAddress(Uint8Array.of(9, 9, ...address, 9), 2)).toBe('02:00:5e:10:00:ab');
});

test('compares and copies at offsets', () => {
  const frame = new Uint8Array(12);
  copyMacAddress(address, 0, frame, 6);
  expect(macAddressesEqual(frame, 6, address, 0)).toBe(true);
  expect(macAddressesEqual(frame, 5, address, 0)).toBe(false);
  expect(frame.subarray(0, 6)).toEqual(new Uint8Array(6));
});

test('knows the kinds of addresses', () => {
  const kinds = (text: string): readonly boolean[] => {
    const bytes = parseMacAddress(text) ?? new Uint8Array(0);
    return [
      macAddressIsMulticast(bytes),
      macAddressIsBroadcast(bytes),
      macAddressIsLocallyAdministered(bytes),
      macAddressIsUsable(bytes),
    ];
  };
  expect(kinds('02:00:5e:10:00:ab')).toEqual([false, false, true, true]);
  expect(kinds('00:0e:c6:81:79:01')).toEqual([false, false, false, true]);
  expect(kinds('01:00:5e:00:00:fb')).toEqual([true, false, false, false]);
  expect(kinds(formatMacAddress(broadcastMacAddress))).toEqual([true, true, true, false]);
  expect(kinds('00:00:00:00:00:00')).toEqual([false, false, false, false]);
});
