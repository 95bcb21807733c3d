import type { Dispose } from '../base/emitter.ts';
import type { TelemetryBatch, TelemetryTable } from '../contract/telemetry.ts';
import { telemetryTables } from '../contract/telemetry.ts';

/** Rows that may wait for a reader that has not yet dealt with what it got; beyond it the oldest are left out. */
const heldRows = 12_000;

type Listener = (batch: TelemetryBatch) => void | Promise<void>;

/** Hands rows of one table to one reader, no faster than it takes them. */
class Subscription {
  readonly #table: TelemetryTable;
  readonly #listener: Listener;
  readonly #columnCount: number;
  #held: Float64Array;
  #rows = 0;
  #skipped = 0;
  #busy = false;
  #closed = false;

  constructor(table: TelemetryTable, listener: Listener) {
    this.#table = table;
    this.#listener = listener;
    this.#columnCount = telemetryTables[table].length;
    this.#held = new Float64Array(64 * this.#columnCount);
  }

  push(values: Float64Array): void {
    if (this.#closed) return;
    this.#hold(values);
    this.#deliver();
  }

  #hold(values: Float64Array): void {
    const count = this.#columnCount;
    const rows = values.length / count;
    const room = heldRows - this.#rows;
    if (rows > room) {
      const drop = Math.min(this.#rows, rows - room);
      this.#held.copyWithin(0, drop * count, this.#rows * count);
      this.#rows -= drop;
      this.#skipped += drop;
    }
    const needed = (this.#rows + rows) * count;
    if (needed > this.#held.length) {
      const larger = new Float64Array(Math.max(needed, this.#held.length * 2));
      larger.set(this.#held.subarray(0, this.#rows * count));
      this.#held = larger;
    }
    this.#held.set(values, this.#rows * count);
    this.#rows += rows;
  }

  #deliver(): void {
    if (this.#busy || this.#rows === 0 || this.#closed) return;
    const batch: TelemetryBatch = {
      table: this.#table,
      values: this.#held.slice(0, this.#rows * this.#columnCount),
      skippedRows: this.#skipped,
    };
    this.#rows = 0;
    this.#skipped = 0;
    const answer = this.#listener(batch);
    if (answer === undefined) return;
    this.#busy = true;
    const resume = (): void => {
      this.#busy = false;
      this.#deliver();
    };
    answer.then(resume, resume);
  }

  close(): void {
    this.#closed = true;
  }
}

/** The live rows of one table of one session, for any number of readers. */
export class TelemetryFeed {
  readonly #table: TelemetryTable;
  #subscriptions: readonly Subscription[] = [];

  constructor(table: TelemetryTable) {
    this.#table = table;
  }

  push(row: Float64Array): void {
    for (const subscription of this.#subscriptions) subscription.push(row);
  }

  /** @param history rows to begin with */
  subscribe(history: Float64Array, listener: Listener): Dispose {
    const subscription = new Subscription(this.#table, listener);
    this.#subscriptions = [...this.#subscriptions, subscription];
    if (history.length > 0) subscription.push(history);
    return () => {
      subscription.close();
      this.#subscriptions = this.#subscriptions.filter((other) => other !== subscription);
    };
  }
}
