/**
 * Where time comes from. All times inside Queuescope are microseconds on one monotonic scale, as numbers (exact up to
 * 285 years). Core code never reads a clock: it is told `nowUs`.
 */
export interface Clock {
  nowUs(): number;
}

/** "Never", as an answer of `pollAtUs()`. */
export const neverUs = Number.POSITIVE_INFINITY;

/** A part that is driven by time: `poll` does what is due, `pollAtUs` says when to call it again. */
export interface Polled {
  poll(nowUs: number): void;
  /** The time of the next thing to do; {@link neverUs} if only an event from outside can bring one. */
  pollAtUs(): number;
}
