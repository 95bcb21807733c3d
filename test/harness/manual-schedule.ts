import type { Dispose } from '../../src/base/emitter.ts';
import type { Schedule } from '../../src/rpc/schedule.ts';

/** Time for tests: nothing is due until {@link advance} makes it. */
export class ManualSchedule {
  #nowUs = 0;
  readonly #pending = new Set<{ readonly atUs: number; readonly action: () => void }>();

  readonly schedule: Schedule = (delayUs, action): Dispose => {
    const entry = { atUs: this.#nowUs + delayUs, action };
    this.#pending.add(entry);
    return () => void this.#pending.delete(entry);
  };

  get pendingCount(): number {
    return this.#pending.size;
  }

  advance(byUs: number): void {
    this.#nowUs += byUs;
    const due = [...this.#pending].filter(({ atUs }) => atUs <= this.#nowUs);
    for (const entry of due) {
      if (this.#pending.delete(entry)) entry.action();
    }
  }
}
