import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Dql, DqlAccountingError, dqlMaxLimit, dqlMaxObject } from '../../../src/bql/dql.ts';
import { ReferenceDql } from './reference-dql.ts';

const noSlack = 4_294_967_295;
const twoTo32 = 2 ** 32;

/** All that can be seen of a DQL. */
function stateOf(dql: Dql): Readonly<Record<string, number>> {
  return {
    numQueued: dql.numQueued,
    numCompleted: dql.numCompleted,
    limit: dql.limit,
    adjLimit: dql.adjLimit,
    avail: dql.avail,
    prevOvlimit: dql.prevOvlimit,
    prevNumQueued: dql.prevNumQueued,
    prevLastObjectCount: dql.prevLastObjectCount,
    lastObjectCount: dql.lastObjectCount,
    lowestSlack: dql.lowestSlack,
    slackStart: dql.slackStartTicks,
    inflight: dql.inflight,
    stallCount: dql.stallCount,
    stallMax: dql.stallMaxTicks,
  };
}

/** Lets both counters run on by `bytes`, and leaves everything else as on a new queue with that limit. */
function advanceCounters(dql: Dql, bytes: number, limit: number): void {
  dql.minLimit = limit;
  dql.maxLimit = limit;
  for (let left = bytes; left > 0; left -= dqlMaxObject) {
    const count = Math.min(left, dqlMaxObject);
    dql.queued(count, 0);
    dql.completed(count, 0);
  }
  // An empty object, so that the size of the last one is forgotten too.
  dql.queued(0, 0);
  dql.completed(0, 0);
  dql.completed(0, 0);
  dql.minLimit = 0;
  dql.maxLimit = dqlMaxLimit;
}

function startAt(options: { readonly limit: number; readonly count?: number }): Dql {
  const dql = new Dql({ holdTicks: 1000 });
  advanceCounters(dql, options.count ?? 0, options.limit);
  return dql;
}

