import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { sampleColumns, sampleIndex } from '../../../src/contract/telemetry.ts';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import { createReport } from '../../../src/report/create-report.ts';
import { createReportModel } from '../../../src/report/report-model.ts';
import { recordSyntheticSession, syntheticSession } from '../../harness/synthetic-session.ts';
import { scratchFolder } from '../recording/scratch-folder.ts';
import { SessionStore } from '../../../src/recording/session-store.ts';

function open(path: string): RecordingReader {
  const reader = RecordingReader.open(path);
  onTestFinished(() => reader.close());
  return reader;
}

/** A recording of one second with three rows of which a test says what went wrong up to each. */
function recordFaults(rows: readonly (readonly [stalls: number, resets: number])[]): RecordingReader {
  const path = join(scratchFolder(), 'faults.qscope');
  const { header } = syntheticSession({});
  const store = SessionStore.create(path, header);
  const values = Float64Array.from(
    rows.flatMap(([stalls, resets], i) => {
      const row = new Float64Array(sampleColumns.length);
      row[sampleIndex.timeUs] = (i + 1) * 1_000_000;
      row[sampleIndex.rxStallErrors] = stalls;
      row[sampleIndex.recoveryResets] = resets;
      return [...row];
    }),
  );
  store.writeBatch({ samples: values, probes: new Float64Array(0), entries: [] });
  store.close({ state: 'closed', dropped: { samples: 0, probes: 0, entries: 0 } });
  return open(path);
}

test('nothing went wrong: the report says so', () => {
  const path = join(scratchFolder(), 'a.qscope');
  recordSyntheticSession(path, {});
  const { text } = createReport(open(path), 'html', {});
  expect(text).toContain('No transfer failed, and nothing had to be recovered.');
});

test('totals, with the first and the last time', () => {
  const reader = recordFaults([
    [0, 0],
    [3, 0],
    [3, 1],
    [Number.NaN, Number.NaN],
    [5, 1],
  ]);
  const { faults } = createReportModel(reader);
  expect(faults.find(({ fault }) => fault === 'rxStallErrors')).toEqual({
    fault: 'rxStallErrors',
    count: 5,
    firstUs: 2_000_000,
    lastUs: 5_000_000,
  });
  expect(faults.find(({ fault }) => fault === 'txTimeouts')).toMatchObject({ count: 0, firstUs: Number.NaN });
  const { text } = createReport(reader, 'html', {});
  expect(text).toMatch(/Received: stalls<\/td><td class="number">5</);
  expect(text).toMatch(/Port resets<\/td><td class="number">1</);
  expect(createReport(reader, 'json', {}).text).toContain('"faults":[{"fault":"txStallErrors","count":0');
});
