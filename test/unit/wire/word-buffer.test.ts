import fc from 'fast-check';
import { expect, test } from 'vitest';
import { onesComplementSum } from '../../../src/wire/checksum.ts';
import { WordBuffer } from '../../../src/wire/word-buffer.ts';

test('the sum is the one that bytes give, at any length and alignment', () => {
  const buffer = new WordBuffer(3001);
  expect(buffer.bytes.length).toBeGreaterThanOrEqual(3001);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2900 }), fc.nat(9), (bytes, offset) => {
      buffer.bytes.fill(0xff);
      buffer.bytes.set(bytes, offset);
      expect(buffer.sum(offset, bytes.length)).toBe(onesComplementSum(bytes, 0, bytes.length));
    }),
  );
});

test('of the longest packet, all ones, does not overflow', () => {
  const buffer = new WordBuffer(65_540);
  buffer.bytes.fill(0xff);
  for (const [offset, length] of [
    [0, 65_535],
    [1, 65_535],
    [3, 65_534],
  ] as const) {
    expect(buffer.sum(offset, length)).toBe(onesComplementSum(buffer.bytes, offset, length));
  }
});
