import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { neverUs } from '../../../src/base/clock.ts';
import type { PingLine } from '../../../src/observe/ping-output.ts';
import { type PingResult, PingTracker } from '../../../src/observe/ping-tracker.ts';

const timing = { intervalUs: 200_000, timeoutUs: 1_000_000 };
/** The wall clock is this much ahead of ours. */
const wallUs = 1_796_060_000_000_000;

function createTracker(): {
  tracker: PingTracker;
  results: PingResult[];
  line(line: PingLine, nowUs: number): void;
} {
  const results: PingResult[] = [];
  const tracker = new PingTracker(timing, (result) => results.push(result));
  return { tracker, results, line: (line, nowUs) => tracker.handleLine(line, nowUs, wallUs + nowUs) };
}

const reply = (sequence: number, atUs: number, rttUs: number): PingLine => ({
  kind: 'reply',
  sequence,
  stampUs: wallUs + atUs,
  rttUs,
});
const outstanding = (sequence: number, atUs: number): PingLine => ({
  kind: 'outstanding',
  sequence,
  stampUs: wallUs + atUs,
});

describe('an answered probe', () => {
  test('was sent its round trip before its stamp, however late we hear of it', () => {
    const { results, line } = createTracker();
    line(reply(1, 5000, 300), 25_000);
    expect(results).toEqual([{ sequence: 0, sentAtUs: 4700, rttUs: 300 }]);
  });

  test('is told once: duplicates and a second reply count for nothing', () => {
    const { results, line } = createTracker();
    line(reply(1, 5000, 300), 5000);
    line(reply(1, 6000, 1300), 6000);
    expect(results).toHaveLength(1);
  });

  test('may be answered after the next one was sent', () => {
    const { results, line, tracker } = createTracker();
    line(outstanding(1, 200_000), 200_000);
    line(reply(1, 450_000, 447_000), 450_000);
    line(reply(2, 460_000, 255_000), 460_000);
    tracker.poll(5_000_000);
    expect(results).toEqual([
      { sequence: 0, sentAtUs: 3000, rttUs: 447_000 },
      { sequence: 1, sentAtUs: 205_000, rttUs: 255_000 },
    ]);
  });
});

describe('a lost probe', () => {
  test('is known once its time is over, at the time when it was sent', () => {
    const { results, line, tracker } = createTracker();
    line(outstanding(1, 200_000), 200_000);
    line(reply(2, 200_500, 500), 200_500);
    expect(tracker.pollAtUs()).toBe(timing.timeoutUs);
    tracker.poll(timing.timeoutUs - 1);
    expect(results).toHaveLength(1);
    tracker.poll(timing.timeoutUs);
    expect(results.at(-1)).toEqual({ sequence: 0, sentAtUs: 0, rttUs: Number.NaN });
    expect(tracker.pollAtUs()).toBe(neverUs);
  });

  test('stays lost when its answer comes after all', () => {
    const { results, line, tracker } = createTracker();
    line(outstanding(1, 200_000), 200_000);
    tracker.poll(2_000_000);
    line(reply(1, 2_100_000, 2_099_000), 2_100_000);
    expect(results.map(({ rttUs }) => rttUs)).toEqual([Number.NaN]);
  });

  test('is known at once where a host says so', () => {
    const { results, line } = createTracker();
    line({ kind: 'unreachable', sequence: 1, reason: 'Destination Host Unreachable' }, 3000);
    expect(results).toMatchObject([{ sequence: 0, rttUs: Number.NaN }]);
  });

  test('a program that says nothing loses nothing', () => {
    const { results, line, tracker } = createTracker();
    line(reply(1, 5000, 300), 5000);
    tracker.poll(60_000_000);
    expect(results).toHaveLength(1);
  });
});

test('a new program counts from 1 again; we go on, and wait for none of the old ones', () => {
  const { results, line, tracker } = createTracker();
  line(reply(1, 1000, 300), 1000);
  line(outstanding(2, 400_000), 400_000);
  tracker.restart(timing);
  line(reply(1, 600_000, 300), 600_000);
  tracker.poll(10_000_000);
  expect(results.map(({ sequence }) => sequence)).toEqual([0, 2]);
});

test('every probe has one fate, whatever is lost or late, over more probes than the packets can count', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 100, max: 900_000 }) }, fc.constant(Number.NaN)),
        {
          minLength: 1,
          maxLength: 60,
        },
      ),
      fc.integer({ min: 1, max: 70_000 }),
      (roundTripsUs, before) => {
        const { results, line, tracker } = createTracker();
        for (let i = 1; i < before; i += 30_000) line(reply(i % 65_536, 0, 100), 0);
        line(reply(before % 65_536, 0, 100), 0);
        const base = results.at(-1)?.sequence ?? 0;
        results.length = 0;
        const lines: { atUs: number; line: PingLine }[] = [];
        for (const [i, rttUs] of roundTripsUs.entries()) {
          const sentAtUs = 1000 + i * timing.intervalUs;
          const sequence = (before + 1 + i) % 65_536;
          const atUs = sentAtUs + rttUs;
          if (!Number.isNaN(rttUs)) lines.push({ atUs, line: reply(sequence, atUs, rttUs) });
          if (!(rttUs <= timing.intervalUs)) {
            const nextUs = sentAtUs + timing.intervalUs;
            lines.push({ atUs: nextUs, line: outstanding(sequence, nextUs) });
          }
        }
        for (const { atUs, line: text } of lines.sort((a, b) => a.atUs - b.atUs)) {
          tracker.poll(atUs);
          line(text, atUs);
        }
        tracker.poll(1e9);
        const found = results.sort((a, b) => a.sequence - b.sequence);
        expect(found.map(({ sequence }) => sequence - base)).toEqual(roundTripsUs.map((_, i) => i + 1));
        expect(found.map(({ rttUs }) => rttUs)).toEqual(roundTripsUs);
        expect(found.map(({ sentAtUs }) => sentAtUs)).toEqual(
          roundTripsUs.map((_, i) => 1000 + i * timing.intervalUs),
        );
      },
    ),
    { numRuns: 200 },
  );
});