describe('the vectors of spec 1.3', () => {
  // Operation, tick, then: num_queued num_completed limit adj_limit avail prev_ovlimit prev_num_queued
  // prev_last_obj_cnt lowest_slack slack_start.
  const vectors: readonly (readonly [string, () => Dql, readonly string[]])[] = [
    [
      'V1: cold start, one frame at a time, then two outstanding',
      () => new Dql({ holdTicks: 1000 }),
      [
        'queued(1522) @0 -> 1522 0 0 0 -1522 0 0 0 MAX 0',
        'completed(1522) @0 -> 1522 1522 1522 3044 1522 0 1522 1522 MAX 0',
        'queued(1522) @1 -> 3044 1522 1522 3044 0 0 1522 1522 MAX 0',
        'queued(1522) @1 -> 4566 1522 1522 3044 -1522 0 1522 1522 MAX 0',
        'completed(1522) @2 -> 4566 3044 1522 4566 0 1522 4566 1522 MAX 0',
        'queued(1522) @2 -> 6088 3044 1522 4566 -1522 1522 4566 1522 MAX 0',
        'completed(1522) @3 -> 6088 4566 3044 7610 1522 0 6088 1522 MAX 3',
        'queued(1522) @3 -> 7610 4566 3044 7610 0 0 6088 1522 MAX 3',
        'completed(1522) @4 -> 7610 6088 3044 9132 1522 0 7610 1522 MAX 3',
        'completed(1522) @5 -> 7610 7610 3044 10654 3044 0 7610 1522 MAX 3',
      ],
    ],
    [
      'V2: steady state, slack is measured and removed after the hold time',
      () => startAt({ limit: 9000 }),
      [
        'queued(3000) @0 -> 3000 0 9000 9000 6000 0 0 0 MAX 0',
        'queued(3000) @0 -> 6000 0 9000 9000 3000 0 0 0 MAX 0',
        'queued(3000) @0 -> 9000 0 9000 9000 0 0 0 0 MAX 0',
        'completed(3000) @10 -> 9000 3000 9000 12000 3000 0 9000 3000 MAX 0',
        'queued(3000) @10 -> 12000 3000 9000 12000 0 0 9000 3000 MAX 0',
        'completed(3000) @20 -> 12000 6000 9000 15000 3000 0 12000 3000 3000 0',
        'queued(3000) @20 -> 15000 6000 9000 15000 0 0 12000 3000 3000 0',
        'completed(3000) @500 -> 15000 9000 9000 18000 3000 0 15000 3000 3000 0',
        'queued(3000) @500 -> 18000 9000 9000 18000 0 0 15000 3000 3000 0',
        'completed(3000) @1000 -> 18000 12000 9000 21000 3000 0 18000 3000 3000 0',
        'queued(3000) @1000 -> 21000 12000 9000 21000 0 0 18000 3000 3000 0',
        'completed(3000) @1001 -> 21000 15000 6000 21000 0 0 21000 3000 MAX 1001',
        'queued(3000) @1001 -> 24000 15000 6000 21000 -3000 0 21000 3000 MAX 1001',
        'completed(3000) @1002 -> 24000 18000 6000 24000 0 3000 24000 3000 0 1001',
      ],
    ],
    [
      'V3: a completion of ten frames raises the limit, over-limit is carried',
      () => startAt({ limit: 3044 }),
      [
        'queued(1522) @0 -> 1522 0 3044 3044 1522 0 0 0 MAX 0',
        'queued(1522) @0 -> 3044 0 3044 3044 0 0 0 0 MAX 0',
        'queued(1522) @0 -> 4566 0 3044 3044 -1522 0 0 0 MAX 0',
        'completed(4566) @1 -> 4566 4566 7610 12176 7610 0 4566 1522 MAX 1',
        'queued(1522) @1 -> 6088 4566 7610 12176 6088 0 4566 1522 MAX 1',
        'queued(1522) @1 -> 7610 4566 7610 12176 4566 0 4566 1522 MAX 1',
        'queued(1522) @1 -> 9132 4566 7610 12176 3044 0 4566 1522 MAX 1',
        'queued(1522) @1 -> 10654 4566 7610 12176 1522 0 4566 1522 MAX 1',
        'queued(1522) @1 -> 12176 4566 7610 12176 0 0 4566 1522 MAX 1',
        'completed(7610) @2 -> 12176 12176 7610 19786 7610 0 12176 1522 MAX 1',
        'queued(7610) @2 -> 19786 12176 7610 19786 0 0 12176 1522 MAX 1',
        'queued(1522) @2 -> 21308 12176 7610 19786 -1522 0 12176 1522 MAX 1',
        'completed(1522) @3 -> 21308 13698 7610 21308 0 1522 21308 1522 MAX 1',
        'completed(7610) @4 -> 21308 21308 9132 30440 9132 0 21308 1522 MAX 4',
      ],
    ],
    [
      'V4: the counters wrap at 2^32',
      () => startAt({ limit: 3000, count: twoTo32 - 1000 }),
      [
        'queued(1500) @0 -> 500 4294966296 3000 2000 1500 0 4294966296 0 MAX 0',
        'queued(1500) @0 -> 2000 4294966296 3000 2000 0 0 4294966296 0 MAX 0',
        'completed(1500) @1 -> 2000 500 3000 3500 1500 0 2000 1500 MAX 0',
        'queued(1500) @1 -> 3500 500 3000 3500 0 0 2000 1500 MAX 0',
        'completed(3000) @2 -> 3500 3500 3000 6500 3000 0 3500 1500 MAX 0',
        'completed(1) @3 -> 3500 3500 3000 6500 3000 0 3500 1500 MAX 0 BUG',
      ],
    ],
    [
      'V5: limit_min and limit_max, and a reset that leaves adj_limit',
      () => new Dql({ holdTicks: 1000, minLimit: 4000, maxLimit: 5000 }),
      [
        'reset @0 -> 0 0 4000 0 0 0 0 0 MAX 0',
        'queued(1000) @0 -> 1000 0 4000 0 -1000 0 0 0 MAX 0',
        'completed(1000) @1 -> 1000 1000 4000 5000 4000 0 1000 1000 MAX 0',
        'queued(6000) @1 -> 7000 1000 4000 5000 -2000 0 1000 1000 MAX 0',
        'completed(6000) @2 -> 7000 7000 5000 12000 5000 0 7000 6000 MAX 2',
        'reset @3 -> 0 0 4000 12000 12000 0 0 0 MAX 3',
        'queued(100) @3 -> 100 0 4000 12000 11900 0 0 0 MAX 3',
      ],
    ],
  ];

  function applyText(dql: Dql, operation: string, now: number): void {
    const [, name, count] = /^(\w+)(?:\((\d+)\))?$/.exec(operation) ?? [];
    if (name === 'queued') dql.queued(Number(count), now);
    else if (name === 'completed') dql.completed(Number(count), now);
    else dql.reset(now);
  }

  test.each(vectors)('%s', (_name, make, rows) => {
    const dql = make();
    for (const row of rows) {
      const [operation = '', at = '', , ...cells] = row.split(' ');
      const isFatal = cells.at(-1) === 'BUG';
      if (isFatal) cells.pop();
      const now = Number(at.slice(1));
      if (isFatal) expect(() => applyText(dql, operation, now)).toThrow(DqlAccountingError);
      else applyText(dql, operation, now);
      const shown = [
        dql.numQueued,
        dql.numCompleted,
        dql.limit,
        dql.adjLimit,
        dql.avail,
        dql.prevOvlimit,
        dql.prevNumQueued,
        dql.prevLastObjectCount,
        dql.lowestSlack,
        dql.slackStartTicks,
      ];
      expect(shown, row).toEqual(cells.map((cell) => (cell === 'MAX' ? noSlack : Number(cell))));
    }
  });
});

