import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  encodeLanguageList,
  encodeStringDescriptor,
  languageEnglishUnitedStates,
  parseLanguageList,
  parseStringDescriptor,
} from '../../../src/wire/usb-string.ts';
import { bytesOf } from './bytes-of.ts';

test('the MAC address of a CDC function', () => {
  const bytes = bytesOf('1a 03 30 00 32 00 30 00 30 00 35 00 65 00 31 00 30 00 30 00 30 00 61 00 62 00');
  expect(parseStringDescriptor(bytes)).toBe('02005e1000ab');
  expect(encodeStringDescriptor('02005e1000ab')).toEqual(bytes);
});

test('the languages', () => {
  expect(encodeLanguageList([languageEnglishUnitedStates])).toEqual(bytesOf('04 03 09 04'));
  expect(parseLanguageList(bytesOf('06 03 09 04 07 04'))).toEqual([0x0409, 0x0407]);
});

test('cut off or of an odd length, what is there counts', () => {
  expect(parseStringDescriptor(bytesOf('08 03 41 00 42 00'))).toBe('AB');
  expect(parseStringDescriptor(bytesOf('05 03 41 00 42'))).toBe('A');
  expect(parseStringDescriptor(bytesOf('04 03 41 00 42 00'))).toBe('A');
  expect(parseStringDescriptor(bytesOf('02 03'))).toBe('');
});

test.each(['', '04', '01 03 41 00', '00 03 41 00', '04 02 41 00'])('"%s" is no string', (hex) => {
  expect(parseStringDescriptor(bytesOf(hex))).toBeUndefined();
  expect(parseLanguageList(bytesOf(hex))).toBeUndefined();
});

test('any text of up to 126 code units comes back, and of a longer one that much', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      const bytes = encodeStringDescriptor(text);
      expect(bytes[0]).toBe(bytes.length);
      expect(parseStringDescriptor(bytes)).toBe(text.slice(0, 126));
    }),
  );
});
