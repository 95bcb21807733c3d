import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { defaultSessionSettings } from '../../../src/contract/settings.ts';
import type { RecordingEntry } from '../../../src/recording/recording-batch.ts';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import {
  compareRecordings,
  comparisonDocument,
  type RecordingComparison,
} from '../../../src/report/compare-recordings.ts';
import { createReportModel, type ReportModel } from '../../../src/report/report-model.ts';
import { recordSyntheticSession, type SyntheticOptions } from '../../harness/synthetic-session.ts';
import { scratchFolder } from '../recording/scratch-folder.ts';

function recorded(options: SyntheticOptions = {}): ReportModel {
  const path = join(scratchFolder(), 'run.qscope');
  recordSyntheticSession(path, { pingIntervalMs: 50, ...options });
  const reader = RecordingReader.open(path);
  try {
    return createReportModel(reader);
  } finally {
    reader.close();
  }
}

const later = { startedAt: '2025-11-07T10:00:00.000+01:00', seed: 2 };

function compared(a: SyntheticOptions, b: SyntheticOptions): RecordingComparison {
  return compareRecordings(recorded(a), recorded({ ...later, ...b }));
}

function idsOf({ warnings }: RecordingComparison): string[] {
  return warnings.map(({ id, side }) => (side === undefined ? id : `${id} of ${side}`));
}

describe('two recordings of one setup', () => {
  test('have every arm, with the numbers of their reports', () => {
    const comparison = compared({}, {});
    expect(comparison.arms.map(({ arm }) => arm)).toEqual(['idle', 'off', 'on']);
    for (const [side, model] of [
      ['a', comparison.a],
      ['b', comparison.b],
    ] as const) {
      const off = comparison.arms[1]?.[side];
      const { statistics, countedUs } = model.arms.off ?? {};
      expect(off).toMatchObject({ phases: 2, countedUs, probes: statistics?.probes });
      expect(off?.quantities).toMatchObject({
        rttP50Us: statistics?.rttUs.p50,
        rttP99Us: statistics?.rttUs.p99,
        qdiscWaitP95Us: statistics?.probeQdiscWaitUs.p95,
        driverWaitP50Us: statistics?.probeDriverQueueUs.p50,
        throughputBitsPerSecond: statistics?.throughputBitsPerSecond,
        inflightP50Bytes: statistics?.inflightBytes.p50,
        limitP50Bytes: Number.NaN,
        lostPercent: (100 * (statistics?.lost ?? Number.NaN)) / (statistics?.probes ?? Number.NaN),
      });
    }
  });

  test('differences are B less A, ratios B by A', () => {
    const comparison = compared({}, {});
    const { a, b, difference, ratio } = comparison.arms[2] ?? {};
    const [from = Number.NaN, to = Number.NaN] = [a?.quantities.rttP50Us, b?.quantities.rttP50Us];
    expect(from).toBeGreaterThan(30_000);
    expect(from).not.toBe(to);
    expect(difference?.rttP50Us).toBe(to - from);
    expect(ratio?.rttP50Us).toBe(to / from);
    // Nothing went wrong in either: there is no ratio of nothing.
    expect(difference?.errorsPerMinute).toBe(0);
    expect(ratio?.errorsPerMinute).toBeNaN();
  });

  test('nothing differs, and still nothing is called significant', () => {
    const comparison = compared({}, {});
    expect(comparison.differences).toEqual([]);
    expect(idsOf(comparison)).toEqual([]);
    expect(comparison.significance).toMatch(/not measured in turns.*none of them is called significant/);
  });
});

