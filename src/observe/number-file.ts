import { closeSync, openSync, readSync } from 'node:fs';

/** Longer than any number that the kernel writes into a file of its own (20 digits and the line's end). */
const longestBytes = 32;
const zero = 0x30;
const nine = 0x39;

/** What tells that the thing behind an open file of sysfs is not there any more. */
const goneCodes: ReadonlySet<string> = new Set(['ENODEV', 'ENOENT', 'ESTALE']);

/**
 * One number in a file of sysfs. The file stays open: the kernel makes its content anew whenever it is read from its
 * beginning, so a reading is one system call instead of three and no path is looked up.
 */
export class NumberFile {
  readonly #descriptor: number;
  readonly #bytes: Uint8Array;
  #isGone = false;
  #isClosed = false;

  private constructor(descriptor: number, scratch: Uint8Array) {
    this.#descriptor = descriptor;
    this.#bytes = scratch;
  }

  /** Room for one reading, to be shared by files that are read one after the other. */
  static createScratch(): Uint8Array {
    return new Uint8Array(longestBytes);
  }

  /** Undefined if there is no such file, or no permission to read it. */
  static open(path: string, scratch: Uint8Array): NumberFile | undefined {
    try {
      return new NumberFile(openSync(path, 'r'), scratch);
    } catch {
      return undefined;
    }
  }

  /** Whether a reading has found that the device behind the file is not there any more. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** The number; NaN if there is none at the moment. Rounded beyond 2^53. */
  read(): number {
    if (this.#isGone || this.#isClosed) return Number.NaN;
    const bytes = this.#bytes;
    let length: number;
    try {
      length = readSync(this.#descriptor, bytes, 0, longestBytes, 0);
    } catch (error) {
      if (goneCodes.has(codeOf(error))) this.#isGone = true;
      return Number.NaN;
    }
    let value = 0;
    let digits = 0;
    for (; digits < length; digits++) {
      const byte = bytes[digits] ?? 0;
      if (byte < zero || byte > nine) break;
      value = value * 10 + (byte - zero);
    }
    return digits === 0 ? Number.NaN : value;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.#descriptor);
  }
}

/** The error's code, such as ENOENT; empty if it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
