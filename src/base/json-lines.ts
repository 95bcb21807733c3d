/**
 * Where the parts of a JSON text stand, for error messages that name a line. Values are not kept: `JSON.parse` reads
 * those.
 */
export interface JsonLines {
  /** The line (from 1) of the value at a path, or of the nearest thing around it that there is. */
  lineOf(path: readonly PropertyKey[]): number;
}

/** What is wrong with a text that is no JSON, and where. */
export interface JsonFault {
  readonly line: number;
  readonly message: string;
}

/** Finds the lines of all values of a JSON document, or the place at which it stops being one. */
export function findJsonLines(
  text: string,
): { readonly ok: true; readonly lines: JsonLines } | { readonly ok: false; readonly fault: JsonFault } {
  const scanner = new Scanner(text);
  const fault = scanner.scan();
  if (fault !== undefined) return { ok: false, fault };
  const { places } = scanner;
  return {
    ok: true,
    lines: {
      lineOf: (path) => {
        for (let length = path.length; length >= 0; length--) {
          const line = places.get(keyOf(path.slice(0, length)));
          if (line !== undefined) return line;
        }
        return 1;
      },
    },
  };
}

function keyOf(path: readonly PropertyKey[]): string {
  return JSON.stringify(path.map(String));
}

const literals = ['true', 'false', 'null'] as const;
const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
/** JSON.parse has the last word on what is in it; no string goes over lines. */
const stringPattern = /"(?:[^"\\\n\r\t]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
/** Documents for people are not nested deeper; the scanner calls itself for each level. */
const deepest = 200;

/** Thrown inside of the scanner only. */
class Stop extends Error {}

class Scanner {
  readonly places = new Map<string, number>();
  readonly #text: string;
  #at = 0;
  #line = 1;

  constructor(text: string) {
    this.#text = text;
  }

  scan(): JsonFault | undefined {
    try {
      this.#value([]);
      this.#space();
      if (this.#at < this.#text.length) this.#stop('something follows the end of the document');
      return undefined;
    } catch (error) {
      if (!(error instanceof Stop)) throw error;
      return { line: this.#line, message: error.message };
    }
  }

  #stop(message: string): never {
    throw new Stop(message);
  }

  #space(): void {
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at];
      if (character === '\n') this.#line++;
      else if (character !== ' ' && character !== '\t' && character !== '\r') return;
    }
  }

  #take(character: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #value(path: readonly string[]): void {
    this.#space();
    if (!this.places.has(keyOf(path))) this.places.set(keyOf(path), this.#line);
    if (path.length > deepest) this.#stop('it is nested too deeply');
    if (this.#take('{')) this.#object(path);
    else if (this.#take('[')) this.#array(path);
    else this.#scalar();
  }

  #scalar(): void {
    if (this.#match(stringPattern) !== undefined || this.#match(numberPattern) !== undefined) return;
    const literal = literals.find((word) => this.#text.startsWith(word, this.#at));
    if (literal !== undefined) this.#at += literal.length;
    else if (this.#at >= this.#text.length) this.#stop('the document ends where a value is due');
    else this.#stop(`a value is due at "${this.#excerpt()}"`);
  }

  #object(path: readonly string[]): void {
    if (this.#take('}')) return;
    do {
      this.#space();
      const { line } = { line: this.#line };
      const name = this.#match(stringPattern);
      if (name === undefined) this.#stop(`a property in double quotes is due at "${this.#excerpt()}"`);
      const inner = [...path, JSON.parse(name) as string];
      // A property stands where its name does, wherever its value begins.
      this.places.set(keyOf(inner), line);
      if (!this.#take(':')) this.#stop(`a colon is due after ${name}`);
      this.#value(inner);
    } while (this.#take(','));
    if (!this.#take('}')) this.#stop(`a comma or } is due at "${this.#excerpt()}"`);
  }

  #array(path: readonly string[]): void {
    if (this.#take(']')) return;
    let index = 0;
    do this.#value([...path, String(index++)]);
    while (this.#take(','));
    if (!this.#take(']')) this.#stop(`a comma or ] is due at "${this.#excerpt()}"`);
  }

  #excerpt(): string {
    return this.#text.slice(this.#at, this.#at + 20).split('\n', 1)[0] ?? '';
  }
}
