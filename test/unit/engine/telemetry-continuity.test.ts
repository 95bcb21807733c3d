import { expect, test } from 'vitest';
import { probeColumns, probeIndex, sampleColumns, sampleIndex } from '../../../src/contract/telemetry.ts';
import { TelemetryContinuity } from '../../../src/engine/telemetry-continuity.ts';

function sample(timeUs: number, txErrors: number, qdiscDroppedPackets: number): Float64Array {
  const row = new Float64Array(sampleColumns.length).fill(7);
  row[sampleIndex.timeUs] = timeUs;
  row[sampleIndex.txErrors] = txErrors;
  row[sampleIndex.qdiscDroppedPackets] = qdiscDroppedPackets;
  return row;
}

function probe(sequence: number): Float64Array {
  const row = new Float64Array(probeColumns.length);
  row[probeIndex.sequence] = sequence;
  return row;
}

test('before a gap, rows are as they come', () => {
  const continuity = new TelemetryContinuity();
  const row = sample(5, 1, 2);
  continuity.handleSample(row);
  expect(row).toEqual(sample(5, 1, 2));
});

test('counters and sequence numbers go on after a gap, and after the next', () => {
  const continuity = new TelemetryContinuity();
  const seen: number[][] = [];
  const sequences: number[] = [];
  for (let opening = 0; opening < 3; opening++) {
    if (opening > 0) continuity.resume();
    for (const count of [0, 2, 3]) {
      const row = sample(opening * 100 + count, count, 10 * count);
      continuity.handleSample(row);
      seen.push([row[sampleIndex.txErrors] ?? -1, row[sampleIndex.qdiscDroppedPackets] ?? -1]);
      const answer = probe(count);
      continuity.handleProbe(answer);
      sequences.push(answer[probeIndex.sequence] ?? -1);
      expect(row[sampleIndex.inflightBytes]).toBe(7);
    }
  }
  expect(seen).toEqual([
    [0, 0],
    [2, 20],
    [3, 30],
    [3, 30],
    [5, 50],
    [6, 60],
    [6, 60],
    [8, 80],
    [9, 90],
  ]);
  expect(sequences).toEqual([0, 2, 3, 4, 6, 7, 8, 10, 11]);
});

test('what is not counted (NaN) leaves the count alone', () => {
  const continuity = new TelemetryContinuity();
  continuity.handleSample(sample(1, 4, 4));
  const unknown = sample(2, Number.NaN, 5);
  continuity.handleSample(unknown);
  expect(unknown[sampleIndex.txErrors]).toBeNaN();
  continuity.resume();
  const row = sample(3, 1, 1);
  continuity.handleSample(row);
  expect([row[sampleIndex.txErrors], row[sampleIndex.qdiscDroppedPackets]]).toEqual([5, 6]);
});

test('rows of a gap know nothing but their time, which is after all before', () => {
  const continuity = new TelemetryContinuity();
  continuity.handleSample(sample(1000, 0, 0));
  const times = [900, 1000, 5000].map((timeUs) => {
    const row = continuity.gapRow(timeUs);
    expect(row.slice(1).every(Number.isNaN)).toBe(true);
    return row[sampleIndex.timeUs];
  });
  expect(times).toEqual([1001, 1002, 5000]);
});
