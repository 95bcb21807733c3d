import { Worker } from 'node:worker_threads';
import type { WriterChannel, WriterReply, WriterRequest } from './writer-protocol.ts';

/** The writer in a worker thread of its own, so that a slow disk never holds up the data path. */
export class WorkerChannel implements WriterChannel {
  readonly #script: string | URL;
  #worker: Worker | undefined;

  /** @param script absolute path or file URL of the bundled recording-worker.js */
  constructor(script: string | URL) {
    this.#script = script;
  }

  listen(onReply: (reply: WriterReply) => void, onLost: (reason: string) => void): void {
    const worker = this.#start(onLost);
    if (worker === undefined) return;
    this.#worker = worker;
    let reason = 'its thread ended';
    worker.on('message', (reply: WriterReply) => {
      // After these two the thread ends by itself, which is no loss.
      if (reply.type === 'closed' || reply.type === 'failed') this.#worker = undefined;
      onReply(reply);
    });
    worker.on('error', (error) => {
      reason = error instanceof Error ? error.message : String(error);
    });
    worker.on('exit', () => {
      if (this.#worker === undefined) return;
      this.#worker = undefined;
      onLost(reason);
    });
  }

  post(request: WriterRequest, transfer: ArrayBuffer[]): void {
    this.#worker?.postMessage(request, transfer);
  }

  terminate(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    // Its promise says when the thread is gone; nobody waits for that.
    void worker?.terminate();
  }

  #start(onLost: (reason: string) => void): Worker | undefined {
    try {
      return new Worker(this.#script, { name: 'recording' });
    } catch (error) {
      onLost(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }
}
