import { probeIndex, sampleColumns, sampleIndex } from '../contract/telemetry.ts';

/** Columns of `samples` that count from the opening of the device, and are to count from the start of the session. */
const counters = [
  sampleIndex.txDroppedPackets,
  sampleIndex.qdiscDroppedPackets,
  sampleIndex.qdiscMarkedPackets,
  sampleIndex.txErrors,
  sampleIndex.rxErrors,
  sampleIndex.txStallErrors,
  sampleIndex.txProtocolErrors,
  sampleIndex.txTimeoutErrors,
  sampleIndex.txOtherErrors,
  sampleIndex.rxStallErrors,
  sampleIndex.rxProtocolErrors,
  sampleIndex.rxOverflowErrors,
  sampleIndex.rxTimeoutErrors,
  sampleIndex.rxOtherErrors,
  sampleIndex.txTimeouts,
] as const;

/**
 * Makes the telemetry of one session out of that of several openings of its device: what counts from the start goes on
 * counting, and between two openings there is a row in which nothing is known.
 */
export class TelemetryContinuity {
  readonly #bases = new Float64Array(counters.length);
  readonly #latest = new Float64Array(counters.length);
  readonly #gap = new Float64Array(sampleColumns.length);
  #sequenceBase = 0;
  #latestSequence = -1;
  #lastUs = Number.NEGATIVE_INFINITY;

  /** Corrects a row of `samples` in place. */
  handleSample(row: Float64Array): void {
    this.#lastUs = row[sampleIndex.timeUs] ?? this.#lastUs;
    for (const [i, column] of counters.entries()) {
      const value = (row[column] ?? 0) + (this.#bases[i] ?? 0);
      row[column] = value;
      // What does not count this (NaN) changes nothing.
      if (value >= 0) this.#latest[i] = value;
    }
  }

  /** Corrects a row of `probes` in place. */
  handleProbe(row: Float64Array): void {
    const sequence = (row[probeIndex.sequence] ?? 0) + this.#sequenceBase;
    row[probeIndex.sequence] = sequence;
    if (sequence > this.#latestSequence) this.#latestSequence = sequence;
  }

  /** The device is away: the row that says so, in time after all before it. Only lent. */
  gapRow(timeUs: number): Float64Array {
    this.#lastUs = Math.max(timeUs, this.#lastUs + 1);
    this.#gap.fill(Number.NaN);
    this.#gap[sampleIndex.timeUs] = this.#lastUs;
    return this.#gap;
  }

  /** The device was opened anew: what comes counts from zero again. */
  resume(): void {
    this.#bases.set(this.#latest);
    this.#sequenceBase = this.#latestSequence + 1;
  }
}
