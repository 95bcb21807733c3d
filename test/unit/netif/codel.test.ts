import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  Codel,
  CodelParameters,
  type CodelQueue,
  codelTime,
  defaultCodelSettings,
  newtonStep,
} from '../../../src/netif/codel.ts';

interface Item {
  readonly atUs: number;
  readonly ecn: boolean;
}

/** A queue that is as long as the test says: what is taken is as old as `ageUs`. */
class OldQueue implements CodelQueue<Item> {
  readonly drops: number[] = [];
  readonly marks: number[] = [];
  backlogBytes = 100_000;
  nowUs = 0;
  ageUs = 50_000;
  ecn = false;
  left = Number.POSITIVE_INFINITY;

  take(): Item | undefined {
    return this.left-- > 0 ? { atUs: this.nowUs - this.ageUs, ecn: this.ecn } : undefined;
  }
  enqueuedAtUs(item: Item): number {
    return item.atUs;
  }
  mark(item: Item): boolean {
    if (item.ecn) this.marks.push(this.nowUs);
    return item.ecn;
  }
  drop(): void {
    this.drops.push(this.nowUs);
  }
}

function run(codel: Codel, queue: OldQueue, untilUs: number, stepUs = 100): void {
  const parameters = new CodelParameters(defaultCodelSettings);
  for (; queue.nowUs < untilUs; queue.nowUs += stepUs) codel.dequeue(queue, parameters, queue.nowUs);
}

/** The step in 64 bits, as the kernel's registers do it. */
function bigNewtonStep(fraction: number, count: number): number {
  const mask = (1n << 64n) - 1n;
  const root = BigInt(fraction) << 16n;
  const square = (root * root) >> 32n;
  const value = (((3n << 32n) - BigInt(count) * square) & mask) >> 2n;
  return Number(((((value * root) & mask) >> 31n) >> 16n) & 0xffffn);
}

test('the Newton step is that of 64-bit arithmetic, bit for bit', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 0xffff }),
      fc.integer({ min: 1, max: 1 << 20 }),
      (fraction, count) => {
        expect(newtonStep(fraction, count)).toBe(bigNewtonStep(fraction, count));
      },
    ),
    { numRuns: 5000 },
  );
});

test('step by step it stays at 1/sqrt(count), but for the first few', () => {
  let fraction = 0xffff;
  let worst = 0;
  for (let count = 2; count < 2000; count++) {
    fraction = newtonStep(fraction, count);
    if (count > 4) worst = Math.max(worst, Math.abs((fraction / 65_536) * Math.sqrt(count) - 1));
  }
  expect(worst).toBeLessThan(0.02);
});

describe('CoDel', () => {
  test('waits an interval above the target, then drops ever faster: an interval by the root of the count', () => {
    const queue = new OldQueue();
    run(new Codel(), queue, 2_000_000);
    const [first = 0, second = 0] = queue.drops;
    expect(first).toBeGreaterThanOrEqual(100_000);
    expect(first).toBeLessThan(100_200);
    expect(second - first).toBeGreaterThanOrEqual(99_900);
    // The times of the schedule itself, computed on its own; a drop is never early and at most one packet late.
    let due = codelTime(first);
    let fraction = 0xffff;
    for (const [index, atUs] of queue.drops.entries()) {
      expect(codelTime(atUs)).toBeGreaterThanOrEqual(due);
      expect(codelTime(atUs) - due).toBeLessThan(codelTime(205));
      if (index > 0) fraction = bigNewtonStep(fraction, index + 1);
      due += Math.floor((codelTime(100_000) * fraction) / 65_536);
    }
    // Sum of 1/sqrt(k) up to n is about 2·sqrt(n): in 1.9 s that is (19/2)² drops.
    expect(queue.drops.length).toBeGreaterThan(80);
    expect(queue.drops.length).toBeLessThan(115);
  });

  test('never drops while the wait is below the target, or with no more than one frame waiting', () => {
    const short = new OldQueue();
    short.ageUs = 4990;
    run(new Codel(), short, 3_000_000);
    expect(short.drops).toEqual([]);
    const one = new OldQueue();
    one.backlogBytes = 1514;
    run(new Codel(), one, 3_000_000);
    expect(one.drops).toEqual([]);
    one.backlogBytes = 1515;
    run(new Codel(), one, 6_000_000);
    expect(one.drops).not.toEqual([]);
  });

  test('one packet below the target starts the interval anew', () => {
    const queue = new OldQueue();
    const codel = new Codel();
    for (let round = 1; round < 20; round++) {
      queue.ageUs = 50_000;
      run(codel, queue, round * 99_000);
      queue.ageUs = 1000;
      run(codel, queue, round * 99_000 + 100);
    }
    expect(queue.drops).toEqual([]);
  });

  test('after a short pause it goes on near the count it had; after a long one with 1', () => {
    for (const pauseUs of [200_000, 3_000_000]) {
      const queue = new OldQueue();
      const codel = new Codel();
      run(codel, queue, 1_500_000);
      const { count } = codel;
      expect(count).toBeGreaterThan(30);
      queue.ageUs = 1000;
      run(codel, queue, 1_500_000 + pauseUs);
      expect(codel.isDropping).toBe(false);
      const before = queue.drops.length;
      queue.ageUs = 50_000;
      while (queue.drops.length === before) run(codel, queue, queue.nowUs + 100);
      if (pauseUs > 1_600_000) expect(codel.count).toBe(1);
      else expect(count - codel.count).toBeLessThan(3);
    }
  });

  test('marks in place of drops, at the same times', () => {
    const dropped = new OldQueue();
    run(new Codel(), dropped, 1_000_000);
    const marked = new OldQueue();
    marked.ecn = true;
    run(new Codel(), marked, 1_000_000);
    expect(marked.drops).toEqual([]);
    expect(marked.marks).toEqual(dropped.drops);
  });

  test('a flow that sends seldom is not above the target between its packets', () => {
    const queue = new OldQueue();
    const codel = new Codel();
    for (let i = 1; i < 50; i++) {
      // Each packet is late because of others, and is alone.
      queue.left = 1;
      run(codel, queue, i * 200_000, 100_000);
    }
    expect(queue.drops).toEqual([]);
  });

  test('a queue that runs empty while it drops ends the dropping', () => {
    const queue = new OldQueue();
    const codel = new Codel();
    run(codel, queue, 300_000);
    expect(codel.isDropping).toBe(true);
    queue.left = 0;
    run(codel, queue, 300_100);
    expect(codel.isDropping).toBe(false);
  });
});

test('time is counted in units of 1,024 ns', () => {
  expect(codelTime(128)).toBe(125);
  expect(codelTime(5000)).toBe(4882);
  expect(codelTime(100_000)).toBe(97_656);
});
