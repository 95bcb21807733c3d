import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  formatIpv4Address,
  formatIpv4Cidr,
  ipv4AddressIsMulticast,
  ipv4InSameNetwork,
  ipv4NetworkBroadcast,
  ipv4PrefixLengthOfMask,
  ipv4PrefixMask,
  parseIpv4Address,
  parseIpv4Cidr,
} from '../../../src/wire/ipv4-address.ts';

test('10.9.0.2 is 0x0a090002, and 255.255.255.255 is not negative', () => {
  expect(parseIpv4Address('10.9.0.2')).toBe(0x0a090002);
  expect(parseIpv4Address('255.255.255.255')).toBe(0xffffffff);
  expect(formatIpv4Address(0xc0a80001)).toBe('192.168.0.1');
});

test('formatting and parsing are inverse', () => {
  fc.assert(
    fc.property(fc.nat(0xffff_ffff), (address) => {
      expect(parseIpv4Address(formatIpv4Address(address))).toBe(address);
    }),
  );
});

test.each([
  '',
  '10.9.0',
  '10.9.0.2.1',
  '10.9.0.256',
  '10.09.0.2',
  '10.9.0.',
  ' 10.9.0.2',
  '10.9.0.-1',
  '0x0a.9.0.2',
])('does not parse "%s"', (text) => {
  expect(parseIpv4Address(text)).toBeUndefined();
});

test('parses an address with the length of its prefix', () => {
  expect(parseIpv4Cidr('10.9.0.2/24')).toEqual({ address: 0x0a090002, prefixLength: 24 });
  expect(parseIpv4Cidr('0.0.0.0/0')).toEqual({ address: 0, prefixLength: 0 });
  expect(formatIpv4Cidr({ address: 0x0a090002, prefixLength: 32 })).toBe('10.9.0.2/32');
  for (const text of [
    '10.9.0.2',
    '10.9.0.2/',
    '10.9.0.2/33',
    '10.9.0.2/024',
    '10.9.0.2/24/1',
    '/24',
    '10.9.0/24',
  ]) {
    expect(parseIpv4Cidr(text), text).toBeUndefined();
  }
});

test('masks', () => {
  expect([0, 1, 24, 30, 31, 32].map(ipv4PrefixMask)).toEqual([
    0, 0x80000000, 0xffffff00, 0xfffffffc, 0xfffffffe, 0xffffffff,
  ]);
  for (let length = 0; length <= 32; length++) {
    expect(ipv4PrefixLengthOfMask(ipv4PrefixMask(length))).toBe(length);
  }
  expect(ipv4PrefixLengthOfMask(0xff00ff00)).toBeUndefined();
  expect(ipv4PrefixLengthOfMask(0x00ffffff)).toBeUndefined();
});

test('networks', () => {
  expect(ipv4InSameNetwork(0xc0a80001, 0xc0a800fe, 24)).toBe(true);
  expect(ipv4InSameNetwork(0xc0a80001, 0xc0a801fe, 24)).toBe(false);
  expect(ipv4InSameNetwork(0x01020304, 0xfffefdfc, 0)).toBe(true);
  expect(ipv4NetworkBroadcast(0xc0a80001, 24)).toBe(0xc0a800ff);
  expect(ipv4NetworkBroadcast(0x0a090002, 32)).toBe(0x0a090002);
  expect([0xdfffffff, 0xe0000000, 0xefffffff, 0xf0000000].map(ipv4AddressIsMulticast)).toEqual([
    false,
    true,
    true,
    false,
  ]);
});
