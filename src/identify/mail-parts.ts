import type { TextLine } from './text-line.ts';

const encodingPattern = /^Content-Transfer-Encoding:\s*base64\s*$/i;
const htmlPattern = /^Content-Type:\s*text\/html\b/i;
const alternativePattern = /^Content-Type:\s*multipart\/alternative\b/im;
const boundaryPattern = /\bboundary="?([^"\s;]{1,200})/gi;
const base64Pattern = /^[A-Za-z0-9+/]{4,}={0,2}$/;

/** Whether a text is a mail with parts that have to be opened: encoded ones, or the same words a second time. */
export function hasMailParts(text: string): boolean {
  return /^Content-Transfer-Encoding:\s*base64\s*$/im.test(text) || alternativePattern.test(text);
}

/**
 * Opens a mail as it was saved: parts in base64 are decoded where they are text and left out where they are not, and
 * of two versions of the same words the one in HTML is left out. A decoded line has the number of the line in which it
 * begins. Headers stay: nobody takes them for a listing.
 * @param text of the lines
 */
export function openMailParts(text: string, lines: readonly TextLine[]): readonly TextLine[] {
  const boundaries = Array.from(text.matchAll(boundaryPattern), ([, boundary = '']) => `--${boundary}`);
  const hasAlternatives = alternativePattern.test(text);
  const opened: TextLine[] = [];
  let isEncoded = false;
  let isRepeated = false;
  let isBody = false;
  let encoded: TextLine[] = [];
  const endEncoded = (): void => {
    if (!isRepeated) opened.push(...decodeLines(encoded));
    encoded = [];
  };
  for (const line of lines) {
    const content = line.text;
    if (content.startsWith('--') && boundaries.some((boundary) => content.startsWith(boundary))) {
      endEncoded();
      isEncoded = isRepeated = isBody = false;
    } else if (!isBody) {
      if (encodingPattern.test(content)) isEncoded = true;
      else if (hasAlternatives && htmlPattern.test(content)) isRepeated = true;
      else if (content === '' && (isEncoded || isRepeated)) isBody = true;
      opened.push(line);
    } else if (isEncoded && base64Pattern.test(content)) encoded.push(line);
    else {
      endEncoded();
      if (!isRepeated) opened.push(line);
    }
  }
  endEncoded();
  return opened;
}

function decodeLines(encoded: readonly TextLine[]): readonly TextLine[] {
  const [first] = encoded;
  if (first === undefined) return [];
  const bytes = decodeBase64(encoded.map(({ text }) => text).join(''));
  if (bytes?.includes(0) !== false) return [];
  const bytesPerLine = Math.max(1, Math.floor(first.text.length / 4) * 3);
  const lines: TextLine[] = [];
  let start = 0;
  while (start <= bytes.length) {
    const found = bytes.indexOf(newline, start);
    const end = found < 0 ? bytes.length : found;
    const text = new TextDecoder().decode(bytes.subarray(start, end));
    const { number } = encoded[Math.floor(start / bytesPerLine)] ?? first;
    lines.push({ number, text: text.replace(/\r$/, '') });
    start = end + 1;
  }
  return lines;
}

const newline = 0x0a;

function decodeBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    // Cut off, or nothing of the kind.
    return undefined;
  }
}
