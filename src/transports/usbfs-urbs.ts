import type { SystemCalls } from '../linux/system-calls.ts';
import { urbBytes, urbFields } from './usbfs-abi.ts';

/** Bytes from one URB to the next. */
const stride = 64;
const wordBytes = 4;
const wordsPerUrb = stride / wordBytes;
const lowWord = 0x1_0000_0000;

/** As many may be out at once: the queues of a USB 3 adapter hold 300 transfers each way. */
export const mostUrbs = 1024;

/**
 * The URBs of one open device in one piece of memory, known by their numbers: what is handed to the kernel is an address,
 * and what comes back is that address.
 */
export class UsbfsUrbs {
  readonly #bytes = new Uint8Array(mostUrbs * stride);
  readonly #words = new Int32Array(this.#bytes.buffer);
  readonly #address: number;
  readonly #free: number[] = [];
  /** Where the kernel puts the address of the URB that it gives back. */
  readonly #reaped = new Uint32Array(2);
  readonly #reapedAddress: number;

  constructor(calls: SystemCalls) {
    this.#address = calls.addressOf(this.#bytes);
    this.#reapedAddress = calls.addressOf(new Uint8Array(this.#reaped.buffer));
    for (let urb = mostUrbs - 1; urb >= 0; urb--) this.#free.push(urb);
  }

  /** @returns the number of an URB that is not in use; undefined: all are */
  take(): number | undefined {
    return this.#free.pop();
  }

  give(urb: number): void {
    this.#free.push(urb);
  }

  /** Fills an URB in. @param buffer address of `length` bytes */
  fill(urb: number, type: number, endpointAddress: number, buffer: number, length: number): void {
    const at = urb * wordsPerUrb;
    const words = this.#words;
    words.fill(0, at, at + urbBytes / wordBytes);
    this.#bytes[urb * stride + urbFields.type] = type;
    this.#bytes[urb * stride + urbFields.endpoint] = endpointAddress;
    words[at + urbFields.buffer / wordBytes] = buffer % lowWord;
    words[at + urbFields.buffer / wordBytes + 1] = buffer / lowWord;
    words[at + urbFields.bufferLength / wordBytes] = length;
  }

  addressOf(urb: number): number {
    return this.#address + urb * stride;
  }

  /** For the request that reaps: where it is to leave its answer, which {@link reaped} then understands. */
  get reapedAddress(): number {
    return this.#reapedAddress;
  }

  /** The number of the URB that was reaped. */
  get reaped(): number {
    const [low = 0, high = 0] = this.#reaped;
    return (high * lowWord + low - this.#address) / stride;
  }

  /** How it ended: 0, or minus an error number. */
  statusOf(urb: number): number {
    return this.#words[urb * wordsPerUrb + urbFields.status / wordBytes] ?? 0;
  }

  actualLengthOf(urb: number): number {
    return this.#words[urb * wordsPerUrb + urbFields.actualLength / wordBytes] ?? 0;
  }
}