describe('what a user of it can count on', () => {
  test('a new queue holds nothing, and stops after its first byte', () => {
    const dql = new Dql({ holdTicks: 1000 });
    expect(stateOf(dql)).toMatchObject({ limit: 0, adjLimit: 0, avail: 0, inflight: 0, stallCount: 0 });
    expect(dql.maxLimit).toBe(1_879_048_192);
    dql.queued(1, 0);
    expect(dql.avail).toBe(-1);
  });

  test('with one-frame completions and a full qdisc the limit settles at two frames, three in flight at most', () => {
    const dql = new Dql({ holdTicks: 1000 });
    const frame = 1514;
    let peak = 0;
    for (let now = 0; now < 20_000; now++) {
      while (dql.avail >= 0) dql.queued(frame, now);
      peak = Math.max(peak, dql.inflight);
      dql.completed(frame, now);
    }
    expect(dql.limit).toBe(2 * frame);
    expect(peak).toBe(3 * frame);
  });

  test('an object that is too large is not counted at all', () => {
    const dql = new Dql({ holdTicks: 1000 });
    dql.queued(10, 0);
    const before = stateOf(dql);
    expect(dql.queued(dqlMaxObject + 1, 0)).toBe(false);
    expect(stateOf(dql)).toEqual(before);
    expect(dql.queued(dqlMaxObject, 0)).toBe(true);
    expect(dql.inflight).toBe(dqlMaxObject + 10);
  });

  test('the hold time is strict: slack is not removed at its end but one tick later', () => {
    for (const [now, limit] of [
      [1000, 9000],
      [1001, 6000],
    ] as const) {
      const dql = startAt({ limit: 9000 });
      for (let i = 0; i < 3; i++) dql.queued(3000, 0);
      dql.completed(3000, 0);
      dql.queued(3000, 0);
      dql.completed(3000, now);
      expect(dql.limit).toBe(limit);
    }
  });

  test('the largest limit is kept to, also where the growth goes beyond 2^31 and 2^32', () => {
    const dql = startAt({ limit: dqlMaxLimit });
    for (let i = 0; i < 15; i++) dql.queued(dqlMaxObject, 0);
    dql.completed(8 * dqlMaxObject, 1);
    dql.completed(7 * dqlMaxObject, 2);
    expect(dql.limit).toBe(dqlMaxLimit);
  });

  test('a limit that is written counts from the next completion on', () => {
    const dql = new Dql({ holdTicks: 1000 });
    dql.queued(1000, 0);
    dql.limit = 50_000;
    expect(dql.avail).toBe(-1000);
    dql.completed(1000, 1);
    expect(dql.adjLimit).toBe(51_000);
  });

  test('a reset keeps adj_limit, the settings and what is known of stalls', () => {
    const dql = new Dql({ holdTicks: 1000, minLimit: 700 });
    dql.setStallThreshold(10, 0);
    dql.queued(5000, 5);
    dql.completed(5000, 100);
    const { adjLimit, stallMaxTicks } = dql;
    expect(dql.stallCount).toBe(1);
    dql.queued(1, 100);
    dql.reset(200);
    expect(stateOf(dql)).toEqual({
      numQueued: 0,
      numCompleted: 0,
      limit: 700,
      adjLimit,
      avail: adjLimit,
      prevOvlimit: 0,
      prevNumQueued: 0,
      prevLastObjectCount: 0,
      lastObjectCount: 0,
      lowestSlack: noSlack,
      slackStart: 200,
      inflight: 0,
      stallCount: 1,
      stallMax: stallMaxTicks,
    });
    expect(dql.stallThresholdTicks).toBe(10);
  });
});

