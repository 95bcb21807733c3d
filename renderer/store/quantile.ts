/**
 * Picks values by rank out of a part of a column without sorting it whole. Keeps one scratch buffer, so asking costs
 * no allocation once it is large enough.
 */
export class Quantiles {
  #scratch = new Float64Array(256);
  #count = 0;

  /** Takes in the numbers of `values[from … to - 1]`; NaN is left out. @returns how many there were */
  load(values: Float64Array, from: number, to: number): number {
    if (to - from > this.#scratch.length) this.#scratch = new Float64Array(2 * (to - from));
    const scratch = this.#scratch;
    let count = 0;
    for (let i = from; i < to; i++) {
      const value = values[i] ?? Number.NaN;
      if (!Number.isNaN(value)) scratch[count++] = value;
    }
    this.#count = count;
    return count;
  }

  /**
   * The smallest loaded value that at least the share `q` (0 … 1) of all is not above: nearest rank, a value that was
   * really measured. NaN if nothing is loaded.
   */
  at(q: number): number {
    if (this.#count === 0) return Number.NaN;
    const rank = Math.max(0, Math.ceil(q * this.#count) - 1);
    return select(this.#scratch, this.#count, Math.min(rank, this.#count - 1));
  }
}

/** Quickselect: afterwards `values[rank]` is what it would be if the first `count` were sorted. */
function select(values: Float64Array, count: number, rank: number): number {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const pivot = values[(low + high) >>> 1] ?? 0;
    let left = low;
    let right = high;
    while (left <= right) {
      while ((values[left] ?? 0) < pivot) left++;
      while ((values[right] ?? 0) > pivot) right--;
      if (left > right) break;
      const swap = values[left] ?? 0;
      values[left++] = values[right] ?? 0;
      values[right--] = swap;
    }
    if (rank <= right) high = right;
    else if (rank >= left) low = left;
    else break;
  }
  return values[rank] ?? Number.NaN;
}
