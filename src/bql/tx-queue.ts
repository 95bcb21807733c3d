import { Dql, DqlAccountingError } from './dql.ts';

/**
 * The transmit queue of a network device (the kernel's `netdev_queue` and its helpers, spec section 1.4): two stop
 * bits and, where BQL is on, a DQL that sets one of them.
 *
 * BQL can be switched while bytes are in flight. `sent` answers under which regime a transfer was counted, and
 * `completed` wants to be told, so DQL never sees the completion of bytes that it was not shown.
 */

/** How a transfer was counted when it was sent; to be handed back when it completes. */
export type Accounting = 'bql' | 'plain';

export interface TxQueueSettings {
  /** BQL limits the bytes in flight. Off: only the driver's own queue length does, as before Linux 6.19. */
  readonly bql: boolean;
  /** `limit_min`, bytes. */
  readonly limitMinBytes: number;
  /** `limit_max`, bytes. */
  readonly limitMaxBytes: number;
  /** `hold_time`, milliseconds. */
  readonly holdTimeMs: number;
}

/** What a Linux kernel starts with. */
export const defaultTxQueueSettings: TxQueueSettings = {
  bql: true,
  limitMinBytes: 0,
  limitMaxBytes: 1_879_048_192,
  holdTimeMs: 1000,
};

const usPerTick = 1000;

/** DQL's tick: one millisecond (a kernel with HZ = 1000). */
function ticks(nowUs: number): number {
  return Math.floor(nowUs / usPerTick);
}

function newDql(settings: TxQueueSettings, nowUs: number): Dql {
  return new Dql({
    holdTicks: settings.holdTimeMs,
    minLimit: settings.limitMinBytes,
    maxLimit: settings.limitMaxBytes,
    nowTicks: ticks(nowUs),
  });
}

export class TxQueue {
  #dql: Dql;
  #bql: boolean;
  #driverXoff = false;
  #stackXoff = false;
  #plainInflight = 0;
  #peakInflight = 0;
  #transStartUs = 0;
  // For how long each bit was set: in all before, and since when it is now.
  #driverXoffUs = 0;
  #driverXoffSinceUs = 0;
  #stackXoffUs = 0;
  #stackXoffSinceUs = 0;
  /** Called when a stop bit was cleared and packets may be waiting: run the qdisc, but not from inside this call. */
  #schedule: () => void;

  constructor(settings: TxQueueSettings, nowUs: number, schedule: () => void) {
    this.#dql = newDql(settings, nowUs);
    this.#bql = settings.bql;
    this.#schedule = schedule;
  }

