/** Bytes that are to go out, collected until someone takes them. */
export class OutputBuffer {
  #bytes = new Uint8Array(4096);
  #length = 0;

  /** Where what is written next belongs. Valid until the next {@link reserve}. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** Makes room for so many more bytes, all of which the caller writes. @returns where they start in {@link bytes} */
  reserve(length: number): number {
    const offset = this.#length;
    this.#length += length;
    if (this.#length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(this.#length, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, offset));
      this.#bytes = larger;
    }
    return offset;
  }

  append(bytes: Uint8Array): void {
    const offset = this.reserve(bytes.length);
    this.#bytes.set(bytes, offset);
  }

  /** All that has been written, as a copy; undefined: nothing. */
  take(): Uint8Array | undefined {
    if (this.#length === 0) return undefined;
    const bytes = this.#bytes.slice(0, this.#length);
    this.#length = 0;
    return bytes;
  }
}
