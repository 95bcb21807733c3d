import type { TransferStatus } from '../usbnet/transfer.ts';
import type { BusObserver } from './bus-observer.ts';

const statusCodes: Readonly<Record<TransferStatus, number>> = {
  completed: 0,
  stall: 1,
  cancelled: 2,
  'protocol-error': 3,
  overflow: 4,
  gone: 5,
  'timed-out': 6,
  failed: 7,
};

const nanosecondsPerUs = 1000;
const twoTo32 = 4_294_967_296;

/**
 * Folds a whole run into 32 bits: every transfer's endpoint, length, status and time of its end in nanoseconds. Two
 * runs with the same seed and scenario give the same value; that two runs that differ give the same one is a matter of
 * 1 in 4 billion. FNV-1a over 32-bit words, with its result stirred once more (the finaliser of MurmurHash3), since FNV
 * alone leaves the low bits weak.
 */
export class TraceHash implements BusObserver {
  #state = 0x811c_9dc5;
  #transfers = 0;

  /** Transfers folded in. */
  get transfers(): number {
    return this.#transfers;
  }

  /** Of all that was folded in so far, 0 … 2^32 − 1. */
  get value(): number {
    let hash = this.#state;
    hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
    return (hash ^ (hash >>> 16)) >>> 0;
  }

  handleTransferEnd(
    endpointAddress: number,
    lengthBytes: number,
    status: TransferStatus,
    nowUs: number,
  ): void {
    const timeNs = Math.round(nowUs * nanosecondsPerUs);
    this.#transfers++;
    this.#fold((endpointAddress << 8) | statusCodes[status]);
    this.#fold(lengthBytes);
    this.#fold(timeNs % twoTo32);
    this.#fold(timeNs / twoTo32);
  }

  #fold(word: number): void {
    let hash = Math.imul(this.#state ^ word, 0x0100_0193);
    // Multiplication carries upwards only: bring the high half down, so that every bit reaches every other.
    hash ^= hash >>> 15;
    this.#state = hash;
  }
}
