import { leadingBcd } from './number-text.ts';
import type {
  FieldName,
  PrintedDescriptor,
  PrintedKind,
  PrintedText,
  ReadWarning,
} from './printed-descriptor.ts';
import type { TextLine } from './text-line.ts';

/** The letters that begin a record, each with the keys by which it is known for certain. */
const recordKeys: Readonly<Record<string, string>> = {
  T: 'Bus|Lev|Prnt|Port|Cnt|Dev#|Spd',
  B: 'Alloc',
  D: 'Ver|Cls',
  P: 'Vendor|ProdID',
  S: 'Manufacturer|Product|SerialNumber',
  C: '#Ifs|Cfg#',
  A: 'FirstIf#|IfCount',
  I: 'If#|Alt',
  E: 'Ad|Atr',
};
/** A record's letter may be glued to the end of the record before it, or cut off from its own keys. */
const startPattern = new RegExp(
  Object.entries(recordKeys)
    .map(([letter, keys]) => String.raw`${letter}\s?:\s{0,8}\*?\s{0,8}(?:${keys})\s?=`)
    .join('|'),
  'gi',
);
const recordPattern = /^([TBDPSCAIE])\s?:\s*(\*?)\s*([^]*)$/i;

interface Draft {
  kind: PrintedKind;
  readonly line: number;
  readonly fields: Map<FieldName, number>;
  manufacturer?: string;
  product?: string;
  inUse?: boolean;
  kernelDriver?: string;
}

/**
 * Reads what `usb-devices` and the kernel's usb/devices file print: records of one letter with keys and values
 * (`T: B: D: P: S: C: I: E:`). Where lines end does not matter: records may be wrapped, or run together.
 */
export function readUsbDevices(lines: readonly TextLine[]): PrintedText {
  const reader = new UsbDevicesReader();
  for (const record of cutRecords(lines)) reader.read(record);
  return reader.finish();
}

function cutRecords(lines: readonly TextLine[]): readonly TextLine[] {
  const text = lines.map((line) => line.text).join('\n');
  const starts = Array.from(text.matchAll(startPattern), (match) => match.index);
  const records: TextLine[] = [];
  let line = 0;
  let lineEnd = lines[0]?.text.length ?? 0;
  for (const [i, start] of starts.entries()) {
    while (start > lineEnd) {
      line++;
      lineEnd += 1 + (lines[line]?.text.length ?? 0);
    }
    // What stands behind an empty line is no part of the record.
    const [record = ''] = text.slice(start, starts[i + 1]).split(/\n\s*\n/, 1);
    records.push({ number: lines[line]?.number ?? 0, text: record });
  }
  return records;
}

class UsbDevicesReader {
  readonly #descriptors: PrintedDescriptor[] = [];
  readonly #warnings: ReadWarning[] = [];
  #device: Draft | undefined;

