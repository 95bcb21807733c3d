/**
 * A process that records until it is killed: samples at 100 Hz through a worker, each timed with the wall clock, so that
 * whoever kills it knows what can be there. Arguments: worker script, file to be made.
 */
import { sampleColumns } from '../../../src/contract/telemetry.ts';
import { createWorkerRecorder } from '../../../src/recording/create-recorder.ts';
import { syntheticSession } from '../../harness/synthetic-session.ts';

const [script, path] = process.argv.slice(2);
if (script === undefined || path === undefined) throw new Error('usage: killed-process SCRIPT FILE');

const { header } = syntheticSession({ phases: [{ seconds: 1, bql: true, load: true }] });
const recorder = createWorkerRecorder(script, { path, header });
await recorder.whenOpen();
recorder.startPhase({
  name: 'only',
  bqlEnabled: true,
  loadEnabled: true,
  loadRateBitsPerSecond: 0,
  startUs: 0,
});
const startMs = Date.now();
recorder.writeMeta('startMs', startMs);
let lastUs = 0;
setInterval(() => {
  const timeUs = (Date.now() - startMs) * 1000;
  if (timeUs <= lastUs) return;
  lastUs = timeUs;
  const row = new Float64Array(sampleColumns.length);
  row[0] = timeUs;
  recorder.writeRows('samples', row);
}, 10);
process.stdout.write('recording\n');
