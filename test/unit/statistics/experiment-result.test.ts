import { describe, expect, test } from 'vitest';
import { analyseExperiment } from '../../../src/statistics/experiment-result.ts';
import type { MeasuredSegment } from '../../../src/statistics/measured-segment.ts';

function segment(
  arm: string,
  pair: number,
  ms: number,
  more: Partial<MeasuredSegment> = {},
): MeasuredSegment {
  return {
    arm,
    pair,
    direction: 'up',
    rttUs: Float64Array.from({ length: 40 }, (_, i) => ms * 1000 + 10 * i),
    probesSent: 41,
    probesLost: 1,
    upBitsPerSecond: 10e6,
    downBitsPerSecond: 50e6,
    loadReachedLimit: true,
    ...more,
  };
}

const pairs = [1, 2, 3, 4, 5, 6];

describe('analyseExperiment', () => {
  const segments = [
    segment('BQL off', 0, 24, { direction: 'idle', loadReachedLimit: false }),
    ...pairs.flatMap((pair) => [
      segment('BQL on', pair, 30 + pair),
      segment('BQL off', pair, 380 + pair, { probesLate: 30 }),
      segment('BQL off', pair + 10, 100, { direction: 'down', loadReachedLimit: false }),
      segment('BQL on', pair + 10, 90, { direction: 'down', loadReachedLimit: false }),
      segment('fq_codel', pair, 26),
    ]),
  ];
  const result = analyseExperiment(segments, {
    arms: ['BQL off', 'BQL on', 'fq_codel'],
    probe: 'priority ping',
    calibration: 'fitted',
    quality: { cpuBusyShare: 1 },
  });

  test('the verdict is about the second arm against the first, up', () => {
    expect(result.verdict.kind).toBe('improved');
    expect(result.verdict.sentence).toMatch(
      /^BQL cut the loaded p95 of a priority ping from 38\d to 3\d\.\d ms/,
    );
    expect(result.comparisons.map(({ direction, second }) => [direction, second.name])).toEqual([
      ['up', 'BQL on'],
      ['up', 'fq_codel'],
      ['down', 'BQL on'],
      ['down', 'fq_codel'],
    ]);
  });

  test('scores for each arm, over the directions it was loaded in', () => {
    expect(result.scores.map(({ arm, grade }) => [arm, grade?.grade ?? null])).toEqual([
      ['BQL off', 'D'],
      ['BQL on', 'B'],
      ['fq_codel', null],
    ]);
    expect(result.scores[0]?.responsiveness?.rating).toBe('poor');
    expect(result.idle).toMatchObject({ roundTrips: 40 });
    expect(result.calibration).toBe('fitted');
  });

  test('what is wrong with the measuring is counted from the segments', () => {
    expect(result.notes.map(({ id }) => id).sort()).toEqual([
      'cpu-saturated',
      'late-probes',
      'load-below-limit',
      'load-below-limit',
      'lost-probes',
    ]);
  });

  test('an experiment that broke off has a verdict too', () => {
    for (const cut of [[], segments.slice(0, 1), segments.slice(0, 2)]) {
      const { verdict, comparisons } = analyseExperiment(cut, { arms: ['BQL off', 'BQL on'] });
      expect(verdict.kind).toBe('not enough data');
      expect(comparisons).toHaveLength(1);
    }
  });

  test('it is a document: JSON gives the same back', () => {
    expect(JSON.parse(JSON.stringify(result))).toEqual(result);
  });
});
