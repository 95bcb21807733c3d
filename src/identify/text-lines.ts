/** A line of a text, without what mail programs and forums put in front of it. */
export interface TextLine {
  /** From 1. */
  readonly number: number;
  readonly text: string;
}

/** Marks of quotation (`> > `, `| `, `JD> `), indentation of any kind, characters without width. */
const prefix = /^(?:[\s|>`\u200b\ufeff]|&gt;|&nbsp;|[A-Z]{1,3}>)+/;

/** An equals sign as only a mail has it behind these keys, or a blank at the end of a line of lsusb. */
const quotedPrintableMark =
  /(?:#|Ver|Cls|Sub|Prot|Ad|Atr|MxPS|Spd|Vendor)=3D|^[^\w\n]*(?:b|w|i|id|bm|bcd)[A-Z]\w+ +\S.*=20$/m;
const softBreak = /=\r?\n/g;

/**
 * Cuts a text into lines and takes off what surrounds them. A mail in quoted-printable is decoded first, line by
 * line, so that numbers of lines stay those of the text.
 */
export function textLines(text: string): readonly TextLine[] {
  const isQuotedPrintable = quotedPrintableMark.test(text);
  // A soft break joins two lines; the empty one that it leaves behind keeps the count.
  const lines = (isQuotedPrintable ? joinSoftBreaks(text) : text).split(/\r\n|\n|\r/);
  return lines.map((line, i) => ({
    number: i + 1,
    text: tidy(isQuotedPrintable ? decodeQuotedPrintable(line) : line),
  }));
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
  return line.replaceAll(/=([0-9A-F]{2})/g, (_match, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
