import { AppError, invariant } from '../base/errors.ts';
import { Emitter, type Event } from '../base/emitter.ts';
import type { Session, SessionEvent } from '../contract/session.ts';
import type { SessionSettings } from '../contract/settings.ts';
import { telemetryTables, type TelemetryTable } from '../contract/telemetry.ts';
import type { PhaseStart, ProgramLine, RecorderStatus, SessionRecorder } from '../engine/session-recorder.ts';
import {
  noCounts,
  type RecordingBatch,
  type RecordingCounts,
  type RecordingEntry,
  type RecordingHeader,
} from './recording-batch.ts';
import { RowBuffer } from './row-buffer.ts';
import {
  fromPlainFailure,
  type WriterChannel,
  type WriterReply,
  type WriterRequest,
} from './writer-protocol.ts';

/** How a recording is doing, and what was not recorded: the disk did not keep up, or recording had failed. */
export interface ChannelRecorderStatus extends RecorderStatus {
  readonly dropped: Readonly<RecordingCounts>;
}

/** The engine's recorder, with what only its own side wants to know. */
export interface Recorder extends SessionRecorder {
  readonly status: ChannelRecorderStatus;
  readonly onStatus: Event<ChannelRecorderStatus>;
  /** Resolves when everything that was written before is stored; rejects if recording has failed. */
  flush(): Promise<void>;
  /** Ends the recording; resolves with how that went, before the deadline in any case. Never rejects. */
  close(): Promise<RecordingSummary>;
}

export interface RecordingSummary extends ChannelRecorderStatus {
  /** From time 0 to the last that was recorded; 0 where that is not known. */
  readonly durationUs: number;
}

export interface RecorderOptions {
  /** The file to be made; it must not exist. */
  readonly path: string;
  readonly header: RecordingHeader;
  /** Rows of a table that are worth a transaction. */
  readonly batchRows?: number;
  /** The longest that anything waits for its transaction: half of what a killed process may lose. */
  readonly batchMs?: number;
  /** How much may wait for the disk; what comes beyond that is dropped and counted. */
  readonly maxPendingBytes?: number;
  /** The longest that closing may take; then the writer is ended and the file is left to be recovered. */
  readonly closeDeadlineMs?: number;
}

const defaults = {
  batchRows: 100,
  batchMs: 500,
  maxPendingBytes: 16_000_000,
  closeDeadlineMs: 5000,
} as const;
const statusIntervalMs = 1000;
/** What an entry is reckoned at while it waits; they are few and most are smaller. */
const entryBytes = 1000;

/** A {@link Recorder} that gathers what comes into batches and sends them to a writer through a channel. */
export class ChannelRecorder implements Recorder {
  readonly #channel: WriterChannel;
  readonly #options: Required<RecorderOptions>;
  readonly #status = new Emitter<ChannelRecorderStatus>();
  readonly #rows: Readonly<Record<TelemetryTable, RowBuffer>>;
  #entries: RecordingEntry[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Sent and not yet stored: bytes in all, and what is in each batch. */
  #sentBytes = 0;
  readonly #sent: RecordingCounts[] = [];
  #state: RecorderStatus['state'] = 'recording';
  #failure: AppError | undefined;
  #sizeBytes = 0;
  #durationUs = 0;
  readonly #dropped = noCounts();
  /** Rows dropped since the last gap was noted, and when the last of them was. */
  #gapRows = 0;
  #gapTimeUs = 0;
  #statusAtMs = Number.NEGATIVE_INFINITY;
  #nextToken = 1;
  readonly #flushes = new Map<number, Settle>();
  readonly #opened = new Deferred();
  #closing: Promise<RecordingSummary> | undefined;
  readonly #closed = new Deferred();

