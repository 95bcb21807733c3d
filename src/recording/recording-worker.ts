/** Entry point of the worker thread that writes recordings; bundled to a file of its own and started by path. */
import { constants, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { invariant } from '../base/errors.ts';
import { RecordingWriter } from './recording-writer.ts';
import type { WriterRequest } from './writer-protocol.ts';

const port = parentPort;
invariant(port !== null, 'recording-worker runs as a worker thread only');

// On Linux a thread begins with the priority of the one that started it, which moves frames: writing can wait.
if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_NORMAL);

const writer = new RecordingWriter(
  (reply) => {
    port.postMessage(reply);
    // Nothing comes after these; without a listener the thread ends by itself.
    if (reply.type === 'closed' || reply.type === 'failed') port.close();
  },
  () => performance.now(),
);
port.on('message', (request: WriterRequest) => writer.handle(request));
