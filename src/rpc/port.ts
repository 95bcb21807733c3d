import type { Event } from '../base/emitter.ts';

/**
 * A pair of ends that carries messages in order: text (JSON) and binary (telemetry). MessagePort in Electron, a
 * WebSocket in the browser host, an in-process pair in tests and on the command line.
 */
export interface Port {
  /** Sends a message; the port owns a binary one from here on. Does nothing once the port is closed. */
  post(message: string | ArrayBuffer): void;
  /** Bytes that were posted and not yet taken by the other side, as far as the carrier can tell. */
  readonly bufferedBytes: number;
  readonly onMessage: Event<string | ArrayBuffer>;
  /** The port is closed, from either end; nothing comes any more. Told once, at both ends. */
  readonly onClose: Event<void>;
  close(): void;
}
