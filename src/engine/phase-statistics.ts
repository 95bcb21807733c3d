import { percentileOfSorted } from '../base/percentile.ts';
import { probeIndex, sampleIndex } from '../contract/telemetry.ts';

/** The spread of a quantity; null where nothing was measured. */
export interface Spread {
  readonly n: number;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly max: number | null;
}

/** What one phase measured. */
export interface PhaseStatistics {
  /** Probes sent, answered or not, and those without an answer. */
  readonly probes: number;
  readonly lost: number;
  readonly rttUs: Spread;
  /** The probes' own waits above the driver, and in it. */
  readonly probeQdiscWaitUs: Spread;
  readonly probeDriverQueueUs: Spread;
  /** Frames handed over the bus, bits per second, over the counted part of the phase. */
  readonly throughputBitsPerSecond: number | null;
  readonly receivedBitsPerSecond: number | null;
  readonly limitBytes: Spread;
  readonly inflightBytes: Spread;
}

function spread(values: readonly number[]): Spread {
  const sorted = Float64Array.from(values.filter((value) => !Number.isNaN(value))).sort();
  const at = (p: number): number | null => {
    const value = percentileOfSorted(sorted, sorted.length, p);
    return Number.isNaN(value) ? null : value;
  };
  return { n: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

/** Collects telemetry rows and reduces those of a stretch of time to statistics. */
export class PhaseCollector {
  readonly #samples: Float64Array[] = [];
  readonly #probes: Float64Array[] = [];

  addSample(row: Float64Array): void {
    this.#samples.push(row.slice());
  }

  addProbe(row: Float64Array): void {
    this.#probes.push(row.slice());
  }

  /**
   * Reduces what was measured from `fromUs` to `toUs` (times of the telemetry). A probe belongs to the phase in which it
   * was due, so the answer is final only once all probes of it have been answered or given up.
   */
  statistics(fromUs: number, toUs: number): PhaseStatistics {
    const within = (rows: readonly Float64Array[], timeIndex: number): readonly Float64Array[] =>
      rows.filter((row) => (row[timeIndex] ?? 0) > fromUs && (row[timeIndex] ?? 0) <= toUs);
    const samples = within(this.#samples, sampleIndex.timeUs);
    const probes = this.#probes.filter((row) => {
      const dueUs = row[probeIndex.timeUs] ?? 0;
      return dueUs >= fromUs && dueUs < toUs;
    });
    const column = (rows: readonly Float64Array[], index: number): readonly number[] =>
      rows.map((row) => row[index] ?? Number.NaN);
    const rtts = column(probes, probeIndex.rttUs);
    return {
      probes: probes.length,
      lost: rtts.filter((rtt) => Number.isNaN(rtt)).length,
      rttUs: spread(rtts),
      probeQdiscWaitUs: spread(column(probes, probeIndex.qdiscWaitUs)),
      probeDriverQueueUs: spread(column(probes, probeIndex.driverQueueUs)),
      throughputBitsPerSecond: meanRate(samples, sampleIndex.txBitsPerSecond),
      receivedBitsPerSecond: meanRate(samples, sampleIndex.rxBitsPerSecond),
      limitBytes: spread(column(samples, sampleIndex.limitBytes)),
      inflightBytes: spread(column(samples, sampleIndex.inflightBytes)),
    };
  }

  clear(): void {
    this.#samples.length = 0;
    this.#probes.length = 0;
  }
}

/** The mean of a rate, each row weighted by the length of its interval. */
function meanRate(samples: readonly Float64Array[], index: number): number | null {
  let bits = 0;
  let us = 0;
  for (let i = 1; i < samples.length; i++) {
    const rate = samples[i]?.[index] ?? Number.NaN;
    const intervalUs = (samples[i]?.[sampleIndex.timeUs] ?? 0) - (samples[i - 1]?.[sampleIndex.timeUs] ?? 0);
    // In a gap nothing is known.
    if (Number.isNaN(rate)) continue;
    bits += rate * intervalUs;
    us += intervalUs;
  }
  return us === 0 ? null : bits / us;
}
