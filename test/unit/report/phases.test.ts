import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import { SessionStore } from '../../../src/recording/session-store.ts';
import { createReportModel, type ReportModel } from '../../../src/report/report-model.ts';
import {
  recordSyntheticSession,
  type SyntheticOptions,
  syntheticSession,
} from '../../harness/synthetic-session.ts';
import { scratchFolder } from '../recording/scratch-folder.ts';

function modelOf(options: SyntheticOptions): ReportModel {
  const path = join(scratchFolder(), 'a.qscope');
  recordSyntheticSession(path, options);
  return openModel(path);
}

function openModel(path: string): ReportModel {
  const reader = RecordingReader.open(path);
  onTestFinished(() => reader.close());
  return createReportModel(reader);
}

const offThenOn = [
  { seconds: 10, bql: false, load: true },
  { seconds: 10, bql: true, load: true },
];

describe('the phases of a report', () => {
  test('are those of the recording, if it has any', () => {
    const model = modelOf({});
    expect(model.phaseSource).toBe('recorded');
    expect(
      model.phases.map(({ name, bql, load, startUs, endUs }) => [name, bql, load, startUs, endUs]),
    ).toEqual([
      ['1: idle', 'on', false, 0, 6e6],
      ['2: BQL off, upload', 'off', true, 6e6, 24e6],
      ['3: BQL on, upload', 'on', true, 24e6, 42e6],
      ['4: BQL off, upload', 'off', true, 42e6, 51e6],
      ['5: BQL on, upload', 'on', true, 51e6, 60e6],
    ]);
  });

  test('are else the stretches between changes of BQL and load', () => {
    const model = modelOf({ recordPhases: false });
    expect(model.phaseSource).toBe('settings');
    expect(model.phases.map(({ name, startUs, endUs }) => [name, startUs, endUs])).toEqual([
      ['BQL on, idle 1', 0, 6e6],
      ['BQL off 1', 6e6, 24e6],
      ['BQL on 1', 24e6, 42e6],
      ['BQL off 2', 42e6, 51e6],
      ['BQL on 2', 51e6, 60e6],
    ]);
  });

  test('can be told from the samples alone', () => {
    const path = join(scratchFolder(), 'a.qscope');
    const { header, samples, probes } = syntheticSession({ phases: offThenOn });
    const store = SessionStore.create(path, header);
    store.writeBatch({ samples, probes, entries: [] });
    store.close({ state: 'closed', dropped: { samples: 0, probes: 0, entries: 0 } });
    const model = openModel(path);
    expect(model.phases.map(({ name, startUs, endUs }) => [name, startUs, endUs])).toEqual([
      ['BQL off 1', 0, 10e6],
      ['BQL on 1', 10e6, 20e6],
    ]);
  });

  test('of a recording without switches are one', () => {
    const model = modelOf({ phases: [{ seconds: 5, bql: true, load: true }], recordPhases: false });
    expect(model.phaseSource).toBe('whole');
    expect(model.phases).toMatchObject([{ bql: 'on', startUs: 0, endUs: 5e6, countedFromUs: 0 }]);
  });

  test('count from where the conditions hold: after a second, or as the recording says', () => {
    expect(modelOf({}).phases.map(({ countedFromUs }) => countedFromUs)).toEqual([0, 7e6, 25e6, 43e6, 52e6]);
    expect(
      modelOf({ phases: offThenOn.map((phase) => ({ ...phase, seconds: 2 })) }).phases[1]?.countedFromUs,
    ).toBe(2.4e6);
    const path = join(scratchFolder(), 'a.qscope');
    const { header, samples, probes, phases } = syntheticSession({ phases: offThenOn });
    const store = SessionStore.create(path, header);
    const entries = phases.map(
      (phase) => ({ type: 'phase-start', phase: { ...phase, settleUs: 3e6 } }) as const,
    );
    store.writeBatch({ samples, probes, entries });
    store.close({ state: 'closed', dropped: { samples: 0, probes: 0, entries: 0 } });
    expect(openModel(path).phases.map(({ countedFromUs }) => countedFromUs)).toEqual([3e6, 13e6]);
  });

  test('keep the queue of the phase before out of the percentiles', () => {
    const [off, on] = modelOf({ phases: offThenOn }).phases;
    expect(off?.statistics.rttUs.p50).toBeGreaterThan(380_000);
    expect(on?.statistics.rttUs.max).toBeLessThan(90_000);
  });
});

describe('the arms of a comparison', () => {
  test('pool the phases of a kind', () => {
    const { arms, phases } = modelOf({});
    expect(arms.off?.phases).toBe(2);
    expect(arms.off?.countedUs).toBe(25e6);
    expect(arms.off?.statistics.rttUs.n).toBe(
      (phases[1]?.statistics.rttUs.n ?? 0) + (phases[3]?.statistics.rttUs.n ?? 0),
    );
    expect(arms.on?.rttP50LowUs).toBe(
      Math.min(phases[2]?.statistics.rttUs.p50 ?? 0, phases[4]?.statistics.rttUs.p50 ?? 0),
    );
    // The kernel's queue of 300 frames: 454,200 bytes, 363 ms at 10 Mbit/s.
    expect(arms.off?.statistics.inflightBytes.p50).toBe(454_200);
    expect(arms.off?.statistics.probeDriverQueueUs.p50).toBeCloseTo(364_300, -4);
    expect(arms.on?.statistics.throughputBitsPerSecond).toBeCloseTo(10e6, -5);
    expect(arms.idle?.statistics.rttUs.n).toBeGreaterThan(20);
  });

  test('are missing where nothing of the kind was measured', () => {
    const { arms } = modelOf({ phases: [{ seconds: 5, bql: true, load: true }] });
    expect(arms.off).toBeUndefined();
    expect(arms.idle).toBeUndefined();
    expect(arms.on).toMatchObject({ phases: 1 });
  });
});
