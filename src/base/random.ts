/**
 * A seeded generator of pseudo-random numbers (sfc32: Chris Doty-Humphrey's Small Fast Counting generator, 32-bit
 * form). Same seed, same sequence, on every machine. Not for secrets.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = 0x9e3779b9;
    this.#b = 0x243f6a88;
    this.#c = seed >>> 0;
    // The first outputs still show the seed; the author advises to drop twelve.
    for (let i = 0; i < 12; i++) this.uint32();
  }

  /** 0 … 2^32 − 1. */
  uint32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum >>> 0;
  }

  /** 0 ≤ x < 1, in steps of 2^−32. */
  unit(): number {
    return this.uint32() / 4294967296;
  }

  /** A whole number from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.unit() * (high - low + 1));
  }

  /** True with the given probability (0 … 1). */
  chance(probability: number): boolean {
    return probability > 0 && this.unit() < probability;
  }

  fill(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) bytes[i] = this.uint32() & 0xff;
  }
}
