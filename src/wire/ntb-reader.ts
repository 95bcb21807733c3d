import { readUint16Le, readUint32Le } from './byte-order.ts';
import {
  ncmSignatures,
  ndpLengthOffset,
  ntbLayouts,
  ntbSequenceOffset,
  type NtbFormat,
  type NtbLayout,
} from './ntb.ts';

/** More than this many NDPs in one NTB are not read (spec 3.2): a chain may be a loop. */
export const maxNdpsPerNtb = 50;

/** Where the datagrams of an NTB go. */
export interface NtbSink {
  /**
   * One datagram: `length` bytes from `offset`, which lie within what was handed to `read`. The bytes are only lent.
   * `signature` is that of its NDP; an MBIM session is in it.
   */
  handleDatagram(bytes: Uint8Array, offset: number, length: number, signature: number): void;
}

/**
 * How the reading of an NTB ended. Anything but `ok` counts as a receive error; datagrams of the NDPs before the fault
 * have been handed out by then.
 * - `short`: less than a header and an NDP
 * - `bad-signature`: does not begin with a header of this format
 * - `bad-block-length`: claims to be longer than the largest NTB that was agreed on
 * - `bad-ndp`: an NDP outside of the bytes, or with an impossible length
 * - `too-many-ndps`: a chain of more than {@link maxNdpsPerNtb} NDPs
 */
export type NtbReadResult =
  'ok' | 'short' | 'bad-signature' | 'bad-block-length' | 'bad-ndp' | 'too-many-ndps';

export interface NtbReaderOptions {
  readonly format: NtbFormat;
  /** `rx_max`: the largest NTB and the longest datagram, bytes. */
  readonly maxNtbBytes: number;
  /** The shortest datagram that is handed out; an Ethernet header (14) if not given. */
  readonly minDatagramBytes?: number | undefined;
  /** Which NDPs are read, by signature; frames without CRC if not given. */
  readonly acceptsSignature?: ((signature: number) => boolean) | undefined;
  readonly sink: NtbSink;
}

/**
 * Walks received NTBs by the rules of Linux's cdc_ncm (spec 3.2, RX), without allocating. A datagram that cannot be is no
 * error of the NTB: it ends its NDP, and is counted in {@link badDatagrams}. All counters only grow.
 */
export class NtbReader {
  readonly format: NtbFormat;
  readonly #layout: NtbLayout;
  readonly #maxNtbBytes: number;
  readonly #minDatagramBytes: number;
  readonly #signature: number;
  readonly #acceptsSignature: ((signature: number) => boolean) | undefined;
  readonly #sink: NtbSink;
  #sequence = 0;
  #ntbs = 0;
  #datagrams = 0;
  #payloadBytes = 0;
  #overheadBytes = 0;
  #badDatagrams = 0;
  #skippedNdps = 0;
  #sequenceGlitches = 0;

  constructor(options: NtbReaderOptions) {
    this.format = options.format;
    this.#layout = ntbLayouts[options.format];
    this.#maxNtbBytes = options.maxNtbBytes;
    this.#minDatagramBytes = options.minDatagramBytes ?? 14;
    this.#signature = ncmSignatures[options.format];
    this.#acceptsSignature = options.acceptsSignature;
    this.#sink = options.sink;
  }

  /** NTBs that were read to their end. */
  get ntbs(): number {
    return this.#ntbs;
  }
  /** Datagrams handed out, and their bytes. */
  get datagrams(): number {
    return this.#datagrams;
  }
  get payloadBytes(): number {
    return this.#payloadBytes;
  }
  /** Bytes of {@link ntbs} that were no payload. */
  get overheadBytes(): number {
    return this.#overheadBytes;
  }
  /** Entries that point out of the NTB, or to something too short or too long. */
  get badDatagrams(): number {
    return this.#badDatagrams;
  }
  /** NDPs that were passed over for their signature. */
  get skippedNdps(): number {
    return this.#skippedNdps;
  }
  /** NTBs whose sequence number did not follow the one before; nothing else comes of it. */
  get sequenceGlitches(): number {
    return this.#sequenceGlitches;
  }

