import { describe, expect, test } from 'vitest';
import { ProbeBands } from '../../../renderer/charts/probe-bands.ts';
import { PointBuffer } from '../../../renderer/charts/point-buffer.ts';
import { ReadingsCalculator } from '../../../renderer/store/readings.ts';
import { SessionData } from '../../../renderer/store/session-data.ts';
import {
  faultColumns,
  type ProbeColumn,
  probeColumns,
  type SampleColumn,
  sampleColumns,
} from '../../../src/contract/telemetry.ts';

function samples(rows: readonly Partial<Record<SampleColumn, number>>[]): Float64Array {
  return Float64Array.from(rows.flatMap((row) => sampleColumns.map((column) => row[column] ?? Number.NaN)));
}

function probes(rows: readonly Partial<Record<ProbeColumn, number>>[]): Float64Array {
  return Float64Array.from(rows.flatMap((row) => probeColumns.map((column) => row[column] ?? Number.NaN)));
}

const second = 1_000_000;

/** One sample and one probe a second: BQL on to 10 s, off to 20 s, on to 30 s. */
function threeArms(): SessionData {
  const data = new SessionData();
  const times = Array.from({ length: 30 }, (_, i) => (i + 1) * second);
  const isOn = (timeUs: number): boolean => timeUs <= 10 * second || timeUs > 20 * second;
  data.addBatch(
    {
      table: 'samples',
      skippedRows: 0,
      values: samples(
        times.map((timeUs) => ({
          timeUs,
          bqlEnabled: isOn(timeUs) ? 1 : 0,
          inflightBytes: isOn(timeUs) ? 6000 : 454_200,
          inflightMaxBytes: isOn(timeUs) ? 9000 : 454_200,
          limitBytes: isOn(timeUs) ? 7000 : Number.NaN,
          txTransfers: isOn(timeUs) ? 4 : 300,
          txBitsPerSecond: 10e6,
          rxBitsPerSecond: 1000,
          txDroppedPackets: 0,
          qdiscDroppedPackets: timeUs / second,
          qdiscMarkedPackets: (2 * timeUs) / second,
        })),
      ),
    },
    30_000,
  );
  data.addBatch(
    {
      table: 'probes',
      skippedRows: 0,
      values: probes(
        times.map((timeUs, i) => ({
          timeUs,
          sequence: i,
          // The first round trip after a switch still meets what was in the queue before.
          rttUs: i === 25 ? Number.NaN : isOn(timeUs) !== (i === 20) ? 40_000 : 400_000,
          driverQueueUs: isOn(timeUs) ? 5000 : 363_000,
          qdiscWaitUs: 10,
        })),
      ),
    },
    30_000,
  );
  return data;
}

describe('readings', () => {
  test('are of the arm that is running, and know the one before', () => {
    const readings = new ReadingsCalculator().compute(threeArms(), 30 * second, 60 * second);
    expect(readings?.now).toMatchObject({
      bqlEnabled: true,
      fromUs: 21 * second,
      toUs: 30 * second,
      inflightP50Bytes: 6000,
      inflightMaxBytes: 9000,
      limitP50Bytes: 7000,
      rttP50Us: 40_000,
      rttP95Us: 400_000,
      driverQueueP50Us: 5000,
      txBitsPerSecond: 10e6,
      probeCount: 10,
      lostProbes: 1,
      droppedPackets: 9,
      markedPackets: 18,
    });
    expect(readings?.other).toMatchObject({
      bqlEnabled: false,
      fromUs: 11 * second,
      toUs: 20 * second,
      inflightP50Bytes: 454_200,
      rttP50Us: 400_000,
      driverQueueP50Us: 363_000,
      lostProbes: 0,
    });
    expect(readings).toMatchObject({ lastTxTransfers: 4, lastInflightBytes: 6000, lastLimitBytes: 7000 });
  });

  test('go no further back than the window', () => {
    const readings = new ReadingsCalculator().compute(threeArms(), 30 * second, 4 * second);
    expect(readings?.now).toMatchObject({ fromUs: 26 * second, probeCount: 5 });
    expect(readings?.other).toMatchObject({ fromUs: 16 * second, toUs: 20 * second });
  });

  test('of an earlier time are those of that time', () => {
    const readings = new ReadingsCalculator().compute(threeArms(), 15 * second, 60 * second);
    expect(readings?.now).toMatchObject({ bqlEnabled: false, toUs: 15 * second, rttP50Us: 400_000 });
    expect(readings?.other).toMatchObject({ bqlEnabled: true, fromUs: 2 * second, toUs: 10 * second });
  });

  test('of now are not there when nothing has come for a while', () => {
    const readings = new ReadingsCalculator().compute(threeArms(), 33 * second, 60 * second);
    expect(readings?.lastTxTransfers).toBeNaN();
    expect(readings?.lastLimitBytes).toBeNaN();
    expect(readings?.now.rttP50Us).toBe(40_000);
  });

  test('are not held against a stretch with another load', () => {
    const data = new SessionData();
    const row = (i: number, rate: number): Partial<Record<SampleColumn, number>> => ({
      timeUs: i * 50_000,
      bqlEnabled: i < 200 ? 1 : 0,
      txBitsPerSecond: rate,
      rxBitsPerSecond: 0,
    });
    const rateOf = (i: number): number => (i < 300 ? 1e7 : 4000);
    const rows = Array.from({ length: 400 }, (_, i) => row(i, rateOf(i)));
    data.addBatch({ table: 'samples', skippedRows: 0, values: samples(rows) }, 0);
    const at = (s: number): boolean | undefined =>
      new ReadingsCalculator().compute(data, s * second, 60 * second)?.isComparable;
    expect(at(15)).toBe(true);
    expect(at(20)).toBe(false);
  });

  test('do not exist before the first sample', () => {
    expect(new ReadingsCalculator().compute(new SessionData(), 0, second)).toBeUndefined();
  });
});

