import { join } from 'node:path';
import type { NetdevDescription, NetdevFiles } from './netdev-files.ts';
import { NumberFile } from './number-file.ts';

/** The kernel's counters that every sample has, under the names of `statistics/`. */
const counterNames = ['tx_bytes', 'rx_bytes', 'tx_packets', 'rx_packets'] as const;
type CounterName = (typeof counterNames)[number];

/** One reading of what moves. NaN: the interface has no such thing. */
export interface NetdevSample {
  /** Summed over the queues that have limits. */
  inflightBytes: number;
  limitBytes: number;
  readonly counters: Record<CounterName, number>;
}

/** What changes seldom, or is of interest only when it does. */
export interface NetdevStatus {
  /** BQL's settings, of the first queue. */
  readonly limitMinBytes: number;
  readonly limitMaxBytes: number;
  readonly holdTimeMs: number;
  /** 0: stalls are not looked for. */
  readonly stallThresholdMs: number;
  /** Over all queues. */
  readonly stallCount: number;
  /** The longest, in ticks of the kernel's clock. */
  readonly stallMaxTicks: number;
  /** How often the kernel's watchdog found a queue stuck, over all queues. */
  readonly txTimeouts: number;
  readonly txDropped: number;
  readonly txErrors: number;
  readonly rxErrors: number;
  readonly mtuBytes: number;
}

/**
 * Reads a network interface through files that stay open. Where it has several transmit queues, bytes in flight and
 * limits are sums over them: what the interface as a whole holds and may hold, whichever queue a packet is sent to.
 */
export class NetdevReader {
  readonly sample: NetdevSample = {
    inflightBytes: Number.NaN,
    limitBytes: Number.NaN,
    counters: Object.fromEntries(counterNames.map((name) => [name, Number.NaN])) as Record<
      CounterName,
      number
    >,
  };
  readonly #inflight: NumberFile[] = [];
  readonly #limit: NumberFile[] = [];
  readonly #counters: { readonly name: CounterName; readonly file: NumberFile }[] = [];
  readonly #settings: Readonly<Record<'limit_min' | 'limit_max' | 'hold_time' | 'stall_thrs', NumberFile[]>>;
  readonly #stallCount: NumberFile[] = [];
  readonly #stallMax: NumberFile[] = [];
  readonly #txTimeouts: NumberFile[] = [];
  readonly #txDropped: NumberFile[];
  readonly #txErrors: NumberFile[];
  readonly #rxErrors: NumberFile[];
  readonly #mtu: NumberFile[];
  readonly #all: NumberFile[] = [];
  readonly #scratch = NumberFile.createScratch();

  constructor(files: NetdevFiles, { name, txQueues, bqlQueues }: NetdevDescription) {
    for (const queue of bqlQueues) {
      const folder = files.limitsFolder(name, queue);
      this.#inflight.push(...this.#open(folder, 'inflight'));
      this.#limit.push(...this.#open(folder, 'limit'));
      this.#stallCount.push(...this.#open(folder, 'stall_cnt'));
      this.#stallMax.push(...this.#open(folder, 'stall_max'));
    }
    const [first] = bqlQueues;
    const ofFirst = (file: string): NumberFile[] =>
      first === undefined ? [] : this.#open(files.limitsFolder(name, first), file);
    this.#settings = {
      limit_min: ofFirst('limit_min'),
      limit_max: ofFirst('limit_max'),
      hold_time: ofFirst('hold_time'),
      stall_thrs: ofFirst('stall_thrs'),
    };
    const folder = files.folder(name);
    for (const queue of txQueues) {
      this.#txTimeouts.push(...this.#open(join(folder, 'queues', queue), 'tx_timeout'));
    }
    const statistics = join(folder, 'statistics');
    this.#txDropped = this.#open(statistics, 'tx_dropped');
    this.#txErrors = this.#open(statistics, 'tx_errors');
    this.#rxErrors = this.#open(statistics, 'rx_errors');
    for (const counter of counterNames) {
      const [file] = this.#open(statistics, counter);
      if (file !== undefined) this.#counters.push({ name: counter, file });
    }
    this.#mtu = this.#open(folder, 'mtu');
  }

  /** One or none, so that what is not there needs no word anywhere else. */
  #open(folder: string, file: string): NumberFile[] {
    const opened = NumberFile.open(join(folder, file), this.#scratch);
    if (opened === undefined) return [];
    this.#all.push(opened);
    return [opened];
  }

  /** How many queues {@link readInflightBytes} reads. */
  get queueCount(): number {
    return this.#inflight.length;
  }

  /** Whether a reading has found that the interface is not there any more. */
  get isGone(): boolean {
    return this.#counters.some(({ file }) => file.isGone) || this.#inflight.some((file) => file.isGone);
  }

  readInflightBytes(): number {
    return sumOf(this.#inflight);
  }

  /** Reads into {@link sample}, bytes in flight and limit first, close together. */
  readSample(): NetdevSample {
    const { sample } = this;
    sample.inflightBytes = sumOf(this.#inflight);
    sample.limitBytes = sumOf(this.#limit);
    for (const { name, file } of this.#counters) sample.counters[name] = file.read();
    return sample;
  }

  readStatus(): NetdevStatus {
    const { limit_min, limit_max, hold_time, stall_thrs } = this.#settings;
    let stallMaxTicks = Number.NaN;
    for (const file of this.#stallMax) {
      const ticks = file.read();
      if (!(ticks <= stallMaxTicks)) stallMaxTicks = ticks;
    }
    return {
      limitMinBytes: sumOf(limit_min),
      limitMaxBytes: sumOf(limit_max),
      holdTimeMs: sumOf(hold_time),
      stallThresholdMs: sumOf(stall_thrs),
      stallCount: sumOf(this.#stallCount),
      stallMaxTicks,
      txTimeouts: sumOf(this.#txTimeouts),
      txDropped: sumOf(this.#txDropped),
      txErrors: sumOf(this.#txErrors),
      rxErrors: sumOf(this.#rxErrors),
      mtuBytes: sumOf(this.#mtu),
    };
  }

  close(): void {
    for (const file of this.#all) file.close();
  }
}

/** NaN if there are no files, or if one of them has no number. */
function sumOf(files: readonly NumberFile[]): number {
  if (files.length === 0) return Number.NaN;
  let sum = 0;
  for (const file of files) sum += file.read();
  return sum;
}
