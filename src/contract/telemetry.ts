/**
 * What is measured over time. Each table is a list of columns; a row is one float64 a column, in this order, on the
 * wire, in memory and (under the same names) in a recording. A value that does not exist is NaN: null in a recording,
 * a gap in a chart.
 */

/**
 * What went wrong since the start of the session, by code; NaN where that is not known. Transfers that we cancelled
 * ourselves, or that ended because the device was unplugged, are no errors.
 */
export const faultColumns = [
  'txStallErrors',
  'txProtocolErrors',
  'txTimeoutErrors',
  'txOtherErrors',
  'rxStallErrors',
  'rxProtocolErrors',
  'rxOverflowErrors',
  'rxTimeoutErrors',
  'rxOtherErrors',
  /** Times that nothing was sent for five seconds although the queue was not empty (the kernel's transmit timeout). */
  'txTimeouts',
  /** Steps of the recovery that were begun, and those of them that were resets of the device's port. */
  'recoveryRetries',
  'recoveryResets',
] as const;
export type FaultColumn = (typeof faultColumns)[number];

/** One row each sampling interval, about that interval or its end. */
export const sampleColumns = [
  /** End of the interval, microseconds since the start of the session. */
  'timeUs',
  /** Bytes handed to the device and not yet completed, at the end of the interval. */
  'inflightBytes',
  /** The most there was in the interval. */
  'inflightMaxBytes',
  /** BQL's limit; NaN while BQL is off. */
  'limitBytes',
  /** 1 while BQL is on. */
  'bqlEnabled',
  /** Transfers in flight to the device (the kernel's txq.qlen). */
  'txTransfers',
  'backlogPackets',
  'backlogBytes',
  /** Flows with something waiting, or that had until a moment ago; NaN: the qdisc knows of no flows. */
  'qdiscFlows',
  /** Frames sent and received without framing, over the interval. */
  'txBitsPerSecond',
  'rxBitsPerSecond',
  'txPacketsPerSecond',
  'rxPacketsPerSecond',
  /** From submit to completion, of the packets that completed in the interval. */
  'driverQueueP50Us',
  'driverQueueP95Us',
  'driverQueueMaxUs',
  /** From enqueue to dequeue, of the packets that left the qdisc in the interval. */
  'qdiscWaitP50Us',
  'qdiscWaitP95Us',
  'qdiscWaitMaxUs',
  /** Counters since the start of the session. */
  'txDroppedPackets',
  'qdiscDroppedPackets',
  /** Packets that the qdisc has marked with "congestion experienced" instead. */
  'qdiscMarkedPackets',
  'txErrors',
  'rxErrors',
  /** The share of the interval (0 … 1) in which the driver, and in which BQL, had stopped the queue. */
  'driverXoff',
  'stackXoff',
  /** The longest that our own event loop was late in the interval; what was measured in it is no better than this. */
  'eventLoopLagUs',
  ...faultColumns,
] as const;
export type SampleColumn = (typeof sampleColumns)[number];

/** One row a probe, once its fate is known. */
export const probeColumns = [
  /** When it was due to be sent, microseconds since the start of the session. */
  'timeUs',
  'sequence',
  /** NaN: lost. */
  'rttUs',
  /** Its own wait above the driver, and in the driver until its transfer was done. */
  'qdiscWaitUs',
  'driverQueueUs',
  /** How much later than due it was really sent. */
  'lateUs',
] as const;
export type ProbeColumn = (typeof probeColumns)[number];

export const telemetryTables = { samples: sampleColumns, probes: probeColumns } as const;
export type TelemetryTable = keyof typeof telemetryTables;

/** Hands over the rows of a batch one after another; each is a view that lasts as long as the batch. */
export function forEachRow(
  table: TelemetryTable,
  values: Float64Array,
  handle: (row: Float64Array) => void,
): void {
  const columns = telemetryTables[table].length;
  for (let start = 0; start < values.length; start += columns) {
    handle(values.subarray(start, start + columns));
  }
}

/** Position of each column in a row. */
export const sampleIndex: Readonly<Record<SampleColumn, number>> = indexOf(sampleColumns);
export const probeIndex: Readonly<Record<ProbeColumn, number>> = indexOf(probeColumns);

function indexOf<T extends string>(columns: readonly T[]): Record<T, number> {
  return Object.fromEntries(columns.map((column, index) => [column, index])) as Record<T, number>;
}

/** Rows of one table, one after the other: `values.length` is a multiple of the number of columns. */
export interface TelemetryBatch {
  readonly table: TelemetryTable;
  readonly values: Float64Array;
  /** Rows that had to be left out before this batch, because the reader did not keep up. */
  readonly skippedRows: number;
}
