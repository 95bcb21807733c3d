import { neverUs } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { type Frame, type FramePool, FrameQueue } from './frame.ts';
import type { RateSchedule } from './rate-schedule.ts';

export interface LinkDirectionOptions {
  readonly rate: RateSchedule;
  /** Bytes that each frame costs on the link beyond its own: 24 on an Ethernet wire (preamble, FCS, gap). */
  readonly overheadBytes: number;
  /** From the last bit sent to the frame's arrival. */
  readonly delayUs: number;
  /** That a frame is lost on the way, 0 … 1. */
  readonly lossProbability: number;
  /** Bytes that may wait to be sent; a frame that finds no room is dropped. Infinite where the sender keeps the count. */
  readonly queueBytes: number;
  readonly random: Random;
  readonly pool: FramePool;
}

export interface LinkDirectionObserver {
  /** A frame of that length has left the sender, and so its memory; or it was dropped before. */
  handleFrameSent(lengthBytes: number, nowUs: number): void;
  /** A frame has arrived; it is the receiver's now. */
  handleFrame(frame: Frame, nowUs: number): void;
}

/** One direction of a link: frames wait, are put on it one after another at its rate, travel, and arrive or get lost. */
export class LinkDirection {
  readonly #rate: RateSchedule;
  readonly #overheadBytes: number;
  readonly #delayUs: number;
  readonly #lossProbability: number;
  readonly #queueBytes: number;
  readonly #random: Random;
  readonly #pool: FramePool;
  readonly #observer: LinkDirectionObserver;
  /** The head is on its way out while {@link #sentAtUs} is a time. */
  readonly #queue = new FrameQueue();
  readonly #travelling = new FrameQueue();
  #sentAtUs = neverUs;
  #arrivesAtUs = neverUs;
  #up = true;
  #sentFrames = 0;
  #sentBytes = 0;
  #lostFrames = 0;
  #droppedFrames = 0;

  constructor(options: LinkDirectionOptions, observer: LinkDirectionObserver) {
    this.#rate = options.rate;
    this.#overheadBytes = options.overheadBytes;
    this.#delayUs = options.delayUs;
    this.#lossProbability = options.lossProbability;
    this.#queueBytes = options.queueBytes;
    this.#random = options.random;
    this.#pool = options.pool;
    this.#observer = observer;
  }

  /** Frames put on the link, and their bytes without overhead. */
  get sentFrames(): number {
    return this.#sentFrames;
  }
  get sentBytes(): number {
    return this.#sentBytes;
  }
  /** Frames lost on the way: bad luck, or no carrier. */
  get lostFrames(): number {
    return this.#lostFrames;
  }
  /** Frames that found the queue full. */
  get droppedFrames(): number {
    return this.#droppedFrames;
  }
  /** Frames and bytes that wait, the one on its way out included. */
  get queuedFrames(): number {
    return this.#queue.length;
  }
  get queuedBytes(): number {
    return this.#queue.bytes;
  }

  rateAt(timeUs: number): number {
    return this.#rate.rateAt(timeUs);
  }

  /** Without a carrier frames still drain at the link's rate, but arrive nowhere. */
  setCarrier(up: boolean): void {
    this.#up = up;
  }

  /** Takes the frame over. False: there was no room for it. */
  send(frame: Frame, nowUs: number): boolean {
    if (this.#queue.bytes + frame.length > this.#queueBytes) {
      this.#droppedFrames++;
      this.#pool.give(frame);
      return false;
    }
    this.#queue.push(frame);
    if (this.#sentAtUs === neverUs && this.#queue.length === 1) this.#startSending(nowUs);
    return true;
  }

  #startSending(nowUs: number): void {
    const frame = this.#queue.peek();
    this.#sentAtUs =
      frame === undefined ? neverUs : this.#rate.finishUs(nowUs, (frame.length + this.#overheadBytes) * 8);
  }

  pollAtUs(): number {
    return this.#sentAtUs < this.#arrivesAtUs ? this.#sentAtUs : this.#arrivesAtUs;
  }

  /** Does what is due at exactly this time. */
  advance(nowUs: number): void {
    if (nowUs >= this.#arrivesAtUs) {
      const frame = this.#travelling.shift();
      this.#arrivesAtUs = this.#travelling.peek()?.dueAtUs ?? neverUs;
      if (frame !== undefined) this.#arrive(frame, nowUs);
    }
    if (nowUs >= this.#sentAtUs) {
      const frame = this.#queue.shift();
      this.#startSending(nowUs);
      if (frame !== undefined) this.#finishSending(frame, nowUs);
    }
  }

  #finishSending(frame: Frame, nowUs: number): void {
    const { length } = frame;
    this.#sentFrames++;
    this.#sentBytes += length;
    if (!this.#up || this.#random.chance(this.#lossProbability)) {
      this.#lostFrames++;
      this.#pool.give(frame);
    } else if (this.#delayUs === 0) {
      this.#observer.handleFrame(frame, nowUs);
    } else {
      frame.dueAtUs = nowUs + this.#delayUs;
      this.#travelling.push(frame);
      if (this.#arrivesAtUs === neverUs) this.#arrivesAtUs = frame.dueAtUs;
    }
    this.#observer.handleFrameSent(length, nowUs);
  }

  #arrive(frame: Frame, nowUs: number): void {
    if (this.#up) {
      this.#observer.handleFrame(frame, nowUs);
    } else {
      this.#lostFrames++;
      this.#pool.give(frame);
    }
  }
}
