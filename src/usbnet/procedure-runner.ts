import { invariant } from '../base/errors.ts';
import { neverUs } from '../base/clock.ts';
import type { Procedure, ProcedureStep } from './procedure.ts';
import type { RequestResult, Transport } from './transport.ts';

/** How long past its own time limit a request may stay unanswered before the runner gives up on the transport. */
const graceUs = 1_000_000;

const noResult: RequestResult = { status: 'completed', data: new Uint8Array(0) };
const lateResult: RequestResult = { status: 'timed-out', data: new Uint8Array(0) };
const goneResult: RequestResult = { status: 'gone', data: new Uint8Array(0) };

interface Job {
  readonly procedure: Procedure<unknown>;
  readonly done: (outcome: ProcedureOutcome<unknown>, nowUs: number) => void;
}

/** How a procedure ended: with its value, or with what it threw. */
export type ProcedureOutcome<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

/** Runs a procedure up to its next step, or to its end. */
function advance(
  procedure: Procedure<unknown>,
  answer: RequestResult,
): ProcedureStep | ProcedureOutcome<unknown> {
  try {
    const { done, value } = procedure.next(answer);
    return done === true ? { ok: true, value } : value;
  } catch (error) {
    return { ok: false, error };
  }
}

/**
 * Carries out procedures over a transport, one at a time and in order, each step with a deadline. The kernel does
 * the same with a work queue and its control helpers.
 */
export class ProcedureRunner {
  readonly #transport: Transport;
  readonly #queue: Job[] = [];
  #current: Job | undefined;
  /** Waiting for: the answer to a request, the end of a sleep, or nothing. */
  #waiting: 'answer' | 'sleep' | undefined;
  #deadlineUs = neverUs;
  /** A request whose deadline passed; its late answer must not be taken for that of the next. */
  #overdue = false;
  #gone = false;
  #nowUs = 0;
  /** True while a procedure is being advanced: a report from inside must not advance it again. */
  #advancing = false;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The time at which the running procedure was last advanced; what a procedure reads as "now". */
  get nowUs(): number {
    return this.#nowUs;
  }

  /** Appends a procedure; `done` gets its outcome. Starts at once if nothing else is running. */
  start<T>(
    procedure: Procedure<T>,
    nowUs: number,
    done: (outcome: ProcedureOutcome<T>, nowUs: number) => void,
  ): void {
    this.#queue.push({ procedure, done: done as Job['done'] });
    this.#next(nowUs);
  }

  handleRequestDone(result: RequestResult, nowUs: number): void {
    // If it is the late answer to a request that was given up, nothing waits for one: nothing more was asked since.
    this.#overdue = false;
    if (this.#waiting === 'answer') this.#resume(result, nowUs);
  }

  /** The device is gone: the request that is out, and every later one, is answered with `gone`. Sleeps go on. */
  handleGone(nowUs: number): void {
    this.#gone = true;
    this.#overdue = false;
    if (this.#waiting === 'answer') this.#resume(goneResult, nowUs);
  }

  poll(nowUs: number): void {
    if (nowUs < this.#deadlineUs) return;
    if (this.#waiting === 'sleep') {
      this.#resume(noResult, nowUs);
    } else if (this.#waiting === 'answer') {
      this.#overdue = true;
      this.#resume(lateResult, nowUs);
    }
  }

  pollAtUs(): number {
    return this.#deadlineUs;
  }

  #next(nowUs: number): void {
    if (this.#current !== undefined || this.#advancing) return;
    this.#current = this.#queue.shift();
    if (this.#current !== undefined) this.#resume(noResult, nowUs);
  }

  /** Goes on with the current procedure until it waits or ends; then with the next. */
  #resume(result: RequestResult, nowUs: number): void {
    this.#nowUs = nowUs;
    this.#waiting = undefined;
    this.#deadlineUs = neverUs;
    this.#advancing = true;
    let answer = result;
    try {
      for (let job = this.#current; job !== undefined; job = this.#current) {
        const step = advance(job.procedure, answer);
        if ('ok' in step) {
          this.#current = undefined;
          job.done(step, nowUs);
          this.#current = this.#queue.shift();
          answer = noResult;
          continue;
        }
        const known = this.#answerWithoutAsking(step);
        if (known === undefined) {
          this.#begin(step, nowUs);
          return;
        }
        answer = known;
      }
    } finally {
      this.#advancing = false;
    }
  }

  #answerWithoutAsking(step: ProcedureStep): RequestResult | undefined {
    if (step.kind === 'sleep') return undefined;
    if (this.#gone) return goneResult;
    // The transport is still busy with a request that was given up: nothing more can be asked.
    return this.#overdue ? lateResult : undefined;
  }

  #begin(step: ProcedureStep, nowUs: number): void {
    invariant(this.#waiting === undefined, 'a procedure was advanced while it waits');
    if (step.kind === 'sleep') {
      this.#waiting = 'sleep';
      this.#deadlineUs = nowUs + step.us;
    } else {
      this.#waiting = 'answer';
      this.#deadlineUs = nowUs + step.timeoutMs * 1000 + graceUs;
      this.#transport.request(step, nowUs);
    }
  }
}
