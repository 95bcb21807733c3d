import type { Clock, Polled } from '../base/clock.ts';

/** Drives the parts of one session in real time. */
export interface SessionLoop extends Clock {
  /** Lets `action` act on the parts at the present time, then does what has become due. */
  run(action: (nowUs: number) => void): void;
  add(part: Polled): void;
  /** False once closed, or stopped by a failure. */
  readonly running: boolean;
  /** Stops driving; nothing is called any more. */
  close(): void;
}

/** Gets what a part threw; the loop has stopped by then. */
export type LoopFailure = (error: unknown) => void;
