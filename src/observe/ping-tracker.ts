import { neverUs, type Polled } from '../base/clock.ts';
import type { PingLine } from './ping-output.ts';

/** What became of one probe. */
export interface PingResult {
  /** When it was sent. Exact for an answered one, to one interval for a lost one. */
  readonly sentAtUs: number;
  /** Counts on over restarts of the program, from 0. */
  readonly sequence: number;
  /** NaN: lost. */
  readonly rttUs: number;
}

export interface PingTiming {
  readonly intervalUs: number;
  /** Unanswered for so long: lost. */
  readonly timeoutUs: number;
}

const sequenceMask = 0xffff;
const halfSequences = 0x8000;
/** Probes whose fate is open; an older one counts as lost then. */
const outstandingLimit = 4096;

/**
 * Tells from a ping program's lines what became of each probe: answered, or lost. That a probe was sent is taken from
 * the program's own words only, so a program that stands still loses nothing.
 */
export class PingTracker implements Polled {
  readonly #report: (result: PingResult) => void;
  #timing: PingTiming;
  /** Probes that have no reply yet: sequence number and when they were sent, oldest first. */
  readonly #outstanding = new Map<number, number>();
  /** The newest probe that is known to have been sent. */
  #newest = -1;
  /** Sequence number 1 of the running program is this one of ours. */
  #first = 0;

  constructor(timing: PingTiming, report: (result: PingResult) => void) {
    this.#timing = timing;
    this.#report = report;
  }

  /** A new program begins to count at 1. Nobody waits for the probes of the one before any more. */
  restart(timing: PingTiming): void {
    this.#timing = timing;
    this.#outstanding.clear();
    this.#first = this.#newest + 1;
  }

  /** @param wallNowUs the wall clock at `nowUs`, for the lines' stamps are times of that */
  handleLine(line: PingLine, nowUs: number, wallNowUs: number): void {
    const sequence = this.#unwrap(line.sequence);
    const isKnown = sequence <= this.#newest;
    const wasOutstanding = this.#outstanding.has(sequence);
    if (isKnown && !wasOutstanding) return;
    switch (line.kind) {
      case 'reply': {
        // A wall clock that was set in between must not move probes into the future.
        const sentAtUs = Math.min(nowUs, nowUs - (wallNowUs - line.stampUs)) - line.rttUs;
        this.#settle(sequence, sentAtUs, line.rttUs);
        break;
      }
      case 'unreachable':
        this.#settle(
          sequence,
          this.#outstanding.get(sequence) ?? nowUs - this.#timing.intervalUs,
          Number.NaN,
        );
        break;
      case 'outstanding':
        if (wasOutstanding) break;
        // It was sent when the one before it should have been answered, one interval ago.
        this.#outstanding.set(sequence, nowUs - (wallNowUs - line.stampUs) - this.#timing.intervalUs);
        if (this.#outstanding.size > outstandingLimit) this.#loseOldest();
        break;
    }
    this.#newest = Math.max(this.#newest, sequence);
  }

  /** The whole number whose low 16 bits are the packet's, next to the newest one. */
  #unwrap(packetSequence: number): number {
    const newestInProgram = this.#newest - this.#first + 1;
    const difference = ((packetSequence - newestInProgram + halfSequences) & sequenceMask) - halfSequences;
    return this.#newest + difference;
  }

  #settle(sequence: number, sentAtUs: number, rttUs: number): void {
    this.#outstanding.delete(sequence);
    this.#report({ sentAtUs, sequence, rttUs });
  }

  #loseOldest(): void {
    for (const [sequence, sentAtUs] of this.#outstanding) {
      this.#settle(sequence, sentAtUs, Number.NaN);
      return;
    }
  }

  poll(nowUs: number): void {
    while (nowUs >= this.pollAtUs()) this.#loseOldest();
  }

  pollAtUs(): number {
    for (const sentAtUs of this.#outstanding.values()) return sentAtUs + this.#timing.timeoutUs;
    return neverUs;
  }
}
