import { isFunctionalMember, isFunctionalOpener } from './functional-fields.ts';
import { findField } from './lsusb-fields.ts';
import type { TextLine } from './text-line.ts';

/** Where something of a listing begins: a title, the line that names a device, a field with its value behind it. */
const beginning =
  /(?<![\w.>$-])(?:(?:Device|Configuration|Interface|Endpoint) Descriptor:|Interface Association:|Device Qualifier\b|Binary Object Store|Bus \d{3} \S{1,20} \d{3}: ID [\da-f]{4}:|\*\* UNRECOGNIZED:|MaxPower(?=\s+\d)|(b|bm|bcd|w|i|id|dw)([A-Z]\w*)(?=\s*[:=]?\s*(?:0x[\da-f]|\d)|\s*$))/g;

/** What a program puts in front of each line: a number, a time, where the line comes from. Words of people end otherwise. */
const mechanicalPrefix = /^(?:(?:[^a-z]|t\d|z\s)*|.{0,120}[:\]>|)"])\s*$/i;

/** There is one of these a device only. */
const headingStart = /^Bus \d/;
/** Fewer lines with something in front of them are no listing. */
const fewestPrefixed = 5;
/** So many beginnings in lines with several of them are a listing without line breaks, and not a sentence about one. */
const fewestBeginnings = 12;
const fewestLengths = 2;

interface Beginnings {
  readonly at: readonly number[];
  /** How many of them are `bLength` or `bDescriptorType`, which people do not write about. */
  readonly lengths: number;
}

/**
 * Puts each field of `lsusb -v` at the beginning of a line of its own: takes off numbers, times and names of files in
 * front of lines, and cuts what has been run together. Lines in which nothing begins stay as they are.
 */
export function cutFields(lines: readonly TextLine[]): readonly TextLine[] {
  const found = new Map<number, Beginnings>();
  let prefixed = 0;
  let beginningsTogether = 0;
  let lengthsTogether = 0;
  let firstTogether = Infinity;
  let lastTogether = -1;
  for (const [i, { text }] of lines.entries()) {
    const beginnings = beginningsOf(text);
    const [first] = beginnings.at;
    if (first === undefined || (first === 0 && beginnings.at.length === 1)) continue;
    found.set(i, beginnings);
    if (first > 0 && mechanicalPrefix.test(text.slice(0, first))) prefixed++;
    if (beginnings.at.length < 2) continue;
    beginningsTogether += beginnings.at.length;
    lengthsTogether += beginnings.lengths;
    firstTogether = Math.min(firstTogether, i);
    lastTogether = i;
  }
  if (found.size === 0) return lines;
  const areTogether = beginningsTogether >= fewestBeginnings && lengthsTogether >= fewestLengths;
  const arePrefixed = prefixed >= fewestPrefixed;
  return lines.flatMap((line, i) => {
    const at = found.get(i)?.at ?? [];
    const [first = 0] = at;
    if (areTogether && i >= firstTogether && i <= lastTogether && at.length > 0) return cutAt(line, at);
    if (
      first > 0 &&
      (arePrefixed || headingStart.test(line.text.slice(first))) &&
      mechanicalPrefix.test(line.text.slice(0, first))
    ) {
      return [{ number: line.number, text: line.text.slice(first) }];
    }
    return [line];
  });
}

function beginningsOf(text: string): Beginnings {
  const at: number[] = [];
  const kinds: string[] = [];
  let lengths = 0;
  for (const { index, 0: whole, 1: prefix } of text.matchAll(beginning)) {
    if (prefix !== undefined) {
      const name = whole.toLowerCase();
      if (name === 'blength' || name === 'bdescriptortype') lengths++;
      else if (!isFieldName(name)) continue;
    }
    at.push(index);
    kinds.push(whole.replaceAll(/\d+/g, ''));
  }
  // Two listings side by side have everything twice in a line; the left one is read.
  const isTwice = at.length === 2 && kinds[0] === kinds[1];
  return isTwice ? { at: at.slice(0, 1), lengths: 0 } : { at, lengths };
}

function isFieldName(name: string): boolean {
  return findField(name) !== undefined || isFunctionalOpener(name) || isFunctionalMember(name);
}

function cutAt({ number, text }: TextLine, at: readonly number[]): readonly TextLine[] {
  const starts = at[0] === 0 ? at : [0, ...at];
  return starts
    .map((start, i) => ({ number, text: text.slice(start, starts[i + 1]).trim() }))
    .filter((piece) => piece.text !== '');
}
