import { recordingSizeBytes, SessionStore } from './session-store.ts';
import { toPlainFailure, type WriterReply, type WriterRequest } from './writer-protocol.ts';

/** How often what was written is forced onto the disk itself: what a loss of power can cost. */
const checkpointMs = 10_000;

/**
 * The far end of a {@link WriterChannel}: does what a recorder asks, in whatever thread it is called. After a failure
 * it has let go of the file, and answers nothing more than flushes.
 */
export class RecordingWriter {
  readonly #reply: (reply: WriterReply) => void;
  readonly #nowMs: () => number;
  #store: SessionStore | undefined;
  #checkpointAtMs = 0;

  /** @param nowMs any monotonic clock, milliseconds */
  constructor(reply: (reply: WriterReply) => void, nowMs: () => number) {
    this.#reply = reply;
    this.#nowMs = nowMs;
  }

  handle(request: WriterRequest): void {
    try {
      this.#do(request);
    } catch (error) {
      this.#store?.abandon();
      this.#store = undefined;
      this.#reply({ type: 'failed', failure: toPlainFailure(error) });
    }
  }

  #do(request: WriterRequest): void {
    switch (request.type) {
      case 'open':
        this.#store = SessionStore.create(request.path, request.header);
        this.#checkpointAtMs = this.#nowMs() + checkpointMs;
        this.#reply({ type: 'opened', sizeBytes: this.#store.sizeBytes() });
        break;
      case 'batch':
        if (this.#store === undefined) return;
        this.#store.writeBatch(request.batch);
        this.#checkpointIfDue(this.#store);
        this.#reply({ type: 'stored', bytes: request.bytes, sizeBytes: this.#store.sizeBytes() });
        break;
      case 'flush':
        this.#reply({ type: 'flushed', token: request.token });
        break;
      case 'close': {
        const store = this.#store;
        if (store === undefined) return;
        this.#store = undefined;
        const { path, lastTimeUs: durationUs } = store;
        store.close({ state: 'closed', dropped: request.dropped });
        this.#reply({ type: 'closed', sizeBytes: recordingSizeBytes(path), durationUs });
        break;
      }
    }
  }

  #checkpointIfDue(store: SessionStore): void {
    const nowMs = this.#nowMs();
    if (nowMs < this.#checkpointAtMs) return;
    this.#checkpointAtMs = nowMs + checkpointMs;
    store.checkpoint();
  }
}