describe('stall detection', () => {
  /** A DQL that looks for stalls of 20 ticks or more; its last completion was at tick 1000. */
  function watched(): Dql {
    const dql = new Dql({ holdTicks: 1000, nowTicks: 1000 });
    dql.setStallThreshold(20, 1000);
    return dql;
  }

  test('off: nothing is a stall', () => {
    const dql = new Dql({ holdTicks: 1000 });
    dql.queued(100, 0);
    dql.completed(100, 200);
    expect(dql.stallCount).toBe(0);
  });

  test.each([
    ['queued early, done after the threshold', 1001, 1020, 1, 19],
    ['queued half the threshold before', 1010, 1020, 1, 10],
    ['queued less than half the threshold before', 1011, 1020, 0, 0],
    ['done a tick before the threshold', 1001, 1019, 0, 0],
    ['queued in the tick of the last completion', 1000, 1100, 0, 0],
    ['a long one', 1001, 1200, 1, 199],
    ['a very long one', 1001, 3001, 1, 2000],
    ['one of which only the low 16 bits are kept', 1001, 71_001, 1, 70_000 - 65_536],
  ])('%s', (_name, queuedAt, doneAt, stalls, longest) => {
    const dql = watched();
    dql.queued(100, queuedAt);
    dql.completed(50, doneAt);
    expect(dql.stallCount).toBe(stalls);
    expect(dql.stallMaxTicks).toBe(longest);
  });

  test('the longest stall is kept, until it is cleared', () => {
    const dql = watched();
    dql.queued(100, 1001);
    dql.completed(1, 1101);
    dql.queued(100, 1102);
    dql.completed(1, 1152);
    expect(dql.stallCount).toBe(2);
    expect(dql.stallMaxTicks).toBe(100);
    dql.clearStallMax();
    expect(dql.stallMaxTicks).toBe(0);
    expect(dql.stallCount).toBe(2);
  });

  test('the history reaches back four words of 64 ticks; what was queued before it is forgotten', () => {
    const dql = watched();
    dql.queued(100, 1001);
    // 1001 is in word 15; word 19 takes its place.
    dql.queued(100, 19 * 64);
    dql.completed(1, 19 * 64 + 5);
    expect(dql.stallCount).toBe(0);
  });

  test('turned on in the middle of a run: what happened before is no stall', () => {
    const dql = new Dql({ holdTicks: 1000 });
    dql.queued(100, 1);
    dql.setStallThreshold(20, 500);
    dql.completed(50, 519);
    expect(dql.stallCount).toBe(0);
    dql.queued(100, 520);
    dql.completed(50, 560);
    expect(dql.stallCount).toBe(1);
    expect(dql.stallMaxTicks).toBe(40);
  });
});

