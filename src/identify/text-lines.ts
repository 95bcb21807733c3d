import { cutFields } from './field-cutting.ts';
import { hasMailParts, openMailParts } from './mail-parts.ts';
import { findMarkup, withoutMarkup } from './markup.ts';
import type { TextLine } from './text-line.ts';

/** Marks of quotation (`> > `, `| `, `JD> `), indentation of any kind, characters without width. */
const prefix = /^(?:[\s|>`\u200b\ufeff]|&gt;|&nbsp;|[A-Z]{1,3}>)+/;

/** An equals sign as only a mail has it behind these keys, or a blank at the end of a line of lsusb. */
const quotedPrintableMark =
  /(?:#|Ver|Cls|Sub|Prot|Ad|Atr|MxPS|Spd|Vendor)=3D|^[^\w\n]*(?:b|w|i|id|bm|bcd)[A-Z]\w+ +\S.*=20$/m;
const softBreak = /=\r?\n/g;

/**
 * Cuts a text into lines and takes off what mail programs, forums, browsers, terminals and logs have put around them, so
 * that what belongs to a listing begins its line. Numbers of lines stay those of the text.
 */
export function textLines(text: string): readonly TextLine[] {
  const isQuotedPrintable = quotedPrintableMark.test(text);
  // A soft break joins two lines; the empty one that it leaves behind keeps the count.
  const joined = isQuotedPrintable ? joinSoftBreaks(text) : text;
  let lines: readonly TextLine[] = joined
    .split(/\r\n|\n|\r/)
    .map((line, i) => ({ number: i + 1, text: isQuotedPrintable ? decodeQuotedPrintable(line) : line }));
  if (hasMailParts(text)) lines = openMailParts(text, lines);
  const markup = findMarkup(text);
  if (Object.values(markup).includes(true)) {
    lines = lines.flatMap((line) => {
      const pieces = withoutMarkup(line.text, markup);
      return pieces === undefined ? [line] : pieces.map((piece) => ({ number: line.number, text: piece }));
    });
  }
  return cutFields(lines.map((line) => ({ number: line.number, text: tidy(line.text) })));
}

function tidy(line: string): string {
  return line
    .replace(prefix, '')
    .replaceAll(/&nbsp;|[\u00a0\u2000-\u200a\u202f\u3000\t]/g, ' ')
    .trimEnd();
}

function joinSoftBreaks(text: string): string {
  const parts = text.split(softBreak);
  let joined = '';
  let pendingBreaks = 0;
  for (const [i, part] of parts.entries()) {
    const end = part.indexOf('\n');
    if (end < 0 || pendingBreaks === 0) joined += part;
    else joined += part.slice(0, end) + '\n'.repeat(pendingBreaks) + part.slice(end);
    if (end >= 0) pendingBreaks = 0;
    if (i < parts.length - 1) pendingBreaks++;
  }
  return joined;
}

function decodeQuotedPrintable(line: string): string {
  return line.replaceAll(/(?:=[0-9A-F]{2})+/g, decodeBytes);
}

/** Bytes written as "=C2=A0" are UTF-8 or, where that is impossible, Latin 1. */
function decodeBytes(written: string): string {
  try {
    return decodeURIComponent(written.replaceAll('=', '%'));
  } catch {
    return written.replaceAll(/=(..)/g, (_match, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  }
}
