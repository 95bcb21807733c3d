import { InvariantError } from '../base/errors.ts';

/** Rows that stand in one piece of memory: a row of its own for each would cost several times as much. */
const blockRows = 1024;

/**
 * Rows of telemetry in the order of their time, which is their first column. They come nearly in that order, all with the
 * same number of columns. Rows that are handed out are views: they change when a row is added that stands before them.
 */
export class TimedRows {
  readonly #blocks: Float64Array[] = [];
  #columns = 0;
  #length = 0;

  /** Keeps a copy. */
  add(row: Float64Array): void {
    if (this.#length === 0) this.#columns = row.length;
    if (this.#length === this.#blocks.length * blockRows) {
      this.#blocks.push(new Float64Array(blockRows * this.#columns));
    }
    let position = this.#length++;
    const timeUs = row[0] ?? 0;
    for (; position > 0 && this.#timeUs(position - 1) > timeUs; position--) {
      this.#row(position).set(this.#row(position - 1));
    }
    this.#row(position).set(row);
  }

  /** Those with `fromUs <= time < toUs`. */
  from(fromUs: number, toUs: number): readonly Float64Array[] {
    return this.#rows(
      this.#count((timeUs) => timeUs < fromUs),
      this.#count((timeUs) => timeUs < toUs),
    );
  }

  /** Those with `fromUs < time <= toUs`. */
  after(fromUs: number, toUs: number): readonly Float64Array[] {
    return this.#rows(
      this.#count((timeUs) => timeUs <= fromUs),
      this.#count((timeUs) => timeUs <= toUs),
    );
  }

  #rows(from: number, to: number): readonly Float64Array[] {
    return Array.from({ length: Math.max(0, to - from) }, (_, index) => this.#row(from + index));
  }

  #row(index: number): Float64Array {
    const start = (index % blockRows) * this.#columns;
    return this.#blockOf(index).subarray(start, start + this.#columns);
  }

  #timeUs(index: number): number {
    return this.#blockOf(index)[(index % blockRows) * this.#columns] ?? 0;
  }

  #blockOf(index: number): Float64Array {
    const block = this.#blocks[Math.floor(index / blockRows)];
    if (block === undefined) throw new InvariantError(`there is no row ${index}`);
    return block;
  }

  /** How many are before; `isBefore` is true up to some time. */
  #count(isBefore: (timeUs: number) => boolean): number {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(this.#timeUs(middle))) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
