import { neverUs, type Polled } from '../base/clock.ts';
import { sampleColumns, sampleIndex } from '../contract/telemetry.ts';
import type { NetdevReader, NetdevStatus } from '../observe/netdev-reader.ts';
import type { QdiscReading } from '../observe/qdisc-monitor.ts';
import type { LagMeter } from './sampler.ts';

const usPerSecond = 1e6;
/** Between samples, bytes in flight are looked at so often for the most there was. */
const lookUs = 10_000;
/** A look costs one to three microseconds a queue; many queues are looked at less often. */
const lookUsPerQueue = 500;
/** The qdisc is asked so long before a sample that its answer is there by then. */
const qdiscLeadUs = 10_000;

/** One of the kernel's counters, which begins at anything and may begin anew. */
class KernelCounter {
  #last = Number.NaN;
  /** Counted since this was made. */
  total = 0;

  /** @returns how much it went up since the last reading; NaN if that is not known */
  update(value: number): number {
    const growth = value - this.#last;
    this.#last = value;
    // Less than before: another device behind the same name, or a driver that started anew.
    if (!(growth >= 0)) return Number.NaN;
    this.total += growth;
    return growth;
  }
}

/** Where a row's values come from; asked anew for each. */
export interface NetdevSamplerSource {
  /** Whether the driver takes part in BQL at all, and whether it is on. */
  readonly bql: 'none' | 'off' | 'on';
  readonly qdisc: QdiscReading | undefined;
  requestQdisc(nowUs: number): void;
}

export interface NetdevSamplerOptions {
  readonly reader: NetdevReader;
  readonly source: NetdevSamplerSource;
  readonly startUs: number;
  readonly rateHz: number;
  readonly lag: LagMeter;
  /** Gets each row; it is valid during the call only. */
  readonly report: (row: Float64Array, nowUs: number) => void;
}

/**
 * Reads a kernel's network interface at a fixed pace into rows of the `samples` table. What only a driver of our own
 * knows (transfers, waits in the driver and the qdisc, who stopped the queue) is not there: NaN.
 */
export class NetdevSampler implements Polled {
  readonly #options: NetdevSamplerOptions;
  readonly #row = new Float64Array(sampleColumns.length).fill(Number.NaN);
  readonly #intervalUs: number;
  readonly #txBytes = new KernelCounter();
  readonly #rxBytes = new KernelCounter();
  readonly #txPackets = new KernelCounter();
  readonly #rxPackets = new KernelCounter();
  readonly #txDropped = new KernelCounter();
  readonly #txErrors = new KernelCounter();
  readonly #rxErrors = new KernelCounter();
  readonly #txTimeouts = new KernelCounter();
  readonly #qdiscDropped = new KernelCounter();
  readonly #qdiscMarked = new KernelCounter();
  readonly #lookIntervalUs: number;
  #inflightMaxBytes = Number.NaN;
  #dueAtUs = neverUs;
  #lookAtUs = neverUs;
  #askAtUs = neverUs;
  #lastAtUs = 0;
  #isStopped = false;

  constructor(options: NetdevSamplerOptions) {
    this.#options = options;
    this.#intervalUs = usPerSecond / options.rateHz;
    this.#lookIntervalUs = Math.max(lookUs, options.reader.queueCount * lookUsPerQueue);
  }

  start(nowUs: number): void {
    this.#updateCounters();
    this.#lastAtUs = nowUs;
    this.#schedule(nowUs + this.#intervalUs, nowUs);
  }

  stop(): void {
    this.#isStopped = true;
    this.#dueAtUs = neverUs;
    this.#lookAtUs = neverUs;
    this.#askAtUs = neverUs;
  }

  /** What goes up seldom is read a few times a second, and rows have it from here. */
  handleStatus(status: NetdevStatus): void {
    this.#txDropped.update(status.txDropped);
    this.#txErrors.update(status.txErrors);
    this.#rxErrors.update(status.rxErrors);
    this.#txTimeouts.update(status.txTimeouts);
  }