type Operation =
  | { readonly kind: 'queue'; readonly bytes: number }
  | { readonly kind: 'complete'; readonly share: number }
  | { readonly kind: 'wait'; readonly ticks: number }
  | { readonly kind: 'reset' }
  | { readonly kind: 'limit'; readonly bytes: number }
  | { readonly kind: 'bounds'; readonly min: number; readonly max: number }
  | { readonly kind: 'stall-threshold'; readonly ticks: number };

const sizes = fc.oneof(
  fc.integer({ min: 0, max: 20_000 }),
  fc.constantFrom(1514, 16_384, dqlMaxObject, dqlMaxObject + 1),
);
const traffic = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('queue' as const), bytes: sizes }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('complete' as const),
      share: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ticks: fc.oneof(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 1500 })),
    }),
  },
);
const anything: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 20, arbitrary: traffic },
  { weight: 1, arbitrary: fc.constant({ kind: 'reset' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('limit' as const),
      bytes: fc.integer({ min: 0, max: dqlMaxLimit }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.integer({ min: 0, max: 60_000 }), fc.integer({ min: 0, max: 60_000 }))
      .map(([a, b]) => ({ kind: 'bounds' as const, min: Math.min(a, b), max: Math.max(a, b) })),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('stall-threshold' as const),
      ticks: fc.constantFrom(0, 4, 17, 128),
    }),
  },
);

/** Applies an operation and returns the tick after it. */
function apply(dql: Dql, operation: Operation, now: number): number {
  switch (operation.kind) {
    case 'queue':
      dql.queued(operation.bytes, now);
      return now;
    case 'complete':
      dql.completed(Math.floor(dql.inflight * operation.share), now);
      return now;
    case 'wait':
      return now + operation.ticks;
    case 'reset':
      dql.reset(now);
      return now;
    case 'limit':
      dql.limit = operation.bytes;
      return now;
    case 'bounds':
      dql.minLimit = operation.min;
      dql.maxLimit = operation.max;
      return now;
    case 'stall-threshold':
      dql.setStallThreshold(operation.ticks, now);
      return now;
  }
}

function applyToReference(dql: ReferenceDql, operation: Operation, now: number, doneBytes: number): void {
  const at = BigInt(now);
  switch (operation.kind) {
    case 'queue':
      dql.queued(BigInt(operation.bytes), at);
      break;
    case 'complete':
      dql.completed(BigInt(doneBytes), at);
      break;
    case 'reset':
      dql.reset(at);
      break;
    case 'limit':
      dql.limit = BigInt(operation.bytes);
      break;
    case 'bounds':
      dql.minLimit = BigInt(operation.min);
      dql.maxLimit = BigInt(operation.max);
      break;
    case 'stall-threshold':
      dql.setStallThreshold(BigInt(operation.ticks), at);
      break;
    default:
      break;
  }
}

function stateOfReference(dql: ReferenceDql): Readonly<Record<string, number>> {
  return {
    numQueued: Number(dql.numQueued),
    numCompleted: Number(dql.numCompleted),
    limit: Number(dql.limit),
    adjLimit: Number(dql.adjLimit),
    avail: Number(dql.avail),
    prevOvlimit: Number(dql.prevOvlimit),
    prevNumQueued: Number(dql.prevNumQueued),
    prevLastObjectCount: Number(dql.prevLastObjectCount),
    lastObjectCount: Number(dql.lastObjectCount),
    lowestSlack: Number(dql.lowestSlack),
    slackStart: Number(dql.slackStart),
    inflight: Number(dql.inflight),
    stallCount: Number(dql.stallCount),
    stallMax: Number(dql.stallMax),
  };
}

