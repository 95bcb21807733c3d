/**
 * The whole of a session in a fixed number of cells, however long it runs: the largest value of each stretch of time.
 * When the last cell is used up, every two cells become one and each stands for twice the time.
 */
export class FoldingOverview {
  readonly cellCount: number;
  readonly #cells: Float64Array;
  #cellUs: number;
  #used = 0;

  /** @param cellCount even */
  constructor(cellCount: number, firstCellUs: number) {
    this.cellCount = cellCount;
    this.#cells = new Float64Array(cellCount).fill(Number.NaN);
    this.#cellUs = firstCellUs;
  }

  /** Microseconds that one cell stands for. */
  get cellUs(): number {
    return this.#cellUs;
  }

  /** Cells that are in use: those up to the newest value. */
  get used(): number {
    return this.#used;
  }

  /** The largest value in a cell; NaN: nothing was measured there. */
  maxAt(cell: number): number {
    return this.#cells[cell] ?? Number.NaN;
  }

  /** Values may come in any order of time. NaN only says that the session lasted until then. */
  add(timeUs: number, value: number): void {
    if (!(timeUs >= 0)) return;
    let cell = Math.floor(timeUs / this.#cellUs);
    while (cell >= this.cellCount) {
      this.#fold();
      cell = Math.floor(timeUs / this.#cellUs);
    }
    if (cell >= this.#used) this.#used = cell + 1;
    const before = this.#cells[cell] ?? Number.NaN;
    if (!(before >= value) && !Number.isNaN(value)) this.#cells[cell] = value;
  }

  clear(): void {
    this.#cells.fill(Number.NaN);
    this.#used = 0;
  }

  #fold(): void {
    const cells = this.#cells;
    for (let i = 0; i < this.cellCount / 2; i++) {
      const first = cells[2 * i] ?? Number.NaN;
      const second = cells[2 * i + 1] ?? Number.NaN;
      cells[i] = Number.isNaN(first) || second > first ? second : first;
    }
    cells.fill(Number.NaN, this.cellCount / 2);
    this.#cellUs *= 2;
    this.#used = Math.ceil(this.#used / 2);
  }
}
