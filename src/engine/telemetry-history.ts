/**
 * The newest rows of a telemetry table, kept for readers that come later. Full: the oldest are overwritten.
 */
export class TelemetryHistory {
  readonly columnCount: number;
  readonly capacityRows: number;
  readonly #values: Float64Array;
  #written = 0;

  constructor(columnCount: number, capacityRows: number) {
    this.columnCount = columnCount;
    this.capacityRows = capacityRows;
    this.#values = new Float64Array(columnCount * capacityRows);
  }

  /** Rows that can be read. */
  get length(): number {
    return Math.min(this.#written, this.capacityRows);
  }

  push(row: Float64Array): void {
    this.#values.set(row, (this.#written % this.capacityRows) * this.columnCount);
    this.#written++;
  }

  /** The rows whose first column (the time) is at least `fromUs`, oldest first. */
  since(fromUs: number): Float64Array {
    const { columnCount, capacityRows } = this;
    const oldest = this.#written - this.length;
    let first = oldest;
    while (first < this.#written && (this.#values[(first % capacityRows) * columnCount] ?? 0) < fromUs) {
      first++;
    }
    const rows = new Float64Array((this.#written - first) * columnCount);
    for (let row = first; row < this.#written; row++) {
      const from = (row % capacityRows) * columnCount;
      rows.set(this.#values.subarray(from, from + columnCount), (row - first) * columnCount);
    }
    return rows;
  }

  /** Time of the newest row; NaN if there is none. */
  get lastUs(): number {
    if (this.#written === 0) return Number.NaN;
    return this.#values[((this.#written - 1) % this.capacityRows) * this.columnCount] ?? Number.NaN;
  }
}
