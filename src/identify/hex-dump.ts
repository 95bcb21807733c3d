import type { TextLine } from './text-line.ts';

/** An offset in front: "00000000:", "0000 ", "0x0000:". */
const offsetPattern = /^(?:0x)?[0-9a-f]{4,8}(?::\s?|\s)/i;
const endPattern = /^(?:0x)?[0-9a-f]{4,8}:?$/i;
const groupPattern = /^(?:0x)?((?:[0-9a-f]{2}){1,16}),?$/i;
const rowStart = /^[\s{}[\];]*(?:0x)?[0-9a-f]{2}/i;
/** A line of a dump with offsets has no more; characters follow. */
const bytesOfRow = 16;

/** What stands around the bytes where they are an array in some language. */
const brackets = /[{}[\];]/g;

/**
 * The bytes of a hexadecimal dump (`hexdump -C`, `xxd`, `od -tx1`, bytes in a row), and undefined for any other text.
 * Dumps in 16-bit words of a little-endian machine (`hexdump`) are put right, as they can only begin with "0112".
 */
export function readHexDump(lines: readonly TextLine[]): Uint8Array | undefined {
  const rows = lines.filter(({ text }) => text.trim() !== '');
  const hasOffsets =
    rows.length > 1 && rows.every(({ text }) => offsetPattern.test(text) || endPattern.test(text));
  const bytes: number[] = [];
  let isSwapped = false;
  for (const [i, { text }] of rows.entries()) {
    if (i > 0 && i === rows.length - 1 && endPattern.test(text)) break;
    const groups = groupsOf(text, hasOffsets);
    if (groups === undefined) return undefined;
    if (i === 0) isSwapped = groups[0]?.toLowerCase() === '0112';
    for (const group of groups) {
      for (let at = 0; at < group.length; at += 2) bytes.push(Number.parseInt(group.slice(at, at + 2), 16));
    }
  }
  if (bytes.length === 0) return undefined;
  return Uint8Array.from(isSwapped ? swapPairs(bytes) : bytes);
}

/** The dumps in a text that is something else besides: a letter, a page of a forum. Each is a run of lines. */
export function findHexDumps(lines: readonly TextLine[]): readonly Uint8Array[] {
  const dumps: Uint8Array[] = [];
  let run: TextLine[] = [];
  const endRun = (): void => {
    const dump = run.length === 0 ? undefined : readHexDump(run);
    if (dump !== undefined) dumps.push(dump);
    run = [];
  };
  for (const line of lines) {
    const { text } = line;
    const isRow = groupsOf(text, offsetPattern.test(text)) !== undefined || endPattern.test(text);
    if (isRow) run.push(line);
    else endRun();
  }
  endRun();
  return dumps;
}

function groupsOf(text: string, hasOffset: boolean): readonly string[] | undefined {
  // Most lines of a text are none, and some of them are long.
  if (!rowStart.test(text)) return undefined;
  const words = (hasOffset ? text.replace(offsetPattern, '') : text.replaceAll(brackets, ' '))
    .trim()
    .split(/\s+/);
  const groups: string[] = [];
  let length = 0;
  for (const word of words) {
    if (word === '' && !hasOffset) continue;
    const group = groupPattern.exec(word)?.[1];
    // Behind the bytes there may be the same as characters, but only there.
    if (group === undefined) return hasOffset && groups.length > 0 ? groups : undefined;
    if (hasOffset && length + group.length / 2 > bytesOfRow) break;
    groups.push(group);
    length += group.length / 2;
  }
  return groups;
}

function swapPairs(bytes: readonly number[]): number[] {
  const swapped: number[] = [];
  for (let i = 0; i < bytes.length; i += 2) {
    const [first, second] = [bytes[i], bytes[i + 1]];
    if (second !== undefined) swapped.push(second);
    if (first !== undefined) swapped.push(first);
  }
  return swapped;
}
