import { signal } from '@preact/signals';
import type { SessionEvent } from '../../src/contract/session.ts';
import {
  faultColumns,
  probeColumns,
  type ProbeColumn,
  probeIndex,
  sampleColumns,
  type SampleColumn,
  sampleIndex,
  type TelemetryBatch,
} from '../../src/contract/telemetry.ts';
import { BqlPeriods } from './bql-periods.ts';
import { ColumnRing } from './column-ring.ts';
import { FoldingOverview } from './folding-overview.ts';

/** How far back the window remembers; the recording keeps everything. */
export const rememberedSeconds = 900;

/** The columns of a sample that something in the window shows. */
export const shownSampleColumns = [
  'timeUs',
  'inflightBytes',
  'inflightMaxBytes',
  'limitBytes',
  'txTransfers',
  'backlogBytes',
  'txBitsPerSecond',
  'rxBitsPerSecond',
  'txDroppedPackets',
  'qdiscDroppedPackets',
  'qdiscMarkedPackets',
  'eventLoopLagUs',
] as const satisfies readonly SampleColumn[];
export type ShownSampleColumn = (typeof shownSampleColumns)[number];

export const shownProbeColumns = [
  'timeUs',
  'rttUs',
  'qdiscWaitUs',
  'driverQueueUs',
] as const satisfies readonly ProbeColumn[];
export type ShownProbeColumn = (typeof shownProbeColumns)[number];

const samplePicks = shownSampleColumns.map((name) => sampleIndex[name]);
const probePicks = shownProbeColumns.map((name) => probeIndex[name]);

const limits = { maxRows: rememberedSeconds * 100, maxSpanUs: rememberedSeconds * 1e6 };
const overviewCells = 1024;
const overviewFirstCellUs = 250_000;
const maxEvents = 2000;
/** Without a new sample for this long, the right edge of the charts goes on by itself and the gap shows. */
const silenceUs = 600_000;

/** What was measured of one session, as far as this window remembers it. Times are microseconds of the session. */
export class SessionData {
  readonly samples = new ColumnRing<ShownSampleColumn>(shownSampleColumns, limits);
  readonly probes = new ColumnRing<ShownProbeColumn>(shownProbeColumns, limits);
  readonly periods = new BqlPeriods();
  /** The whole session, coarse, for the minimap. */
  readonly rttOverview = new FoldingOverview(overviewCells, overviewFirstCellUs);
  readonly inflightOverview = new FoldingOverview(overviewCells, overviewFirstCellUs);
  readonly events = signal<readonly SessionEvent[]>([]);
  /** What has gone wrong so far, in the order of `faultColumns`; NaN: not counted. */
  readonly faults = signal<readonly number[]>([]);
  /** Goes up with everything that is added. */
  revision = 0;
  /** Rows that the engine left out because this window did not keep up. */
  readonly skippedRows = signal(0);
  /** The smallest distance seen between this window's clock and the session's, microseconds. */
  #clockOffsetUs = Number.POSITIVE_INFINITY;

  /** @param atMs this window's clock (`performance.now()`) */
  addBatch(batch: TelemetryBatch, atMs: number): void {
    if (batch.skippedRows > 0) this.skippedRows.value = this.skippedRows.peek() + batch.skippedRows;
    if (batch.table === 'samples') this.#addSamples(batch.values, atMs);
    else this.#addProbes(batch.values);
    this.revision++;
  }

  addEvent(event: SessionEvent): void {
    const events = [...this.events.peek(), event];
    this.events.value = events.length > maxEvents ? events.slice(-maxEvents) : events;
    this.revision++;
  }

  /**
   * The right edge of a view that follows the session: the newest sample, or, while nothing comes from a session that
   * should be sending, the time it must be there by now.
   */
  edgeUs(atMs: number, sending: boolean): number {
    const lastUs = this.samples.lastUs;
    if (Number.isNaN(lastUs)) return 0;
    const expectedUs = atMs * 1000 - this.#clockOffsetUs;
    return sending && expectedUs - lastUs > silenceUs ? expectedUs : lastUs;
  }

  /** Forgets everything: the engine sends it again after a reconnection. */
  clear(): void {
    this.samples.clear();
    this.probes.clear();
    this.periods.clear();
    this.rttOverview.clear();
    this.inflightOverview.clear();
    this.events.value = [];
    this.faults.value = [];
    this.skippedRows.value = 0;
    this.#clockOffsetUs = Number.POSITIVE_INFINITY;
    this.revision++;
  }

  #addSamples(values: Float64Array, atMs: number): void {
    const width = sampleColumns.length;
    for (let offset = 0; offset + width <= values.length; offset += width) {
      this.samples.append(values, offset, samplePicks);
      const timeUs = values[offset + sampleIndex.timeUs] ?? Number.NaN;
      this.periods.add(timeUs, values[offset + sampleIndex.bqlEnabled] ?? Number.NaN);
      this.inflightOverview.add(timeUs, values[offset + sampleIndex.inflightMaxBytes] ?? Number.NaN);
      this.rttOverview.add(timeUs, Number.NaN);
    }
    this.#updateFaults(values.subarray(-width));
    const offsetUs = atMs * 1000 - this.samples.lastUs;
    if (offsetUs < this.#clockOffsetUs) this.#clockOffsetUs = offsetUs;
  }

  #updateFaults(row: Float64Array): void {
    const known = this.faults.peek();
    // In a gap nothing is known; what was counted before still holds.
    if (Number.isNaN(row[sampleIndex.bqlEnabled] ?? Number.NaN)) return;
    const counts = faultColumns.map((column) => row[sampleIndex[column]] ?? Number.NaN);
    if (counts.some((count, i) => !Object.is(count, known[i]))) this.faults.value = counts;
  }

  #addProbes(values: Float64Array): void {
    const width = probeColumns.length;
    for (let offset = 0; offset + width <= values.length; offset += width) {
      this.probes.append(values, offset, probePicks);
      this.rttOverview.add(
        values[offset + probeIndex.timeUs] ?? Number.NaN,
        values[offset + probeIndex.rttUs] ?? Number.NaN,
      );
    }
  }
}