  #schedule(dueAtUs: number, nowUs: number): void {
    this.#dueAtUs = dueAtUs;
    this.#askAtUs = Math.max(nowUs, dueAtUs - qdiscLeadUs);
    this.#inflightMaxBytes = Number.NaN;
    const { queueCount } = this.#options.reader;
    this.#lookAtUs = queueCount > 0 ? nowUs + this.#lookIntervalUs : neverUs;
  }

  poll(nowUs: number): void {
    if (nowUs >= this.#askAtUs) {
      this.#askAtUs = neverUs;
      this.#options.source.requestQdisc(nowUs);
    }
    if (nowUs >= this.#dueAtUs) {
      this.#sample(nowUs);
      const nextUs = this.#dueAtUs + this.#intervalUs;
      // A report may have ended it. What is late is not made up for.
      if (this.#isStopped) return;
      this.#schedule(nowUs < nextUs ? nextUs : nowUs + this.#intervalUs, nowUs);
    } else if (nowUs >= this.#lookAtUs) {
      this.#look(this.#options.reader.readInflightBytes());
      this.#lookAtUs = nowUs + this.#lookIntervalUs;
    }
  }

  pollAtUs(): number {
    return Math.min(this.#dueAtUs, this.#lookAtUs, this.#askAtUs);
  }

  #look(inflightBytes: number): void {
    if (!(inflightBytes <= this.#inflightMaxBytes)) this.#inflightMaxBytes = inflightBytes;
  }

  #updateCounters(): void {
    const { counters } = this.#options.reader.readSample();
    this.#txBytes.update(counters.tx_bytes);
    this.#rxBytes.update(counters.rx_bytes);
    this.#txPackets.update(counters.tx_packets);
    this.#rxPackets.update(counters.rx_packets);
  }

  #sample(nowUs: number): void {
    const { reader, source, startUs, lag, report } = this.#options;
    const { inflightBytes, limitBytes, counters } = reader.readSample();
    const seconds = (nowUs - this.#lastAtUs) / usPerSecond;
    const row = this.#row;
    const { qdisc, bql } = source;
    this.#look(inflightBytes);
    if (qdisc !== undefined) {
      this.#qdiscDropped.update(qdisc.droppedPackets);
      this.#qdiscMarked.update(qdisc.markedPackets);
    }
    const knowsMarks = qdisc !== undefined && !Number.isNaN(qdisc.markedPackets);

    row[sampleIndex.timeUs] = nowUs - startUs;
    row[sampleIndex.inflightBytes] = bql === 'none' ? Number.NaN : inflightBytes;
    row[sampleIndex.inflightMaxBytes] = bql === 'none' ? Number.NaN : this.#inflightMaxBytes;
    row[sampleIndex.limitBytes] = bql === 'on' ? limitBytes : Number.NaN;
    row[sampleIndex.bqlEnabled] = bql === 'on' ? 1 : 0;
    row[sampleIndex.backlogPackets] = qdisc?.backlogPackets ?? Number.NaN;
    row[sampleIndex.backlogBytes] = qdisc?.backlogBytes ?? Number.NaN;
    row[sampleIndex.qdiscFlows] = qdisc?.flows ?? Number.NaN;
    row[sampleIndex.txBitsPerSecond] = (this.#txBytes.update(counters.tx_bytes) * 8) / seconds;
    row[sampleIndex.rxBitsPerSecond] = (this.#rxBytes.update(counters.rx_bytes) * 8) / seconds;
    row[sampleIndex.txPacketsPerSecond] = this.#txPackets.update(counters.tx_packets) / seconds;
    row[sampleIndex.rxPacketsPerSecond] = this.#rxPackets.update(counters.rx_packets) / seconds;
    row[sampleIndex.txDroppedPackets] = this.#txDropped.total;
    row[sampleIndex.qdiscDroppedPackets] = qdisc === undefined ? Number.NaN : this.#qdiscDropped.total;
    row[sampleIndex.qdiscMarkedPackets] = knowsMarks ? this.#qdiscMarked.total : Number.NaN;
    row[sampleIndex.txErrors] = this.#txErrors.total;
    row[sampleIndex.rxErrors] = this.#rxErrors.total;
    row[sampleIndex.txTimeouts] = this.#txTimeouts.total;
    row[sampleIndex.eventLoopLagUs] = lag.takeMaxUs();
    this.#lastAtUs = nowUs;
    // What was read while the interface went is not a measurement.
    if (!Number.isNaN(counters.tx_bytes)) report(row, nowUs);
  }
}
