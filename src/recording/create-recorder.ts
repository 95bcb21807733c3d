import { InProcessChannel } from './in-process-channel.ts';
import { ChannelRecorder, type Recorder, type RecorderOptions } from './recorder.ts';
import { WorkerChannel } from './worker-channel.ts';

/**
 * Starts a recording that is written by a thread of its own.
 * @param script path or file URL of the bundled recording-worker.js
 */
export function createWorkerRecorder(script: string | URL, options: RecorderOptions): Recorder {
  return new ChannelRecorder(new WorkerChannel(script), options);
}

/** Starts a recording that is written by the calling thread: a full batch is stored before `writeRows` returns. */
export function createInProcessRecorder(options: RecorderOptions): Recorder {
  return new ChannelRecorder(new InProcessChannel(), options);
}
