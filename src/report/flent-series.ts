import type { SampleColumn } from '../contract/telemetry.ts';
import type { Columns, RecordingReader } from '../recording/recording-reader.ts';
import type { FlentDataSet } from './flent-data-sets.ts';
import type { ReportModel } from './report-model.ts';
import { type Distribution, distribution, type StretchStatistics, stretchStatistics } from './statistics.ts';
import { gapIntervals, type IndexRange, probeRows, sampleRows } from './telemetry.ts';

/** A series of a Flent data file: rows of the telemetry, and what is said of each. */
export interface FlentSeries {
  readonly name: string;
  /** `ms`, `Mbits/s`, or `B`: Flent's summary miscounts what it knows as `bytes`. */
  readonly units: string;
  readonly timeUs: Float64Array;
  readonly rows: readonly IndexRange[];
  /** Rows that are further apart than this have something missing between them. */
  readonly gapUs: number;
  /** NaN: there is no value. */
  readonly value: (row: number) => number;
  /** Further keys of each raw value, by name; those without a value are left out. */
  readonly more: Readonly<Record<string, (row: number) => number | boolean>>;
  /** Only its own keys, without `val`: what a stock plot reads by key, and no series of its own. */
  readonly keysOnly?: boolean;
  /** A row without a value says that there was nothing to measure, rather than that something is missing. */
  readonly sparse?: boolean;
  /** What the report knows better than what can be computed from the values alone. */
  readonly spread?: Partial<Distribution>;
  /** More of Flent's keys for `SERIES_META`. */
  readonly meta?: Readonly<Record<string, number>>;
}

const sampleNames = [
  'timeUs',
  'txBitsPerSecond',
  'rxBitsPerSecond',
  'limitBytes',
  'inflightBytes',
  'inflightMaxBytes',
  'backlogBytes',
  'driverQueueP50Us',
  'driverQueueP95Us',
  'driverQueueMaxUs',
  'qdiscWaitP50Us',
  'qdiscWaitP95Us',
  'qdiscWaitMaxUs',
  'txDroppedPackets',
  'qdiscDroppedPackets',
  'qdiscMarkedPackets',
] as const satisfies readonly SampleColumn[];

export type FlentSamples = Columns<(typeof sampleNames)[number]>;

/** The columns of a recording that its data files are made from. */
export function flentSamples(reader: RecordingReader): FlentSamples {
  return reader.columns('samples', sampleNames);
}

/** The queues as Flent's plots `backlog`, `drops` and `delay` know them: as qdiscs of hosts of these names. */
export const queueNames = ['qdisc', 'driver'] as const;

/** All series of a data file: those that Flent's tests know under their names, and ours. */
export function flentSeries(model: ReportModel, samples: FlentSamples, set: FlentDataSet): FlentSeries[] {
  const statistics = stretchStatistics(model.telemetry, set.stretches);
  return [pings(model, set, statistics), ...ofSamples(model, samples, set, statistics)];
}

function pings(model: ReportModel, { stretches }: FlentDataSet, statistics: StretchStatistics): FlentSeries {
  const { telemetry } = model;
  const { timeUs, rttUs, qdiscWaitUs, driverQueueUs, lateUs } = telemetry.probes.values;
  const rows = probeRows(telemetry, stretches);
  // Flent takes a number that is passed over for a loss; between the segments of an arm nothing was lost.
  const numbers = new Float64Array(timeUs.length);
  let number = 0;
  for (const { from, to } of rows) for (let row = from; row < to; row++) numbers[row] = ++number;
  const { probes, lost } = statistics;
  return {
    name: `Ping (ms) ${model.settings.ping.protocol === 'udp' ? 'UDP' : 'ICMP'}`,
    units: 'ms',
    timeUs,
    rows,
    gapUs: gapIntervals * telemetry.probeIntervalUs,
    value: (row) => at(rttUs, row) / 1000,
    more: {
      seq: (row) => at(numbers, row),
      lost: (row) => (Number.isNaN(at(rttUs, row)) ? true : Number.NaN),
      qdisc_wait: (row) => at(qdiscWaitUs, row) / 1000,
      driver_queue: (row) => at(driverQueueUs, row) / 1000,
      late: (row) => at(lateUs, row) / 1000,
    },
    meta: {
      PACKETS_SENT: probes,
      PACKETS_RECEIVED: probes - lost,
      ...(probes > 0 && { PACKET_LOSS_RATE: lost / probes }),
    },
  };
}

