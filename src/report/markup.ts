/** Text that is HTML or SVG already, to be put into more of it as it is. Only {@link markup} and {@link join} make it. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** What can be put into markup; `undefined` leaves nothing. A plain string is text and gets escaped. */
export type Insert = string | number | Markup | readonly Markup[] | undefined;

/**
 * A template for HTML and SVG in which every inserted text is escaped, in elements as well as in quoted attributes.
 * Device names, notes and file names come from outside: there is no other way to get them into a page.
 */
export function markup(strings: TemplateStringsArray, ...inserts: readonly Insert[]): Markup {
  let text = strings[0] ?? '';
  for (const [index, insert] of inserts.entries()) text += toText(insert) + (strings[index + 1] ?? '');
  return new Markup(text);
}

export function join(parts: readonly Markup[], separator = ''): Markup {
  return new Markup(parts.map((part) => part.text).join(separator));
}

function toText(insert: Insert): string {
  if (insert === undefined) return '';
  if (typeof insert === 'number') return String(insert);
  if (typeof insert === 'string') return escapeText(insert);
  if (insert instanceof Markup) return insert.text;
  return join(insert).text;
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * Characters that no text of ours has and that could make a page show something else than what it says: control
 * characters, those that turn the direction of what follows, and halves of characters.
 */
const misleading =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff\p{Cs}]/gu;

/** Text as it stands in HTML. */
export function escapeText(text: string): string {
  return text
    .replaceAll(misleading, '\ufffd')
    .replaceAll(/[&<>"']/g, (character) => entities[character] ?? '');
}
