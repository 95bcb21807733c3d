import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Decimator } from '../../../src/recording/decimate.ts';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import { recordSyntheticSession } from '../../harness/synthetic-session.ts';
import { scratchFolder } from './scratch-folder.ts';

test('buckets hold the minimum, maximum, first and last of exactly the values that fall into them', () => {
  const points = fc.array(
    fc.tuple(fc.integer({ min: 0, max: 1000 }), fc.oneof(fc.integer(), fc.constant(Number.NaN))),
  );
  fc.assert(
    fc.property(points, fc.integer({ min: 1, max: 40 }), (unsorted, buckets) => {
      const sorted = unsorted.toSorted(([a], [b]) => a - b);
      const decimator = new Decimator(100, 900, buckets);
      for (const [timeUs, value] of sorted) decimator.add(timeUs, value);
      const { count, min, max, first, last } = decimator.result;
      for (let bucket = 0; bucket < buckets; bucket++) {
        const own = sorted
          .filter(([timeUs, value]) => {
            if (timeUs < 100 || timeUs > 900 || Number.isNaN(value)) return false;
            return Math.min(buckets - 1, Math.floor(((timeUs - 100) * buckets) / 800)) === bucket;
          })
          .map(([, value]) => value);
        expect(count[bucket]).toBe(own.length);
        expect(min[bucket]).toBe(own.length === 0 ? Number.NaN : Math.min(...own));
        expect(max[bucket]).toBe(own.length === 0 ? Number.NaN : Math.max(...own));
        expect(first[bucket]).toBe(own[0] ?? Number.NaN);
        expect(last[bucket]).toBe(own.at(-1) ?? Number.NaN);
      }
    }),
  );
});

test('a recording is decimated without loss of its extremes, and a gap stays one', () => {
  const path = join(scratchFolder(), 'a.qscope');
  recordSyntheticSession(path, { gap: { fromUs: 20e6, toUs: 25e6 } });
  const reader = RecordingReader.open(path);
  const range = { fromUs: 0, toUs: 60e6 };
  const { driverQueueUs, rttUs } = reader.decimate('probes', ['driverQueueUs', 'rttUs'], range, 60);
  const whole = reader.columns('probes', ['timeUs', 'driverQueueUs']).values;
  const known = whole.driverQueueUs.filter((value) => !Number.isNaN(value));
  const ofBuckets = (array: Float64Array): number[] => [...array].filter((value) => !Number.isNaN(value));
  expect(Math.max(...ofBuckets(driverQueueUs.max))).toBe(Math.max(...known));
  expect(Math.min(...ofBuckets(driverQueueUs.min))).toBe(Math.min(...known));
  expect([...rttUs.count.subarray(20, 25)]).toEqual([0, 0, 0, 0, 0]);
  expect([...rttUs.count.subarray(25, 30)].every((count) => count > 0)).toBe(true);
  const part = reader.columns('probes', ['timeUs'], { fromUs: 10e6, toUs: 11e6 }).values.timeUs;
  expect(part).toEqual(whole.timeUs.filter((timeUs) => timeUs >= 10e6 && timeUs <= 11e6));
  reader.close();
});