  read({ number: line, text }: TextLine): void {
    const [, letter = '', star = '', rest = ''] = recordPattern.exec(text) ?? [];
    switch (letter.toUpperCase()) {
      case 'T':
        this.#flushDevice();
        break;
      case 'D':
        this.#readDevice(rest, line);
        break;
      case 'P':
        this.#readProduct(rest, line);
        break;
      case 'S':
        this.#readString(rest, line);
        break;
      case 'C':
        this.#add('configuration', line, star, rest, [
          ['bNumInterfaces', '#Ifs', 10],
          ['bConfigurationValue', 'Cfg#', 10],
          ['bmAttributes', 'Atr', 16],
          ['MaxPower', 'MxPwr', 10],
        ]);
        break;
      case 'A':
        this.#add('association', line, star, rest, [
          ['bFirstInterface', 'FirstIf#', 10],
          ['bInterfaceCount', 'IfCount', 10],
          ['bFunctionClass', 'Cls', 16],
          ['bFunctionSubClass', 'Sub', 16],
          ['bFunctionProtocol', 'Prot', 16],
        ]);
        break;
      case 'I':
        this.#add('interface', line, star, rest, [
          ['bInterfaceNumber', 'If#', 10],
          ['bAlternateSetting', 'Alt', 10],
          ['bNumEndpoints', '#EPs', 10],
          ['bInterfaceClass', 'Cls', 16],
          ['bInterfaceSubClass', 'Sub', 16],
          ['bInterfaceProtocol', 'Prot', 16],
        ]);
        break;
      case 'E':
        this.#add('endpoint', line, star, rest, [
          ['bEndpointAddress', 'Ad', 16],
          ['bmAttributes', 'Atr', 16],
          ['wMaxPacketSize', 'MxPS', 10],
        ]);
        break;
    }
  }

  finish(): PrintedText {
    this.#flushDevice();
    return { descriptors: this.#descriptors, warnings: this.#warnings };
  }

  #readDevice(rest: string, line: number): void {
    if (this.#device?.fields.has('bDeviceClass') === true) this.#flushDevice();
    const { fields } = this.#openDevice(line);
    setBcd(fields, 'bcdUSB', valueOf(rest, 'Ver'));
    this.#setNumbers(fields, rest, line, [
      ['bDeviceClass', 'Cls', 16],
      ['bDeviceSubClass', 'Sub', 16],
      ['bDeviceProtocol', 'Prot', 16],
      ['bMaxPacketSize0', 'MxPS', 10],
      ['bNumConfigurations', '#Cfgs', 10],
    ]);
  }

  #readProduct(rest: string, line: number): void {
    if (this.#device?.fields.has('idVendor') === true) this.#flushDevice();
    const { fields } = this.#openDevice(line);
    this.#setNumbers(fields, rest, line, [
      ['idVendor', 'Vendor', 16],
      ['idProduct', 'ProdID', 16],
    ]);
    setBcd(fields, 'bcdDevice', valueOf(rest, 'Rev'));
  }

  #readString(rest: string, line: number): void {
    const [, key, words = ''] = /^(Manufacturer|Product)\s*=\s*(.*)/i.exec(rest) ?? [];
    if (key === undefined || words.trim() === '') return;
    const device = this.#openDevice(line);
    if (key.toLowerCase() === 'product') device.product = words.trim();
    else device.manufacturer = words.trim();
  }

  #openDevice(line: number): Draft {
    this.#device ??= { kind: 'device', line, fields: new Map() };
    return this.#device;
  }

  #flushDevice(): void {
    if (this.#device !== undefined) this.#descriptors.push(this.#device);
    this.#device = undefined;
  }

  #add(
    kind: PrintedKind,
    line: number,
    star: string,
    rest: string,
    keys: readonly (readonly [FieldName, string, 10 | 16])[],
  ): void {
    this.#flushDevice();
    const fields = new Map<FieldName, number>();
    this.#setNumbers(fields, rest, line, keys);
    const driver = /\bDriver ?= ?(\S+)/.exec(rest)?.[1];
    const interval = kind === 'endpoint' ? intervalOf(rest) : undefined;
    if (interval !== undefined) fields.set('bInterval', interval);
    this.#descriptors.push({
      kind,
      line,
      fields,
      ...(star === '' ? {} : { inUse: true }),
      ...(driver === undefined ? {} : { kernelDriver: /^[([]/.test(driver) ? '' : driver }),
    });
  }

  #setNumbers(
    fields: Map<FieldName, number>,
    rest: string,
    line: number,
    keys: readonly (readonly [FieldName, string, 10 | 16])[],
  ): void {
    for (const [name, key, radix] of keys) {
      const text = valueOf(rest, key);
      if (text === undefined) continue;
      const value = numberOf(text, radix);
      if (value === undefined) this.#warnings.push({ line, message: `${key}=${text} is no number` });
      else fields.set(name, value);
    }
  }
}

function valueOf(record: string, key: string): string | undefined {
  return new RegExp(String.raw`(?:^|\s)${key}\s*=\s*([^\s(]+)`, 'i').exec(record)?.[1];
}

/** Numbers of interfaces are decimal, but with 0x and, in some listings, with letters they are not. */
function numberOf(text: string, radix: 10 | 16): number | undefined {
  const [, prefix = '', digits = ''] = /^(0x)?([0-9a-f]{1,8})(?:mA)?$/i.exec(text) ?? [];
  if (digits === '') return undefined;
  const isHexadecimal = radix === 16 || prefix !== '' || /[a-f]/i.test(digits);
  return Number.parseInt(digits, isHexadecimal ? 16 : 10);
}

function setBcd(fields: Map<FieldName, number>, name: FieldName, text: string | undefined): void {
  const value = leadingBcd(text ?? '');
  if (value !== undefined) fields.set(name, value);
}

const microframeUs = 125;

/**
 * `bInterval` as far as the printed time tells: a power of two of microframes of a high-speed endpoint, milliseconds
 * otherwise. Nothing here depends on it.
 */
function intervalOf(record: string): number | undefined {
  const [, digits, unit] = /(?:^|\s)Ivl\s*=\s*(\d{1,7})(us|ms)/.exec(record) ?? [];
  if (digits === undefined) return undefined;
  const us = Number(digits) * (unit === 'ms' ? 1000 : 1);
  return us === 0 ? 0 : Math.min(255, Math.max(1, Math.round(Math.log2(us / microframeUs)) + 1));
}
