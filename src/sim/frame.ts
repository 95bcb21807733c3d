import { invariant } from '../base/errors.ts';

/** The longest Ethernet frame a simulated function carries, bytes without FCS; room for jumbo frames of 8 KiB is not needed. */
export const frameCapacityBytes = 2048;

/** An Ethernet frame between a device's USB side and the far host. Comes from a {@link FramePool} and goes back to it. */
export class Frame {
  /** The frame is `bytes[0 … length)`, without FCS. */
  readonly bytes: Uint8Array = new Uint8Array(frameCapacityBytes);
  length = 0;
  /** When it arrives at the other end of the link; set while it is on its way. */
  dueAtUs = 0;
  /** Kept by {@link FrameQueue} and {@link FramePool} alone. */
  next: Frame | undefined;
}

/** Frames to use again. It grows as needed: those who queue frames bound what they queue. */
export class FramePool {
  #free: Frame | undefined;
  #inUse = 0;

  /** Frames taken and not yet given back. */
  get inUse(): number {
    return this.#inUse;
  }

  take(): Frame {
    this.#inUse++;
    const frame = this.#free;
    if (frame === undefined) return new Frame();
    this.#free = frame.next;
    frame.next = undefined;
    frame.length = 0;
    return frame;
  }

  give(frame: Frame): void {
    invariant(frame.next === undefined, 'a frame is given back while it is queued');
    this.#inUse--;
    frame.next = this.#free;
    this.#free = frame;
  }
}

/** Frames in order, linked through themselves, so that queueing allocates nothing. */
export class FrameQueue {
  #head: Frame | undefined;
  #tail: Frame | undefined;
  #length = 0;
  #bytes = 0;

  get length(): number {
    return this.#length;
  }
  get bytes(): number {
    return this.#bytes;
  }

  push(frame: Frame): void {
    if (this.#tail === undefined) this.#head = frame;
    else this.#tail.next = frame;
    this.#tail = frame;
    this.#length++;
    this.#bytes += frame.length;
  }

  /** The oldest frame, left in place. */
  peek(): Frame | undefined {
    return this.#head;
  }

  shift(): Frame | undefined {
    const frame = this.#head;
    if (frame === undefined) return undefined;
    this.#head = frame.next;
    if (this.#head === undefined) this.#tail = undefined;
    frame.next = undefined;
    this.#length--;
    this.#bytes -= frame.length;
    return frame;
  }

  /** Gives all frames back to their pool and returns how many they were. */
  clear(pool: FramePool): number {
    let count = 0;
    for (let frame = this.shift(); frame !== undefined; frame = this.shift()) {
      pool.give(frame);
      count++;
    }
    return count;
  }
}
