import { invariant } from '../base/errors.ts';
import { writeUint16Le, writeUint32Le } from './byte-order.ts';
import {
  alignedPosition,
  ndpLengthFor,
  ndpLengthOffset,
  ntbHeaderLengthOffset,
  ntbLayouts,
  ntbSequenceOffset,
  type NtbFormat,
  type NtbLayout,
} from './ntb.ts';

/** Lengths and offsets of NTB16 have 16 bits; the length of a block of 65,536 bytes is written as 0 (spec 3.2). */
const maxNtb16Bytes = 65_536;

/** What the receiver asked for, as the bind made it fit (spec 3.2, bind step 9). */
export interface NtbGeometry {
  readonly format: NtbFormat;
  /** `tx_ndp_modulus`: NDPs lie at multiples of it. */
  readonly ndpModulus: number;
  /** `tx_modulus` and `tx_remainder`: datagrams lie where position mod `modulus` is `remainder`. */
  readonly modulus: number;
  readonly remainder: number;
  /** `tx_max_datagrams`; every NDP has room for that many. */
  readonly maxDatagrams: number;
  /** The one NDP stands behind the datagrams, not before. */
  readonly ndpToEnd: boolean;
}

/**
 * Builds NTBs in buffers of the caller's, one after another (spec 3.2, TX aggregation): `begin`, `tryAppend` for each
 * datagram, `finish`, and `padTo` if the transfer needs padding. Allocates nothing once it is made, except a view where
 * only a part of a buffer is appended.
 */
export class NtbWriter {
  readonly geometry: NtbGeometry;
  readonly #layout: NtbLayout;
  /** `max_ndp_size`. */
  readonly #ndpLength: number;
  /** Offset, signature and number of entries of each NDP so far. */
  readonly #ndpOffsets: Uint32Array;
  readonly #ndpSignatures: Uint32Array;
  readonly #ndpEntries: Uint32Array;
  /** The NDP that is to come last, while it grows. */
  readonly #ndpAside: Uint8Array;
  #buffer: Uint8Array = new Uint8Array(0);
  #capacity = 0;
  #length = 0;
  #ndps = 0;
  #datagrams = 0;
  #payloadBytes = 0;
  #isOpen = false;

  constructor(geometry: NtbGeometry) {
    this.geometry = geometry;
    this.#layout = ntbLayouts[geometry.format];
    this.#ndpLength = ndpLengthFor(geometry.format, geometry.maxDatagrams);
    this.#ndpOffsets = new Uint32Array(geometry.maxDatagrams);
    this.#ndpSignatures = new Uint32Array(geometry.maxDatagrams);
    this.#ndpEntries = new Uint32Array(geometry.maxDatagrams);
    this.#ndpAside = new Uint8Array(geometry.ndpToEnd ? this.#ndpLength : 0);
  }

  /** Between `begin` and `finish`. */
  get isOpen(): boolean {
    return this.#isOpen;
  }
  /** The bytes so far; after `finish`, of the whole NTB. */
  get length(): number {
    return this.#length;
  }
  get capacity(): number {
    return this.#capacity;
  }
  get datagrams(): number {
    return this.#datagrams;
  }
  get payloadBytes(): number {
    return this.#payloadBytes;
  }
  /** True if the geometry does not allow one more datagram. */
  get isFull(): boolean {
    return this.#datagrams >= this.geometry.maxDatagrams;
  }

