import { percentileOfSorted } from '../base/percentile.ts';
import { probeIndex, type SampleColumn, sampleIndex } from '../contract/telemetry.ts';
import { TimedRows } from './timed-rows.ts';

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
  /** How much later than due the probes were sent; the round trips do not contain it. */
  readonly probeLateUs: Spread;
  /** The probes' own waits above the driver, and in it. */
  readonly probeQdiscWaitUs: Spread;
  readonly probeDriverQueueUs: Spread;
  /** Frames handed over the bus, bits per second, over the counted part of the phase. */
  readonly throughputBitsPerSecond: number | null;
  readonly receivedBitsPerSecond: number | null;
  readonly limitBytes: Spread;
  readonly inflightBytes: Spread;
}

/** What passed an interface in a stretch, on average; null where nothing is known. */
export interface PacketRates {
  readonly txBitsPerSecond: number | null;
  readonly rxBitsPerSecond: number | null;
  readonly txPacketsPerSecond: number | null;
  readonly rxPacketsPerSecond: number | null;
}

/** What a further ping measured. */
export type MoreProbeStatistics = Pick<PhaseStatistics, 'probes' | 'lost' | 'rttUs' | 'probeQdiscWaitUs'>;

/** A stretch of the telemetry's time. */
export interface Stretch {
  readonly fromUs: number;
  readonly toUs: number;
}

/** What statistics are made of: the rest of a sample is not kept, because an experiment may last for hours. */
const keptColumns = [
  'timeUs',
  'inflightBytes',
  'limitBytes',
  'backlogPackets',
  'txBitsPerSecond',
  'rxBitsPerSecond',
  'txPacketsPerSecond',
  'rxPacketsPerSecond',
  'driverXoff',
  'stackXoff',
  'eventLoopLagUs',
] as const satisfies readonly SampleColumn[];
type KeptColumn = (typeof keptColumns)[number];

const keptIndex = Object.fromEntries(keptColumns.map((name, index) => [name, index])) as Readonly<
  Record<KeptColumn, number>
>;