describe('the right edge', () => {
  const tick = (data: SessionData, timeUs: number, atMs: number): void =>
    data.addBatch({ table: 'samples', skippedRows: 0, values: samples([{ timeUs, bqlEnabled: 1 }]) }, atMs);

  test('is the newest sample, and goes on by itself when nothing comes', () => {
    const data = new SessionData();
    tick(data, 1_000_000, 5000);
    tick(data, 1_050_000, 5080);
    expect(data.edgeUs(5100, true)).toBe(1_050_000);
    expect(data.edgeUs(5600, true)).toBe(1_050_000);
    expect(data.edgeUs(7000, true)).toBe(3_000_000);
    expect(data.edgeUs(7000, false)).toBe(1_050_000);
  });

  test('is zero while there is nothing', () => {
    expect(new SessionData().edgeUs(7000, true)).toBe(0);
  });
});

test('a lost probe, known late, stands where it was sent', () => {
  const data = new SessionData();
  const add = (timeUs: number, rttUs: number): void =>
    data.addBatch({ table: 'probes', skippedRows: 0, values: probes([{ timeUs, rttUs }]) }, 0);
  add(1000, 10);
  add(3000, 30);
  add(2000, Number.NaN);
  expect([...data.probes.times.subarray(0, 3)]).toEqual([1000, 2000, 3000]);
  expect([...data.probes.column('rttUs').subarray(0, 3)]).toEqual([10, Number.NaN, 30]);
});

test('what was skipped is counted, and clearing forgets all', () => {
  const data = threeArms();
  data.addBatch({ table: 'samples', skippedRows: 7, values: samples([]) }, 0);
  data.addEvent({ timeUs: 1, kind: 'note', text: 'here' });
  expect(data.skippedRows.value).toBe(7);
  data.clear();
  expect([
    data.samples.length,
    data.probes.length,
    data.periods.all.length,
    data.events.value.length,
  ]).toEqual([0, 0, 0, 0]);
  expect(data.rttOverview.used).toBe(0);
});

describe('the p50 line', () => {
  function lineOf(data: SessionData, stretchUs: number): { x: number[]; median: number[]; high: number[] } {
    const median = new PointBuffer();
    const high = new PointBuffer();
    new ProbeBands().compute(
      data.probes,
      { from: 0, to: data.probes.length },
      data.periods.all,
      30 * second,
      stretchUs,
      median,
      high,
    );
    expect(high.points.map((point) => point.x)).toEqual(median.points.map((point) => point.x));
    return {
      x: median.points.map((point) => point.x),
      median: median.points.map((point) => point.y),
      high: high.points.map((point) => point.y),
    };
  }

  test('breaks where BQL is switched, and does not mix the arms', () => {
    const { median } = lineOf(threeArms(), 4 * second);
    const pieces = median.join(' ').split(' NaN ');
    expect(pieces).toHaveLength(3);
    expect(new Set(pieces[0]?.split(' '))).toEqual(new Set(['40']));
    expect(new Set(pieces[1]?.split(' '))).toEqual(new Set(['400']));
  });

  test('breaks where nothing was answered for longer than a stretch', () => {
    const data = new SessionData();
    const times = [0, 1, 2, 3, 20, 21].map((s) => s * second);
    data.addBatch(
      { table: 'probes', skippedRows: 0, values: probes(times.map((timeUs) => ({ timeUs, rttUs: 7000 }))) },
      0,
    );
    const { median, high } = lineOf(data, 2 * second);
    expect(median.filter((value) => Number.isNaN(value))).toHaveLength(1);
    expect(high.filter((value) => value === 7).length).toBe(median.length - 1);
  });
});

test('faults: the newest counts, told only when one has changed, and kept over a gap', () => {
  const data = new SessionData();
  let told = 0;
  const dispose = data.faults.subscribe(() => told++);
  const add = (row: Partial<Record<SampleColumn, number>>): void =>
    data.addBatch({ table: 'samples', skippedRows: 0, values: samples([row]) }, 0);
  const countsOf = (rxStallErrors: number): Partial<Record<SampleColumn, number>> => ({
    ...Object.fromEntries(faultColumns.map((column) => [column, 0])),
    rxStallErrors,
  });
  add({ timeUs: 1, bqlEnabled: 1, ...countsOf(0) });
  add({ timeUs: 2, bqlEnabled: 1, ...countsOf(0) });
  add({ timeUs: 3, bqlEnabled: 1, ...countsOf(2) });
  add({ timeUs: 4 });
  dispose();
  expect(told).toBe(3);
  expect(data.faults.peek()[faultColumns.indexOf('rxStallErrors')]).toBe(2);
  data.clear();
  expect(data.faults.peek()).toEqual([]);
});
