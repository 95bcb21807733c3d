import { performance } from 'node:perf_hooks';
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { identify, type IdentifyResult } from '../../../src/identify/identify.ts';
import { fixtures, further, identifyText } from './descriptor-fixtures.ts';

/** Whatever comes in: an answer, or the line or byte that stopped it; never a throw, and never long. */

const texts = [...fixtures, ...further].map(({ text }) => text);
const rounds = 2000;
const longestMs = 2000;

function checkAnswer(result: IdentifyResult): void {
  if (!result.ok) {
    if (!/^(?:line|byte) \d+: ./.test(result.problem)) throw new Error(result.problem);
    return;
  }
  if (result.devices.length === 0) throw new Error('no device');
  for (const { warnings, functions } of result.devices) {
    const vague = warnings.find((warning) => !/^(?:line|byte) \d+: ./.test(warning));
    if (vague !== undefined) throw new Error(vague);
    for (const { interfaces, reason } of functions) {
      if (interfaces.length === 0 || reason === '') throw new Error('a function without interfaces');
    }
  }
}

function damageText(text: string, random: Random): string {
  const lines = text.split('\n');
  const at = (): number => random.integer(0, lines.length - 1);
  for (let times = random.integer(1, 5); times > 0; times--) {
    const [first, second] = [at(), at()];
    switch (random.integer(0, 6)) {
      case 0:
        lines.splice(first, random.integer(1, 20));
        break;
      case 1:
        [lines[first], lines[second]] = [lines[second] ?? '', lines[first] ?? ''];
        break;
      case 2:
        lines.splice(first, 0, ...lines.slice(second, second + 10));
        break;
      case 3:
        lines[first] = (lines[first] ?? '').slice(0, random.integer(0, 40));
        break;
      case 4:
        lines[first] = (lines[first] ?? '').replaceAll(/\d/g, () => String(random.integer(0, 99)));
        break;
      case 5:
        lines[first] = String.fromCodePoint(...Array.from({ length: 30 }, () => random.integer(0, 0x2ff)));
        break;
      default:
        lines[first] = (lines[first] ?? '') + (lines[second] ?? '');
    }
    if (lines.length === 0) return '';
  }
  return lines.join('\n');
}

test(`${rounds} listings with lines cut, swapped, doubled, joined and overwritten`, () => {
  const random = new Random(0x1d);
  const started = performance.now();
  for (let round = 0; round < rounds; round++) {
    checkAnswer(identifyText(damageText(texts[round % texts.length] ?? '', random)));
  }
  expect((performance.now() - started) / rounds).toBeLessThan(longestMs / 10);
}, 120_000);

test(`${rounds} texts of the characters of listings in any order`, () => {
  const random = new Random(0x2d);
  const words = texts.flatMap((text) => text.split(/(?<=\s)/)).filter((_word, i) => i % 97 === 0);
  for (let round = 0; round < rounds; round++) {
    const text = Array.from({ length: 60 }, () => words[random.integer(0, words.length - 1)]).join('');
    checkAnswer(identifyText(text));
  }
  expect(words.length).toBeGreaterThan(100);
}, 120_000);

test(`${10 * rounds} descriptors with bytes overwritten, and bytes of nothing`, () => {
  const random = new Random(0x3d);
  const device = '1201000200000040950b901700010102030109022000010100a07d0904000003ffff0004'
    .match(/../g)
    ?.map((pair) => Number.parseInt(pair, 16));
  let read = 0;
  for (let round = 0; round < 10 * rounds; round++) {
    const bytes = Uint8Array.from(
      round % 4 === 0
        ? Array.from({ length: random.integer(0, 200) }, () => random.integer(0, 255))
        : [...(device ?? []), ...Array.from({ length: random.integer(0, 60) }, () => random.integer(0, 255))],
    );
    for (let times = random.integer(0, 3); times > 0; times--) {
      bytes[random.integer(2, 40)] = random.integer(0, 255);
    }
    const result = identify(bytes, new TextDecoder().decode(bytes));
    if (result.ok) read++;
    checkAnswer(result);
  }
  expect(read).toBeGreaterThan(rounds);
}, 120_000);

describe('texts made to be slow', () => {
  const length = 300_000;
  const repeat = (text: string): string => text.repeat(Math.ceil(length / text.length));
  test.each([
    ['hexadecimal pairs', repeat('00 ')],
    ['colons and pairs', repeat(': 00 ')],
    ['blanks', repeat(' ')],
    ['blanks with an end', `${repeat(' ')}x`],
    ['equals signs', repeat('=3D')],
    ['soft breaks', repeat('=\n')],
    ['marks of quotation', repeat('> ')],
    ['a record without end', `T:  Bus=01 ${repeat('Lev=')}`],
    ['records', repeat('I: If#= 0 Alt= 0 ')],
    ['interfaces', repeat('bInterfaceNumber 0\n')],
    ['devices', repeat('idVendor 0x1234\nidProduct 0x1234\n')],
    ['headings', repeat('Bus 001 Device 001: ID 1234:5678\n')],
    ['configurations', repeat('bConfigurationValue 1\n')],
    ['endpoints', repeat('bEndpointAddress 0x81\n')],
    ['rows of a dump', repeat('00000000: 1201 0002 0000 0040 950b 9017 0001 0102 ........\n')],
    ['a dump in one line', repeat('12010002 00000040 950b9017 00010102 03010902 ')],
    ['letters', repeat('a')],
    ['words', repeat('bLength b ')],
  ])('%s', (_name, text) => {
    const started = performance.now();
    checkAnswer(identifyText(text));
    expect(performance.now() - started).toBeLessThan(longestMs);
  });
});
