/** Records until the disk is full, then tells on standard output what the recorder says of it. Argument: the file. */
import { sampleColumns } from '../../../src/contract/telemetry.ts';
import { createInProcessRecorder } from '../../../src/recording/create-recorder.ts';
import { syntheticSession } from '../../harness/synthetic-session.ts';

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error('usage: full-disk-process FILE');

const { header } = syntheticSession({ phases: [{ seconds: 1, bql: true, load: true }] });
const recorder = createInProcessRecorder({ path, header });
let writtenSamples = 0;
while (recorder.status.state === 'recording' && writtenSamples < 100_000) {
  const row = new Float64Array(sampleColumns.length).fill(writtenSamples + 0.5);
  recorder.writeRows('samples', row);
  writtenSamples++;
}
const summary = await recorder.close();
process.stdout.write(
  JSON.stringify({
    state: summary.state,
    kind: summary.failure?.kind,
    message: summary.failure?.message,
    remedy: summary.failure?.remedy,
    droppedSamples: summary.dropped.samples,
    writtenSamples,
  }),
);
