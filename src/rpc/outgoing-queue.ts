import type { z } from 'zod';
import { AppError } from '../base/errors.ts';
import type { TelemetryBatch, TelemetryTable } from '../contract/telemetry.ts';
import { telemetryTables } from '../contract/telemetry.ts';
import { firstIssue } from './messages.ts';
import { encodeTelemetryFrame } from './telemetry-frame.ts';

/** What waits on the server's side of one subscription until the client is ready for more. */
export interface OutgoingQueue {
  readonly waiting: boolean;
  /**
   * The next message, off the queue. Only while {@link waiting}.
   * @throws AppError `internal` if the engine gave what the contract does not allow
   */
  take(): string | ArrayBuffer;
}

/** A value of a topic as the contract has it. */
function checkedValue(schema: z.ZodType, value: unknown): unknown {
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    throw new AppError('internal', `the engine sent a value that is none (${firstIssue(parsed.error)})`);
  }
  return parsed.data;
}

/** A state topic: only the newest value counts. */
export class StateQueue implements OutgoingQueue {
  readonly #subscriptionId: number;
  readonly #schema: z.ZodType;
  #newest: unknown;
  #waiting = false;

  constructor(subscriptionId: number, schema: z.ZodType) {
    this.#subscriptionId = subscriptionId;
    this.#schema = schema;
  }

  get waiting(): boolean {
    return this.#waiting;
  }

  push(value: unknown): void {
    this.#newest = value;
    this.#waiting = true;
  }

  take(): string {
    this.#waiting = false;
    const values = [checkedValue(this.#schema, this.#newest)];
    this.#newest = undefined;
    return JSON.stringify({ type: 'event', id: this.#subscriptionId, values });
  }
}

/** An events topic: every value, in order, several to a message when they have piled up. */
export class EventQueue implements OutgoingQueue {
  readonly #subscriptionId: number;
  readonly #schema: z.ZodType;
  readonly #maxPerMessage: number;
  #values: unknown[] = [];

  constructor(subscriptionId: number, schema: z.ZodType, maxPerMessage: number) {
    this.#subscriptionId = subscriptionId;
    this.#schema = schema;
    this.#maxPerMessage = maxPerMessage;
  }

  get waiting(): boolean {
    return this.#values.length > 0;
  }

  get length(): number {
    return this.#values.length;
  }

  /** @throws AppError as {@link take} */
  push(value: unknown): void {
    this.#values.push(checkedValue(this.#schema, value));
  }

  take(): string {
    const values = this.#values.slice(0, this.#maxPerMessage);
    this.#values = this.#values.slice(this.#maxPerMessage);
    return JSON.stringify({ type: 'event', id: this.#subscriptionId, values });
  }
}

interface HeldRows {
  /** Rows left out before these. */
  skippedRows: number;
  values: Float64Array;
}

/** Telemetry: rows up to a cap, then the oldest go and are counted in the `skippedRows` of what follows them. */
export class TelemetryQueue implements OutgoingQueue {
  readonly #subscriptionId: number;
  readonly #table: TelemetryTable;
  readonly #columns: number;
  readonly #maxRows: number;
  readonly #maxRowsPerMessage: number;
  #held: HeldRows[] = [];
  #heldRows = 0;

  constructor(subscriptionId: number, table: TelemetryTable, maxRows: number, maxRowsPerMessage: number) {
    this.#subscriptionId = subscriptionId;
    this.#table = table;
    this.#columns = telemetryTables[table].length;
    this.#maxRows = maxRows;
    this.#maxRowsPerMessage = maxRowsPerMessage;
  }

  get waiting(): boolean {
    return this.#held.length > 0;
  }

  get heldRows(): number {
    return this.#heldRows;
  }

  /** Takes a copy: the engine may use its array again. */
  push(batch: TelemetryBatch): void {
    const newest = this.#held.at(-1);
    if (newest?.values.length === 0) {
      newest.skippedRows += batch.skippedRows;
      newest.values = batch.values.slice();
    } else {
      this.#held.push({ skippedRows: batch.skippedRows, values: batch.values.slice() });
    }
    this.#heldRows += batch.values.length / this.#columns;
    let excess = this.#heldRows - this.#maxRows;
    while (excess > 0) {
      const oldest = this.#held[0];
      if (oldest === undefined) return;
      const rows = oldest.values.length / this.#columns;
      const dropped = Math.min(rows, excess);
      const skippedRows = oldest.skippedRows + dropped;
      excess -= dropped;
      this.#heldRows -= dropped;
      const next = this.#held[1];
      if (dropped === rows && next !== undefined) {
        next.skippedRows += skippedRows;
        this.#held.shift();
      } else {
        oldest.skippedRows = skippedRows;
        // A copy, so that what was dropped is freed.
        oldest.values = oldest.values.slice(dropped * this.#columns);
      }
    }
  }

  take(): ArrayBuffer {
    const maxValues = this.#maxRowsPerMessage * this.#columns;
    const parts: Float64Array[] = [];
    let length = 0;
    let skippedRows = 0;
    for (;;) {
      const next = this.#held[0];
      // A gap can only stand at the start of a message.
      if (next === undefined || (parts.length > 0 && next.skippedRows > 0)) break;
      if (parts.length === 0) skippedRows = next.skippedRows;
      const room = maxValues - length;
      if (next.values.length > room) {
        if (room > 0) parts.push(next.values.subarray(0, room));
        length += room;
        next.values = next.values.subarray(room);
        next.skippedRows = 0;
        break;
      }
      parts.push(next.values);
      length += next.values.length;
      this.#held.shift();
    }
    this.#heldRows -= length / this.#columns;
    return encodeTelemetryFrame(this.#subscriptionId, this.#table, skippedRows, parts);
  }
}
