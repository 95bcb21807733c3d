import { faultColumns } from '../../../src/contract/telemetry.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { distribution, stretchStatistics } from '../../../src/report/statistics.ts';
import type { Telemetry } from '../../../src/report/telemetry.ts';

const sampleNames = [
  'timeUs',
  'inflightBytes',
  'inflightMaxBytes',
  'limitBytes',
  'bqlEnabled',
  'backlogBytes',
  'txBitsPerSecond',
  'rxBitsPerSecond',
  'driverQueueMaxUs',
  'qdiscWaitMaxUs',
  'txDroppedPackets',
  'qdiscDroppedPackets',
  'txErrors',
  'rxErrors',
  'driverXoff',
  'stackXoff',
  'eventLoopLagUs',
  ...faultColumns,
] as const;
const probeNames = ['timeUs', 'rttUs', 'qdiscWaitUs', 'driverQueueUs', 'lateUs'] as const;

/** Telemetry with the given columns; the others have no values. */
function telemetry(
  samples: Partial<Record<(typeof sampleNames)[number], number[]>>,
  probes: Partial<Record<(typeof probeNames)[number], number[]>> = {},
  sampleIntervalUs = 100,
): Telemetry {
  const column = (values: number[] | undefined, length: number): Float64Array =>
    values === undefined ? new Float64Array(length).fill(Number.NaN) : Float64Array.from(values);
  const fill = <C extends string>(
    names: readonly C[],
    given: Partial<Record<C, number[]>>,
    length: number,
  ): Record<C, Float64Array> =>
    Object.fromEntries(names.map((name) => [name, column(given[name], length)])) as Record<C, Float64Array>;
  const sampleCount = samples.timeUs?.length ?? 0;
  const probeCount = probes.timeUs?.length ?? 0;
  return {
    samples: { rowCount: sampleCount, values: fill(sampleNames, samples, sampleCount) },
    probes: { rowCount: probeCount, values: fill(probeNames, probes, probeCount) },
    sampleIntervalUs,
    probeIntervalUs: 100,
  };
}