  /** Expects the sequence to start anew, as after a reset of the device. */
  restartSequence(): void {
    this.#sequence = 0;
  }

  /** Reads the NTB in `length` bytes from `offset`, which must lie within `bytes`. */
  read(bytes: Uint8Array, offset: number, length: number): NtbReadResult {
    const layout = this.#layout;
    if (offset < 0 || offset + length > bytes.length) return 'short';
    if (length < layout.headerLength + layout.ndpHeaderLength) return 'short';
    if (readUint32Le(bytes, offset) !== layout.headerSignature) return 'bad-signature';
    if (this.#readField(bytes, offset + layout.blockLengthOffset) > this.#maxNtbBytes) {
      return 'bad-block-length';
    }
    this.#checkSequence(readUint16Le(bytes, offset + ntbSequenceOffset));

    const payloadBefore = this.#payloadBytes;
    let ndp = this.#readField(bytes, offset + layout.ndpIndexOffset);
    for (let ndps = 0; ; ndps++) {
      if (ndps === maxNdpsPerNtb) return 'too-many-ndps';
      if (ndp + layout.ndpHeaderLength > length) return 'bad-ndp';
      const ndpLength = readUint16Le(bytes, offset + ndp + ndpLengthOffset);
      if (ndpLength < layout.minNdpLength || ndp + ndpLength > length) return 'bad-ndp';
      const signature = readUint32Le(bytes, offset + ndp);
      if (this.#accepts(signature)) this.#readNdp(bytes, offset, length, ndp, ndpLength, signature);
      else this.#skippedNdps++;
      ndp = this.#readField(bytes, offset + ndp + layout.nextNdpOffset);
      if (ndp === 0) break;
    }
    this.#ntbs++;
    // Overlapping datagrams may come to more than the NTB.
    this.#overheadBytes += Math.max(0, length - (this.#payloadBytes - payloadBefore));
    return 'ok';
  }

  /** Hands out the datagrams of one NDP up to its end, its first empty entry, or its first impossible one. */
  #readNdp(
    bytes: Uint8Array,
    offset: number,
    length: number,
    ndp: number,
    ndpLength: number,
    signature: number,
  ): void {
    const { ndpHeaderLength, entryLength } = this.#layout;
    const lengthOffset = entryLength >> 1;
    // The last entry is the terminating one, whatever is in it.
    const entries = Math.floor((ndpLength - ndpHeaderLength) / entryLength) - 1;
    let entry = offset + ndp + ndpHeaderLength;
    for (let i = 0; i < entries; i++, entry += entryLength) {
      const datagramOffset = this.#readField(bytes, entry);
      const datagramLength = this.#readField(bytes, entry + lengthOffset);
      if (datagramOffset === 0 || datagramLength === 0) return;
      if (
        datagramOffset + datagramLength > length ||
        datagramLength > this.#maxNtbBytes ||
        datagramLength < this.#minDatagramBytes
      ) {
        this.#badDatagrams++;
        return;
      }
      this.#datagrams++;
      this.#payloadBytes += datagramLength;
      this.#sink.handleDatagram(bytes, offset + datagramOffset, datagramLength, signature);
    }
  }

  /** A number of the format's width. */
  #readField(bytes: Uint8Array, offset: number): number {
    return this.#layout.entryLength === 4 ? readUint16Le(bytes, offset) : readUint32Le(bytes, offset);
  }

  #accepts(signature: number): boolean {
    return this.#acceptsSignature === undefined
      ? signature === this.#signature
      : this.#acceptsSignature(signature);
  }

  /** 0 behind 0 is a device that does not count. */
  #checkSequence(sequence: number): void {
    const expected = (this.#sequence + 1) & 0xffff;
    if (sequence !== expected && (this.#sequence !== 0 || sequence !== 0)) this.#sequenceGlitches++;
    this.#sequence = sequence;
  }
}
