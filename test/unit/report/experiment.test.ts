import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import type { RecordingEntry } from '../../../src/recording/recording-batch.ts';
import { createReport } from '../../../src/report/create-report.ts';
import { createReportModel } from '../../../src/report/report-model.ts';
import { recordSyntheticSession, type SyntheticOptions } from '../../harness/synthetic-session.ts';
import { scratchFolder } from '../recording/scratch-folder.ts';

const segmentSeconds = 5;
const pairs = [1, 2, 3, 4, 5, 6];

/** Idle, then six pairs of BQL off and on. */
const phases = [
  { seconds: segmentSeconds, bql: true, load: false },
  ...pairs.flatMap(() => [
    { seconds: segmentSeconds, bql: false, load: true },
    { seconds: segmentSeconds, bql: true, load: true },
  ]),
];

function meta(key: string, value: unknown): RecordingEntry {
  return { type: 'meta', key, value };
}

/** What a runner keeps of such an experiment that got as far as `segments` of its 13. */
function experimentEntries(segments: number, more: Record<string, unknown> = {}): RecordingEntry[] {
  const scenario = {
    name: 'quick-ab',
    description: 'What does the queue cost?',
    calibration: 'FIFO and batching are fitted to the patch’s published figures.',
    arms: [{ name: 'BQL off' }, { name: 'BQL on' }],
    probes: [{ kind: 'irtt' }, { kind: 'icmp', priority: true }],
  };
  return [
    meta('experiment', { version: 1, scenario, state: 'done', notes: [], ...more }),
    ...phases.slice(0, segments).map(({ bql, load }, index) =>
      meta(`experiment.segment.${String(index + 1).padStart(5, '0')}`, {
        arm: load ? `BQL ${bql ? 'on' : 'off'}` : 'idle',
        pair: Math.ceil(index / 2),
        direction: load ? 'up' : 'idle',
        startUs: index * segmentSeconds * 1e6,
        endUs: (index + 1) * segmentSeconds * 1e6,
        settleUs: load ? 1e6 : 0,
        tailUs: 0,
        counts: true,
      }),
    ),
  ];
}

function recorded(options: SyntheticOptions): RecordingReader {
  const path = join(scratchFolder(), 'a.qscope');
  recordSyntheticSession(path, { phases, pingIntervalMs: 100, ...options });
  const reader = RecordingReader.open(path);
  onTestFinished(() => reader.close());
  return reader;
}

describe('the experiment in a report', () => {
  test('is judged from the telemetry; its verdict is the headline', () => {
    const reader = recorded({ entries: experimentEntries(13) });
    const { experiment, validity } = createReportModel(reader);
    expect(experiment?.source).toBe('scenario');
    const { verdict, comparisons, scores, idle } = experiment?.result ?? {};
    expect(verdict?.kind).toBe('improved');
    expect(verdict?.sentence).toMatch(/^BQL cut the loaded p95 of a priority ping from 4\d\d to \d\d\.\d ms/);
    expect(comparisons?.[0]?.pairs).toBe(6);
    expect(idle?.roundTrips).toBeGreaterThan(40);
    expect(scores?.map(({ grade }) => grade?.grade)).toEqual(['D', 'A']);
    expect(validity.map(({ id }) => id)).not.toContain('load-below-limit');

    const { text } = createReport(reader, 'html');
    expect(text).toContain(`<p class="headline">${verdict?.sentence ?? '-'}</p>`);
    expect(text).toContain('Experiment: quick-ab');
    expect(text).toContain('are fitted to the patch’s published figures');
    expect(text).toContain('round trips per minute');
    expect(text).toContain('below 400 D, else F');
    expect(text.match(/Distribution of the round trip/g)).toHaveLength(2);
    expect(text).not.toMatch(/https?:/);

    const document = JSON.parse(createReport(reader, 'json').text);
    expect(document.headline).toBe(verdict?.sentence);
    expect(document.experiment).toMatchObject({
      scenario: 'quick-ab',
      result: { verdict: { kind: 'improved' }, calibration: expect.stringContaining('fitted') },
    });
    expect(document.experiment.segments).toHaveLength(13);
    expect(document.experiment.result.comparisons[0].metrics.rttP95Us.relative.high).toBeLessThan(-0.8);
  });

  test('that broke off says so, and how much would be enough', () => {
    const reader = recorded({
      entries: experimentEntries(2, { state: 'running', notes: ['the server is away'] }),
    });
    const { experiment } = createReportModel(reader);
    expect(experiment?.result.verdict.kind).toBe('not enough data');
    const { text } = createReport(reader, 'html');
    expect(text).toContain('It did not come to its end (running)');
    expect(text).toContain('the server is away');
    expect(text).toContain('would be enough');
  });

  test('without a scenario: the phases with BQL off and on are compared', () => {
    const { experiment } = createReportModel(recorded({}));
    expect(experiment?.source).toBe('phases');
    expect(experiment?.result.verdict.kind).toBe('improved');
    expect(createReport(recorded({}), 'html').text).toContain('Experiment: BQL off against on');
  });

  test('is absent where nothing can be compared', () => {
    const only = recorded({ phases: [{ seconds: 5, bql: true, load: true }] });
    expect(createReportModel(only).experiment).toBeUndefined();
    expect(JSON.parse(createReport(only, 'json').text).experiment).toBeNull();
  });

  test('survives what no runner wrote', () => {
    for (const odd of [
      [meta('experiment', 7)],
      [meta('experiment', { scenario: [], notes: 3, verdict: { criteria: [null] } })],
      [meta('experiment', {}), meta('experiment.segment.00001', { direction: 'sideways' })],
      [
        meta('experiment', { scenario: { name: '<b>', arms: ['x'] } }),
        meta('experiment.segment.00001', { direction: 'up', counts: true, startUs: 'never' }),
      ],
    ]) {
      const { text } = createReport(recorded({ entries: odd }), 'html');
      expect(text).not.toContain('<b>:');
      expect(text).toContain('</html>');
    }
  });
});
