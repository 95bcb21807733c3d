import { describe, expect, test } from 'vitest';
import { compareArms } from '../../../src/statistics/compare-arms.ts';
import type { MeasuredSegment } from '../../../src/statistics/measured-segment.ts';
import { judgeComparison, type Verdict } from '../../../src/statistics/verdict.ts';

interface Arm {
  readonly name: string;
  readonly ms: number;
  readonly mbit?: number;
}

/** Pairs over a link that doubles and halves; `noise` sets the arms of a pair apart, now one way, now the other. */
function verdictOf(
  first: Arm,
  second: Arm,
  pairs: number,
  noise: number,
  more: Partial<MeasuredSegment> = {},
): Verdict {
  const segments = Array.from({ length: pairs }, (_, pair) => {
    const link = 2 ** Math.sin(pair);
    const apart = 1 + noise * (((pair * 37) % 11) / 5 - 1);
    return [segmentOf(first, pair, link * apart, more), segmentOf(second, pair, link, more)];
  }).flat();
  return judgeComparison(compareArms(segments, 'up', first.name, second.name), { probe: 'priority ping' });
}

function segmentOf(
  { name, ms, mbit = 10 }: Arm,
  pair: number,
  link: number,
  more: Partial<MeasuredSegment>,
): MeasuredSegment {
  const rttUs = Float64Array.from({ length: 50 }, (_, i) => 1000 * ms * link * (0.9 + i / 500));
  return {
    arm: name,
    pair,
    direction: 'up',
    rttUs,
    probesSent: rttUs.length,
    probesLost: 0,
    upBitsPerSecond: (mbit * 1e6) / link,
    downBitsPerSecond: null,
    loadReachedLimit: true,
    seconds: 5,
    ...more,
  };
}

describe('judgeComparison', () => {
  test('improved: one sentence with the numbers', () => {
    const verdict = verdictOf({ name: 'BQL off', ms: 352 }, { name: 'BQL on', ms: 21 }, 8, 0.02);
    expect(verdict.kind).toBe('improved');
    expect(verdict.enough).toBeNull();
    expect(verdict.sentence).toMatch(
      /^BQL cut the loaded p95 of a priority ping from \d{3} to \d\d\.\d ms \(95 percent CI \d\d\.\d to \d\d\.\d\), throughput unchanged \(-\d\.\d to \+\d\.\d percent\)\.$/,
    );
  });

  test('worsened: the arms by their names', () => {
    const verdict = verdictOf({ name: 'fq_codel', ms: 20 }, { name: 'fifo', ms: 40 }, 8, 0.02);
    expect(verdict.kind).toBe('worsened');
    expect(verdict.sentence).toMatch(/^fifo raised the loaded p95 .* against fq_codel, throughput unchanged/);
  });

  test('latency alike, throughput down: worsened, and says which', () => {
    const verdict = verdictOf({ name: 'BQL off', ms: 20 }, { name: 'BQL on', ms: 20, mbit: 8 }, 10, 0.01);
    expect(verdict.kind).toBe('worsened');
    expect(verdict.sentence).toContain('was the same with BQL off and BQL on');
    expect(verdict.sentence).toContain('throughput fell from');
  });

  test('no difference: only if a tenth would have shown', () => {
    const verdict = verdictOf({ name: 'A', ms: 20 }, { name: 'B', ms: 20 }, 12, 0.05);
    expect(verdict.kind).toBe('no difference');
    expect(verdict.sentence).toMatch(
      /was the same with A and B: .* \(95 percent CI of the difference -\d\.\d to \+\d\.\d percent\)/,
    );
  });

  test('what the histogram cannot resolve is no difference, however steady', () => {
    const verdict = verdictOf({ name: 'A', ms: 20 }, { name: 'B', ms: 20.05 }, 12, 0);
    expect(verdict.kind).toBe('no difference');
    expect(verdictOf({ name: 'A', ms: 20 }, { name: 'B', ms: 20.3 }, 12, 0).kind).toBe('worsened');
  });

  test('a load that never filled the queue is said to prove nothing', () => {
    const verdict = verdictOf({ name: 'A', ms: 20 }, { name: 'B', ms: 20 }, 12, 0.05, {
      loadReachedLimit: false,
    });
    expect(verdict.sentence).toContain('the load never filled the queue');
  });

  test('noise that would hide a tenth: not enough data, and how much would be', () => {
    const verdict = verdictOf({ name: 'A', ms: 20 }, { name: 'B', ms: 20 }, 8, 0.4);
    expect(verdict.kind).toBe('not enough data');
    expect(verdict.enough?.pairs).toBeGreaterThan(20);
    expect(verdict.enough?.pairs).toBeLessThan(400);
    expect(verdict.enough?.seconds).toBe((verdict.enough?.pairs ?? 0) * 10);
    expect(verdict.sentence).toMatch(
      /^Not enough data: after 8 pairs of segments .* would be enough to see a difference of 10 percent\.$/,
    );
  });

  test('nothing to compare: says what is missing', () => {
    const one = [segmentOf({ name: 'A', ms: 20 }, 0, 1, {}), segmentOf({ name: 'B', ms: 10 }, 0, 1, {})];
    const judge = (segments: readonly MeasuredSegment[]): Verdict =>
      judgeComparison(compareArms(segments, 'up', 'A', 'B'), { probe: 'ping' });
    expect(judge(one).sentence).toContain('1 pair of segments with 50 and 50 answered probes');
    expect(judge(one).enough).toMatchObject({ pairs: 6, seconds: 60, roundTrips: 20 });
    expect(judge([]).sentence).toContain('no pair of segments has both A and B');
    expect(judge([]).enough?.seconds).toBeNull();
    const silent = one.map((segment) =>
      segment.arm === 'B' ? { ...segment, rttUs: new Float64Array(), probesLost: 50 } : segment,
    );
    expect(judge(silent)).toMatchObject({ kind: 'not enough data' });
    expect(judge(silent).sentence).toContain('no probe was answered with B');
  });
});
