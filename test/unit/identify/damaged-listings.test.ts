import { describe, expect, test } from 'vitest';
import {
  devicesOf,
  type Facts,
  type Fixture,
  fixtures,
  identifyText,
  outcomeOf,
} from './descriptor-fixtures.ts';

/** What mail programs, forums, translators and people do to a listing. */

function eachLine(change: (line: string) => string): (text: string) => string {
  return (text) => text.split('\n').map(change).join('\n');
}

/** Cuts lines at blanks, as mail programs do; a line without blanks stays whole. */
function wrap(width: number, prefix = ''): (text: string) => string {
  return (text) =>
    text
      .split('\n')
      .flatMap((line) => {
        const pieces: string[] = [];
        let rest = line;
        while (rest.length > width) {
          const at = rest.lastIndexOf(' ', width);
          if (at <= 0 || rest.slice(0, at).trim() === '') break;
          pieces.push(prefix + rest.slice(0, at));
          rest = rest.slice(at + 1);
        }
        return [...pieces, prefix + rest];
      })
      .join('\n');
}

function without(pattern: RegExp): (text: string) => string {
  return (text) =>
    text
      .split('\n')
      .filter((line) => !pattern.test(line))
      .join('\n');
}

function numbered(text: string, change: (number: number, line: string) => string): string {
  return text
    .split('\n')
    .map((line, i) => change(i + 1, line))
    .join('\n');
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function mailOf(text: string): string {
  const encoded = Buffer.from(text).toString('base64').replaceAll(/.{76}/g, '$&\n');
  return `Subject: a modem\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n${encoded}\n`;
}

const translations: readonly (readonly [RegExp | string, string])[] = [
  [/^Bus (\d+) Device (\d+): ID/gm, 'Bus $1 Gerät $2: ID'],
  ['Device Descriptor:', 'Gerätebeschreibung:'],
  ['Configuration Descriptor:', 'Описание конфигурации:'],
  ['Interface Association:', '接口关联描述符:'],
  ['Interface Descriptor:', 'Descripteur d’interface :'],
  ['Endpoint Descriptor:', 'Descriptor de punto de conexión:'],
  ['Vendor Specific Class', 'Herstellerspezifische Klasse'],
  ['Transfer Type            Bulk', 'Übertragungsart          Masse'],
];

function translate(text: string): string {
  let translated = text;
  for (const [from, to] of translations) translated = translated.replaceAll(from, to);
  return translated;
}

const changes: readonly (readonly [string, (text: string) => string])[] = [
  ['indented with tabs', eachLine((line) => `\t\t   ${line}`)],
  ['not indented', eachLine((line) => line.trim())],
  ['quoted', eachLine((line) => `> ${line}`)],
  ['quoted three times', eachLine((line) => `>>> ${line}`)],
  ['quoted with bars and initials', eachLine((line) => `| JD> ${line}`)],
  ['quoted in HTML', eachLine((line) => `&gt; ${line}`)],
  ['with the line ends of Windows', (text) => text.replaceAll('\n', '\r\n')],
  ['with empty lines between', (text) => text.replaceAll('\n', '\n\n')],
  ['with blanks that do not break', (text) => text.replaceAll(' ', '\u00a0')],
  ['wrapped at 72 characters', wrap(72)],
  ['wrapped at 50 characters', wrap(50)],
  ['wrapped at 34 characters', wrap(34)],
  ['wrapped and quoted', wrap(60, '> ')],
  ['with titles and remarks in other languages', translate],
  ['without titles', without(/(?:Descriptor|Association):/)],
  ['without lengths and types', without(/bLength|bDescriptorType/)],
  [
    'in quoted-printable',
    eachLine((line) =>
      line
        .replaceAll('=', '=3D')
        .replace(/(\d) $/, '$1=20')
        .replace(/ $/, '=20'),
    ),
  ],
  ['with numbered lines', (text) => numbered(text, (number, line) => `  ${number}. ${line.trim()}`)],
  ['with numbers and tabs', (text) => numbered(text, (number, line) => `${number}\t${line}`)],
  ['found by grep', (text) => numbered(text, (number, line) => `lsusb.txt:${number}:${line}`)],
  ['with the times of a kernel log', (text) => numbered(text, (n, line) => `[  12.${n}] ${line}`)],
  ['from a system log', eachLine((line) => `Mar  5 17:13:56 router lsusb[77]: ${line}`)],
  ['with dates', eachLine((line) => `2024-03-05T17:13:56.123+01:00 ${line}`)],
  ['with the colours of a terminal', eachLine((line) => `\u001b[1;32m${line}\u001b[0m\u001b[K`)],
  ['as a web page', (text) => `<html><pre>${escapeHtml(text)}</pre></html>`],
  [
    'as a web page without preformatted text',
    eachLine((line) => `${escapeHtml(line).replaceAll('  ', '&nbsp; ').replaceAll('=', '&#61;')}<br />`),
  ],
  [
    'as the table of a web page',
    eachLine((line) => `<tr><td class="n">7</td><td><span>${escapeHtml(line)}</span></td></tr>`),
  ],
  ['in a forum', eachLine((line) => `[FONT=Courier][COLOR=#242729]${line}[/COLOR][/FONT]`)],
  ['as a string of a program', (text) => JSON.stringify({ body: text })],
  ['in base64', (text) => mailOf(text)],
  [
    'twice in a mail, the second time in HTML',
    (text) =>
      [
        'Content-Type: multipart/alternative; boundary="b1"\n\n--b1\nContent-Type: text/plain\n',
        text,
        '--b1\nContent-Type: text/html\n',
        `<pre>${escapeHtml(text)}</pre>`,
        '--b1--',
      ].join('\n'),
  ],
  [
    'in a letter',
    (text) => `Hello all,\n\nwith usb = bad = sad:\n\n${text}\n\nMfG\nS: end of story\n-- \nT: 0123\n`,
  ],
];

describe.each(changes)('every listing, %s', (_name, change) => {
  test('says the same', () => {
    for (const { name, text } of fixtures) {
      expect([name, outcomeOf(change(text))]).toEqual([name, outcomeOf(text)]);
    }
  });
});

const fieldName = /^(\s*)([A-Za-z][A-Za-z0-9]*)(\s+(?:0x|\d))/gm;
const asListed = fixtures.filter(({ text }) => !/^T:/m.test(text));

test('field names in a language that nobody knows: the numbers and their order are enough', () => {
  // Of this one the device descriptor is not whole, so that nothing but names tells what its lines are.
  for (const { name, text } of asListed.filter((fixture) => fixture.name !== 'asix-ax88772a-772a')) {
    const foreign = text.replaceAll(
      fieldName,
      (_line, indent: string, word: string, value: string) =>
        `${indent}Поле ${[...word].map((letter) => String.fromCodePoint(0x430 + ((letter.codePointAt(0) ?? 0) % 32))).join('')}${value}`,
    );
    const plain = (outcome: unknown): unknown => JSON.parse(JSON.stringify(outcome)) as unknown;
    expect([name, plain(outcomeOf(foreign))]).toEqual([name, plain(outcomeOf(text))]);
  }
});

test('fields run together, in one line and in lines of a paragraph', () => {
  for (const { name, text } of asListed) {
    const together = text.replaceAll(/\s+/g, ' ');
    expect([name, outcomeOf(together)]).toEqual([name, outcomeOf(text)]);
    expect([name, outcomeOf(wrap(76)(together))]).toEqual([name, outcomeOf(text)]);
  }
});

test('a sentence about fields is no listing', () => {
  const letter =
    'I set bInterfaceClass 255 and bInterfaceSubClass 255, or bInterfaceProtocol 0, and bNumEndpoints 3.\n';
  for (const { name, text } of asListed) {
    expect([name, outcomeOf(`${letter}${text}${letter}`)]).toEqual([name, outcomeOf(text)]);
  }
  expect(identifyText(letter.repeat(20)).ok).toBe(false);
});

test('records run together in one line', () => {
  for (const { name, text } of fixtures.filter((fixture) => /^T:/m.test(fixture.text))) {
    expect([name, outcomeOf(text.replaceAll('\n', ' '))]).toEqual([name, outcomeOf(text)]);
    expect([name, outcomeOf(text.replaceAll('\n', ''))]).toEqual([name, outcomeOf(text)]);
  }
});

describe('lines that are missing', () => {
  /** What is wrong with what is said of a damaged text; undefined: nothing. */
  function faultOf({ facts }: Fixture<Facts>, text: string): string | undefined {
    const result = identifyText(text);
    if (!result.ok) return /^line \d+: /.test(result.problem) ? undefined : result.problem;
    for (const { functions } of result.devices) {
      const odd = functions.find(
        ({ configuration, controlInterface }) => !Number.isInteger(configuration) || controlInterface < 0,
      );
      if (odd !== undefined) return odd.reason;
    }
    // What is there is not changed by what is not.
    const ids = result.devices.map(({ vendorId }) => vendorId?.toString(16).padStart(4, '0') ?? facts.vid);
    return ids.includes(facts.vid) ? undefined : `the devices are of ${ids.join(' and ')}`;
  }

  test('any single one: read, and told if it mattered', () => {
    const faults: string[] = [];
    for (const fixture of fixtures) {
      const lines = fixture.text.split('\n');
      for (let i = 0; i < lines.length; i++) {
        const fault = faultOf(fixture, lines.toSpliced(i, 1).join('\n'));
        if (fault !== undefined) faults.push(`${fixture.name} without line ${i + 1}: ${fault}`);
      }
    }
    expect(faults).toEqual([]);
  }, 60_000);

  test('everything behind any line', () => {
    const faults: string[] = [];
    for (const fixture of fixtures) {
      const lines = fixture.text.split('\n');
      for (let end = 1; end < lines.length; end += 3) {
        const fault = faultOf(fixture, lines.slice(0, end).join('\n'));
        if (fault !== undefined) faults.push(`${fixture.name} up to line ${end}: ${fault}`);
      }
    }
    expect(faults).toEqual([]);
  }, 60_000);

  test('a device whose listing ends before its last interface is not complete', () => {
    for (const { name, text, facts } of fixtures) {
      if (!facts.complete) continue;
      const starts = [...text.matchAll(/^\s*(?:I:[* ] If#= ?\S+ Alt= 0|bInterfaceNumber)/gm)];
      const cut = text.slice(0, starts.at(-1)?.index ?? 0);
      const [device] = devicesOf(cut);
      expect([name, device?.complete]).toEqual([name, false]);
      expect(device?.warnings.join('\n')).toMatch(
        /line \d+: .*(?:promises|does not say|has no number|nothing of it follows)/,
      );
    }
  });
});

test('several devices in one file, in their order', () => {
  const names = ['telit-le910c1-mbim', 'huawei-e3372-hilink-ecm', 'smsc-lan7500', 'asix-ax88179'];
  const chosen = names.flatMap((name) => fixtures.filter((fixture) => fixture.name === name));
  expect(chosen).toHaveLength(names.length);
  const together = chosen.map(({ text }) => text).join('\n\n');
  expect(outcomeOf(together)).toEqual(chosen.flatMap(({ text }) => outcomeOf(text)));
});