describe('a distribution', () => {
  test('of ten values, worked out by hand', () => {
    // Sorted 1 … 10: p50 is the 5th, p95 the ceil(9.5) = 10th, p99 the ceil(9.9) = 10th.
    expect(distribution(Float64Array.from([3, 10, 1, 9, Number.NaN, 2, 8, 5, 7, 4, 6]))).toEqual({
      n: 10,
      min: 1,
      p50: 5,
      p95: 10,
      p99: 10,
      max: 10,
      mean: 5.5,
    });
  });

  test('of 200 values, worked out by hand', () => {
    const values = Float64Array.from({ length: 200 }, (_value, index) => 200 - index);
    expect(distribution(values)).toMatchObject({ n: 200, p50: 100, p95: 190, p99: 198, max: 200 });
  });

  test('of one value is that value, of none is nothing', () => {
    expect(distribution(Float64Array.from([7]))).toEqual({
      n: 1,
      min: 7,
      p50: 7,
      p95: 7,
      p99: 7,
      max: 7,
      mean: 7,
    });
    expect(distribution(Float64Array.from([Number.NaN]))).toEqual({
      n: 0,
      min: Number.NaN,
      p50: Number.NaN,
      p95: Number.NaN,
      p99: Number.NaN,
      max: Number.NaN,
      mean: Number.NaN,
    });
  });

  test('has as percentiles the smallest values that at least that share does not exceed', () => {
    const double = fc.double({ min: -1e9, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(fc.array(double, { minLength: 1, maxLength: 300 }), (values) => {
        const spread = distribution(Float64Array.from(values));
        for (const [percentile, value] of [
          [50, spread.p50],
          [95, spread.p95],
          [99, spread.p99],
        ] as const) {
          const enough = (bound: number): boolean =>
            100 * values.filter((other) => other <= bound).length >= percentile * values.length;
          expect(values).toContain(value);
          expect(enough(value)).toBe(true);
          for (const other of values) if (other < value) expect(enough(other)).toBe(false);
        }
        expect(spread.min).toBeLessThanOrEqual(spread.p50);
        expect(spread.p50).toBeLessThanOrEqual(spread.p95);
        expect(spread.p95).toBeLessThanOrEqual(spread.p99);
        expect(spread.p99).toBeLessThanOrEqual(spread.max);
      }),
    );
  });

  test('leaves the values where they were', () => {
    const values = Float64Array.from([3, 1, 2]);
    distribution(values);
    expect([...values]).toEqual([3, 1, 2]);
  });
});

describe('the statistics of a stretch', () => {
  test('count a sample where its interval ends and a probe where it was due', () => {
    const measured = telemetry(
      { timeUs: [100, 200, 300, 400], inflightBytes: [1, 2, 3, 4] },
      { timeUs: [100, 200, 300, 400], rttUs: [11, 12, 13, 14] },
    );
    const statistics = stretchStatistics(measured, [{ fromUs: 200, toUs: 400 }]);
    expect(statistics.inflightBytes).toMatchObject({ n: 2, min: 3, max: 4 });
    expect(statistics.rttUs).toMatchObject({ n: 2, min: 12, max: 13 });
    expect(statistics.samples).toBe(2);
  });

  test('of neighbouring stretches share no row and miss none', () => {
    const times = Array.from({ length: 50 }, (_value, index) => (index + 1) * 100);
    const measured = telemetry({ timeUs: times, inflightBytes: times }, { timeUs: times, rttUs: times });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 5100 }), (cutUs) => {
        const first = stretchStatistics(measured, [{ fromUs: 0, toUs: cutUs }]);
        const second = stretchStatistics(measured, [{ fromUs: cutUs, toUs: 5101 }]);
        expect(first.samples + second.samples).toBe(50);
        expect(first.probes + second.probes).toBe(50);
      }),
    );
  });

  test('take several stretches together as if they were one', () => {
    const measured = telemetry(
      { timeUs: [100, 200, 300, 400], limitBytes: [1, 2, 3, Number.NaN], txBitsPerSecond: [10, 20, 30, 40] },
      { timeUs: [50, 150, 250, 350], rttUs: [5, Number.NaN, 7, 8] },
    );
    const statistics = stretchStatistics(measured, [
      { fromUs: 0, toUs: 100 },
      { fromUs: 200, toUs: 400 },
    ]);
    expect(statistics).toMatchObject({ probes: 3, lost: 0, samples: 3, throughputBitsPerSecond: 80 / 3 });
    expect(statistics.limitBytes).toMatchObject({ n: 2, min: 1, max: 3 });
    const all = stretchStatistics(measured, [{ fromUs: 0, toUs: 400 }]);
    expect(all).toMatchObject({ probes: 4, lost: 1 });
  });

  test('weigh rates by the time they stand for, and leave gaps out', () => {
    // 100 us at 10, 100 us at 20, then nothing for 800 us but the last interval at 40, then 50 us at 80.
    const measured = telemetry({
      timeUs: [100, 200, 1000, 1050],
      txBitsPerSecond: [10, 20, 40, 80],
      driverXoff: [0, 1, 1, 0],
    });
    const statistics = stretchStatistics(measured, [{ fromUs: 0, toUs: 1050 }]);
    expect(statistics.throughputBitsPerSecond).toBeCloseTo((1000 + 2000 + 4000 + 4000) / 350, 9);
    expect(statistics.driverXoffShare).toBeCloseTo(200 / 350, 9);
    expect(statistics).toMatchObject({ gaps: 1, gapUs: 700 });
  });

  test('find gaps at both ends', () => {
    const measured = telemetry({ timeUs: [1000, 1100, 1200] });
    expect(stretchStatistics(measured, [{ fromUs: 0, toUs: 2000 }])).toMatchObject({
      gaps: 2,
      gapUs: 900 + 800,
    });
    expect(stretchStatistics(measured, [{ fromUs: 900, toUs: 1200 }])).toMatchObject({ gaps: 0, gapUs: 0 });
    expect(stretchStatistics(measured, [{ fromUs: 5000, toUs: 6000 }])).toMatchObject({
      gaps: 1,
      samples: 0,
    });
  });

  test('count what counters grew by within the stretch', () => {
    const measured = telemetry({
      timeUs: [100, 200, 300, 400],
      txDroppedPackets: [5, 7, 9, 12],
      qdiscDroppedPackets: [0, 0, 100, 100],
      rxErrors: [Number.NaN, Number.NaN, Number.NaN, Number.NaN],
    });
    expect(stretchStatistics(measured, [{ fromUs: 200, toUs: 400 }]).droppedPackets).toBe(12 - 7 + 100);
    expect(stretchStatistics(measured, [{ fromUs: 0, toUs: 200 }])).toMatchObject({
      droppedPackets: 2,
      errors: 0,
    });
  });

  test('of nothing are nothing, without a fault', () => {
    const statistics = stretchStatistics(telemetry({}, {}, Number.NaN), [{ fromUs: 0, toUs: 0 }]);
    expect(statistics).toMatchObject({
      probes: 0,
      lost: 0,
      samples: 0,
      gaps: 0,
      throughputBitsPerSecond: Number.NaN,
    });
  });
});
