/** What stands in front of a text's first line, and of its others. */
export interface Indentation {
  readonly first: string;
  readonly rest: string;
}

/**
 * Breaks a text at spaces into lines of at most `columns`, with their indentation. A word that is longer stands by itself
 * and is not broken.
 */
export function wrapText(text: string, columns: number, { first, rest }: Indentation): readonly string[] {
  const lines: string[] = [];
  let indentation = first;
  let line: string | undefined;
  for (const word of text.split(' ')) {
    if (line !== undefined && indentation.length + line.length + 1 + word.length > columns) {
      lines.push(indentation + line);
      indentation = rest;
      line = word;
    } else {
      line = line === undefined ? word : `${line} ${word}`;
    }
  }
  return [...lines, indentation + (line ?? '')];
}
