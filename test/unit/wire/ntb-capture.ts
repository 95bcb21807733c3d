import type { NtbSink } from '../../../src/wire/ntb-reader.ts';

/** Keeps a copy of each datagram, and throws if one is not within the input. */
export class NtbCapture implements NtbSink {
  readonly datagrams: { readonly signature: number; readonly bytes: Uint8Array }[] = [];

  handleDatagram(bytes: Uint8Array, offset: number, length: number, signature: number): void {
    if (!(offset >= 0 && length > 0 && offset + length <= bytes.length)) {
      throw new Error(`a datagram of ${length} bytes at ${offset} in ${bytes.length}`);
    }
    this.datagrams.push({ signature, bytes: bytes.slice(offset, offset + length) });
  }
}
