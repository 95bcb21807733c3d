import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeBosDescriptor, parseBosDescriptor, type BosDescriptor } from '../../../src/wire/usb-bos.ts';
import { bytesOf } from './bytes-of.ts';

/** Realtek RTL8153 (lsusb -v). */
const real = bytesOf('05 0f 16 00 02 | 07 10 02 06 00 00 00 | 0a 10 03 02 0e 00 02 0a ff 07');
const realValue: BosDescriptor = {
  usb2Extension: { attributes: 6 },
  superSpeed: {
    attributes: 2,
    speedsSupported: 0x0e,
    functionalitySupport: 2,
    u1ExitLatencyUs: 10,
    u2ExitLatencyUs: 2047,
  },
  others: [],
};

test('of a real device, both ways', () => {
  expect(parseBosDescriptor(real)).toEqual({ ok: true, value: realValue });
  expect(encodeBosDescriptor(realValue)).toEqual(real);
});

test('bytes behind the total length are ignored, descriptors of other types passed over', () => {
  const bytes = bytesOf('05 0f 0f 00 01 | 03 24 00 | 07 10 02 06 00 00 00 | 0a 10');
  expect(parseBosDescriptor(bytes)).toEqual({
    ok: true,
    value: { usb2Extension: { attributes: 6 }, others: [] },
  });
});

test('a capability that is too short, or comes again, is another one', () => {
  const bytes = bytesOf(
    '05 0f 1b 00 03 | 06 10 02 06 00 00 | 09 10 03 02 0e 00 02 0a ff | 07 10 02 06 00 00 00',
  );
  expect(parseBosDescriptor(bytes)).toEqual({
    ok: true,
    value: {
      usb2Extension: { attributes: 6 },
      others: [
        { type: 2, data: bytesOf('06 00 00') },
        { type: 3, data: bytesOf('02 0e 00 02 0a ff') },
      ],
    },
  });
  const twice = bytesOf('05 0f 13 00 02 | 07 10 02 06 00 00 00 | 07 10 02 02 00 00 00');
  expect(parseBosDescriptor(twice)).toMatchObject({
    value: { usb2Extension: { attributes: 6 }, others: [{ type: 2, data: bytesOf('02 00 00 00') }] },
  });
});

describe('is a problem', () => {
  test.each([
    ['nothing', new Uint8Array(0), 0],
    ['a header of 4 bytes', Uint8Array.of(4, ...real.subarray(1)), 0],
    ['another type', Uint8Array.of(5, 2, ...real.subarray(2)), 1],
    ['cut off', real.subarray(0, 21), 21],
    ['a capability of length 0', bytesOf('05 0f 08 00 01 | 00 10 02'), 5],
    ['a capability that runs past the end', bytesOf('05 0f 08 00 01 | 04 10 02 00'), 5],
  ])('%s', (_name, bytes, offset) => {
    expect(parseBosDescriptor(bytes)).toMatchObject({ ok: false, offset });
  });
});

test('what is encoded is parsed again', () => {
  const uint8 = fc.nat(255);
  const bos: fc.Arbitrary<BosDescriptor> = fc.record(
    {
      usb2Extension: fc.record({ attributes: fc.nat(0xffff_ffff) }),
      superSpeed: fc.record({
        attributes: uint8,
        speedsSupported: fc.nat(0xffff),
        functionalitySupport: uint8,
        u1ExitLatencyUs: uint8,
        u2ExitLatencyUs: fc.nat(0xffff),
      }),
      others: fc.array(
        fc.record({ type: fc.integer({ min: 4, max: 255 }), data: fc.uint8Array({ maxLength: 252 }) }),
        {
          maxLength: 4,
        },
      ),
    },
    { requiredKeys: ['others'] },
  );
  fc.assert(
    fc.property(bos, (value) => {
      expect(parseBosDescriptor(encodeBosDescriptor(value))).toEqual({ ok: true, value });
    }),
  );
});
