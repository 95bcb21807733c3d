import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { gradeBufferbloat } from '../../../src/statistics/bufferbloat-grade.ts';
import { responsiveness } from '../../../src/statistics/rpm.ts';
import { judgeMeasurement } from '../../../src/statistics/validity.ts';

describe('gradeBufferbloat', () => {
  test.each([
    [4.9, 'A+'],
    [5, 'A'],
    [29.9, 'A'],
    [30, 'B'],
    [60, 'C'],
    [199, 'C'],
    [200, 'D'],
    [400, 'F'],
    [5000, 'F'],
  ] as const)('%d ms more than idle: %s', (increaseMs, grade) => {
    expect(gradeBufferbloat(24_000, [24_000 + increaseMs * 1000])?.grade).toBe(grade);
  });

  test('both directions are averaged; without idle or with a direction missing there is none', () => {
    expect(gradeBufferbloat(10_000, [20_000, 60_000])).toMatchObject({ grade: 'B', meanIncreaseUs: 30_000 });
    expect(gradeBufferbloat(null, [20_000])).toBeNull();
    expect(gradeBufferbloat(10_000, [20_000, null])).toBeNull();
    expect(gradeBufferbloat(10_000, [])).toBeNull();
    expect(gradeBufferbloat(10_000, [9000])).toMatchObject({ grade: 'A+', meanIncreaseUs: 0 });
  });
});

describe('responsiveness', () => {
  const steady = (ms: number): Float64Array => new Float64Array(100).fill(ms * 1000);

  test.each([
    [250, 240, 'poor'],
    [100, 600, 'fair'],
    [20, 3000, 'good'],
    [5, 12_000, 'excellent'],
  ] as const)('%d ms: %d round trips per minute, %s', (ms, rpm, rating) => {
    const result = responsiveness([steady(ms)]);
    expect(result?.roundTripsPerMinute).toBeCloseTo(rpm, 6);
    expect(result?.rating).toBe(rating);
  });

  test('the longest twentieth does not count', () => {
    const withOutliers = Float64Array.from({ length: 100 }, (_, i) => (i < 5 ? 9e6 : 20_000));
    expect(responsiveness([withOutliers])?.roundTripsPerMinute).toBeCloseTo(3000, 6);
  });

  test('confidence: low with few segments, high once it has settled, else medium', () => {
    expect(responsiveness([steady(20), steady(20), steady(20)])?.confidence).toBe('low');
    expect(responsiveness(Array.from({ length: 8 }, () => steady(20)))?.confidence).toBe('high');
    expect(responsiveness([10, 90, 12, 80, 10, 300, 20, 5].map(steady))?.confidence).toBe('medium');
    expect(responsiveness([new Float64Array()])).toBeNull();
  });

  test('faster round trips never give less', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 2, max: 1e6 }), { minLength: 1, maxLength: 50 }), (values) => {
        const slow = responsiveness([Float64Array.from(values)]);
        const fast = responsiveness([Float64Array.from(values, (value) => value / 2)]);
        expect(fast?.roundTripsPerMinute).toBeGreaterThanOrEqual(slow?.roundTripsPerMinute ?? Number.NaN);
      }),
    );
  });
});

describe('judgeMeasurement', () => {
  const idsOf = (quality: Parameters<typeof judgeMeasurement>[0]): string[] =>
    judgeMeasurement(quality).map(({ id }) => id);

  test('what was not looked at is not judged', () => {
    expect(idsOf({})).toEqual([]);
  });

  test.each([
    ['cpu-saturated', { cpuBusyShare: 0.97 }, { cpuBusyShare: 0.6 }],
    [
      'event-loop-lag',
      { eventLoopLagUs: { p95: 11_000, max: 40_000 } },
      { eventLoopLagUs: { p95: 300, max: 40_000 }, rttP50Us: 5000 },
    ],
    [
      'event-loop-lag',
      { eventLoopLagUs: { p95: 300, max: 400 }, rttP50Us: 1000 },
      { eventLoopLagUs: { p95: 200, max: 400 }, rttP50Us: 1000 },
    ],
    ['timer-error', { timerErrorUs: 2500 }, { timerErrorUs: 1200 }],
    ['usb2-fallback', { usb2Fallback: true }, { usb2Fallback: false }],
    ['lost-probes', { probesSent: 100, probesLost: 2 }, { probesSent: 100, probesLost: 1 }],
    ['late-probes', { probesSent: 100, probesLate: 6 }, { probesSent: 100, probesLate: 5 }],
    [
      'few-round-trips',
      { stretches: [{ name: 'A', roundTrips: 99 }] },
      { stretches: [{ name: 'A', roundTrips: 100 }] },
    ],
    [
      'load-below-limit',
      { belowLimit: [{ arm: 'A', segments: 3, of: 3 }] },
      { belowLimit: [{ arm: 'A', segments: 0, of: 3 }] },
    ],
  ] as const)('%s where it is due, and not below', (id, due, fine) => {
    expect(idsOf(due)).toEqual([id]);
    expect(idsOf(fine)).toEqual([]);
  });
});
