/** A stretch of time in which BQL was on, or off. */
export interface BqlPeriod {
  readonly enabled: boolean;
  readonly fromUs: number;
  /** The last sample that belongs to it; grows while it is the newest. */
  toUs: number;
}

/**
 * When BQL was on and when off, read from the samples themselves: what hatches the charts and parts the two arms of a
 * comparison.
 */
export class BqlPeriods {
  readonly #periods: BqlPeriod[] = [];

  get all(): readonly BqlPeriod[] {
    return this.#periods;
  }

  /** @param enabled of the sample that ends at `timeUs`; NaN says nothing. Samples come in order of time. */
  add(timeUs: number, enabled: number): void {
    if (Number.isNaN(enabled)) return;
    const newest = this.#periods.at(-1);
    if (newest !== undefined && newest.enabled === enabled > 0) {
      newest.toUs = timeUs;
      return;
    }
    this.#periods.push({ enabled: enabled > 0, fromUs: newest?.toUs ?? timeUs, toUs: timeUs });
    // Thousands of switches in one session are not a use, but they must not grow without end.
    if (this.#periods.length > maxPeriods) this.#periods.splice(0, maxPeriods / 4);
  }

  clear(): void {
    this.#periods.length = 0;
  }
}

const maxPeriods = 4096;
