import { AppError, asAppError, type ErrorDetails, type ErrorKind } from '../base/errors.ts';
import type { RecordingBatch, RecordingCounts, RecordingHeader } from './recording-batch.ts';

/** What a recorder asks of the writer at the other end of its channel; plain values that can be cloned. */
export type WriterRequest =
  | { readonly type: 'open'; readonly path: string; readonly header: RecordingHeader }
  | { readonly type: 'batch'; readonly batch: RecordingBatch; readonly bytes: number }
  /** Answered once everything that was sent before it is stored. */
  | { readonly type: 'flush'; readonly token: number }
  | { readonly type: 'close'; readonly dropped: RecordingCounts };

export type WriterReply =
  | { readonly type: 'opened'; readonly sizeBytes: number }
  /** A batch is stored; `bytes` as they were announced with it. */
  | { readonly type: 'stored'; readonly bytes: number; readonly sizeBytes: number }
  | { readonly type: 'flushed'; readonly token: number }
  | { readonly type: 'closed'; readonly sizeBytes: number; readonly durationUs: number }
  /** Nothing more is written; the file is let go of. */
  | { readonly type: 'failed'; readonly failure: PlainFailure };

/** An AppError between threads: the clone of an Error would lose all but its message. */
export interface PlainFailure {
  readonly kind: ErrorKind;
  readonly message: string;
  readonly details: ErrorDetails;
  readonly remedy?: string;
}

export function toPlainFailure(thrown: unknown): PlainFailure {
  const error = asAppError(thrown);
  return {
    kind: error.kind,
    message: error.message,
    details: error.details,
    ...(error.remedy !== undefined && { remedy: error.remedy }),
  };
}

export function fromPlainFailure(failure: PlainFailure): AppError {
  return new AppError(failure.kind, failure.message, {
    details: failure.details,
    ...(failure.remedy !== undefined && { remedy: failure.remedy }),
  });
}

/**
 * The way from a recorder to its writer. Replies come in the order of the requests. `onLost` is called once if the
 * writer ends without having said that it closed or failed.
 */
export interface WriterChannel {
  /** Hands over a request; the buffers in `transfer` no longer belong to the caller. */
  post(request: WriterRequest, transfer: ArrayBuffer[]): void;
  listen(onReply: (reply: WriterReply) => void, onLost: (reason: string) => void): void;
  /** Ends the writer at once, whatever it is doing. The file keeps what was stored. */
  terminate(): void;
}
