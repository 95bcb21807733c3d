const numberPattern = /^(0x[0-9a-f]+|\d+)/i;

/** The number at the start of a text, hexadecimal with 0x; undefined: there is none, or it has more than 32 bits. */
export function leadingNumber(text: string): number | undefined {
  const match = numberPattern.exec(text)?.[1];
  if (match === undefined) return undefined;
  const value = Number(match);
  return value <= 0xffff_ffff ? value : undefined;
}

/** "2.10" as the binary coded decimal 0x0210. */
export function leadingBcd(text: string): number | undefined {
  const match = /^([0-9a-f]{1,2})\.([0-9a-f]{1,2})(?![0-9a-f.])/i.exec(text);
  if (match === null) return undefined;
  const [, major = '', minor = ''] = match;
  return (Number.parseInt(major, 16) << 8) | Number.parseInt(minor.padEnd(2, '0'), 16);
}

/** Bytes printed as pairs of hexadecimal digits; undefined if anything else is among them, or nothing. */
export function hexPairs(text: string): readonly number[] | undefined {
  const parts = text.trim().split(/\s+/);
  if (!parts.every((part) => /^[0-9a-f]{2}$/i.test(part))) return undefined;
  return parts.map((part) => Number.parseInt(part, 16));
}

/** The numbers at the start of a text, up to the first word that is none. */
export function leadingNumbers(text: string): readonly number[] {
  const numbers: number[] = [];
  for (const word of text.split(/\s+/)) {
    if (!/^(?:0x[0-9a-f]+|\d+)$/i.test(word)) break;
    const value = leadingNumber(word);
    if (value !== undefined) numbers.push(value);
  }
  return numbers;
}
