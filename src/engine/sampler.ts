import type { Polled } from '../base/clock.ts';
import { neverUs } from '../base/clock.ts';
import { sampleColumns, sampleIndex } from '../contract/telemetry.ts';
import type { Netif } from '../netif/netif.ts';
import { IntervalValues } from './interval-values.ts';

/** Where our own lateness is known: the longest that the event loop was late since this was last asked, or NaN. */
export interface LagMeter {
  takeMaxUs(): number;
}

/** What the recovery ladder has done so far. */
export interface RecoveryCounts {
  readonly retries: number;
  readonly resets: number;
}

/** After a pause of more than this many intervals the schedule starts anew instead of making up for them. */
const gapIntervals = 5;
const secondsPerUs = 1e-6;

/**
 * Reads the state of an interface at a fixed pace into rows of the `samples` table. A row is about the interval that
 * ends at its time; an interval that could not be sampled in time is longer, never invented.
 */
export class Sampler implements Polled {
  readonly #netif: Netif;
  readonly #startUs: number;
  readonly #lag: LagMeter;
  readonly #recovery: RecoveryCounts | undefined;
  readonly #report: (row: Float64Array, nowUs: number) => void;
  readonly #row = new Float64Array(sampleColumns.length);
  readonly #driverQueue = new IntervalValues();
  readonly #qdiscWait = new IntervalValues();
  #intervalUs: number;
  #dueAtUs: number;
  #lastAtUs: number;
  #txBytes = 0;
  #rxBytes = 0;
  #txPackets = 0;
  #rxPackets = 0;
  #driverXoffUs = 0;
  #stackXoffUs = 0;

  /** @param report gets each row; it is valid during the call only */
  constructor(options: {
    readonly netif: Netif;
    readonly startUs: number;
    readonly rateHz: number;
    readonly lag: LagMeter;
    readonly nowUs: number;
    /** Counts over all openings of the device. */
    readonly recovery: RecoveryCounts | undefined;
    readonly report: (row: Float64Array, nowUs: number) => void;
  }) {
    this.#netif = options.netif;
    this.#startUs = options.startUs;
    this.#lag = options.lag;
    this.#recovery = options.recovery;
    this.#report = options.report;
    this.#intervalUs = 1e6 / options.rateHz;
    this.#lastAtUs = options.nowUs;
    this.#dueAtUs = options.nowUs + this.#intervalUs;
  }

  addDriverQueue(us: number): void {
    this.#driverQueue.add(us);
  }

  addQdiscWait(us: number): void {
    this.#qdiscWait.add(us);
  }

  stop(): void {
    this.#dueAtUs = neverUs;
  }

  poll(nowUs: number): void {
    if (nowUs < this.#dueAtUs) return;
    this.#sample(nowUs);
    this.#dueAtUs += this.#intervalUs;
    if (nowUs > this.#dueAtUs + gapIntervals * this.#intervalUs) this.#dueAtUs = nowUs + this.#intervalUs;
    else if (nowUs >= this.#dueAtUs) this.#dueAtUs = nowUs + this.#intervalUs;
  }

  pollAtUs(): number {
    return this.#dueAtUs;
  }

  #sample(nowUs: number): void {
    const { txQueue, usbnet, qdisc } = this.#netif;
    const { stats } = usbnet;
    const seconds = (nowUs - this.#lastAtUs) * secondsPerUs;
    const row = this.#row;
    this.#driverQueue.take();
    this.#qdiscWait.take();
    const driverXoffUs = txQueue.driverXoffUs(nowUs);
    const stackXoffUs = txQueue.stackXoffUs(nowUs);
    const intervalUs = nowUs - this.#lastAtUs;

    row[sampleIndex.timeUs] = nowUs - this.#startUs;
    row[sampleIndex.inflightBytes] = txQueue.inflightBytes;
    row[sampleIndex.inflightMaxBytes] = txQueue.takePeakInflightBytes();
    row[sampleIndex.limitBytes] = txQueue.limitBytes ?? Number.NaN;
    row[sampleIndex.bqlEnabled] = txQueue.bql ? 1 : 0;
    row[sampleIndex.txTransfers] = usbnet.txTransfersInflight;
    row[sampleIndex.backlogPackets] = qdisc.length;
    row[sampleIndex.backlogBytes] = qdisc.backlogBytes;
    row[sampleIndex.qdiscFlows] = qdisc.flows;
    row[sampleIndex.txBitsPerSecond] = ((stats.txBytes - this.#txBytes) * 8) / seconds;
    row[sampleIndex.rxBitsPerSecond] = ((stats.rxBytes - this.#rxBytes) * 8) / seconds;
    row[sampleIndex.txPacketsPerSecond] = (stats.txPackets - this.#txPackets) / seconds;
    row[sampleIndex.rxPacketsPerSecond] = (stats.rxPackets - this.#rxPackets) / seconds;
    row[sampleIndex.driverQueueP50Us] = this.#driverQueue.p50;
    row[sampleIndex.driverQueueP95Us] = this.#driverQueue.p95;
    row[sampleIndex.driverQueueMaxUs] = this.#driverQueue.max;
    row[sampleIndex.qdiscWaitP50Us] = this.#qdiscWait.p50;
    row[sampleIndex.qdiscWaitP95Us] = this.#qdiscWait.p95;
    row[sampleIndex.qdiscWaitMaxUs] = this.#qdiscWait.max;
    row[sampleIndex.txDroppedPackets] = stats.txDropped + this.#netif.carrierDrops;
    row[sampleIndex.qdiscDroppedPackets] = this.#netif.qdiscDrops;
    row[sampleIndex.qdiscMarkedPackets] = this.#netif.qdiscMarks;
    row[sampleIndex.txErrors] = stats.txErrors;
    row[sampleIndex.rxErrors] = stats.rxErrors;
    row[sampleIndex.txStallErrors] = stats.txTransferErrors.stall;
    row[sampleIndex.txProtocolErrors] = stats.txTransferErrors['protocol-error'];
    row[sampleIndex.txTimeoutErrors] = stats.txTransferErrors['timed-out'];
    row[sampleIndex.txOtherErrors] = stats.txTransferErrors.failed + stats.txTransferErrors.overflow;
    row[sampleIndex.rxStallErrors] = stats.rxTransferErrors.stall;
    row[sampleIndex.rxProtocolErrors] = stats.rxTransferErrors['protocol-error'];
    row[sampleIndex.rxOverflowErrors] = stats.rxTransferErrors.overflow;
    row[sampleIndex.rxTimeoutErrors] = stats.rxTransferErrors['timed-out'];
    row[sampleIndex.rxOtherErrors] = stats.rxTransferErrors.failed;
    row[sampleIndex.txTimeouts] = stats.txTimeouts;
    row[sampleIndex.recoveryRetries] = this.#recovery?.retries ?? 0;
    row[sampleIndex.recoveryResets] = this.#recovery?.resets ?? 0;
    row[sampleIndex.driverXoff] = (driverXoffUs - this.#driverXoffUs) / intervalUs;
    row[sampleIndex.stackXoff] = (stackXoffUs - this.#stackXoffUs) / intervalUs;
    row[sampleIndex.eventLoopLagUs] = this.#lag.takeMaxUs();

    this.#lastAtUs = nowUs;
    this.#txBytes = stats.txBytes;
    this.#rxBytes = stats.rxBytes;
    this.#txPackets = stats.txPackets;
    this.#rxPackets = stats.rxPackets;
    this.#driverXoffUs = driverXoffUs;
    this.#stackXoffUs = stackXoffUs;
    this.#report(row, nowUs);
  }
}