describe('what limits a comparison', () => {
  test.each<[string, SyntheticOptions, string, string]>([
    ['another device', { device: { productId: 0x0900, name: 'RM551E-GL' } }, 'different-device', 'Device'],
    ['another mode', { device: { mode: 'observe' } }, 'different-mode', 'Way to the device'],
    ['another driver', { device: { minidriver: 'cdc_ether' } }, 'different-driver', 'Driver'],
    ['another speed', { device: { speed: 'high' } }, 'different-speed', 'USB speed'],
  ])('%s', (_name, options, id, name) => {
    const comparison = compared({}, options);
    expect(idsOf(comparison)).toContain(id);
    expect(comparison.differences.map((found) => found.name)).toContain(name);
    // It takes two.
    expect(idsOf(compared(options, options))).not.toContain(id);
  });

  test('another qdisc, also one that came later', () => {
    const qdisc = { ...defaultSessionSettings.qdisc, kind: 'fq_codel' } as const;
    const settings = { ...defaultSessionSettings, qdisc };
    const comparison = compared({}, { entries: [{ type: 'settings', timeUs: 30e6, settings }] });
    expect(comparison.differences).toEqual([
      {
        group: 'settings',
        name: 'Qdisc',
        a: 'pfifo_fast',
        b: expect.stringMatching(/^fq_codel, .*; also pfifo_fast$/),
      },
    ]);
    expect(comparison.warnings).toEqual([
      { id: 'different-settings', text: expect.stringContaining('(Qdisc)') },
    ]);
  });

  test('the load that there was, though both began idle', () => {
    const load = { ...defaultSessionSettings.load, rateBitsPerSecond: 5e6 };
    const slow: RecordingEntry = {
      type: 'settings',
      timeUs: 7e6,
      settings: { ...defaultSessionSettings, load },
    };
    expect(compared({}, { entries: [slow] }).differences).toMatchObject([
      { name: 'Load', a: expect.stringMatching(/^as fast/), b: expect.stringMatching(/^5\.00 Mbit\/s/) },
    ]);
  });

  test('the load of others, if both were observed', () => {
    const observed = { device: { mode: 'observe' } } as const;
    expect(idsOf(compared(observed, observed))).toEqual(['load-of-others']);
  });

  test('a fact that differs is told, and is no warning: it may be what is looked for', () => {
    const facts = [{ group: 'device', name: 'Device version', value: '5.05' }] as const;
    const comparison = compared({}, { session: { facts: [...facts] } });
    expect(comparison.differences).toContainEqual({
      group: 'device',
      name: 'Device version',
      a: '5.04',
      b: '5.05',
    });
    expect(idsOf(comparison)).toEqual([]);
  });

  test('no condition that both were measured under', () => {
    const [off, on] = [false, true].map((bql) => ({ phases: [{ seconds: 20, bql, load: true }] }));
    const comparison = compared(off ?? {}, on ?? {});
    expect(idsOf(comparison)).toContain('no-common-arm');
    expect(comparison.arms).toMatchObject([
      { arm: 'off', b: undefined, difference: { rttP50Us: Number.NaN } },
      { arm: 'on', a: undefined, ratio: { rttP50Us: Number.NaN } },
    ]);
  });

  test('each recording’s own limits, by its side', () => {
    const comparison = compared({}, { phases: [{ seconds: 2, bql: true, load: true }] });
    expect(idsOf(comparison)).toContain('few-round-trips of b');
    expect(idsOf(comparison)).not.toContain('few-round-trips of a');
  });

  test('a recording against itself', () => {
    const model = recorded();
    expect(idsOf(compareRecordings(model, model))).toEqual(['same-session']);
  });
});

describe('experiments', () => {
  /** What a runner keeps of a scenario with the standard phases. */
  function scenario(name: string, arms: readonly string[]): RecordingEntry[] {
    const starts = [6, 24, 42, 51, 60];
    return [
      {
        type: 'meta',
        key: 'experiment',
        value: { scenario: { name, arms: arms.map((arm) => ({ name: arm })) }, state: 'done', notes: [] },
      },
      ...starts.slice(0, -1).map((start, index): RecordingEntry => ({
        type: 'meta',
        key: `experiment.segment.${String(index + 1).padStart(5, '0')}`,
        value: {
          arm: arms[index % arms.length],
          pair: 1 + Math.floor(index / 2),
          direction: 'up',
          startUs: start * 1e6,
          endUs: (starts[index + 1] ?? 0) * 1e6,
          settleUs: 1e6,
          tailUs: 0,
          counts: true,
        },
      })),
    ];
  }

  test('have their verdicts side by side', () => {
    const entries = scenario('quick-ab', ['BQL off', 'BQL on']);
    const { a, b } = comparisonDocument(compared({ entries }, { entries })) as Record<'a' | 'b', object>;
    for (const side of [a, b]) {
      expect(side).toMatchObject({
        experiment: {
          source: 'scenario',
          scenario: 'quick-ab',
          verdict: { sentence: expect.stringMatching(/\d/) },
          comparisons: [{ direction: 'up', first: 'BQL off', second: 'BQL on', pairs: 2 }],
        },
      });
    }
  });

  test('of different scenarios are told apart by name and by arms', () => {
    const ab = scenario('quick-ab', ['BQL off', 'BQL on']);
    for (const other of [
      scenario('field-ab', ['BQL off', 'BQL on']),
      scenario('quick-ab', ['pfifo', 'fq_codel']),
      [],
    ]) {
      expect(idsOf(compared({ entries: ab }, { entries: other }))).toContain('different-scenario');
    }
    expect(idsOf(compared({ entries: ab }, { entries: ab }))).not.toContain('different-scenario');
  });
});

test('the document names its units and has null where nothing was measured', () => {
  const document = JSON.parse(
    JSON.stringify(comparisonDocument(compared({}, { phases: [{ seconds: 20, bql: true, load: true }] }))),
  ) as object;
  expect(document).toMatchObject({
    format: 'queuescope-comparison',
    version: 1,
    a: { fileName: 'run.qscope', durationUs: 60e6, device: { name: 'RM520N-GL' } },
    b: { durationUs: 20e6 },
    arms: {
      bqlOff: {
        a: { rttP50Us: expect.any(Number), limitP50Bytes: null },
        b: null,
        ratio: { rttP50Us: null },
      },
      bqlOn: {
        a: { limitP50Bytes: expect.any(Number) },
        b: { countedUs: 20e6 },
        difference: { throughputBitsPerSecond: expect.any(Number) },
      },
    },
    significance: expect.any(String),
  });
});
