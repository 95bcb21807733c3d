import {
  FunctionalDraft,
  functionalBcdFields,
  isFunctionalMember,
  isFunctionalOpener,
} from './functional-fields.ts';
import {
  bcdFields,
  fieldsInOrder,
  findField,
  kindOfTitle,
  kindOfType,
  type NumberedTitle,
  numberedTitleOf,
} from './lsusb-fields.ts';
import { parseHeading } from './lsusb-heading.ts';
import { hexPairs, leadingBcd, leadingNumber, leadingNumbers } from './number-text.ts';
import type {
  FieldName,
  PrintedDescriptor,
  PrintedKind,
  PrintedText,
  ReadWarning,
} from './printed-descriptor.ts';
import type { TextLine } from './text-line.ts';

const fieldPattern = /^([A-Za-z][A-Za-z0-9]*)\s*[:=]?\s*(.*)$/;
const rawPattern = /:\s*((?:[0-9a-f]{2}\s+)*[0-9a-f]{2})\s*$/i;
/** "0x00 | 0x05, 0x24, 0x06, 0x00, 0x01": what FreeBSD's usbconfig prints of descriptors that it does not know. */
const rawDumpPattern = /^0x[0-9a-f]{2,4} \| ((?:0x[0-9a-f]{2},? {0,2}){1,16})$/i;
const guidPattern = /^\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?/i;

interface Draft {
  kind: PrintedKind | undefined;
  readonly line: number;
  readonly fields: Map<FieldName, number>;
  /** From a title like "Interface 0"; it stands in for the field if that is not printed. */
  readonly titled?: NumberedTitle;
  manufacturer?: string;
  product?: string;
}

/**
 * Reads what `lsusb -v` prints, and programs that print the same names (usbconfig, USBView). Only the names of fields and their numbers count: titles, indentation and explanations
 * may be missing, wrapped or in another language. Anything else in the text is passed over.
 */
export function readLsusb(lines: readonly TextLine[]): PrintedText {
  const reader = new LsusbReader();
  for (const line of lines) reader.read(line);
  return reader.finish();
}

/** The pairs of digits of a row; undefined: it is none. */
function rowOfRawDump(text: string): string | undefined {
  return rawDumpPattern.exec(text)?.[1]?.replaceAll(/0x|,/gi, ' ');
}

class LsusbReader {
  readonly #descriptors: PrintedDescriptor[] = [];
  readonly #warnings: ReadWarning[] = [];
  #draft: Draft | undefined;
  #functional: FunctionalDraft | undefined;
  /** A field whose value may have been wrapped to the next line. */
  #waiting: { readonly name: string; readonly line: number } | undefined;
  /** Raw bytes of which more may have been wrapped to the next line. */
  #raw: { readonly bytes: number[]; readonly line: number } | undefined;

  read({ number, text }: TextLine): void {
    if (text === '') return;
    if (this.#raw !== undefined && this.#continueRaw(text)) return;
    if (this.#waiting !== undefined && this.#continueField(text)) return;

    const heading = parseHeading(text);
    if (heading !== undefined) {
      this.#flush();
      this.#descriptors.push(heading.toDescriptor(number));
      return;
    }
    const raw = rawPattern.exec(text)?.[1] ?? rowOfRawDump(text);
    if (raw !== undefined && this.#startRaw(raw, number)) return;
    const title = kindOfTitle(text);
    if (title !== undefined) {
      this.#open(title, number);
      return;
    }
    const numbered = numberedTitleOf(text);
    if (numbered !== undefined) {
      this.#flush();
      this.#draft = { kind: numbered.kind, line: number, fields: new Map(), titled: numbered };
      return;
    }
    const [, word = '', rest = ''] = fieldPattern.exec(text) ?? [];
    this.#readField(word.toLowerCase(), rest, number);
  }

  finish(): PrintedText {
    this.#dropWaiting();
    this.#flush();
    return { descriptors: this.#descriptors, warnings: this.#warnings };
  }

  // ---- fields ----

  #readField(name: string, rest: string, line: number): void {
    const isKnown =
      name === 'blength' ||
      name === 'bdescriptortype' ||
      name === 'bguid' ||
      findField(name) !== undefined ||
      isFunctionalOpener(name) ||
      isFunctionalMember(name);
    if (!isKnown) return;
    if (rest === '') {
      this.#dropWaiting();
      this.#waiting = { name, line };
      return;
    }
    this.#setField(name, rest, line);
  }

  #continueField(text: string): boolean {
    const { name, line } = this.#waiting ?? { name: '', line: 0 };
    if (!/^(?:0x[0-9a-f]|\d)/i.test(text)) {
      this.#dropWaiting();
      return false;
    }
    this.#waiting = undefined;
    this.#setField(name, text, line);
    return true;
  }

  #dropWaiting(): void {
    if (this.#waiting === undefined) return;
    this.#warnings.push({ line: this.#waiting.line, message: 'the field has no value' });
    this.#waiting = undefined;
  }

  #setField(name: string, rest: string, line: number): void {
    if (name === 'bguid') {
      this.#addGuid(rest);
      return;
    }
    const field = findField(name);
    const isBcd = field === undefined ? functionalBcdFields.has(name) : bcdFields.has(field.name);
    const value = isBcd ? (leadingBcd(rest) ?? leadingNumber(rest)) : leadingNumber(rest);
    if (value === undefined) {
      this.#warnings.push({ line, message: `"${rest.slice(0, 40)}" is no number` });
      return;
    }
    if (name === 'blength') this.#startBlock(line);
    else if (name === 'bdescriptortype') this.#setType(value, line);
    else if (field !== undefined) this.#addField(field.name, field.kind, value, rest, line);
    else if (name === 'bslaveinterface') {
      for (const slave of leadingNumbers(rest)) this.#addFunctional(name, slave, line);
    } else this.#addFunctional(name, value, line);
  }

  /** `bLength` begins a descriptor, unless its title has just done so. */
  #startBlock(line: number): void {
    if (this.#draft === undefined || this.#draft.fields.size > 0 || this.#functional !== undefined) {
      this.#open(undefined, line);
    }
  }

