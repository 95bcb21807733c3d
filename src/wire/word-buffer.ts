import { foldSum } from './checksum.ts';

/** Sums over all of a new buffer, by which they are compiled before they are needed. */
const warmUpSums = 8;

/**
 * A buffer of bytes whose checksums are summed up by aligned words of 32 bits, in a third of the time that an arbitrary
 * view takes. For little-endian processors, as are all on which system calls can be made here.
 */
export class WordBuffer {
  readonly bytes: Uint8Array;
  readonly #words: Int32Array;

  /** @param capacity bytes; at least so many, that it be whole words */
  constructor(capacity: number) {
    const words = new Int32Array(Math.ceil(capacity / 4));
    this.#words = words;
    this.bytes = new Uint8Array(words.buffer);
    // Until it is compiled, a sum takes ten times as long; an emulated processor would need seconds of traffic for that.
    words.fill(0x9abc_5678 | 0);
    for (let i = 0; i < warmUpSums; i++) sumWords(words, 0, words.length);
    words.fill(0);
  }

  /**
   * The folded one's complement sum of `length` bytes (at most 65,535 of them, all in the buffer), any alignment: as
   * `onesComplementSum`.
   */
  sum(offset: number, length: number): number {
    const { bytes } = this;
    let at = offset;
    const end = offset + length;
    // In pairs of bytes as this processor reads them, from an even address on; at the end they are put in order.
    let sum = 0;
    const isOdd = (at & 1) === 1 && at < end;
    if (isOdd) sum = (bytes[at++] ?? 0) << 8;
    if ((at & 2) === 2 && at + 2 <= end) {
      sum += (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
      at += 2;
    }
    const wordsEnd = at + ((end - at) & ~3);
    if (at < wordsEnd) {
      sum += sumWords(this.#words, at >> 2, wordsEnd >> 2);
      at = wordsEnd;
    }
    if (at + 2 <= end) {
      sum += (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
      at += 2;
    }
    if (at < end) sum += bytes[at] ?? 0;
    const folded = foldSum(sum);
    return isOdd ? folded : ((folded & 0xff) << 8) | (folded >>> 8);
  }
}

/** The folded sum of all halves of the words. */
function sumWords(words: Int32Array, begin: number, end: number): number {
  let high = 0;
  // All of a word, modulo 2^32: what is left of it without the upper halves is the sum of the lower ones.
  let all = 0;
  let i = begin | 0;
  for (const last = (end - 4) | 0; i <= last; i = (i + 4) | 0) {
    const a = words[i] ?? 0;
    const b = words[i + 1] ?? 0;
    const c = words[i + 2] ?? 0;
    const d = words[i + 3] ?? 0;
    high = (high + (a >>> 16) + (b >>> 16) + (c >>> 16) + (d >>> 16)) | 0;
    all = (all + a + b + c + d) | 0;
  }
  for (; i < end; i = (i + 1) | 0) {
    const a = words[i] ?? 0;
    high = (high + (a >>> 16)) | 0;
    all = (all + a) | 0;
  }
  const low = (all - (high << 16)) >>> 0;
  return foldSum(foldSum(high) + foldSum(low));
}
