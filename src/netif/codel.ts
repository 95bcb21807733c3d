/**
 * CoDel (RFC 8289) for one queue, in the arithmetic of Linux's implementation: time in units of 1,024 ns, and 1/sqrt(count)
 * as a 16-bit fraction that one Newton step brings up to date for each drop.
 */

/** CoDel's unit of time, which is 1,024 ns: 125 in 128 microseconds. */
const unitsPerUs = 125 / 128;
/** The fraction 1/sqrt(count) in 1/65,536; the largest there is stands for a count of 1. */
const fractionOne = 0x1_0000;
const fractionMax = 0xffff;
const newtonBase = 3 * 2 ** 32;
const two31 = 2 ** 31;
/** A queue that has not dropped for so many intervals begins anew with a count of 1. */
const forgottenIntervals = 16;

/** A time as CoDel counts it; all comparisons are made in this unit. */
export function codelTime(us: number): number {
  return Math.floor(us * unitsPerUs);
}

export interface CodelSettings {
  /** The wait that a queue may always have. */
  readonly targetUs: number;
  /** For so long the wait must stay above the target before anything is dropped: the slowest round trip that is usual. */
  readonly intervalUs: number;
  /** Marks packets whose senders speak ECN, and drops only the others. */
  readonly ecn: boolean;
  /** With no more than this many bytes waiting nothing is dropped: the frame that is on its way. */
  readonly mtuBytes: number;
}

export const defaultCodelSettings: CodelSettings = {
  targetUs: 5000,
  intervalUs: 100_000,
  ecn: true,
  mtuBytes: 1514,
};

/** What CoDel takes its packets from; all it knows of them is when they came. */
export interface CodelQueue<P> {
  /** The next packet, taken out; undefined: none waits. */
  take(): P | undefined;
  enqueuedAtUs(packet: P): number;
  /** Bytes that still wait, in the whole of what the device has to send. */
  readonly backlogBytes: number;
  /** False: its sender does not speak ECN. */
  mark(packet: P): boolean;
  drop(packet: P): void;
}

/** The settings in CoDel's own units. */
export class CodelParameters {
  readonly target: number;
  readonly interval: number;
  readonly ecn: boolean;
  readonly mtuBytes: number;

  constructor(settings: CodelSettings) {
    this.target = codelTime(settings.targetUs);
    this.interval = codelTime(settings.intervalUs);
    this.ecn = settings.ecn;
    this.mtuBytes = settings.mtuBytes;
  }
}

/**
 * One Newton step towards 1/sqrt(count), on fractions of 65,536: half of x(3 − count·x²), in the kernel's 64 bits: nothing
 * is rounded that is not cut off there too, and where a count has leapt (see {@link Codel.addDrops}) it wraps as there.
 */
export function newtonStep(fraction: number, count: number): number {
  const quarter = Math.floor((newtonBase - count * fraction * fraction) / 4);
  // Split, so that both products stay whole numbers below 2^53.
  const high = Math.floor(quarter / two31);
  const low = quarter - high * two31;
  return (high * fraction + Math.floor((low * fraction) / two31)) & fractionMax;
}

/** The state of one queue. */
export class Codel {
  /** Drops (or marks) since it began to drop; not reset when it stops, since it may have to go on soon. */
  #count = 0;
  #lastCount = 0;
  #fraction = 0;
  #isDropping = false;
  /** When the wait will have been above the target for an interval; 0: it is not above. */
  #firstAboveTime = 0;
  #dropNext = Number.NEGATIVE_INFINITY;

  get count(): number {
    return this.#count;
  }
  get isDropping(): boolean {
    return this.#isDropping;
  }

  /** Packets were dropped because there was no more room: the signal to the senders has to be as strong. */
  addDrops(count: number): void {
    this.#count += count;
  }

  /** Forgets all: the queue was emptied by somebody else. */
  reset(): void {
    this.#count = 0;
    this.#lastCount = 0;
    this.#fraction = 0;
    this.#isDropping = false;
    this.#firstAboveTime = 0;
    this.#dropNext = Number.NEGATIVE_INFINITY;
  }

  #isAbove<P>(
    packet: P | undefined,
    queue: CodelQueue<P>,
    parameters: CodelParameters,
    now: number,
  ): boolean {
    if (packet === undefined) {
      this.#firstAboveTime = 0;
      return false;
    }
    const wait = now - codelTime(queue.enqueuedAtUs(packet));
    if (wait < parameters.target || queue.backlogBytes <= parameters.mtuBytes) {
      this.#firstAboveTime = 0;
      return false;
    }
    if (this.#firstAboveTime === 0) {
      this.#firstAboveTime = now + parameters.interval;
      return false;
    }
    return now > this.#firstAboveTime;
  }

  /** The next drop after one at `time`: an interval divided by the square root of the count. */
  #schedule(time: number, parameters: CodelParameters): void {
    this.#dropNext = time + Math.floor((parameters.interval * this.#fraction) / fractionOne);
  }

  /** The next packet that is to be sent; those that are dropped on the way are the queue's to release and count. */
  dequeue<P>(queue: CodelQueue<P>, parameters: CodelParameters, nowUs: number): P | undefined {
    let packet = queue.take();
    if (packet === undefined) {
      // A queue that has run empty is not above the target. (Linux before March 2026 forgot that, and dropped packets of
      // flows that send seldom.)
      this.#firstAboveTime = 0;
      this.#isDropping = false;
      return undefined;
    }
    const now = codelTime(nowUs);
    let isAbove = this.#isAbove(packet, queue, parameters, now);
    if (!this.#isDropping) {
      return isAbove ? this.#begin(packet, queue, parameters, now) : packet;
    }
    if (!isAbove) {
      this.#isDropping = false;
      return packet;
    }
    while (packet !== undefined && this.#isDropping && now >= this.#dropNext) {
      this.#count++;
      this.#fraction = newtonStep(this.#fraction, this.#count);
      if (parameters.ecn && queue.mark(packet)) {
        this.#schedule(this.#dropNext, parameters);
        return packet;
      }
      queue.drop(packet);
      packet = queue.take();
      isAbove = this.#isAbove(packet, queue, parameters, now);
      if (isAbove) this.#schedule(this.#dropNext, parameters);
      else this.#isDropping = false;
    }
    return packet;
  }

  /** The wait has been above the target for an interval: the first drop. */
  #begin<P>(packet: P, queue: CodelQueue<P>, parameters: CodelParameters, now: number): P | undefined {
    let next: P | undefined = packet;
    if (!parameters.ecn || !queue.mark(packet)) {
      queue.drop(packet);
      next = queue.take();
      this.#isAbove(next, queue, parameters, now);
    }
    this.#isDropping = true;
    // Where it has dropped not long ago it goes on at nearly the pace that had helped.
    const recent = this.#count - this.#lastCount;
    if (recent > 1 && now - this.#dropNext < forgottenIntervals * parameters.interval) {
      this.#count = recent;
      this.#fraction = newtonStep(this.#fraction, recent);
    } else {
      this.#count = 1;
      this.#fraction = fractionMax;
    }
    this.#lastCount = this.#count;
    this.#schedule(now, parameters);
    return next;
  }
}