  #setType(descriptorType: number, line: number): void {
    if (this.#draft === undefined || this.#draft.fields.size > 0 || this.#functional !== undefined) {
      this.#open(undefined, line);
    }
    if (this.#draft !== undefined) this.#draft.kind = kindOfType(descriptorType);
  }

  #addField(name: FieldName, kind: PrintedKind | undefined, value: number, rest: string, line: number): void {
    // Descriptors of other kinds have fields of the same names.
    if (this.#draft?.kind === 'other') return;
    if (kind === undefined) {
      if (this.#draft !== undefined && this.#functional === undefined) this.#draft.fields.set(name, value);
      return;
    }
    if (this.#draft === undefined || this.#functional !== undefined) this.#open(kind, line);
    else if (this.#draft.kind === undefined) this.#draft.kind = kind;
    else if (this.#draft.kind !== kind || this.#draft.fields.has(name)) this.#open(kind, line);
    if (this.#draft === undefined) return;
    this.#draft.fields.set(name, value);
    const words = rest.replace(/^\S+\s*/, '');
    if (words === '') return;
    if (name === 'iManufacturer') this.#draft.manufacturer = words;
    if (name === 'iProduct') this.#draft.product = words;
  }

  // ---- functional descriptors ----

  #addFunctional(name: string, value: number, line: number): void {
    if (this.#draft?.kind === 'other') return;
    if (isFunctionalOpener(name)) {
      this.#flush();
      this.#functional = new FunctionalDraft(name, value, line);
    } else this.#functional?.add(name, value);
  }

  #addGuid(text: string): void {
    const match = guidPattern.exec(text);
    if (match === null) return;
    const [, first = '', second = '', third = '', fourth = '', fifth = ''] = match;
    const bytes = (hex: string): number[] =>
      Array.from({ length: hex.length / 2 }, (_, i) => Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16));
    // The first three groups are little-endian numbers on the wire.
    this.#functional?.addGuid(
      Uint8Array.from([
        ...bytes(first).toReversed(),
        ...bytes(second).toReversed(),
        ...bytes(third).toReversed(),
        ...bytes(fourth),
        ...bytes(fifth),
      ]),
    );
  }

  // ---- raw bytes ----

  /** Bytes of a descriptor that lsusb does not know: "** UNRECOGNIZED:  05 24 06 00 01". */
  #startRaw(hex: string, line: number): boolean {
    const bytes = hexPairs(hex);
    const [length = 0, type, ...numbers] = bytes ?? [];
    if (type === associationType && this.#draft?.kind === 'association') {
      for (const [i, name] of fieldsInOrder('association').entries()) {
        const value = numbers[i];
        if (value !== undefined) this.#draft.fields.set(name, value);
      }
      return true;
    }
    if (bytes === undefined || bytes.length < 2 || type !== classSpecificInterface) return false;
    if (bytes.length > length) return false;
    // Its length and type may have been printed before.
    if (this.#draft?.kind === 'other') this.#draft = undefined;
    this.#raw = { bytes: [...bytes], line };
    this.#finishRaw();
    return true;
  }

  #continueRaw(text: string): boolean {
    const bytes = hexPairs(rowOfRawDump(text) ?? text);
    if (bytes === undefined || this.#raw === undefined) {
      this.#flush();
      return false;
    }
    this.#raw.bytes.push(...bytes);
    this.#finishRaw();
    return true;
  }

  #finishRaw(): void {
    const raw = this.#raw;
    if (raw === undefined || raw.bytes.length < (raw.bytes[0] ?? 0)) return;
    this.#raw = undefined;
    this.#flush();
    this.#descriptors.push({
      kind: 'functional',
      line: raw.line,
      fields: new Map(),
      bytes: Uint8Array.from(raw.bytes.slice(0, raw.bytes[0])),
    });
  }

  // ---- descriptors ----

  #open(kind: PrintedKind | undefined, line: number): void {
    this.#flush();
    this.#draft = { kind, line, fields: new Map() };
  }

  #flush(): void {
    if (this.#raw !== undefined) {
      this.#warnings.push({ line: this.#raw.line, message: 'the bytes of a descriptor are cut off' });
      this.#raw = undefined;
    }
    const draft = this.#draft;
    const titled = draft?.titled;
    if (titled !== undefined && draft?.fields.has(titled.name) === false) {
      draft.fields.set(titled.name, titled.value);
    }
    if (draft !== undefined && draft.kind !== 'other' && draft.fields.size === 0) {
      this.#warnings.push({
        line: draft.line,
        message: 'a descriptor begins here, and nothing of it follows',
      });
    }
    if (draft?.kind !== undefined && (draft.fields.size > 0 || draft.kind === 'other')) {
      const { kind, line, fields, manufacturer, product } = draft;
      this.#descriptors.push({
        kind,
        line,
        fields,
        ...(manufacturer === undefined ? {} : { manufacturer }),
        ...(product === undefined ? {} : { product }),
      });
    }
    this.#draft = undefined;
    if (this.#functional !== undefined) {
      this.#descriptors.push({
        kind: 'functional',
        line: this.#functional.line,
        fields: new Map(),
        bytes: this.#functional.encode(),
      });
      this.#functional = undefined;
    }
  }
}

const classSpecificInterface = 0x24;
const associationType = 0x0b;
