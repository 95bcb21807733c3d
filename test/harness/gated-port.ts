import { Emitter } from '../../src/base/emitter.ts';
import type { Port } from '../../src/rpc/port.ts';

/**
 * One end of a connection of which the test is the other end: it sees what was posted, says what arrives, and decides
 * how much of what was posted counts as still on its way.
 */
export class GatedPort implements Port {
  readonly posted: (string | ArrayBuffer)[] = [];
  readonly #messages = new Emitter<string | ArrayBuffer>();
  readonly #closed = new Emitter<void>();
  readonly onMessage = this.#messages.event;
  readonly onClose = this.#closed.event;
  bufferedBytes = 0;
  closed = false;

  post(message: string | ArrayBuffer): void {
    if (!this.closed) this.posted.push(message);
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.#closed.emit();
  }

  /** A message from the other end: an object goes as JSON. */
  receive(message: string | ArrayBuffer | Readonly<Record<string, unknown>>): void {
    this.#messages.emit(
      typeof message === 'string' || message instanceof ArrayBuffer ? message : JSON.stringify(message),
    );
  }

  /** The text messages posted so far, read and taken off the list. */
  takeTexts(): Record<string, unknown>[] {
    const texts = this.posted.filter((message) => typeof message === 'string');
    this.posted.length = 0;
    return texts.map((text) => JSON.parse(text) as Record<string, unknown>);
  }

  /** The binary messages posted so far, taken off the list. */
  takeFrames(): ArrayBuffer[] {
    const frames = this.posted.filter((message) => typeof message !== 'string');
    this.posted.length = 0;
    return frames;
  }
}
