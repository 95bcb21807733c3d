/** Rows of numbers that wait to be handed over, one after the other in one array that grows as needed. */
export class RowBuffer {
  readonly #initialLength: number;
  #values: Float64Array<ArrayBuffer>;
  #length = 0;

  /** @param initialLength numbers that fit before the array has to grow */
  constructor(initialLength: number) {
    this.#initialLength = initialLength;
    this.#values = new Float64Array(initialLength);
  }

  /** Numbers, not rows. */
  get length(): number {
    return this.#length;
  }

  append(values: Float64Array): void {
    const needed = this.#length + values.length;
    if (needed > this.#values.length) {
      const grown = new Float64Array(Math.max(needed, 2 * this.#values.length));
      grown.set(this.#values.subarray(0, this.#length));
      this.#values = grown;
    }
    this.#values.set(values, this.#length);
    this.#length = needed;
  }

  /** All numbers, in an array with a buffer of its own; the next ones go to a new one. */
  take(): Float64Array<ArrayBuffer> {
    const full = this.#length === this.#values.length;
    const taken = full ? this.#values : this.#values.slice(0, this.#length);
    if (full) this.#values = new Float64Array(this.#initialLength);
    this.#length = 0;
    return taken;
  }
}
