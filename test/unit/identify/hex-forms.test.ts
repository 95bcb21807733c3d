import { describe, expect, test } from 'vitest';
import { identify } from '../../../src/identify/identify.ts';
import { identifyText } from './descriptor-fixtures.ts';

/** The descriptors of a phone that tethers by NCM, in the forms in which bytes are kept and posted. */
const bytes = Uint8Array.from(
  // Device
  (
    '12 01 10 02 00 00 00 40 d1 18 ec 4e 40 04 01 02 03 01' +
    // Configuration, association
    ' 09 02 65 00 02 01 04 80 fa 08 0b 00 02 02 0d 00 06' +
    // Control interface: header, union, Ethernet, NCM; notifications
    ' 09 04 00 00 01 02 0d 00 05 05 24 00 10 01 05 24 06 00 01 0d 24 0f 07 00 00 00 00 ea 05 00 00 00' +
    ' 06 24 1a 00 01 11 07 05 82 03 10 00 09' +
    // Data interface, without and with endpoints
    ' 09 04 01 00 00 0a 00 01 00 09 04 01 01 02 0a 00 01 00 07 05 81 02 00 02 00 07 05 01 02 00 02 00'
  )
    .split(' ')
    .map((pair) => Number.parseInt(pair, 16)),
);
bytes[20] = bytes.length - 18;

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
const pairs = [...bytes].map((byte) => hex(byte, 2));

function rows(format: (row: readonly string[], offset: number) => string): string {
  const lines: string[] = [];
  for (let offset = 0; offset < pairs.length; offset += 16) {
    lines.push(format(pairs.slice(offset, offset + 16), offset));
  }
  return lines.join('\n');
}

const dots = (row: readonly string[]): string => '.'.repeat(row.length);
const canonical = rows(
  (row, offset) =>
    `${hex(offset, 8)}  ${row.slice(0, 8).join(' ').padEnd(23)}  ${row.slice(8).join(' ').padEnd(23)}  |${dots(row)}|`,
);
const xxd = rows(
  (row, offset) => `${hex(offset, 8)}: ${row.join('').replaceAll(/(.{4})/g, '$1 ')} ${dots(row)}`,
);
const end = hex(pairs.length, 8);

const forms: readonly (readonly [string, string])[] = [
  ['xxd', xxd],
  ['xxd, quoted', xxd.replaceAll(/^/gm, '> ')],
  ['xxd -p', rows((row) => row.join(''))],
  ['xxd -i', `unsigned char descriptors[] = {\n${pairs.map((pair) => `0x${pair}`).join(', ')}\n};`],
  ['an array', `{ ${pairs.map((pair) => `0x${pair}`).join(', ')} }`],
  ['hexdump -C', `${canonical}\n${end}\n`],
  [
    'hexdump',
    `${rows((row, offset) => `${hex(offset, 7)} ${row.join('').replaceAll(/(..)(..)/g, '$2$1 ')}`)}\n${hex(pairs.length, 7)}`,
  ],
  ['od -tx1', rows((row, offset) => `${offset.toString(8).padStart(7, '0')} ${row.join(' ')}`)],
  [
    'Wireshark',
    rows((row, offset) => `${hex(offset, 4)}   ${row.slice(0, 8).join(' ')}  ${row.slice(8).join(' ')}`),
  ],
  [
    'hexdump -C in a letter',
    `Hello,\n\n# hexdump -C /sys/bus/usb/devices/1-1/descriptors\n${canonical}\n${end}\n\nThanks,\nsomebody\n`,
  ],
];

const expected = {
  complete: true,
  functions: [
    { linuxDriver: 'cdc_ncm', configuration: 1, interfaces: [0, 1], controlInterface: 0, dataInterface: 1 },
  ],
};

describe('descriptors as bytes', () => {
  test('as the kernel keeps them', () => {
    const result = identify(bytes, new TextDecoder().decode(bytes));
    expect(result).toMatchObject({ ok: true, devices: [{ vendorId: 0x18d1, ...expected }] });
  });

  test.each(forms)('as %s prints them', (_name, text) => {
    expect(identifyText(text)).toMatchObject({ ok: true, devices: [{ vendorId: 0x18d1, ...expected }] });
  });

  test('two dumps in a letter are two devices', () => {
    const result = identifyText(`One:\n${xxd}\nand the other:\n${xxd.replace('d118', 'd218')}\n`);
    expect(result.ok && result.devices.map(({ vendorId }) => vendorId)).toEqual([0x18d1, 0x18d2]);
  });

  test('cut off anywhere: the byte is named, or what is missing is told', () => {
    for (let length = 2; length < bytes.length; length++) {
      const cut = bytes.subarray(0, length);
      const result = identify(cut, new TextDecoder().decode(cut));
      if (result.ok) {
        expect([length, result.devices[0]?.complete]).toEqual([length, false]);
        expect(result.devices[0]?.warnings[0]).toMatch(/^byte \d+: /);
      } else expect(result.problem).toMatch(/^byte \d+: /);
    }
  });
});