/** So many bytes in flight are more than what passes through an idle queue. */
const busyBytes = 4 * 1514;
/** In this share of the samples there must be something to send, or the load did not reach the limit. */
const busyShare = 0.6;

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
  readonly #samples = new TimedRows();
  /** By when they were due. */
  readonly #probes = new TimedRows();
  /** Of further pings, by their place. */
  readonly #moreProbes: TimedRows[] = [];
  readonly #kept = new Float64Array(keptColumns.length);

  addSample(row: Float64Array): void {
    for (const name of keptColumns) this.#kept[keptIndex[name]] = row[sampleIndex[name]] ?? Number.NaN;
    this.#samples.add(this.#kept);
  }

  addProbe(row: Float64Array): void {
    this.#probes.add(row);
  }

  addMoreProbe(index: number, row: Float64Array): void {
    (this.#moreProbes[index] ??= new TimedRows()).add(row);
  }

  /** What the further pings measured in the stretches, in their order. */
  moreProbes(...stretches: readonly Stretch[]): readonly MoreProbeStatistics[] {
    return this.#moreProbes.map((all) => {
      const probes = stretches.flatMap(({ fromUs, toUs }) => all.from(fromUs, toUs));
      const rtts = column(probes, probeIndex.rttUs);
      return {
        probes: probes.length,
        lost: rtts.filter((rtt) => Number.isNaN(rtt)).length,
        rttUs: spread(rtts),
        probeQdiscWaitUs: spread(column(probes, probeIndex.qdiscWaitUs)),
      };
    });
  }

  /**
   * Reduces what was measured in the stretches (times of the telemetry) to statistics. A probe belongs to the stretch in
   * which it was due, so the answer is final only once all probes of it have been answered or given up.
   */
  statistics(...stretches: readonly Stretch[]): PhaseStatistics {
    const samples = stretches.map((stretch) => this.#samplesOf(stretch));
    const probes = stretches.flatMap((stretch) => this.#probesOf(stretch));
    const rtts = column(probes, probeIndex.rttUs);
    return {
      probes: probes.length,
      lost: rtts.filter((rtt) => Number.isNaN(rtt)).length,
      rttUs: spread(rtts),
      probeLateUs: spread(column(probes, probeIndex.lateUs)),
      probeQdiscWaitUs: spread(column(probes, probeIndex.qdiscWaitUs)),
      probeDriverQueueUs: spread(column(probes, probeIndex.driverQueueUs)),
      throughputBitsPerSecond: meanRate(samples, keptIndex.txBitsPerSecond),
      receivedBitsPerSecond: meanRate(samples, keptIndex.rxBitsPerSecond),
      limitBytes: spread(samples.flatMap((rows) => column(rows, keptIndex.limitBytes))),
      inflightBytes: spread(samples.flatMap((rows) => column(rows, keptIndex.inflightBytes))),
    };
  }

  /** The round trips of the probes that were due in the stretches and answered, in the order of being due. */
  roundTripsUs(...stretches: readonly Stretch[]): Float64Array {
    const probes = stretches.flatMap((stretch) => this.#probesOf(stretch));
    const rtts = column(probes, probeIndex.rttUs);
    return Float64Array.from(rtts.filter((rtt) => !Number.isNaN(rtt)));
  }

  packetRates(stretch: Stretch): PacketRates {
    const samples = [this.#samplesOf(stretch)];
    return {
      txBitsPerSecond: meanRate(samples, keptIndex.txBitsPerSecond),
      rxBitsPerSecond: meanRate(samples, keptIndex.rxBitsPerSecond),
      txPacketsPerSecond: meanRate(samples, keptIndex.txPacketsPerSecond),
      rxPacketsPerSecond: meanRate(samples, keptIndex.rxPacketsPerSecond),
    };
  }

  /** Probes that were sent more than `lateUs` later than they were due. */
  lateProbes(stretch: Stretch, lateUs: number): number {
    return this.#probesOf(stretch).filter((row) => (row[probeIndex.lateUs] ?? 0) > lateUs).length;
  }

  /** The spread of a column of the probes. */
  probeSpreadOf(index: number, ...stretches: readonly Stretch[]): Spread {
    return spread(stretches.flatMap((stretch) => column(this.#probesOf(stretch), index)));
  }

  /** The spread of a column of the samples. */
  spreadOf(name: KeptColumn, ...stretches: readonly Stretch[]): Spread {
    return spread(stretches.flatMap((stretch) => column(this.#samplesOf(stretch), keptIndex[name])));
  }

  /** Whether there was always something to send: the queue was stopped, or had more in it than passes through. */
  wasBusy(stretch: Stretch): boolean {
    const samples = this.#samplesOf(stretch);
    const busy = samples.filter(
      (row) =>
        (row[keptIndex.backlogPackets] ?? 0) > 0 ||
        (row[keptIndex.driverXoff] ?? 0) + (row[keptIndex.stackXoff] ?? 0) > 0 ||
        (row[keptIndex.inflightBytes] ?? 0) >= busyBytes,
    );
    return samples.length > 0 && busy.length >= busyShare * samples.length;
  }

  #samplesOf({ fromUs, toUs }: Stretch): readonly Float64Array[] {
    return this.#samples.after(fromUs, toUs);
  }

  #probesOf({ fromUs, toUs }: Stretch): readonly Float64Array[] {
    return this.#probes.from(fromUs, toUs);
  }
}

function column(rows: readonly Float64Array[], index: number): readonly number[] {
  return rows.map((row) => row[index] ?? Number.NaN);
}

/** The mean of a rate, each row weighted by the length of its interval, over one or more stretches. */
function meanRate(stretches: readonly (readonly Float64Array[])[], index: number): number | null {
  let bits = 0;
  let us = 0;
  for (const samples of stretches) {
    for (let i = 1; i < samples.length; i++) {
      const rate = samples[i]?.[index] ?? Number.NaN;
      const intervalUs = (samples[i]?.[keptIndex.timeUs] ?? 0) - (samples[i - 1]?.[keptIndex.timeUs] ?? 0);
      // In a gap nothing is known.
      if (Number.isNaN(rate)) continue;
      bits += rate * intervalUs;
      us += intervalUs;
    }
  }
  return us === 0 ? null : bits / us;
}
