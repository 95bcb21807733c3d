import { constants, getPriority, setPriority } from 'node:os';
import type { Dispose } from '../base/emitter.ts';

/** How the system is asked for it; numbers as `nice` has them. */
export interface PriorityCalls {
  get(): number;
  /** @throws where that is not allowed */
  set(priority: number): void;
}

/** Windows' "high", and what comes near it elsewhere: −14. */
export const raisedPriority = constants.priority.PRIORITY_HIGH;

/**
 * The priority of the thread that moves frames, raised while anybody holds it, where the system allows it. On a busy machine a
 * transfer that has ended waits until this thread is let run: BQL then finds an empty queue, and raises the limit by what
 * would bridge that pause. A kernel's driver is let run at once.
 *
 * Linux keeps the number for each thread, and it is the calling one's that is raised (threads and programs that it
 * starts later begin with it, too); elsewhere it is the process'.
 */
export class ThreadPriority {
  readonly #calls: PriorityCalls;
  #holders = 0;
  /** What it was before; undefined: it is not raised. */
  #usual: number | undefined;

  constructor(calls: PriorityCalls) {
    this.#calls = calls;
  }

  /** @returns what gives it back; the last one who does restores the former priority */
  hold(): Dispose {
    if (this.#holders++ === 0) this.#raise();
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      if (--this.#holders === 0) this.#restore();
    };
  }

  #raise(): void {
    try {
      const usual = this.#calls.get();
      // Somebody has chosen a higher one.
      if (usual <= raisedPriority) return;
      this.#calls.set(raisedPriority);
      this.#usual = usual;
    } catch {
      // No right to: it goes on as it is. `doctor` says so.
    }
  }

  #restore(): void {
    if (this.#usual === undefined) return;
    try {
      this.#calls.set(this.#usual);
    } catch {
      // Lowering is always allowed; and if it is not, nothing depends on it.
    }
    this.#usual = undefined;
  }
}

/** That of the thread which calls. */
export const threadPriority = new ThreadPriority({
  get: () => getPriority(),
  set: (priority) => setPriority(priority),
});
