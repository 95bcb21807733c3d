/**
 * The newest rows of one telemetry table, a Float64Array a column, so that a chart or a percentile walks plain memory.
 * Rows stand in the order of their time; the first column is the time, in microseconds.
 *
 * Capped twice: by rows and by time. When it is full the oldest quarter goes at once, so that moving memory is rare
 * and indices stay plain (0 is the oldest row, length - 1 the newest).
 */
export class ColumnRing<Name extends string> {
  readonly #names: readonly Name[];
  readonly #maxRows: number;
  readonly #maxSpanUs: number;
  #columns: Float64Array[];
  #capacity: number;
  #length = 0;

  /** @param names the columns to keep; the first is the time */
  constructor(names: readonly Name[], limits: { readonly maxRows: number; readonly maxSpanUs: number }) {
    this.#names = names;
    this.#maxRows = limits.maxRows;
    this.#maxSpanUs = limits.maxSpanUs;
    this.#capacity = Math.min(1024, limits.maxRows);
    this.#columns = names.map(() => new Float64Array(this.#capacity));
  }

  get length(): number {
    return this.#length;
  }

  /** Values of a column; only the first `length` of them are rows. Ask again after an append: it may have moved. */
  column(name: Name): Float64Array {
    return this.#columns[this.#names.indexOf(name)] ?? empty;
  }

  get times(): Float64Array {
    return this.#columns[0] ?? empty;
  }

  /** Time of the oldest row that is still here; NaN if there is none. */
  get firstUs(): number {
    return this.#length === 0 ? Number.NaN : (this.times[0] ?? Number.NaN);
  }

  /** Time of the newest row; NaN if there is none. */
  get lastUs(): number {
    return this.#length === 0 ? Number.NaN : (this.times[this.#length - 1] ?? Number.NaN);
  }

  /**
   * Takes one row out of `values`, whose column `picks[i]` (counted from `offset`) becomes column i here.
   * A row that is older than the newest one is put where its time belongs: the fate of a lost probe is known late. One without a time
   is left out.
   */
  append(values: Float64Array, offset: number, picks: readonly number[]): void {
    const timeUs = values[offset + (picks[0] ?? 0)] ?? Number.NaN;
    if (Number.isNaN(timeUs)) return;
    if (this.#length === this.#capacity) this.#makeRoom();
    const at = timeUs < this.lastUs ? this.indexAtOrAfter(timeUs, true) : this.#length;
    for (let i = 0; i < this.#columns.length; i++) {
      const column = this.#columns[i];
      if (column === undefined) continue;
      if (at < this.#length) column.copyWithin(at + 1, at, this.#length);
      column[at] = values[offset + (picks[i] ?? 0)] ?? Number.NaN;
    }
    this.#length++;
    // Some run-over is allowed, so that it is a cull now and then and not a move of everything at each row.
    if (this.lastUs - this.firstUs > this.#maxSpanUs * 1.25) {
      this.#drop(this.indexAtOrAfter(this.lastUs - this.#maxSpanUs));
    }
  }

  /** Index of the first row at or after a time (strictly after it, if asked so); `length` if there is none. */
  indexAtOrAfter(timeUs: number, strictlyAfter = false): number {
    const times = this.times;
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const time = times[middle] ?? Number.POSITIVE_INFINITY;
      if (time < timeUs || (strictlyAfter && time === timeUs)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  clear(): void {
    this.#length = 0;
  }

  #makeRoom(): void {
    if (this.#capacity < this.#maxRows) {
      this.#capacity = Math.min(this.#capacity * 2, this.#maxRows);
      this.#columns = this.#columns.map((column) => {
        const larger = new Float64Array(this.#capacity);
        larger.set(column);
        return larger;
      });
      return;
    }
    this.#drop(Math.max(1, this.#capacity >>> 2));
  }

  #drop(rows: number): void {
    for (const column of this.#columns) column.copyWithin(0, rows, this.#length);
    this.#length -= rows;
  }
}

const empty = new Float64Array(0);
