/** Rows of telemetry in the order of their time, which is their first column. They come nearly in that order. */
export class TimedRows {
  readonly #rows: Float64Array[] = [];

  /** Keeps a copy. */
  add(row: Float64Array): void {
    const rows = this.#rows;
    let position = rows.length;
    while (position > 0 && timeOf(rows[position - 1]) > timeOf(row)) position--;
    rows.splice(position, 0, row.slice());
  }

  /** Those with `fromUs <= time < toUs`. */
  from(fromUs: number, toUs: number): readonly Float64Array[] {
    return this.#rows.slice(
      this.#count((timeUs) => timeUs < fromUs),
      this.#count((timeUs) => timeUs < toUs),
    );
  }

  /** Those with `fromUs < time <= toUs`. */
  after(fromUs: number, toUs: number): readonly Float64Array[] {
    return this.#rows.slice(
      this.#count((timeUs) => timeUs <= fromUs),
      this.#count((timeUs) => timeUs <= toUs),
    );
  }

  /** How many are before; `isBefore` is true up to some time. */
  #count(isBefore: (timeUs: number) => boolean): number {
    let low = 0;
    let high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(timeOf(this.#rows[middle]))) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function timeOf(row: Float64Array | undefined): number {
  return row?.[0] ?? 0;
}
