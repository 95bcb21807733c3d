import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  encodeCdcFunctional,
  parseCdcFunctional,
  type CdcFunctional,
} from '../../../src/wire/cdc-functional.ts';
import { bytesOf } from './bytes-of.ts';

const header = '05 24 00 10 01';
const union = '05 24 06 00 01';

describe('of real devices', () => {
  test('EM9191: MBIM', () => {
    const extra = bytesOf(
      `${header} ${union} | 0c 24 1b 00 01 00 10 20 80 00 08 20 | 08 24 1c 00 01 40 dc 05`,
    );
    const functional: CdcFunctional = {
      header: { version: 0x0110 },
      union: { controlInterface: 0, dataInterfaces: [1] },
      mbim: {
        version: 0x0100,
        maxControlMessage: 4096,
        filterCount: 32,
        maxFilterSize: 128,
        maxSegmentSize: 2048,
        capabilities: 0x20,
      },
      mbimExtended: { version: 0x0100, maxOutstandingCommands: 64, mtu: 1500 },
      duplicates: 0,
      malformed: 0,
    };
    expect(parseCdcFunctional(extra)).toEqual(functional);
    expect(encodeCdcFunctional(functional)).toEqual(extra);
  });

  test('RTL8153: ECM', () => {
    const extra = bytesOf(`${header} ${union} | 0d 24 0f 03 00 00 00 00 ea 05 00 00 00`);
    expect(parseCdcFunctional(extra)).toEqual({
      header: { version: 0x0110 },
      union: { controlInterface: 0, dataInterfaces: [1] },
      ethernet: {
        macAddressIndex: 3,
        statistics: 0,
        maxSegmentSize: 1514,
        multicastFilters: 0,
        powerFilters: 0,
      },
      duplicates: 0,
      malformed: 0,
    });
  });

  test('a serial port with a union of itself', () => {
    const extra = bytesOf(`${header} | 05 24 01 00 00 | 04 24 02 02 | 05 24 06 00 00`);
    expect(parseCdcFunctional(extra)).toMatchObject({
      callManagement: { capabilities: 0, dataInterface: 0 },
      acm: { capabilities: 2 },
      union: { controlInterface: 0, dataInterfaces: [0] },
    });
  });
});

test('a union of several data interfaces', () => {
  expect(parseCdcFunctional(bytesOf('07 24 06 02 03 05 04')).union).toEqual({
    controlInterface: 2,
    dataInterfaces: [3, 5, 4],
  });
});

test('passes over other types and unknown subtypes', () => {
  expect(
    parseCdcFunctional(
      bytesOf('05 25 06 07 08 | 04 24 07 00 | 02 24'),
      bytesOf('09 21 06 00 01 02 03 04 05'),
    ),
  ).toEqual({
    duplicates: 0,
    malformed: 1,
  });
});

test('the first of a kind counts, over all places that are searched', () => {
  const functional = parseCdcFunctional(
    bytesOf(`${union} 05 24 06 07 08`),
    bytesOf(`${union} 06 24 1a 00 01 13`),
  );
  expect(functional).toEqual({
    union: { controlInterface: 0, dataInterfaces: [1] },
    ncm: { version: 0x0100, capabilities: 0x13 },
    duplicates: 2,
    malformed: 0,
  });
});

describe('malformed ones are counted and passed over', () => {
  test('alone too', () => {
    expect(parseCdcFunctional(bytesOf('08 24 06 09 0a'))).toEqual({ duplicates: 0, malformed: 1 });
  });

  test.each([
    ['too short for their kind', `0c 24 0f 03 00 00 00 00 ea 05 00 00 | ${union} 07 24 1b 00 01 00 10`, 2],
    ['of length 0', `${union} 00 24 06 00 01`, 1],
    ['of length 1', `${union} 01`, 1],
    ['cut off', `${union} 0d 24 0f 03 00`, 1],
    ['a union that runs past the end', `${union} 08 24 06 09 0a`, 1],
    ['a union without data interface', `04 24 06 09 ${union}`, 1],
  ])('%s', (_name, extra, malformed) => {
    expect(parseCdcFunctional(bytesOf(extra))).toEqual({
      union: { controlInterface: 0, dataInterfaces: [1] },
      duplicates: 0,
      malformed,
    });
  });

  test('a broken place does not spoil the next', () => {
    expect(parseCdcFunctional(bytesOf('00'), bytesOf(union))).toMatchObject({
      union: { controlInterface: 0 },
      malformed: 1,
    });
  });
});

test('what is encoded is parsed again', () => {
  const uint8 = fc.nat(255);
  const uint16 = fc.nat(0xffff);
  const functional = fc.record(
    {
      header: fc.record({ version: uint16 }),
      callManagement: fc.record({ capabilities: uint8, dataInterface: uint8 }),
      acm: fc.record({ capabilities: uint8 }),
      union: fc.record({
        controlInterface: uint8,
        dataInterfaces: fc.array(uint8, { minLength: 1, maxLength: 251 }),
      }),
      ethernet: fc.record({
        macAddressIndex: uint8,
        statistics: fc.nat(0xffff_ffff),
        maxSegmentSize: uint16,
        multicastFilters: uint16,
        powerFilters: uint8,
      }),
      mdlm: fc.record({ version: uint16, guid: fc.uint8Array({ minLength: 16, maxLength: 16 }) }),
      mdlmDetail: fc.record({ guidDescriptorType: uint8, detail: fc.uint8Array({ maxLength: 251 }) }),
      ncm: fc.record({ version: uint16, capabilities: uint8 }),
      mbim: fc.record({
        version: uint16,
        maxControlMessage: uint16,
        filterCount: uint8,
        maxFilterSize: uint8,
        maxSegmentSize: uint16,
        capabilities: uint8,
      }),
      mbimExtended: fc.record({ version: uint16, maxOutstandingCommands: uint8, mtu: uint16 }),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(functional, (value) => {
      expect(parseCdcFunctional(encodeCdcFunctional(value))).toEqual({
        ...value,
        duplicates: 0,
        malformed: 0,
      });
    }),
  );
});
