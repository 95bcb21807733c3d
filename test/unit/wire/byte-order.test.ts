import fc from 'fast-check';
import { expect, test } from 'vitest';
import { viewOf } from '../../../src/base/bytes.ts';
import {
  readUint16Be,
  readUint16Le,
  readUint32Be,
  readUint32Le,
  writeUint16Be,
  writeUint16Le,
  writeUint32Be,
  writeUint32Le,
} from '../../../src/wire/byte-order.ts';

test('reads what a DataView reads', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 8, maxLength: 8 }), fc.nat(4), (bytes, offset) => {
      const view = viewOf(bytes);
      expect(readUint16Be(bytes, offset)).toBe(view.getUint16(offset));
      expect(readUint16Le(bytes, offset)).toBe(view.getUint16(offset, true));
      expect(readUint32Be(bytes, offset)).toBe(view.getUint32(offset));
      expect(readUint32Le(bytes, offset)).toBe(view.getUint32(offset, true));
    }),
  );
});

test('writes what a DataView writes, and nothing around it', () => {
  fc.assert(
    fc.property(fc.nat(0xffff_ffff), fc.nat(4), (value, offset) => {
      const written = new Uint8Array(8).fill(0xee);
      const expected = new Uint8Array(8).fill(0xee);
      const view = viewOf(expected);
      writeUint32Be(written, offset, value);
      view.setUint32(offset, value);
      expect(written).toEqual(expected);
      writeUint32Le(written, offset, value);
      view.setUint32(offset, value, true);
      expect(written).toEqual(expected);
      writeUint16Be(written, offset, value);
      view.setUint16(offset, value);
      expect(written).toEqual(expected);
      writeUint16Le(written, offset, value);
      view.setUint16(offset, value, true);
      expect(written).toEqual(expected);
    }),
  );
});

test('beyond the end there are zeros', () => {
  const bytes = Uint8Array.of(0x12, 0x34);
  expect(readUint32Be(bytes, 1)).toBe(0x34000000);
  expect(readUint32Le(bytes, 2)).toBe(0);
  writeUint32Be(bytes, 1, 0xaabbccdd);
  expect(bytes).toEqual(Uint8Array.of(0x12, 0xaa));
});
