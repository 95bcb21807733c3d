import { RecordingWriter } from './recording-writer.ts';
import type { WriterChannel, WriterReply, WriterRequest } from './writer-protocol.ts';

/** The writer in the caller's own thread: for simulations, which wait for nothing else, and for tests. */
export class InProcessChannel implements WriterChannel {
  #writer: RecordingWriter | undefined;

  post(request: WriterRequest): void {
    this.#writer?.handle(request);
  }

  listen(onReply: (reply: WriterReply) => void): void {
    this.#writer = new RecordingWriter(onReply, () => performance.now());
  }

  terminate(): void {
    this.#writer = undefined;
  }
}
