import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RateSchedule } from '../../../src/sim/rate-schedule.ts';

describe('a constant rate', () => {
  test('1,538 bytes at 100 Mbit/s take 123.04 us', () => {
    expect(RateSchedule.constant(100e6).finishUs(1000, 1538 * 8)).toBeCloseTo(1123.04, 9);
  });

  test('0 is never', () => {
    expect(RateSchedule.constant(0).finishUs(5, 1)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('steps', () => {
  const schedule = new RateSchedule([
    { fromUs: 0, rateBitsPerSecond: 8e6 },
    { fromUs: 1000, rateBitsPerSecond: 0 },
    { fromUs: 3000, rateBitsPerSecond: 80e6 },
  ]);

  test('the rate in force', () => {
    expect([0, 999, 1000, 2999, 3000, 1e9].map((timeUs) => schedule.rateAt(timeUs))).toEqual([
      8e6, 8e6, 0, 0, 80e6, 80e6,
    ]);
  });

  test('a change in the middle counts for the rest', () => {
    // 100 bytes take 100 us at the first rate, 10 us at the last.
    expect(schedule.finishUs(900, 800)).toBe(1000);
    expect(schedule.finishUs(950, 800)).toBe(3005);
    expect(schedule.finishUs(1500, 800)).toBe(3010);
    expect(schedule.finishUs(5000, 800)).toBe(5010);
  });

  test('a period starts anew', () => {
    const repeating = new RateSchedule(
      [
        { fromUs: 0, rateBitsPerSecond: 8e6 },
        { fromUs: 100, rateBitsPerSecond: 0 },
      ],
      1000,
    );
    expect(repeating.rateAt(5050)).toBe(8e6);
    expect(repeating.rateAt(5100)).toBe(0);
    // 250 bytes: 100 in each of two periods, 50 in the third.
    expect(repeating.finishUs(0, 2000)).toBe(2050);
    expect(repeating.finishUs(10_050, 2000)).toBe(12_100);
  });

  test('a link that stays down never sends', () => {
    const down = new RateSchedule(
      [
        { fromUs: 0, rateBitsPerSecond: 0 },
        { fromUs: 10, rateBitsPerSecond: 0 },
      ],
      20,
    );
    expect(down.finishUs(3, 8)).toBe(Number.POSITIVE_INFINITY);
  });

  test.each([
    ['does not start at 0', [{ fromUs: 1, rateBitsPerSecond: 1 }]],
    ['has a negative rate', [{ fromUs: 0, rateBitsPerSecond: -1 }]],
    [
      'are not in order',
      [
        { fromUs: 0, rateBitsPerSecond: 1 },
        { fromUs: 5, rateBitsPerSecond: 1 },
        { fromUs: 5, rateBitsPerSecond: 1 },
      ],
    ],
    ['does not start at 0', []],
  ])('is refused: %s', (problem, steps) => {
    expect(() => new RateSchedule(steps)).toThrow(problem);
  });
});

test('bits sent one after another take as long as all at once', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 1, max: 5000 }), fc.constantFrom(0, 1e5, 3e6, 1e8)), {
        minLength: 1,
        maxLength: 6,
      }),
      fc.integer({ min: 0, max: 50_000 }),
      fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 20 }),
      (pieces, startUs, parts) => {
        let fromUs = 0;
        const steps = pieces.map(([lastsUs, rateBitsPerSecond]) => {
          const step = { fromUs, rateBitsPerSecond };
          fromUs += lastsUs;
          return step;
        });
        const schedule = new RateSchedule([...steps, { fromUs, rateBitsPerSecond: 1e6 }], fromUs + 1000);
        let atUs = startUs;
        for (const bits of parts) atUs = schedule.finishUs(atUs, bits);
        const whole = schedule.finishUs(
          startUs,
          parts.reduce((sum, bits) => sum + bits, 0),
        );
        // Where the rate is 0 an end on the edge may fall on either side of the gap.
        if (schedule.rateAt(whole - 1e-3) > 0 && schedule.rateAt(whole + 1e-3) > 0) {
          expect(Math.abs(atUs - whole)).toBeLessThan(1e-3);
        }
      },
    ),
  );
});
