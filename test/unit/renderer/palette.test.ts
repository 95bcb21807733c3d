import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

/** Red, green, blue, 0 … 1 in sRGB. */
type Colour = readonly [number, number, number];

const css = readFileSync(new URL('../../../renderer/styles/tokens.css', import.meta.url), 'utf8');
const tokens = new Map(
  [...css.matchAll(/(--[\w-]+): light-dark\((#\w+), (#\w+)\)/g)].map((match) => [
    match[1] ?? '',
    [match[2] ?? '', match[3] ?? ''] as const,
  ]),
);
const schemes = ['light', 'dark'] as const;

describe.each(schemes)('%s', (scheme) => {
  const surfaces = [
    '--surface',
    '--surface-raised',
    '--surface-sunken',
    '--surface-hover',
    '--surface-selected',
  ];
  const texts = ['--text', '--text-faint', '--accent', '--good', '--warning', '--error'];

  test('text has a contrast of 4.5 or more on every ground it stands on', () => {
    const weak = texts.flatMap((text) =>
      surfaces
        .filter((surface) => contrast(at(text), at(surface)) < 4.5)
        .map((surface) => `${text} on ${surface}`),
    );
    expect(weak).toEqual([]);
    for (const ground of ['--error-ground', '--warning-ground']) {
      expect(contrast(at('--text'), at(ground))).toBeGreaterThan(4.5);
    }
    expect(contrast(at('--error'), at('--error-ground'))).toBeGreaterThan(4.5);
    expect(contrast([1, 1, 1], at('--accent-ground'))).toBeGreaterThan(4.5);
  });

  test('lines and borders of controls have a contrast of 3 or more', () => {
    const lines = ['--line-strong', ...quantities.map((name) => `--q-${name}`)];
    expect(lines.filter((line) => contrast(at(line), at('--surface')) < 3)).toEqual([]);
  });

  test.each(sharingAChart)(
    '%s and %s can be told apart, with any kind of colour blindness',
    (first, second) => {
      for (const sight of Object.keys(sights) as Sight[]) {
        expect(distance(at(`--q-${first}`), at(`--q-${second}`), sight), sight).toBeGreaterThan(10);
      }
    },
  );

  test.each(touching)('%s and %s can be told apart in grey', (first, second) => {
    const difference = Math.abs(lightness(at(`--q-${first}`)) - lightness(at(`--q-${second}`)));
    expect(difference).toBeGreaterThan(9);
  });

  /** A token over the ground that charts are drawn on. */
  function at(name: string): Colour {
    const index = schemes.indexOf(scheme);
    const hex = (token: string): string => {
      const pair = tokens.get(token);
      if (pair === undefined) throw new Error(`no token ${token}`);
      return pair[index] ?? '';
    };
    return over(hex(name), hex('--surface'));
  }
});

const quantities = [
  'inflight',
  'limit',
  'backlog',
  'round-trip',
  'driver-queue',
  'qdisc-wait',
  'up',
  'down',
] as const;

const sharingAChart = [
  ['inflight', 'limit'],
  ['inflight', 'backlog'],
  ['limit', 'backlog'],
  ['inflight-fill', 'limit'],
  ['round-trip', 'driver-queue'],
  ['round-trip', 'qdisc-wait'],
  ['driver-queue', 'qdisc-wait'],
  ['driver-queue-fill', 'qdisc-wait-fill'],
  ['round-trip', 'driver-queue-fill'],
  ['up', 'down'],
] as const;

/** What lies on or beside one another without a difference in shape. Backlog is dashed. */
const touching = [
  ['inflight-fill', 'limit'],
  ['round-trip', 'driver-queue'],
  ['round-trip', 'driver-queue-fill'],
  ['driver-queue', 'qdisc-wait'],
  ['driver-queue-fill', 'qdisc-wait-fill'],
  ['up', 'down'],
] as const;

/** Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB. */
const sights = {
  common: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  tritanopia: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
} as const;
type Sight = keyof typeof sights;

function over(hex: string, groundHex: string): Colour {
  const part = (text: string, at: number): number => Number.parseInt(text.slice(at, at + 2), 16) / 255;
  const alpha = hex.length > 7 ? part(hex, 7) : 1;
  const mix = (at: number): number => part(hex, at) * alpha + part(groundHex, at) * (1 - alpha);
  return [mix(1), mix(3), mix(5)];
}

function linear(value: number): number {
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

/** Relative luminance as WCAG has it. */
function luminance([red, green, blue]: Colour): number {
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

function contrast(a: Colour, b: Colour): number {
  const lighter = Math.max(luminance(a), luminance(b));
  const darker = Math.min(luminance(a), luminance(b));
  return (lighter + 0.05) / (darker + 0.05);
}

/** CIE L*. */
function lightness(colour: Colour): number {
  const y = luminance(colour);
  return y > 0.008856 ? 116 * Math.cbrt(y) - 16 : 903.3 * y;
}

/** Distance in Oklab, times 100, as an eye of that kind sees the two. */
function distance(a: Colour, b: Colour, sight: Sight): number {
  const p = oklab(a, sight);
  const q = oklab(b, sight);
  return 100 * Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

function oklab([r, g, b]: Colour, sight: Sight): Colour {
  const rgb = [linear(r), linear(g), linear(b)] as const;
  const m = sights[sight];
  const row = (i: 0 | 3 | 6): number =>
    Math.max(0, m[i] * rgb[0] + (m[i + 1] ?? 0) * rgb[1] + (m[i + 2] ?? 0) * rgb[2]);
  const [red, green, blue] = [row(0), row(3), row(6)];
  const long = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
  const medium = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
  const short = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
  return [
    0.2104542553 * long + 0.793617785 * medium - 0.0040720468 * short,
    1.9779984951 * long - 2.428592205 * medium + 0.4505937099 * short,
    0.0259040371 * long + 0.7827717662 * medium - 0.808675766 * short,
  ];
}