  /**
   * Starts an NTB at the start of `buffer`, forgetting one that was not finished.
   * @param capacity the most bytes it may get, at least a header; the buffer's length and the format limit it too
   * @param sequence its number, of which 16 bits are written
   */
  begin(buffer: Uint8Array, capacity: number, sequence: number): void {
    const { headerLength, headerSignature } = this.#layout;
    const formatLimit = this.geometry.format === 'ntb16' ? maxNtb16Bytes : Number.MAX_SAFE_INTEGER;
    this.#capacity = Math.min(capacity, buffer.length, formatLimit);
    invariant(this.#capacity >= headerLength, `an NTB in ${this.#capacity} bytes`);
    this.#buffer = buffer;
    this.#length = headerLength;
    this.#ndps = 0;
    this.#datagrams = 0;
    this.#payloadBytes = 0;
    this.#isOpen = true;
    buffer.fill(0, 0, headerLength);
    writeUint32Le(buffer, 0, headerSignature);
    writeUint16Le(buffer, ntbHeaderLengthOffset, headerLength);
    writeUint16Le(buffer, ntbSequenceOffset, sequence);
  }

  /**
   * Appends a datagram to the NDP with that signature, which is made if there is none yet. False if it does not fit, if
   * the NTB has all the datagrams it may have, if its NDP is to come last and has another signature, or if it is empty.
   * As in Linux, a refusal by an NTB that has datagrams leaves the padding to the next datagram's place behind.
   */
  tryAppend(signature: number, bytes: Uint8Array, offset: number, length: number): boolean {
    invariant(this.#isOpen, 'a datagram for an NTB that is not open');
    const { ndpModulus, modulus, remainder, ndpToEnd } = this.geometry;
    if (length <= 0 || this.isFull) return false;
    let ndp = this.#findNdp(signature);
    if (ndp === this.#ndps && ndpToEnd && this.#ndps > 0) return false;

    const needsNdp = ndp === this.#ndps && !ndpToEnd;
    const ndpOffset = alignedPosition(this.#length, ndpModulus, 0);
    const tail = needsNdp ? ndpOffset + this.#ndpLength : this.#length;
    const datagramOffset = alignedPosition(tail, modulus, remainder);
    const datagramEnd = datagramOffset + length;
    const end = ndpToEnd ? alignedPosition(datagramEnd, ndpModulus, 0) + this.#ndpLength : datagramEnd;
    if (end > this.#capacity) {
      if (this.#datagrams > 0) this.#alignTail(needsNdp ? ndpOffset : this.#length);
      return false;
    }

    if (ndp === this.#ndps) ndp = this.#makeNdp(signature, needsNdp ? ndpOffset : 0);
    this.#zeroTo(datagramOffset);
    this.#writeEntry(ndp, datagramOffset, length);
    this.#copy(bytes, offset, length);
    this.#datagrams++;
    this.#payloadBytes += length;
    return true;
  }

  /**
   * Closes the NTB: writes the NDP that was to come last, and the length of the block. Returns that length; an NTB
   * without datagrams stays open, and the answer is 0.
   */
  finish(): number {
    invariant(this.#isOpen, 'finishing an NTB that is not open');
    if (this.#datagrams === 0) return 0;
    if (this.geometry.ndpToEnd) {
      this.#zeroTo(alignedPosition(this.#length, this.geometry.ndpModulus, 0));
      this.#writeField(this.#buffer, this.#layout.ndpIndexOffset, this.#length);
      this.#buffer.set(this.#ndpAside, this.#length);
      this.#length += this.#ndpLength;
    }
    this.#isOpen = false;
    this.#writeField(this.#buffer, this.#layout.blockLengthOffset, this.#length);
    return this.#length;
  }

  /** Lengthens a finished NTB with zeros to `length` bytes, its capacity at most, and returns how long it is now. */
  padTo(length: number): number {
    invariant(!this.#isOpen, 'padding an NTB that is not finished');
    this.#zeroTo(Math.min(length, this.#capacity));
    this.#writeField(this.#buffer, this.#layout.blockLengthOffset, this.#length);
    return this.#length;
  }

  /** The index of the NDP with that signature, or of the one to be made. */
  #findNdp(signature: number): number {
    const unsigned = signature >>> 0;
    for (let i = 0; i < this.#ndps; i++) if (this.#ndpSignatures[i] === unsigned) return i;
    return this.#ndps;
  }

  /** Reserves the whole NDP and links it from the header or from the NDP before; the one to come last is kept aside. */
  #makeNdp(signature: number, ndpOffset: number): number {
    const { ndpIndexOffset, nextNdpOffset } = this.#layout;
    const index = this.#ndps++;
    this.#ndpSignatures[index] = signature;
    this.#ndpOffsets[index] = ndpOffset;
    this.#ndpEntries[index] = 0;
    if (this.geometry.ndpToEnd) {
      this.#ndpAside.fill(0);
    } else {
      this.#zeroTo(ndpOffset + this.#ndpLength);
      const link = index === 0 ? ndpIndexOffset : (this.#ndpOffsets[index - 1] ?? 0) + nextNdpOffset;
      this.#writeField(this.#buffer, link, ndpOffset);
    }
    writeUint32Le(this.#ndpBuffer(), ndpOffset, signature);
    return index;
  }

  #writeEntry(ndp: number, datagramOffset: number, datagramLength: number): void {
    const { ndpHeaderLength, entryLength } = this.#layout;
    const buffer = this.#ndpBuffer();
    const ndpOffset = this.#ndpOffsets[ndp] ?? 0;
    const entries = this.#ndpEntries[ndp] ?? 0;
    const entryOffset = ndpOffset + ndpHeaderLength + entries * entryLength;
    this.#writeField(buffer, entryOffset, datagramOffset);
    this.#writeField(buffer, entryOffset + (entryLength >> 1), datagramLength);
    this.#ndpEntries[ndp] = entries + 1;
    // With the terminating entry.
    writeUint16Le(buffer, ndpOffset + ndpLengthOffset, ndpHeaderLength + (entries + 2) * entryLength);
  }

  #ndpBuffer(): Uint8Array {
    return this.geometry.ndpToEnd ? this.#ndpAside : this.#buffer;
  }

  #copy(bytes: Uint8Array, offset: number, length: number): void {
    const isWhole = offset === 0 && length === bytes.length;
    this.#buffer.set(isWhole ? bytes : bytes.subarray(offset, offset + length), this.#length);
    this.#length += length;
  }

  #alignTail(position: number): void {
    const { modulus, remainder, ndpModulus, ndpToEnd } = this.geometry;
    // The room for the NDP that is to come last stays free.
    const beforeNdp = this.#capacity - this.#ndpLength;
    const limit = ndpToEnd ? beforeNdp - (beforeNdp % ndpModulus) : this.#capacity;
    this.#zeroTo(Math.min(alignedPosition(position, modulus, remainder), limit));
  }

  /** Fills with zeros up to `position`, which becomes the length; does nothing if that is behind the length. */
  #zeroTo(position: number): void {
    if (position <= this.#length) return;
    this.#buffer.fill(0, this.#length, position);
    this.#length = position;
  }

  /** A number of the format's width. */
  #writeField(bytes: Uint8Array, offset: number, value: number): void {
    if (this.geometry.format === 'ntb16') writeUint16Le(bytes, offset, value);
    else writeUint32Le(bytes, offset, value);
  }
}
