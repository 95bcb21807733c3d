import { type Clock, neverUs, type Polled } from '../base/clock.ts';
import type { LoopFailure, SessionLoop } from './session-loop.ts';

/** In one turn of the event loop, parts that keep one another busy get this many rounds; then others get their turn. */
const roundsPerTurn = 64;
/**
 * A turn ends after so long, too. Transfers that end meanwhile are seen only between turns: where handing one over takes
 * long, a turn that fills the whole queue would find all of it done at its end, which is what starvation looks like to BQL.
 */
const longestTurnUs = 1000;
/** So long after something was ready, the loop itself waits for more; later, others do. */
const attentiveUs = 20_000;
const usPerMs = 1000;
/** The longest that Node's timers can wait, with room. */
const longestTimerMs = 1_000_000;

/** Waits for what Node's event loop cannot wait for (a `ReadyFiles`), and deals with it. */
export interface OwnWait {
  readonly lastReadyUs: number;
  /** For `limitUs` at most; 0: only looks. */
  waitBriefly(limitUs: number): boolean;
  /** From here on somebody else waits, and deals with it. */
  waitBehind(): void;
}

/**
 * Drives parts by the event loop: whatever comes in during a turn (transfers that ended, timers) is dealt with together
 * at its end, which is what makes completions arrive at BQL in batches.
 *
 * With an {@link OwnWait}, a turn looks for transfers that have ended between its rounds, and waits for them as long as they
 * come one soon after the other; no thread then needs to tell another of each.
 */
export class RealLoop implements SessionLoop {
  readonly #clock: Clock;
  readonly #fail: LoopFailure;
  readonly #parts: Polled[] = [];
  #immediate: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;
  #timerAtUs = neverUs;
  #closed = false;
  #inTurn = false;
  readonly #wait: OwnWait | undefined;

  constructor(clock: Clock, fail: LoopFailure, wait?: OwnWait) {
    this.#clock = clock;
    this.#fail = fail;
    this.#wait = wait;
  }

  nowUs(): number {
    return this.#clock.nowUs();
  }

  get running(): boolean {
    return !this.#closed;
  }

  add(part: Polled): void {
    this.#parts.push(part);
    this.kick();
  }

  /** Something happened: the parts are looked at once this turn of the event loop is over. */
  kick(): void {
    // A turn looks at the parts again before it ends.
    if (this.#closed || this.#inTurn || this.#immediate !== undefined) return;
    this.#immediate = setImmediate(() => {
      this.#immediate = undefined;
      this.#turn();
    });
  }

  run(action: (nowUs: number) => void): void {
    if (this.#closed) return;
    try {
      action(this.#clock.nowUs());
    } catch (error) {
      this.#stopWith(error);
      return;
    }
    this.kick();
  }

  close(): void {
    this.#closed = true;
    this.#wait?.waitBehind();
    if (this.#immediate !== undefined) clearImmediate(this.#immediate);
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#immediate = undefined;
    this.#timer = undefined;
  }

  #stopWith(error: unknown): void {
    this.close();
    this.#fail(error);
  }

  #turn(): void {
    if (this.#closed) return;
    let nextUs = neverUs;
    this.#inTurn = true;
    try {
      nextUs = this.#rounds();
    } catch (error) {
      this.#stopWith(error);
      return;
    } finally {
      this.#inTurn = false;
    }
    if (this.#isClosed()) return;
    const nowUs = this.#clock.nowUs();
    const attentive = this.#isAttentive(nowUs);
    if (!attentive) this.#wait?.waitBehind();
    if (attentive || nextUs <= nowUs) this.kick();
    else this.#schedule(nextUs);
  }

  /** @returns when the next thing is to be done */
  #rounds(): number {
    const beganUs = this.#clock.nowUs();
    const endUs = beganUs + longestTurnUs;
    let nowUs = beganUs;
    for (let round = 0; ; round++) {
      let nextUs = neverUs;
      for (const part of this.#parts) {
        if (part.pollAtUs() <= nowUs) part.poll(nowUs);
      }
      for (const part of this.#parts) nextUs = Math.min(nextUs, part.pollAtUs());
      if (this.#isClosed()) return nextUs;
      const isDue = nextUs <= nowUs;
      nowUs = this.#clock.nowUs();
      const isOver = round + 1 >= roundsPerTurn || nowUs >= endUs;
      let sawSomething = false;
      if (this.#wait !== undefined && this.#isAttentive(nowUs)) {
        const waitUs = isDue || isOver ? 0 : Math.max(0, Math.min(nextUs, endUs) - nowUs);
        sawSomething = this.#wait.waitBriefly(waitUs);
        if (this.#isClosed()) return nextUs;
        nowUs = this.#clock.nowUs();
      }
      if (isOver || !(isDue || sawSomething || nextUs <= nowUs)) return sawSomething ? nowUs : nextUs;
    }
  }

  #isAttentive(nowUs: number): boolean {
    return this.#wait !== undefined && nowUs - this.#wait.lastReadyUs < attentiveUs;
  }

  /** Read through a method: a part may close the loop while it is polled. */
  #isClosed(): boolean {
    return this.#closed;
  }

  #schedule(atUs: number): void {
    if (this.#timer !== undefined) {
      if (this.#timerAtUs === atUs) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
    this.#timerAtUs = atUs;
    if (atUs === neverUs) return;
    const waitMs = Math.min(longestTimerMs, Math.max(1, Math.ceil((atUs - this.#clock.nowUs()) / usPerMs)));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#turn();
    }, waitMs);
  }
}
