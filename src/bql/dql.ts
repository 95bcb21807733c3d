/**
 * Dynamic Queue Limits, bit for bit as Linux's `lib/dynamic_queue_limits.c` behaves (facts: spec section 1; checked
 * against traces of a real kernel). "Objects" are bytes here; DQL itself does not care.
 *
 * All counters are unsigned 32-bit and wrap. They are kept as signed int32 (`| 0`), which V8 holds unboxed, and shown
 * unsigned. Ticks are plain numbers that do not wrap (a 64-bit jiffies counter fits).
 */

/** The largest amount that one {@link Dql.queued} may carry: floor((2^32 − 1) / 16). */
export const dqlMaxObject = 268_435_455;

/** The largest limit, and the default of {@link Dql.maxLimit}: floor((2^32 − 1) / 2) − {@link dqlMaxObject}. */
export const dqlMaxLimit = 1_879_048_192;

const historyWords = 4;
const bitsPerWord = 64;
const historyTicks = historyWords * bitsPerWord;
/** 2^32 − 1 as an int32: "no slack measured yet". */
const noSlack = -1;

/** Completing more than was queued. The state is left as it was. The kernel stops the machine here (BUG_ON). */
export class DqlAccountingError extends Error {
  readonly completed: number;
  readonly inflight: number;

  constructor(completed: number, inflight: number) {
    super(`completed ${completed} bytes with only ${inflight} in flight`);
    this.name = 'DqlAccountingError';
    this.completed = completed;
    this.inflight = inflight;
  }
}

/** Turns the order of unsigned into that of signed numbers, which V8 compares without making doubles of them. */
const signBit = 0x80000000 | 0;

/** a < b, both of 32 bits and without a sign. */
function isBelow(a: number, b: number): boolean {
  return (a ^ signBit) < (b ^ signBit);
}

/** a − b modulo 2^32 as an amount, or 0 if that is negative as an int32. */
function positiveDifference(a: number, b: number): number {
  const difference = (a - b) | 0;
  return difference > 0 ? difference : 0;
}

export interface DqlOptions {
  /** `slack_hold_time`, in ticks. */
  readonly holdTicks: number;
  /** `min_limit`, bytes. */
  readonly minLimit?: number;
  /** `max_limit`, bytes. */
  readonly maxLimit?: number;
  readonly nowTicks?: number;
}

export class Dql {
  // Written by the producer.
  #numQueued = 0;
  #lastObjectCount = 0;
  #historyHead = 0;
  /** One flag a tick, modulo the window; set when something was queued in it. */
  readonly #history = new Uint8Array(historyTicks);

  // Written by the completer.
  #adjLimit = 0;
  #limit = 0;
  #numCompleted = 0;
  #prevOvlimit = 0;
  #prevNumQueued = 0;
  #prevLastObjectCount = 0;
  #lowestSlack = noSlack;
  #slackStart = 0;
  #lastReap = 0;
  #stallMax = 0;
  #stallCount = 0;

  // Set by the user.
  #minLimit = 0;
  #maxLimit = dqlMaxLimit;
  #holdTicks: number;
  #stallThreshold = 0;

  constructor(options: DqlOptions) {
    this.#holdTicks = options.holdTicks;
    this.#minLimit = options.minLimit ?? 0;
    this.#maxLimit = options.maxLimit ?? dqlMaxLimit;
    this.reset(options.nowTicks ?? 0);
  }

