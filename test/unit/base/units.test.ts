import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  bytesQuantity,
  formatBitRate,
  formatBytes,
  formatCount,
  formatDuration,
  formatElapsed,
  formatShare,
  formatThreeDigits,
  noValue,
} from '../../../src/base/units.ts';

describe('the numbers of the patch', () => {
  test('300 transfers of 1,514 bytes are 454 KB, 363 ms at 10 Mbit/s', () => {
    expect(formatCount(1514)).toBe('1,514');
    expect(formatBytes(300 * 1514)).toBe('454 KB');
    expect(formatDuration(((300 * 1514 * 8) / 10e6) * 1e6)).toBe('363 ms');
    expect(formatBitRate(10e6)).toBe('10.0 Mbit/s');
  });
});

describe('bytes', () => {
  test.each([
    [0, '0 B'],
    [812, '812 B'],
    [999, '999 B'],
    [999.6, '1.00 KB'],
    [1000, '1.00 KB'],
    [1514, '1.51 KB'],
    [9994, '9.99 KB'],
    [9996, '10.0 KB'],
    [99_960, '100 KB'],
    [999_499, '999 KB'],
    [999_500, '1.00 MB'],
    [1_879_048_192, '1.88 GB'],
    [-1514, '−1.51 KB'],
  ])('%d → %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text));
});

describe('rates', () => {
  test.each([
    [0, '0 bit/s'],
    [999, '999 bit/s'],
    [1234, '1.23 kbit/s'],
    [9_984_000, '9.98 Mbit/s'],
    [999_600_000, '1.00 Gbit/s'],
    [2.35e9, '2.35 Gbit/s'],
  ])('%d → %s', (rate, text) => expect(formatBitRate(rate)).toBe(text));
});

describe('durations', () => {
  test.each([
    [0, '0.00 ms'],
    [600, '0.60 ms'],
    [2314, '2.31 ms'],
    [9994, '9.99 ms'],
    [9995, '10.0 ms'],
    [35_000, '35.0 ms'],
    [363_360, '363 ms'],
    [999_499, '999 ms'],
    [999_500, '1.00 s'],
    [12_340_000, '12.3 s'],
    [-1600, '−1.60 ms'],
    [-1, '0.00 ms'],
  ])('%d us → %s', (us, text) => expect(formatDuration(us)).toBe(text));
});

describe('shares', () => {
  test.each([
    [0, '0 %'],
    [0.0012, '0.120 %'],
    [0.12, '12.0 %'],
    [1, '100 %'],
  ])('%d → %s', (fraction, text) => expect(formatShare(fraction)).toBe(text));
});

describe('times', () => {
  test.each([
    [0, false, '0:00'],
    [7_400_000, false, '0:07'],
    [7_400_000, true, '0:07.4'],
    [59_999_999, true, '0:59.9'],
    [754_000_000, false, '12:34'],
    [3_723_000_000, false, '1:02:03'],
    [-1_500_000, true, '−0:01.5'],
    [-10, true, '0:00.0'],
  ])('%d us, tenths %s → %s', (us, tenths, text) => expect(formatElapsed(us, tenths)).toBe(text));
});

test('what does not exist is a dash without a unit', () => {
  for (const format of [
    formatBytes,
    formatBitRate,
    formatDuration,
    formatShare,
    formatCount,
    formatThreeDigits,
  ]) {
    expect(format(Number.NaN)).toBe(noValue);
    expect(format(Number.POSITIVE_INFINITY)).toBe(noValue);
  }
});

test('a scaled number has three digits and is within half a digit of the truth', () => {
  const factor: Readonly<Record<string, number>> = { B: 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
  fc.assert(
    fc.property(fc.integer({ min: 1000, max: 900e12 }), (bytes) => {
      const { value, unit } = bytesQuantity(bytes);
      expect(value).toMatch(/^(?:\d\.\d\d|\d\d\.\d|\d{3})$/);
      const back = Number(value) * (factor[unit] ?? Number.NaN);
      expect(Math.abs(back - bytes) / bytes).toBeLessThanOrEqual(0.0051);
    }),
  );
});
