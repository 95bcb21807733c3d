/** What terminals, browsers, forums and log files put between words. */

const escape = '\u001B';
const terminalPattern = new RegExp(String.raw`${escape}\[[\d;?]*[A-Za-z]`, 'g');
const htmlMark =
  /<(?:br|p|pre|div|td|tr|span|li|code)\b[^<>]{0,500}>|&(?:#\d{1,6}|#x[\da-f]{1,5}|nbsp|quot|amp|lt|gt);/i;
const breakingTags = /<(?:br|\/p|\/div|\/tr|\/li|\/pre|\/h\d)\b[^<>]{0,500}>/gi;
const cellTags = /<\/?(?:td|th|dt|dd)\b[^<>]{0,500}>/gi;
const otherTags = /<\/?[a-z][^<>]{0,500}>/gi;
const entityPattern = /&(?:#(\d{1,6})|#x([\da-f]{1,5})|([a-z]{2,6}));/gi;
const forumTags =
  /\[\/?(?:font|color|size|code|quote|left|center|indent|url|list|spoiler|b|i|u)(?:=[^\]]{0,200})?\]/gi;
const escapedBreak = /(?:\\r)?\\n/g;
const stringEnd = /(?<!\\)"/g;
const escapedCharacter = /\\u([\da-f]{4})/gi;
/** So many line breaks that are written out in one line are no accident: it is a string of a program. */
const fewestEscapedBreaks = 5;

const namedEntities: ReadonlyMap<string, string> = new Map([
  ['nbsp', ' '],
  ['quot', '"'],
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['apos', "'"],
]);

/** Which kinds of markup a text has, so that others are not looked for in each line. */
export interface Markup {
  readonly terminal: boolean;
  readonly html: boolean;
  readonly forum: boolean;
  readonly escapes: boolean;
}

export function findMarkup(text: string): Markup {
  return {
    terminal: text.includes(`${escape}[`),
    html: htmlMark.test(text),
    forum: /\[(?:code|quote|font|color|size)(?:=[^\]]{0,200})?\]/i.test(text),
    escapes: text.includes(String.raw`\n`),
  };
}

/** A line without markup: one or, where the markup breaks lines, several; undefined: there is none in it. */
export function withoutMarkup(line: string, markup: Markup): readonly string[] | undefined {
  let text = line;
  if (markup.terminal && text.includes(escape)) text = text.replaceAll(terminalPattern, '');
  if (markup.forum && text.includes('[')) text = text.replaceAll(forumTags, '');
  if (markup.html && text.includes('<')) {
    text = text.replaceAll(breakingTags, '\n').replaceAll(cellTags, ' ').replaceAll(otherTags, '');
  }
  if (markup.html && text.includes('&')) text = text.replaceAll(entityPattern, decodeEntity);
  if (markup.escapes && (text.match(escapedBreak)?.length ?? 0) >= fewestEscapedBreaks) {
    text = text
      .replaceAll(stringEnd, '\n')
      .replaceAll(escapedBreak, '\n')
      .replaceAll(String.raw`\t`, ' ');
    text = text.replaceAll(escapedCharacter, (_match, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
  }
  return text === line ? undefined : text.split('\n');
}

function decodeEntity(whole: string, decimal?: string, hexadecimal?: string, name?: string): string {
  if (name !== undefined) return namedEntities.get(name.toLowerCase()) ?? whole;
  const code = decimal === undefined ? Number.parseInt(hexadecimal ?? '', 16) : Number(decimal);
  return code <= 0x10_ffff ? String.fromCodePoint(code) : whole;
}