  /** The current limit, bytes. */
  get limit(): number {
    return this.#limit >>> 0;
  }
  /** Writing the limit, as sysfs allows; `adjLimit` follows at the next completion. */
  set limit(bytes: number) {
    this.#limit = bytes | 0;
  }
  get minLimit(): number {
    return this.#minLimit;
  }
  set minLimit(bytes: number) {
    this.#minLimit = bytes;
  }
  get maxLimit(): number {
    return this.#maxLimit;
  }
  set maxLimit(bytes: number) {
    this.#maxLimit = bytes;
  }
  get holdTicks(): number {
    return this.#holdTicks;
  }
  set holdTicks(ticks: number) {
    this.#holdTicks = ticks;
  }
  get adjLimit(): number {
    return this.#adjLimit >>> 0;
  }
  get numQueued(): number {
    return this.#numQueued >>> 0;
  }
  get numCompleted(): number {
    return this.#numCompleted >>> 0;
  }
  get prevOvlimit(): number {
    return this.#prevOvlimit >>> 0;
  }
  get prevNumQueued(): number {
    return this.#prevNumQueued >>> 0;
  }
  get prevLastObjectCount(): number {
    return this.#prevLastObjectCount >>> 0;
  }
  get lastObjectCount(): number {
    return this.#lastObjectCount >>> 0;
  }
  /** 2^32 − 1 if none was measured in this hold interval. */
  get lowestSlack(): number {
    return this.#lowestSlack >>> 0;
  }
  get slackStartTicks(): number {
    return this.#slackStart;
  }
  get stallCount(): number {
    return this.#stallCount;
  }
  /** The longest stall, in ticks (its low 16 bits, as the kernel keeps it). Any write clears it. */
  get stallMaxTicks(): number {
    return this.#stallMax;
  }
  clearStallMax(): void {
    this.#stallMax = 0;
  }
  /** Bytes queued and not yet completed. */
  get inflight(): number {
    return (this.#numQueued - this.#numCompleted) >>> 0;
  }
  /** How much may still be queued; negative means: stop. */
  get avail(): number {
    return (this.#adjLimit - this.#numQueued) | 0;
  }

  get stallThresholdTicks(): number {
    return this.#stallThreshold;
  }

  /** 0 turns stall detection off. Turning it on counts from now: what happened before is no stall. */
  setStallThreshold(ticks: number, nowTicks: number): void {
    if (this.#stallThreshold === 0 && ticks !== 0) this.#lastReap = nowTicks;
    this.#stallThreshold = ticks;
  }

  /**
   * Forgets all counts. `adjLimit` is not touched, as in the kernel: until the next completion recomputes it, `avail`
   * is what the old value leaves.
   */
  reset(nowTicks: number): void {
    this.#limit = this.#minLimit | 0;
    this.#numQueued = 0;
    this.#numCompleted = 0;
    this.#lastObjectCount = 0;
    this.#prevNumQueued = 0;
    this.#prevLastObjectCount = 0;
    this.#prevOvlimit = 0;
    this.#lowestSlack = noSlack;
    this.#slackStart = nowTicks;
    this.#lastReap = nowTicks;
    this.#historyHead = Math.floor(nowTicks / bitsPerWord);
    this.#history.fill(0);
  }

  /** Counts `count` bytes as handed over. More than {@link dqlMaxObject} at once is ignored and answered with false. */
  queued(count: number, nowTicks: number): boolean {
    if (count > dqlMaxObject) return false;
    this.#lastObjectCount = count;
    this.#numQueued = (this.#numQueued + count) | 0;
    if (this.#stallThreshold !== 0) this.#noteQueued(nowTicks);
    return true;
  }

  /**
   * Counts `count` bytes as done and adapts the limit (spec 1.2). One call for all that was done since the last one.
   * @throws DqlAccountingError if that is more than is in flight.
   */
  completed(count: number, nowTicks: number): void {
    const numQueued = this.#numQueued;
    const inflight = (numQueued - this.#numCompleted) | 0;
    if (isBelow(inflight, count)) throw new DqlAccountingError(count, inflight >>> 0);

    const completed = (this.#numCompleted + count) | 0;
    let limit = this.#limit;
    let overLimit = positiveDifference(inflight, limit);
    const inProgress = (numQueued - completed) | 0;
    const wasInProgress = (this.#prevNumQueued - this.#numCompleted) | 0;
    const allPreviousDone = ((completed - this.#prevNumQueued) | 0) >= 0;

    if ((overLimit !== 0 && inProgress === 0) || (this.#prevOvlimit !== 0 && allPreviousDone)) {
      // The queue was starved: it ran empty although more would have been allowed in. Let in that much more.
      limit = (limit + positiveDifference(completed, this.#prevNumQueued) + this.#prevOvlimit) | 0;
      this.#slackStart = nowTicks;
      this.#lowestSlack = noSlack;
    } else if (inProgress !== 0 && wasInProgress !== 0 && !allPreviousDone) {
      limit = this.#withoutSlack(limit, count, nowTicks);
    }

    if (isBelow(limit, this.#minLimit)) limit = this.#minLimit | 0;
    if (isBelow(this.#maxLimit, limit)) limit = this.#maxLimit | 0;
    if (limit !== this.#limit) {
      this.#limit = limit;
      overLimit = 0;
    }
    this.#adjLimit = (limit + completed) | 0;
    this.#prevOvlimit = overLimit;
    this.#prevLastObjectCount = this.#lastObjectCount;
    this.#numCompleted = completed;
    this.#prevNumQueued = numQueued;
    if (this.#stallThreshold !== 0) this.#checkStall(nowTicks);
  }

  /**
   * Busy for the whole interval: what was never needed is slack, and goes when it lasted for the hold time. A method of its
   * own so that {@link completed} stays short enough for V8 to build it into its caller.
   * @returns the limit
   */
  #withoutSlack(limit: number, count: number, nowTicks: number): number {
    let slack = positiveDifference((limit + this.#prevOvlimit) | 0, count << 1);
    const slackOfLastObject =
      this.#prevOvlimit !== 0 ? positiveDifference(this.#prevLastObjectCount, this.#prevOvlimit) : 0;
    if (slackOfLastObject > slack) slack = slackOfLastObject;
    if (isBelow(slack, this.#lowestSlack)) this.#lowestSlack = slack;
    if (nowTicks <= this.#slackStart + this.#holdTicks) return limit;
    const shrunk = positiveDifference(limit, this.#lowestSlack);
    this.#slackStart = nowTicks;
    this.#lowestSlack = noSlack;
    return shrunk;
  }

  /** Marks this tick in the history of the last four words of ticks; words that were skipped are cleared. */
  #noteQueued(nowTicks: number): void {
    const head = Math.floor(nowTicks / bitsPerWord);
    if (head !== this.#historyHead) {
      for (let i = 0; i < historyWords; i++) {
        if (head === this.#historyHead + i) break;
        const word = (this.#historyHead + i + 1) % historyWords;
        this.#history.fill(0, word * bitsPerWord, (word + 1) * bitsPerWord);
      }
      this.#historyHead = head;
    }
    this.#history[nowTicks % historyTicks] = 1;
  }

  /** A stall: something was queued at least half the threshold ago, and nothing was done for the whole of it. */
  #checkStall(nowTicks: number): void {
    const threshold = this.#stallThreshold;
    if (nowTicks >= this.#lastReap + threshold) {
      const start = Math.max((this.#historyHead - historyWords + 1) * bitsPerWord, this.#lastReap + 1);
      let end = this.#historyHead * bitsPerWord + (bitsPerWord - 1);
      if (nowTicks < end + (threshold >> 1)) end = nowTicks - (threshold >> 1);
      for (let tick = start; tick <= end; tick++) {
        if (this.#history[tick % historyTicks] === 1) {
          this.#stallCount++;
          this.#stallMax = Math.max(this.#stallMax, (nowTicks - tick) & 0xffff);
          break;
        }
      }
    }
    this.#lastReap = nowTicks;
  }
}