  constructor(channel: WriterChannel, options: RecorderOptions) {
    this.#channel = channel;
    this.#options = { ...defaults, ...options };
    const { batchRows } = this.#options;
    this.#rows = {
      samples: new RowBuffer(batchRows * telemetryTables.samples.length),
      probes: new RowBuffer(batchRows * telemetryTables.probes.length),
    };
    channel.listen(
      (reply) => this.#handleReply(reply),
      (reason) => this.#fail(writerLost(options.path, reason)),
    );
    this.#post({ type: 'open', path: options.path, header: options.header }, []);
  }

  get status(): ChannelRecorderStatus {
    return {
      path: this.#options.path,
      state: this.#state,
      sizeBytes: this.#sizeBytes,
      dropped: { ...this.#dropped },
      ...(this.#failure !== undefined && { failure: this.#failure }),
    };
  }

  get onStatus(): Event<ChannelRecorderStatus> {
    return this.#status.event;
  }

  whenOpen(): Promise<void> {
    return this.#opened.promise;
  }

  writeRows(table: TelemetryTable, values: Float64Array): void {
    const columns = telemetryTables[table].length;
    invariant(values.length % columns === 0, `rows of ${table} have ${columns} columns`);
    if (values.length === 0) return;
    if (!this.#accepts(values.byteLength)) {
      this.#dropped[table] += values.length / columns;
      this.#gapRows += values.length / columns;
      this.#gapTimeUs = Math.max(this.#gapTimeUs, values[values.length - columns] ?? 0);
      return;
    }
    const rows = this.#rows[table];
    rows.append(values);
    if (rows.length >= this.#options.batchRows * columns) this.#sendBatch();
    else this.#sendSoon();
  }

  writeEvent(event: SessionEvent): void {
    this.#write({ type: 'event', event });
  }

  writeSession(session: Session, timeUs: number): void {
    // Each is the whole state: of several that wait, only the newest matters. It goes to the end, so that the order of
    // problems and events stays right.
    this.#entries = this.#entries.filter((entry) => entry.type !== 'session');
    this.#write({ type: 'session', session, timeUs });
  }

  writeSettings(settings: SessionSettings, timeUs: number): void {
    this.#write({ type: 'settings', settings, timeUs });
  }

  startPhase(phase: PhaseStart): void {
    this.#write({ type: 'phase-start', phase });
  }

  endPhase(timeUs: number): void {
    this.#write({ type: 'phase-end', timeUs });
  }

  writeProgramLine(line: ProgramLine): void {
    this.#write({ type: 'program-line', line });
  }

  writeMeta(key: string, value: unknown): void {
    this.#write({ type: 'meta', key, value });
  }

  flush(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#state === 'closed') return Promise.resolve();
    this.#sendBatch();
    const token = this.#nextToken++;
    return new Promise<void>((resolve, reject) => {
      this.#flushes.set(token, { resolve, reject });
      this.#post({ type: 'flush', token }, []);
    });
  }

  close(): Promise<RecordingSummary> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<RecordingSummary> {
    if (this.#state === 'recording') {
      this.#sendBatch();
      this.#post({ type: 'close', dropped: { ...this.#dropped } }, []);
      const deadline = setTimeout(() => {
        this.#fail(closeTimedOut(this.#options.path, this.#options.closeDeadlineMs));
      }, this.#options.closeDeadlineMs);
      await this.#closed.promise.catch(() => undefined);
      clearTimeout(deadline);
    }
    return { ...this.status, durationUs: this.#durationUs };
  }

  #accepts(bytes: number): boolean {
    if (this.#state !== 'recording' || this.#closing !== undefined) return false;
    const { samples, probes } = this.#rows;
    const waitingBytes = 8 * (samples.length + probes.length) + entryBytes * this.#entries.length;
    return this.#sentBytes + waitingBytes + bytes <= this.#options.maxPendingBytes;
  }

  #write(entry: RecordingEntry): void {
    if (!this.#accepts(entryBytes)) {
      this.#dropped.entries++;
      return;
    }
    this.#entries.push(entry);
    this.#sendSoon();
  }

  #sendSoon(): void {
    // Not unref'd: a process that ends by itself still stores what it has.
    this.#timer ??= setTimeout(() => this.#sendBatch(), this.#options.batchMs);
  }

  #sendBatch(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#noteGap();
    const { samples, probes } = this.#rows;
    if (samples.length + probes.length + this.#entries.length === 0) return;
    const batch: RecordingBatch & { samples: Float64Array<ArrayBuffer>; probes: Float64Array<ArrayBuffer> } =
      {
        samples: samples.take(),
        probes: probes.take(),
        entries: this.#entries,
      };
    const bytes = batch.samples.byteLength + batch.probes.byteLength + entryBytes * batch.entries.length;
    this.#entries = [];
    this.#sentBytes += bytes;
    this.#sent.push({
      samples: batch.samples.length / telemetryTables.samples.length,
      probes: batch.probes.length / telemetryTables.probes.length,
      entries: batch.entries.length,
    });
    this.#post({ type: 'batch', batch, bytes }, [batch.samples.buffer, batch.probes.buffer]);
  }

  /** Once there is room again, the recording itself says what is missing in it. */
  #noteGap(): void {
    if (this.#gapRows === 0 || !this.#accepts(entryBytes)) return;
    const text = `The disk did not keep up: ${this.#gapRows} rows were not recorded`;
    this.#entries.push({ type: 'event', event: { timeUs: this.#gapTimeUs, kind: 'gap', text } });
    this.#gapRows = 0;
  }

  #post(request: WriterRequest, transfer: ArrayBuffer[]): void {
    try {
      this.#channel.post(request, transfer);
    } catch (error) {
      // A value that cannot be cloned: our own fault, and still no reason to end the session.
      this.#fail(writerLost(this.#options.path, error instanceof Error ? error.message : String(error)));
    }
  }

  #handleReply(reply: WriterReply): void {
    switch (reply.type) {
      case 'opened':
        this.#sizeBytes = reply.sizeBytes;
        this.#opened.resolve();
        this.#tell();
        break;
      case 'stored':
        this.#sentBytes -= reply.bytes;
        this.#sent.shift();
        this.#sizeBytes = reply.sizeBytes;
        if (this.#gapRows > 0) this.#sendSoon();
        if (performance.now() >= this.#statusAtMs + statusIntervalMs) this.#tell();
        break;
      case 'flushed':
        this.#flushes.get(reply.token)?.resolve();
        this.#flushes.delete(reply.token);
        break;
      case 'closed':
        this.#sizeBytes = reply.sizeBytes;
        this.#durationUs = reply.durationUs;
        this.#state = 'closed';
        this.#closed.resolve();
        this.#tell();
        break;
      case 'failed':
        this.#fail(fromPlainFailure(reply.failure));
        break;
    }
  }

  #fail(failure: AppError): void {
    if (this.#state !== 'recording') return;
    this.#state = 'failed';
    this.#failure = failure;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const table of ['samples', 'probes'] as const) {
      this.#dropped[table] += this.#rows[table].take().length / telemetryTables[table].length;
    }
    this.#dropped.entries += this.#entries.length;
    this.#entries = [];
    for (const lost of this.#sent.splice(0)) {
      this.#dropped.samples += lost.samples;
      this.#dropped.probes += lost.probes;
      this.#dropped.entries += lost.entries;
    }
    this.#channel.terminate();
    this.#opened.reject(failure);
    this.#closed.reject(failure);
    for (const flush of this.#flushes.values()) flush.reject(failure);
    this.#flushes.clear();
    this.#tell();
  }

  #tell(): void {
    this.#statusAtMs = performance.now();
    this.#status.emit(this.status);
  }
}

interface Settle {
  resolve(): void;
  reject(error: AppError): void;
}

/** A promise that is settled from outside; a rejection that nobody waits for is no unhandled one. */
class Deferred implements Settle {
  readonly promise: Promise<void>;
  #settle: Settle = { resolve() {}, reject() {} };

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.promise.catch(() => undefined);
  }

  resolve(): void {
    this.#settle.resolve();
  }

  reject(error: AppError): void {
    this.#settle.reject(error);
  }
}

const lostRemedy =
  'What was recorded until then is kept; open the recording to see it. Start a new one to go on.';

function writerLost(path: string, reason: string): AppError {
  return new AppError('file-failed', `The recording stopped: its writer was lost (${reason})`, {
    details: { path, code: 'writer-lost' },
    remedy: lostRemedy,
  });
}

function closeTimedOut(path: string, deadlineMs: number): AppError {
  return new AppError('file-failed', `The recording could not be closed within ${deadlineMs / 1000} s`, {
    details: { path, code: 'close-timed-out' },
    remedy: lostRemedy,
  });
}
