import { Emitter } from '../base/emitter.ts';
import type { Port } from './port.ts';

/** One end of an in-process pair; see {@link memoryPortPair}. */
class MemoryPort implements Port {
  readonly #messages = new Emitter<string | ArrayBuffer>();
  readonly #closed = new Emitter<void>();
  readonly onMessage = this.#messages.event;
  readonly onClose = this.#closed.event;
  #peer: MemoryPort | undefined;
  #open = true;
  #bufferedBytes = 0;

  connect(peer: MemoryPort): void {
    this.#peer = peer;
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  post(message: string | ArrayBuffer): void {
    const peer = this.#peer;
    if (!this.#open || peer === undefined) return;
    const bytes = typeof message === 'string' ? message.length * 2 : message.byteLength;
    this.#bufferedBytes += bytes;
    void Promise.resolve().then(() => {
      this.#bufferedBytes -= bytes;
      peer.#receive(message);
    });
  }

  close(): void {
    if (!this.#open) return;
    this.#end();
    // Behind what was posted before, which still arrives.
    void Promise.resolve().then(() => {
      const peer = this.#peer;
      if (peer !== undefined) peer.#end();
    });
  }

  #receive(message: string | ArrayBuffer): void {
    if (this.#open) this.#messages.emit(message);
  }

  #end(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#closed.emit();
  }
}

/** Two connected ends inside one process. A message arrives in a later microtask, never inside `post`. */
export function memoryPortPair(): readonly [Port, Port] {
  const left = new MemoryPort();
  const right = new MemoryPort();
  left.connect(right);
  right.connect(left);
  return [left, right];
}
