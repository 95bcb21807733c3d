import { bcdFields, fieldsInOrder, kindOfType, standardLengths } from './lsusb-fields.ts';
import { leadingBcd, leadingNumber } from './number-text.ts';
import type { FieldName, PrintedDescriptor, PrintedText } from './printed-descriptor.ts';
import type { TextLine } from './text-line.ts';

const numberPattern = /^(?:0x[0-9a-f]+|\d+(?:\.\d+)?)(?:mA)?$/i;
/** A column of numbers stands apart from the names. */
const columnPattern = /\s{2,40}(\S+)/;
const longestLine = 200;

/** The number of a line that has words before it: a field whose name is in a language that nobody here knows. */
function numberAfterWords(line: string): string | undefined {
  if (line.length > longestLine) return undefined;
  const column = columnPattern.exec(line)?.[1];
  if (column !== undefined && numberPattern.test(column)) return column;
  const [first = '', ...words] = line.split(/\s+/);
  return numberPattern.test(first) ? undefined : words.find((word) => numberPattern.test(word));
}

interface Field {
  readonly line: number;
  readonly text: string;
}

/**
 * Reads a listing of `lsusb -v` whose very field names have been translated: what remains are the numbers in their
 * order. A descriptor begins where a length is followed by the type that has this length; its fields follow in the
 * order in which they are always printed.
 */
export function readPositions(lines: readonly TextLine[]): PrintedText {
  const fields: Field[] = [];
  for (const { number, text } of lines) {
    const value = numberAfterWords(text);
    if (value !== undefined) fields.push({ line: number, text: value });
  }

  const descriptors: PrintedDescriptor[] = [];
  let position = 0;
  while (position < fields.length) {
    const printed = readAt(fields, position);
    if (printed === undefined) position++;
    else {
      descriptors.push(printed);
      position += 2 + printed.fields.size;
    }
  }
  return { descriptors, warnings: [] };
}

function readAt(fields: readonly Field[], position: number): PrintedDescriptor | undefined {
  const length = leadingNumber(fields[position]?.text ?? '');
  const type = leadingNumber(fields[position + 1]?.text ?? '');
  if (length === undefined || type === undefined || standardLengths.get(type) !== length) return undefined;
  const kind = kindOfType(type);
  const read = new Map<FieldName, number>();
  // The burst is not always printed, and can be left out.
  const names = fieldsInOrder(kind).filter((name) => name !== 'bMaxBurst');
  for (const [i, name] of names.entries()) {
    const text = fields[position + 2 + i]?.text ?? '';
    const value = bcdFields.has(name) ? (leadingBcd(text) ?? leadingNumber(text)) : leadingNumber(text);
    if (value === undefined) break;
    read.set(name, value);
  }
  return { kind, line: fields[position]?.line ?? 0, fields: read };
}