  get dql(): Dql {
    return this.#dql;
  }
  /** Set by the driver: its own queue is full, asleep, halted or throttled (`__QUEUE_STATE_DRV_XOFF`). */
  get driverXoff(): boolean {
    return this.#driverXoff;
  }
  /** Set by BQL: enough bytes are in flight (`__QUEUE_STATE_STACK_XOFF`). */
  get stackXoff(): boolean {
    return this.#stackXoff;
  }
  /** Either of the two. */
  get stopped(): boolean {
    return this.#driverXoff || this.#stackXoff;
  }
  get bql(): boolean {
    return this.#bql;
  }
  /** Bytes handed to the device and not yet completed, however they were counted. */
  get inflightBytes(): number {
    return this.#dql.inflight + this.#plainInflight;
  }
  /** The most that was in flight since this was last asked; what is in flight now begins the next period. */
  takePeakInflightBytes(): number {
    const peak = this.#peakInflight;
    this.#peakInflight = this.inflightBytes;
    return Math.max(peak, this.#peakInflight);
  }
  /** For how long, since the start, the driver has had the queue stopped; microseconds. */
  driverXoffUs(nowUs: number): number {
    return this.#driverXoffUs + (this.#driverXoff ? nowUs - this.#driverXoffSinceUs : 0);
  }
  /** For how long, since the start, BQL has had the queue stopped; microseconds. */
  stackXoffUs(nowUs: number): number {
    return this.#stackXoffUs + (this.#stackXoff ? nowUs - this.#stackXoffSinceUs : 0);
  }
  /** The limit in force; undefined while BQL is off. */
  get limitBytes(): number | undefined {
    return this.#bql ? this.#dql.limit : undefined;
  }
  /** When a packet was last handed over or the queue was last stopped (`trans_start`); for the watchdog. */
  get transStartUs(): number {
    return this.#transStartUs;
  }
  set transStartUs(nowUs: number) {
    this.#transStartUs = nowUs;
  }
  /** Bytes that may still be handed over before BQL stops the queue; the qdisc's budget. Infinite while BQL is off. */
  get availBytes(): number {
    return this.#bql ? this.#dql.avail : Number.POSITIVE_INFINITY;
  }

  /** New settings take effect at once for what is sent from now on. */
  configure(settings: TxQueueSettings, nowUs: number): void {
    this.#dql.holdTicks = settings.holdTimeMs;
    this.#dql.minLimit = settings.limitMinBytes;
    this.#dql.maxLimit = settings.limitMaxBytes;
    if (settings.bql === this.#bql) return;
    this.#bql = settings.bql;
    if (settings.bql) {
      // A reset would leave adj_limit, and with it room for a whole queue of frames: start as on a new queue.
      if (this.#dql.inflight === 0) this.#dql = newDql(settings, nowUs);
    } else if (this.#stackXoff) {
      this.#clearStackXoff(nowUs);
      this.#schedule();
    }
  }

  #clearStackXoff(nowUs: number): void {
    if (!this.#stackXoff) return;
    this.#stackXoff = false;
    this.#stackXoffUs += nowUs - this.#stackXoffSinceUs;
  }

  #clearDriverXoff(nowUs: number): void {
    if (!this.#driverXoff) return;
    this.#driverXoff = false;
    this.#driverXoffUs += nowUs - this.#driverXoffSinceUs;
  }

  /** Stops the queue for the driver (`netif_stop_queue`). */
  stop(nowUs: number): void {
    this.#transStartUs = nowUs;
    if (this.#driverXoff) return;
    this.#driverXoff = true;
    this.#driverXoffSinceUs = nowUs;
  }

  /** Lets the driver's queue go on and runs the qdisc if it was stopped (`netif_wake_queue`). */
  wake(nowUs: number): void {
    if (!this.#driverXoff) return;
    this.#clearDriverXoff(nowUs);
    this.#schedule();
  }

  /** Lets the driver's queue go on without running the qdisc (`netif_start_queue`). */
  start(nowUs: number): void {
    this.#clearDriverXoff(nowUs);
  }

  /** Counts bytes that were handed to the device (`netdev_sent_queue`). */
  sent(bytes: number, nowUs: number): Accounting {
    const accounting = this.#count(bytes, nowUs);
    const inflight = this.inflightBytes;
    if (inflight > this.#peakInflight) this.#peakInflight = inflight;
    return accounting;
  }

  #count(bytes: number, nowUs: number): Accounting {
    if (!this.#bql || !this.#dql.queued(bytes, ticks(nowUs))) {
      this.#plainInflight += bytes;
      return 'plain';
    }
    if (this.#dql.avail < 0) {
      this.#transStartUs = nowUs;
      if (!this.#stackXoff) {
        this.#stackXoff = true;
        this.#stackXoffSinceUs = nowUs;
      }
    }
    return 'bql';
  }

  /**
   * Counts bytes as completed (`netdev_completed_queue`): all that one run of the completion half found done, split by
   * how they were counted when sent. Zero bytes never touch DQL.
   * @throws DqlAccountingError if more completes than was sent; then nothing has changed.
   */
  completed(bqlBytes: number, plainBytes: number, nowUs: number): void {
    if (plainBytes > this.#plainInflight) throw new DqlAccountingError(plainBytes, this.#plainInflight);
    if (bqlBytes > 0) this.#dql.completed(bqlBytes, ticks(nowUs));
    this.#plainInflight -= plainBytes;
    if (this.#stackXoff && this.#dql.avail >= 0) {
      this.#clearStackXoff(nowUs);
      this.#schedule();
    }
  }

  /**
   * Forgets all counts (`netdev_reset_queue`). Only when nothing is outstanding: a completion that arrives afterwards is
   * an accounting error. Does not run the qdisc.
   */
  reset(nowUs: number): void {
    this.#clearStackXoff(nowUs);
    this.#plainInflight = 0;
    this.#dql.reset(ticks(nowUs));
  }
}