function ofSamples(
  { telemetry }: ReportModel,
  { values }: FlentSamples,
  { rates, stretches }: FlentDataSet,
  { throughputBitsPerSecond, receivedBitsPerSecond }: StretchStatistics,
): FlentSeries[] {
  const rows = sampleRows(telemetry, stretches);
  const common = { timeUs: values.timeUs, rows, gapUs: gapIntervals * telemetry.sampleIntervalUs, more: {} };
  const inBytes = (column: Float64Array) => ({
    ...common,
    units: 'B',
    value: (row: number) => at(column, row),
  });
  const inMs = (column: Float64Array) => (row: number) => at(column, row) / 1000;
  const rate = (direction: string, column: Float64Array, meanBitsPerSecond: number) => ({
    ...common,
    name: rates === '' ? direction.replace(/^./, (first) => first.toUpperCase()) : rates + direction,
    units: 'Mbits/s',
    value: (row: number) => at(column, row) / 1e6,
    // A sample counts by the time that it stands for.
    spread: { mean: meanBitsPerSecond / 1e6 },
  });
  const [qdisc, driver] = queueNames;
  return [
    rate('upload', values.txBitsPerSecond, throughputBitsPerSecond),
    rate('download', values.rxBitsPerSecond, receivedBitsPerSecond),
    { ...inBytes(values.limitBytes), name: 'BQL limit' },
    {
      ...inBytes(values.inflightBytes),
      name: 'BQL inflight',
      more: { max: (row) => at(values.inflightMaxBytes, row) },
    },
    { ...inBytes(values.backlogBytes), name: 'Qdisc backlog' },
    {
      ...common,
      name: 'Driver queue (ms)',
      units: 'ms',
      sparse: true,
      value: inMs(values.driverQueueP50Us),
      more: { p95: inMs(values.driverQueueP95Us), max: inMs(values.driverQueueMaxUs) },
    },
    {
      ...common,
      name: 'Qdisc wait (ms)',
      units: 'ms',
      sparse: true,
      value: inMs(values.qdiscWaitP50Us),
      more: { p95: inMs(values.qdiscWaitP95Us), max: inMs(values.qdiscWaitMaxUs) },
    },
    {
      ...inBytes(values.backlogBytes),
      name: `qdisc_stats_${qdisc}`,
      keysOnly: true,
      more: {
        backlog_bytes: (row) => at(values.backlogBytes, row),
        delay: inMs(values.qdiscWaitP50Us),
        dropped: counterWithin(values.qdiscDroppedPackets, rows),
        ecn_mark: counterWithin(values.qdiscMarkedPackets, rows),
      },
    },
    {
      ...inBytes(values.inflightBytes),
      name: `qdisc_stats_${driver}`,
      keysOnly: true,
      more: {
        backlog_bytes: (row) => at(values.inflightBytes, row),
        delay: inMs(values.driverQueueP50Us),
        dropped: counterWithin(values.txDroppedPackets, rows),
      },
    },
  ];
}

/** A counter that goes on over the rows as if nothing lay between them; older recordings do not have all of them. */
function counterWithin(column: Float64Array, rows: readonly IndexRange[]): (row: number) => number {
  const counted = new Float64Array(column.length).fill(Number.NaN);
  let total = 0;
  for (const { from, to } of rows) {
    for (let row = from; row < to; row++) {
      const growth = at(column, row) - at(column, Math.max(0, row - 1));
      if (!Number.isNaN(growth)) total += Math.max(0, growth);
      counted[row] = Number.isNaN(at(column, row)) ? Number.NaN : total;
    }
  }
  return (row) => at(counted, row);
}

function at(column: Float64Array, row: number): number {
  return column[row] ?? Number.NaN;
}

/**
 * What `SERIES_META` says of a series; null for what is not known. The mean is not under Flent's key: Flent would take it
 * for one over all steps, and say so of an arm that has values in a few of them.
 */
export function seriesSummary(series: FlentSeries): Record<string, unknown> {
  const values = new Float64Array(series.rows.reduce((sum, { from, to }) => sum + to - from, 0));
  let index = 0;
  for (const { from, to } of series.rows) {
    for (let row = from; row < to; row++) values[index++] = series.value(row);
  }
  const spread = { ...distribution(values), ...series.spread };
  return {
    RUNNER: 'Queuescope',
    UNITS: series.units,
    MIN_VALUE: known(spread.min),
    MAX_VALUE: known(spread.max),
    ...series.meta,
    QUEUESCOPE: Object.fromEntries(Object.entries(spread).map(([key, value]) => [key, known(value)])),
  };
}

function known(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}
