/**
 * The algorithm of spec section 1.2 once more, step by step in its own notation and in big integers, to compare the
 * real one with. Slow, and without any cleverness.
 */

const modulus = 2n ** 32n;
const noSlack = modulus - 1n;
const bitsPerLong = 64n;
const words = 4n;
const windowTicks = bitsPerLong * words;

function u32(x: bigint): bigint {
  return ((x % modulus) + modulus) % modulus;
}

function s32(x: bigint): bigint {
  const unsigned = u32(x);
  return unsigned >= modulus / 2n ? unsigned - modulus : unsigned;
}

/** PD(a, b). */
function positiveDifference(a: bigint, b: bigint): bigint {
  const difference = s32(a - b);
  return difference > 0n ? difference : 0n;
}

/** AEQ(a, b). */
function atOrAfter(a: bigint, b: bigint): boolean {
  return s32(a - b) >= 0n;
}

export class ReferenceDql {
  minLimit = 0n;
  maxLimit = 1_879_048_192n;
  stallThreshold = 0n;
  limit = 0n;
  adjLimit = 0n;
  numQueued = 0n;
  numCompleted = 0n;
  lastObjectCount = 0n;
  prevOvlimit = 0n;
  prevNumQueued = 0n;
  prevLastObjectCount = 0n;
  lowestSlack = noSlack;
  slackStart = 0n;
  lastReap = 0n;
  stallCount = 0n;
  stallMax = 0n;
  readonly holdTicks: bigint;
  #historyHead = 0n;
  /** Ticks in which something was queued, as far back as the four words reach. */
  readonly #history = new Set<bigint>();

  constructor(holdTicks: number) {
    this.holdTicks = BigInt(holdTicks);
  }

  get inflight(): bigint {
    return u32(this.numQueued - this.numCompleted);
  }
  get avail(): bigint {
    return s32(this.adjLimit - this.numQueued);
  }

  reset(now: bigint): void {
    this.limit = this.minLimit;
    this.numQueued = 0n;
    this.numCompleted = 0n;
    this.lastObjectCount = 0n;
    this.prevOvlimit = 0n;
    this.prevNumQueued = 0n;
    this.prevLastObjectCount = 0n;
    this.lowestSlack = noSlack;
    this.slackStart = now;
    this.lastReap = now;
    this.#historyHead = now / bitsPerLong;
    this.#history.clear();
  }

  setStallThreshold(ticks: bigint, now: bigint): void {
    if (this.stallThreshold === 0n && ticks !== 0n) this.lastReap = now;
    this.stallThreshold = ticks;
  }

  queued(count: bigint, now: bigint): void {
    if (count > 268_435_455n) return;
    this.lastObjectCount = count;
    this.numQueued = u32(this.numQueued + count);
    if (this.stallThreshold === 0n) return;
    const head = now / bitsPerLong;
    if (head !== this.#historyHead) {
      for (let i = 0n; i < words; i++) {
        if (head === this.#historyHead + i) break;
        this.#clearWord((this.#historyHead + i + 1n) % words);
      }
      this.#historyHead = head;
    }
    this.#history.add(now % windowTicks);
  }

  #clearWord(word: bigint): void {
    for (const bit of this.#history) if (bit / bitsPerLong === word) this.#history.delete(bit);
  }

  /** False: more than was queued; nothing has changed. */
  completed(count: bigint, now: bigint): boolean {
    if (count > this.inflight) return false;
    const queued = this.numQueued;
    const completed = u32(this.numCompleted + count);
    let limit = this.limit;
    let ovlimit = positiveDifference(queued - this.numCompleted, limit);
    const inprogress = u32(queued - completed);
    const previousInprogress = u32(this.prevNumQueued - this.numCompleted);
    const allPrevious = atOrAfter(completed, this.prevNumQueued);

    const starved = (ovlimit !== 0n && inprogress === 0n) || (this.prevOvlimit !== 0n && allPrevious);
    if (starved) {
      limit = u32(limit + positiveDifference(completed, this.prevNumQueued) + this.prevOvlimit);
      this.slackStart = now;
      this.lowestSlack = noSlack;
    } else if (inprogress !== 0n && previousInprogress !== 0n && !allPrevious) {
      const slack = positiveDifference(limit + this.prevOvlimit, 2n * count);
      const slackOfLast =
        this.prevOvlimit !== 0n ? positiveDifference(this.prevLastObjectCount, this.prevOvlimit) : 0n;
      const larger = slack > slackOfLast ? slack : slackOfLast;
      if (larger < this.lowestSlack) this.lowestSlack = larger;
      if (now > this.slackStart + this.holdTicks) {
        limit = positiveDifference(limit, this.lowestSlack);
        this.slackStart = now;
        this.lowestSlack = noSlack;
      }
    }
    if (limit < this.minLimit) limit = this.minLimit;
    if (limit > this.maxLimit) limit = this.maxLimit;
    if (limit !== this.limit) {
      this.limit = limit;
      ovlimit = 0n;
    }
    this.adjLimit = u32(limit + completed);
    this.prevOvlimit = ovlimit;
    this.prevLastObjectCount = this.lastObjectCount;
    this.numCompleted = completed;
    this.prevNumQueued = queued;
    this.#checkStall(now);
    return true;
  }

  #checkStall(now: bigint): void {
    const threshold = this.stallThreshold;
    if (threshold === 0n) return;
    if (now >= this.lastReap + threshold) {
      const head = this.#historyHead;
      let start = (head - words + 1n) * bitsPerLong;
      if (start < this.lastReap + 1n) start = this.lastReap + 1n;
      let end = head * bitsPerLong + bitsPerLong - 1n;
      if (now < end + threshold / 2n) end = now - threshold / 2n;
      for (let tick = start; tick <= end; tick++) {
        if (!this.#history.has(tick % windowTicks)) continue;
        this.stallCount++;
        const length = (now - tick) % 65_536n;
        if (length > this.stallMax) this.stallMax = length;
        break;
      }
    }
    this.lastReap = now;
  }
}
