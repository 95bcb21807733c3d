import { describe, expect, test } from 'vitest';
import { compareArms } from '../../../src/statistics/compare-arms.ts';
import type { MeasuredSegment } from '../../../src/statistics/measured-segment.ts';

/** A segment whose round trips spread evenly over ±20 percent around a centre. */
function segment(
  arm: string,
  pair: number,
  centreMs: number,
  more: Partial<MeasuredSegment> = {},
): MeasuredSegment {
  const count = 100;
  return {
    arm,
    pair,
    direction: 'up',
    rttUs: Float64Array.from({ length: count }, (_, i) => centreMs * 1000 * (0.8 + (0.4 * i) / (count - 1))),
    probesSent: count,
    probesLost: 0,
    upBitsPerSecond: 10e6,
    downBitsPerSecond: null,
    loadReachedLimit: true,
    ...more,
  };
}

/** What the link does to a pair. */
const link = [1, 1.5, 0.7, 2, 1.2, 0.9, 3, 0.8];

describe('compareArms', () => {
  test('what the link does to a whole pair cancels out', () => {
    const segments = link.flatMap((factor, pair) => [
      segment('off', pair, 100 * factor, { upBitsPerSecond: 10e6 / factor }),
      segment('on', pair, 10 * factor, { upBitsPerSecond: 9.9e6 / factor }),
    ]);
    const { metrics, pairs } = compareArms(segments, 'up', 'off', 'on');
    expect(pairs).toBe(8);
    for (const metric of ['rttP50Us', 'rttP95Us', 'rttP99Us'] as const) {
      expect(metrics[metric].relative?.estimate).toBeCloseTo(-0.9, 2);
      expect(metrics[metric].relative?.low).toBeCloseTo(-0.9, 2);
      expect(metrics[metric].relative?.high).toBeCloseTo(-0.9, 2);
      expect(metrics[metric].blocks).toBe(8);
      expect(metrics[metric].method).toBe('signed-rank');
    }
    expect(metrics.upBitsPerSecond.relative?.estimate).toBeCloseTo(-0.01, 6);
    expect(metrics.downBitsPerSecond).toMatchObject({ first: null, second: null, relative: null, blocks: 0 });
    const { first, second, absolute } = metrics.rttP95Us;
    expect((first ?? 0) + (absolute?.estimate ?? 0)).toBeCloseTo(second ?? Number.NaN, 6);
    expect(absolute?.low).toBeLessThanOrEqual(absolute?.estimate ?? Number.NaN);
  });

  test('segments with few round trips are put together until a percentile means something', () => {
    const few = { rttUs: Float64Array.from([1000, 2000, 3000, 4000]), probesSent: 4 };
    const segments = Array.from({ length: 15 }, (_, pair) => [
      segment('off', pair, 0, few),
      segment('on', pair, 0, few),
    ]).flat();
    const { metrics } = compareArms(segments, 'up', 'off', 'on');
    // 4 each: 2 pairs make 5 or more, 5 pairs 20; 60 are not 100. The one left over joins the last block.
    expect(metrics.rttP50Us.blocks).toBe(7);
    expect(metrics.rttP95Us.blocks).toBe(3);
    expect(metrics.rttP99Us).toMatchObject({ blocks: 0, relative: null });
    expect(metrics.upBitsPerSecond.blocks).toBe(15);
  });

  test('other directions, idle segments and pairs with one arm stay out of it', () => {
    const segments = [
      segment('off', 0, 50, { direction: 'idle' }),
      segment('off', 1, 100),
      segment('on', 1, 10),
      segment('off', 2, 100),
      segment('off', 3, 100, { direction: 'down' }),
      segment('on', 3, 100, { direction: 'down' }),
    ];
    const { pairs, first } = compareArms(segments, 'up', 'off', 'on');
    expect(pairs).toBe(1);
    expect(first.segments).toBe(2);
    expect(compareArms(segments, 'both', 'off', 'on')).toMatchObject({
      pairs: 0,
      first: { segments: 0, rttP50Us: null },
    });
  });

  test('a single pair has values and no interval', () => {
    const { metrics } = compareArms([segment('off', 1, 100), segment('on', 1, 50)], 'up', 'off', 'on');
    expect(metrics.rttP50Us.first).toBeCloseTo(100_000, -3);
    expect(metrics.rttP50Us.second).toBeCloseTo(50_000, -3);
    expect(metrics.rttP50Us.relative).toBeNull();
  });

  test('a link that stood still has no ratio', () => {
    const segments = link.flatMap((_, pair) => [
      segment('off', pair, 100),
      segment('on', pair, 10, { upBitsPerSecond: 0 }),
    ]);
    const { metrics, second } = compareArms(segments, 'up', 'off', 'on');
    expect(metrics.upBitsPerSecond.relative).toBeNull();
    expect(second.upBitsPerSecond).toBe(0);
  });

  test('thousands of pairs are grouped, not left out', () => {
    const short = { rttUs: Float64Array.from([1000, 2000]), probesSent: 2 };
    const segments = Array.from({ length: 3000 }, (_, pair) => [
      segment('off', pair, 0, short),
      segment('on', pair, 0, short),
    ]).flat();
    const { pairs, metrics, first } = compareArms(segments, 'up', 'off', 'on');
    expect(pairs).toBe(3000);
    expect(metrics.upBitsPerSecond.blocks).toBeLessThanOrEqual(400);
    expect(first.roundTrips).toBe(6000);
  });

  test('how long a pair takes is known if every segment says', () => {
    const segments = [segment('off', 1, 100, { seconds: 5 }), segment('on', 1, 50, { seconds: 7 })];
    expect(compareArms(segments, 'up', 'off', 'on').pairSeconds).toBe(12);
    expect(compareArms([...segments, segment('on', 1, 50)], 'up', 'off', 'on').pairSeconds).toBeNull();
  });
});
