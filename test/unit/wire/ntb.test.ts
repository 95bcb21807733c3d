import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  alignedPosition,
  deviceStreamSignature,
  encodeNtbParameters,
  ipStreamSignature,
  isDeviceStreamSignature,
  isIpStreamSignature,
  ncmCrcSignatures,
  ncmSignatures,
  ndpLengthFor,
  ntbLayouts,
  parseNtbParameters,
  sessionOfSignature,
} from '../../../src/wire/ntb.ts';
import { writeUint32Le } from '../../../src/wire/byte-order.ts';
import { bytesOf, embedded } from './bytes-of.ts';

/** The four characters of a signature as they go over the wire. */
function characters(signature: number): string {
  const bytes = new Uint8Array(4);
  writeUint32Le(bytes, 0, signature);
  return String.fromCharCode(...bytes);
}

test('signatures read as their names', () => {
  expect(characters(ntbLayouts.ntb16.headerSignature)).toBe('NCMH');
  expect(characters(ntbLayouts.ntb32.headerSignature)).toBe('ncmh');
  expect(characters(ncmSignatures.ntb16)).toBe('NCM0');
  expect(characters(ncmSignatures.ntb32)).toBe('ncm0');
  expect(characters(ncmCrcSignatures.ntb16)).toBe('NCM1');
  expect(characters(ncmCrcSignatures.ntb32)).toBe('ncm1');
  expect(characters(ipStreamSignature('ntb16', 0x41))).toBe('IPSA');
  expect(characters(ipStreamSignature('ntb32', 0x41))).toBe('ipsA');
  expect(characters(deviceStreamSignature('ntb16', 0x41))).toBe('DSSA');
  expect(characters(deviceStreamSignature('ntb32', 0x41))).toBe('dssA');
});

test('an MBIM signature has its session in the last byte', () => {
  expect(ipStreamSignature('ntb16', 5)).toBe(0x05535049);
  for (const session of [0, 5, 255]) {
    expect(sessionOfSignature(ipStreamSignature('ntb16', session))).toBe(session);
    expect(isIpStreamSignature('ntb16', ipStreamSignature('ntb16', session))).toBe(true);
    expect(isIpStreamSignature('ntb32', ipStreamSignature('ntb16', session))).toBe(false);
    expect(isIpStreamSignature('ntb16', deviceStreamSignature('ntb16', session))).toBe(false);
    expect(isDeviceStreamSignature('ntb16', deviceStreamSignature('ntb16', session))).toBe(true);
  }
});

test('the length of an NDP for 40 datagrams', () => {
  expect(ndpLengthFor('ntb16', 40)).toBe(172);
  expect(ndpLengthFor('ntb32', 40)).toBe(344);
});

test('an aligned position is the first that fits', () => {
  fc.assert(
    fc.property(fc.nat(70_000), fc.integer({ min: 1, max: 600 }), fc.nat(599), (position, modulus, rest) => {
      const remainder = rest % modulus;
      let expected = position;
      while (expected % modulus !== remainder) expected++;
      expect(alignedPosition(position, modulus, remainder)).toBe(expected);
    }),
  );
});

test('the parameters of the Linux gadget', () => {
  const bytes = bytesOf(
    '1c 00 03 00 | 00 40 00 00 04 00 00 00 04 00 | 00 00 | 00 40 00 00 04 00 00 00 04 00 | 00 00',
  );
  const parameters = {
    formats: 3,
    inMaxSize: 16_384,
    inDivisor: 4,
    inPayloadRemainder: 0,
    inAlignment: 4,
    outMaxSize: 16_384,
    outDivisor: 4,
    outPayloadRemainder: 0,
    outAlignment: 4,
    outMaxDatagrams: 0,
  };
  expect(parseNtbParameters(bytes)).toEqual(parameters);
  expect(encodeNtbParameters(parameters)).toEqual(bytes);
  expect(parseNtbParameters(embedded(bytes, 0))).toEqual(parameters);
  expect(parseNtbParameters(bytes.subarray(0, 27))).toBeUndefined();
});

test('parameters of any values come back', () => {
  const uint16 = fc.nat(0xffff);
  const uint32 = fc.nat(0xffff_ffff);
  const parameters = fc.record({
    formats: uint16,
    inMaxSize: uint32,
    inDivisor: uint16,
    inPayloadRemainder: uint16,
    inAlignment: uint16,
    outMaxSize: uint32,
    outDivisor: uint16,
    outPayloadRemainder: uint16,
    outAlignment: uint16,
    outMaxDatagrams: uint16,
  });
  fc.assert(
    fc.property(parameters, (value) => {
      expect(parseNtbParameters(encodeNtbParameters(value))).toEqual(value);
    }),
  );
});
