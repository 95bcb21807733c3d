import { faultColumns, type ProbeColumn, type SampleColumn } from '../contract/telemetry.ts';
import type { Columns, RecordingReader, TimeRange } from '../recording/recording-reader.ts';

/** The columns that reports are made from; what is not among them is in the CSV and JSON exports only. */
const sampleNames = [
  'timeUs',
  'inflightBytes',
  'inflightMaxBytes',
  'limitBytes',
  'bqlEnabled',
  'backlogBytes',
  'txBitsPerSecond',
  'rxBitsPerSecond',
  'driverQueueMaxUs',
  'qdiscWaitMaxUs',
  'txDroppedPackets',
  'qdiscDroppedPackets',
  'txErrors',
  'rxErrors',
  'driverXoff',
  'stackXoff',
  'eventLoopLagUs',
  ...faultColumns,
] as const satisfies readonly SampleColumn[];

const probeNames = [
  'timeUs',
  'rttUs',
  'qdiscWaitUs',
  'driverQueueUs',
  'lateUs',
] as const satisfies readonly ProbeColumn[];

export type ReportSamples = Columns<(typeof sampleNames)[number]>;
export type ReportProbes = Columns<(typeof probeNames)[number]>;

/** A recording's telemetry in memory, in the order of time. */
export interface Telemetry {
  readonly samples: ReportSamples;
  readonly probes: ReportProbes;
  /** From one sample, or probe, to the next, as a rule; NaN with fewer than two. */
  readonly sampleIntervalUs: number;
  readonly probeIntervalUs: number;
}

export function loadTelemetry(reader: RecordingReader): Telemetry {
  const samples = reader.columns('samples', sampleNames);
  const probes = reader.columns('probes', probeNames);
  return {
    samples,
    probes,
    sampleIntervalUs: medianStep(samples.values.timeUs),
    probeIntervalUs: medianStep(probes.values.timeUs),
  };
}

/** More than this many intervals without a row are a gap. */
export const gapIntervals = 2.5;

/** The index of the first time that is later than `timeUs`, or with `orEqual` not earlier. */
export function firstAfter(times: Float64Array, timeUs: number, orEqual: boolean): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = times[middle] ?? Number.NaN;
    if (orEqual ? at >= timeUs : at > timeUs) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Rows from `from`, before `to`. */
export interface IndexRange {
  readonly from: number;
  readonly to: number;
}

/** The rows of stretches: a sample belongs to the one that its interval ends in (after `fromUs`, up to and with `toUs`). */
export function sampleRows({ samples }: Telemetry, stretches: readonly TimeRange[]): IndexRange[] {
  const { timeUs } = samples.values;
  return stretches.map(({ fromUs, toUs }) => ({
    from: firstAfter(timeUs, fromUs, false),
    to: firstAfter(timeUs, toUs, false),
  }));
}

/** The rows of stretches: a probe belongs to the one that it was due in (from `fromUs` on, before `toUs`). */
export function probeRows({ probes }: Telemetry, stretches: readonly TimeRange[]): IndexRange[] {
  const { timeUs } = probes.values;
  return stretches.map(({ fromUs, toUs }) => ({
    from: firstAfter(timeUs, fromUs, true),
    to: firstAfter(timeUs, toUs, true),
  }));
}

function medianStep(times: Float64Array): number {
  if (times.length < 2) return Number.NaN;
  const steps = times.subarray(1).map((timeUs, index) => timeUs - (times[index] ?? Number.NaN));
  return steps.sort()[steps.length >> 1] ?? Number.NaN;
}
