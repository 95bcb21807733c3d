/**
 * The memory of a device between USB and its link, in bytes: what BQL cannot see (spec 5.3).
 *
 * Rule of acceptance. USB brings whole packets (up to wMaxPacketSize); a packet is taken if its bytes fit into what is
 * free, and otherwise answered with NAK (NRDY). After a NAK nothing is taken until `hysteresisBytes` have drained and
 * there is room for the packet that was refused. Bytes count from the arrival of their USB packet; framing (an NTB's
 * headers and padding) until the block has been taken apart, the bytes of a frame until its last bit has left on the link.
 *
 * A message that is larger than all of the memory is let in nevertheless, packet by packet, once everything before it
 * has drained: else it never could be sent. So a capacity of 0 means "one message at a time".
 */
export class DeviceFifo {
  readonly capacityBytes: number;
  readonly hysteresisBytes: number;
  #fillBytes = 0;
  #drainableBytes = 0;
  #maxFillBytes = 0;
  /** Set between a NAK and the time that packets are taken again. */
  #closed = false;
  #refusedBytes = 0;
  #drainedSinceNak = 0;
  #naks = 0;

  constructor(capacityBytes: number, hysteresisBytes = 0) {
    this.capacityBytes = capacityBytes;
    this.hysteresisBytes = hysteresisBytes;
  }

  /** Bytes in it, unfinished messages included. */
  get fillBytes(): number {
    return this.#fillBytes;
  }
  get maxFillBytes(): number {
    return this.#maxFillBytes;
  }
  /** How often packets were refused (one for each time that it closed). */
  get naks(): number {
    return this.#naks;
  }

  /**
   * How many of the next `wantedBytes` of a transfer are taken now: all of them, or whole packets of `packetBytes`; 0 is a
   * NAK. Nothing is counted yet; {@link add} does that on arrival.
   */
  admit(wantedBytes: number, packetBytes: number): number {
    if (this.#closed) return 0;
    const room = this.capacityBytes - this.#fillBytes;
    if (wantedBytes <= room) return wantedBytes;
    const firstBytes = wantedBytes < packetBytes ? wantedBytes : packetBytes;
    if (room >= packetBytes) return room - (room % packetBytes);
    if (this.#drainableBytes === 0) return firstBytes;
    this.#closed = true;
    this.#refusedBytes = firstBytes;
    this.#drainedSinceNak = 0;
    this.#naks++;
    return 0;
  }

  /** Bytes have arrived over USB. */
  add(bytes: number): void {
    this.#fillBytes += bytes;
    if (this.#fillBytes > this.#maxFillBytes) this.#maxFillBytes = this.#fillBytes;
  }

  /** Some of the bytes in it are a whole frame now and wait for the link. */
  commit(bytes: number): void {
    this.#drainableBytes += bytes;
  }

  /** Bytes that no one waits for have gone: framing, padding, broken messages. True: packets are taken again. */
  discard(bytes: number): boolean {
    return this.#drain(bytes);
  }

  /** A frame has left on the link. True: packets that were refused are taken now. */
  release(bytes: number): boolean {
    this.#drainableBytes -= bytes;
    return this.#drain(bytes);
  }

  #drain(bytes: number): boolean {
    this.#fillBytes -= bytes;
    if (!this.#closed) return false;
    this.#drainedSinceNak += bytes;
    const drainedEnough =
      this.#drainedSinceNak >= this.hysteresisBytes &&
      this.capacityBytes - this.#fillBytes >= this.#refusedBytes;
    if (!drainedEnough && this.#drainableBytes > 0) return false;
    this.#closed = false;
    return true;
  }
}