describe('properties', () => {
  test('whatever is done, the state is that of the algorithm as it is written down', () => {
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 120 }), (operations) => {
        const dql = new Dql({ holdTicks: 1000 });
        const reference = new ReferenceDql(1000);
        let now = 0;
        for (const operation of operations) {
          const doneBytes = operation.kind === 'complete' ? Math.floor(dql.inflight * operation.share) : 0;
          const next = apply(dql, operation, now);
          applyToReference(reference, operation, now, doneBytes);
          now = next;
          expect(stateOf(dql)).toEqual(stateOfReference(reference));
        }
      }),
      { numRuns: 400 },
    );
  });

  test('the limit stays between its bounds, and adj_limit is limit plus num_completed after each completion', () => {
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 150 }), (operations) => {
        const dql = new Dql({ holdTicks: 100 });
        let now = 0;
        for (const operation of operations) {
          now = apply(dql, operation, now);
          if (operation.kind !== 'complete') continue;
          expect(dql.limit).toBeGreaterThanOrEqual(dql.minLimit);
          expect(dql.limit).toBeLessThanOrEqual(dql.maxLimit);
          expect(dql.adjLimit).toBe((dql.limit + dql.numCompleted) % twoTo32);
        }
      }),
    );
  });

  test('completing more than is in flight throws, and changes nothing', () => {
    fc.assert(
      fc.property(
        fc.array(anything, { maxLength: 60 }),
        fc.integer({ min: 1, max: 1e6 }),
        (operations, excess) => {
          const dql = new Dql({ holdTicks: 1000 });
          let now = 0;
          for (const operation of operations) now = apply(dql, operation, now);
          const before = stateOf(dql);
          expect(() => dql.completed(dql.inflight + excess, now + 5000)).toThrow(DqlAccountingError);
          expect(stateOf(dql)).toEqual(before);
          // Nor later: the completion that is right still gives what it would have given.
          const twin = new Dql({ holdTicks: 1000 });
          let twinNow = 0;
          for (const operation of operations) twinNow = apply(twin, operation, twinNow);
          dql.completed(dql.inflight, now + 6000);
          twin.completed(twin.inflight, twinNow + 6000);
          expect(stateOf(dql)).toEqual(stateOf(twin));
        },
      ),
    );
  });

  test('counters that start just below 2^32 give the same limits as those that start at 0', () => {
    fc.assert(
      fc.property(
        fc.array(traffic, { maxLength: 120 }),
        fc.integer({ min: 1, max: 100_000 }),
        fc.integer({ min: 0, max: 40_000 }),
        (operations, below, limit) => {
          const plain = startAt({ limit });
          const wrapping = startAt({ limit, count: twoTo32 - below });
          let now = 0;
          for (const operation of operations) {
            apply(plain, operation, now);
            now = apply(wrapping, operation, now);
            const expected = stateOf(plain);
            const shift = twoTo32 - below;
            expect(stateOf(wrapping)).toEqual({
              ...expected,
              numQueued: (plain.numQueued + shift) % twoTo32,
              numCompleted: (plain.numCompleted + shift) % twoTo32,
              adjLimit: (plain.adjLimit + shift) % twoTo32,
              prevNumQueued: (plain.prevNumQueued + shift) % twoTo32,
            });
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  test('a sender that stops when avail is negative has no more in flight than the limit and its last object', () => {
    fc.assert(
      fc.property(fc.array(traffic, { maxLength: 200 }), (operations) => {
        const dql = new Dql({ holdTicks: 50 });
        let now = 0;
        for (const operation of operations) {
          if (operation.kind === 'queue' && (dql.avail < 0 || operation.bytes > dqlMaxObject)) continue;
          now = apply(dql, operation, now);
          if (operation.kind === 'queue') {
            expect(dql.inflight).toBeLessThanOrEqual(dql.limit + operation.bytes);
          }
        }
      }),
    );
  });
});
