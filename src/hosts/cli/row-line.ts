/** Of a thousandth: results carry microseconds and bits per second, and more decimals of them are noise. */
const decimals = 1000;

/** A number as results have it. */
export function roundedNumber(value: number): number {
  return Number.isInteger(value) ? value : Math.round(value * decimals) / decimals;
}

/**
 * Makes lines of JSON of rows of one table, with the names of its columns; what does not exist is null. They come many times a
 * second while the session's own loop has frames to move: so the text is put together here, without an object for each row
 * that `JSON.stringify` would have to look through.
 * @param type value of the member `type`, the first one
 */
export function rowLines(type: string, columns: readonly string[]): (row: Float64Array) => string {
  const start = `{"type":${JSON.stringify(type)}`;
  const members = columns.map((column) => `,${JSON.stringify(column)}:`);
  return (row) => {
    let text = start;
    for (let i = 0; i < members.length; i++) {
      const value = row[i] ?? Number.NaN;
      text += members[i];
      text += Number.isFinite(value) ? roundedNumber(value) : 'null';
    }
    return `${text}}`;
  };
}
