import { type Clock, neverUs, type Polled } from '../base/clock.ts';
import type { LoopFailure, SessionLoop } from './session-loop.ts';

/** In one turn of the event loop, parts that keep one another busy get this many rounds; then others get their turn. */
const roundsPerTurn = 64;
/**
 * A turn ends after so long, too. Transfers that end meanwhile are seen only between turns: where handing one over takes
 * long, a turn that fills the whole queue would find all of it done at its end, which is what starvation looks like to BQL.
 */
const longestTurnUs = 1000;
const usPerMs = 1000;
/** The longest that Node's timers can wait, with room. */
const longestTimerMs = 1_000_000;

/**
 * Drives parts by the event loop: whatever comes in during a turn (transfers that ended, timers) is dealt with together
 * at its end, which is what makes completions arrive at BQL in batches.
 */
export class RealLoop implements SessionLoop {
  readonly #clock: Clock;
  readonly #fail: LoopFailure;
  readonly #parts: Polled[] = [];
  #immediate: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;
  #timerAtUs = neverUs;
  #closed = false;

  constructor(clock: Clock, fail: LoopFailure) {
    this.#clock = clock;
    this.#fail = fail;
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
    if (this.#closed || this.#immediate !== undefined) return;
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
    const beganUs = this.#clock.nowUs();
    let nowUs = beganUs;
    try {
      for (let round = 0; round < roundsPerTurn && nowUs - beganUs < longestTurnUs; round++) {
        nextUs = neverUs;
        for (const part of this.#parts) {
          if (part.pollAtUs() <= nowUs) part.poll(nowUs);
        }
        for (const part of this.#parts) nextUs = Math.min(nextUs, part.pollAtUs());
        if (this.#isClosed() || nextUs > nowUs) break;
        nowUs = this.#clock.nowUs();
      }
    } catch (error) {
      this.#stopWith(error);
      return;
    }
    if (this.#isClosed()) return;
    if (nextUs <= this.#clock.nowUs()) this.kick();
    else this.#schedule(nextUs);
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
