import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { neverUs } from '../../../src/base/clock.ts';
import { type OwnWait, RealLoop } from '../../../src/engine/real-loop.ts';

function fail(error: unknown): never {
  throw error;
}

test('parts that keep one another busy are polled again in the same turn', async () => {
  const loop = new RealLoop({ nowUs: () => 0 }, fail);
  let left = 10;
  loop.add({
    poll: () => {
      left--;
    },
    pollAtUs: () => (left > 0 ? 0 : neverUs),
  });
  await nextTurn();
  expect(left).toBe(0);
  loop.close();
});

test('a turn that takes long gives way to what else has happened, and goes on after it', async () => {
  let nowUs = 0;
  const loop = new RealLoop({ nowUs: () => nowUs }, fail);
  let polls = 0;
  loop.add({
    // Each takes 0.4 ms.
    poll: () => {
      polls++;
      nowUs += 400;
    },
    pollAtUs: () => (polls < 9 ? 0 : neverUs),
  });
  const seen: number[] = [];
  for (let turn = 0; turn < 4; turn++) {
    await nextTurn();
    seen.push(polls);
  }
  expect(seen).toEqual([3, 6, 9, 9]);
  loop.close();
});

test('a part that asks for a turn while it is polled gets none for nothing', async () => {
  const loop = new RealLoop({ nowUs: () => 0 }, fail);
  let looks = 0;
  let isDue = true;
  loop.add({
    poll: () => {
      isDue = false;
      loop.kick();
    },
    pollAtUs: () => {
      looks++;
      return isDue ? 0 : neverUs;
    },
  });
  await nextTurn();
  const before = looks;
  await nextTurn();
  expect([isDue, looks]).toEqual([false, before]);
  loop.close();
});

/** Files on a clock of their own: ready at the times that a test says. A wait takes time, all else none. */
class HandMadeWait implements OwnWait {
  nowUs = 0;
  dueAtUs = neverUs;
  lastReadyUs = Number.NEGATIVE_INFINITY;
  readonly readyAtUs: number[] = [];
  /** What is done when they are ready. */
  handle: () => void = () => {};
  waits: number[] = [];
  /** So often it was left to others. */
  left = 0;
  closed = 0;

  waitBriefly(limitUs: number): boolean {
    this.waits.push(limitUs);
    const next = this.readyAtUs[0] ?? neverUs;
    if (next > this.nowUs + limitUs) {
      this.nowUs += limitUs;
      return false;
    }
    this.readyAtUs.shift();
    this.nowUs = Math.max(this.nowUs, next);
    this.lastReadyUs = this.nowUs;
    this.handle();
    return true;
  }
  waitBehind(): void {
    this.left++;
  }
  close(): void {
    this.closed++;
  }
  /** As if the thread behind had found something. */
  ready(): void {
    this.lastReadyUs = this.nowUs;
    this.handle();
  }
}

function waitingLoop(): { wait: HandMadeWait; loop: RealLoop } {
  const wait = new HandMadeWait();
  return { wait, loop: new RealLoop({ nowUs: () => wait.nowUs }, fail, wait) };
}

test('nobody waits briefly before anything was ready, nor once nothing was for 20 ms', async () => {
  const { wait, loop } = waitingLoop();
  loop.add({ poll: () => {}, pollAtUs: () => neverUs });
  await nextTurn();
  expect(wait.waits).toEqual([]);
  expect(wait.left).toBe(1);

  wait.ready();
  loop.kick();
  for (let i = 0; i < 40; i++) await nextTurn();
  // A millisecond each time, and then it sleeps: no further turn.
  expect(wait.waits).toHaveLength(20);
  expect(wait.nowUs).toBe(20_000);
  expect(wait.left).toBe(2);
  await nextTurn();
  expect(wait.waits).toHaveLength(20);
  loop.close();
  expect(wait.closed).toBe(1);
});

test('a wait ends when something is due, which is then done', async () => {
  const { wait, loop } = waitingLoop();
  const polledAtUs: number[] = [];
  let dueAtUs = 400;
  loop.add({
    poll: (nowUs) => {
      polledAtUs.push(nowUs);
      dueAtUs = nowUs + 300;
    },
    pollAtUs: () => dueAtUs,
  });
  wait.ready();
  await nextTurn();
  expect(polledAtUs).toEqual([400, 700, 1000]);
  loop.close();
});

test('what becomes due by what was ready is done in the same turn, also if it asks for a turn of its own', async () => {
  const { wait, loop } = waitingLoop();
  let received = 0;
  let polled = 0;
  wait.handle = () => {
    received++;
    loop.kick();
  };
  loop.add({ poll: () => polled++, pollAtUs: () => (polled < received ? 0 : neverUs) });
  wait.ready();
  wait.readyAtUs.push(100, 200, 300);
  await nextTurn();
  expect([received, polled]).toEqual([4, 4]);
  loop.close();
});

test('what is ready at the very end of a long turn is dealt with in the next', async () => {
  const { wait, loop } = waitingLoop();
  let received = 0;
  let polled = 0;
  wait.handle = () => received++;
  loop.add({
    poll: () => {
      polled++;
      wait.nowUs += 1000;
    },
    pollAtUs: () => (polled < received ? 0 : neverUs),
  });
  wait.ready();
  wait.readyAtUs.push(0);
  await nextTurn();
  expect([received, polled]).toEqual([2, 1]);
  // Whoever else waits is not to make that wait.
  expect(wait.dueAtUs).toBeLessThanOrEqual(wait.nowUs);
  await nextTurn();
  expect([received, polled]).toEqual([2, 2]);
  loop.close();
});

test("while it waits, Node's own timers and files get their turn", async () => {
  const { wait, loop } = waitingLoop();
  loop.add({ poll: () => {}, pollAtUs: () => neverUs });
  wait.ready();
  await nextTurn();
  let timers = 0;
  setTimeout(() => timers++, 1);
  for (let i = 0; i < 200 && timers === 0; i++) {
    wait.lastReadyUs = wait.nowUs;
    await nextTurn();
    const began = performance.now();
    while (performance.now() - began < 0.1) continue;
  }
  expect(timers).toBe(1);
  loop.close();
});

test('says when it has something to do, so that others that wait end in time', async () => {
  const { wait, loop } = waitingLoop();
  let dueAtUs = 1500;
  const during: number[] = [];
  loop.add({
    poll: () => {
      dueAtUs = neverUs;
      during.push(wait.dueAtUs);
    },
    pollAtUs: () => dueAtUs,
  });
  expect(wait.dueAtUs).toBe(0);
  wait.ready();
  await nextTurn();
  // It has waited its millisecond, and comes back for the timer.
  expect(wait.dueAtUs).toBe(1500);
  loop.kick();
  expect(wait.dueAtUs).toBe(0);
  await nextTurn();
  expect(during).toEqual([neverUs]);
  loop.close();
});

test('what is thrown while it waits ends it, and the wait', async () => {
  const wait = new HandMadeWait();
  const failures: unknown[] = [];
  const loop = new RealLoop({ nowUs: () => wait.nowUs }, (error) => failures.push(error), wait);
  loop.add({ poll: () => {}, pollAtUs: () => neverUs });
  wait.ready();
  wait.handle = () =>
    loop.run(() => {
      throw new Error('a fault of the driver');
    });
  wait.readyAtUs.push(10);
  await nextTurn();
  expect(failures).toEqual([new Error('a fault of the driver')]);
  expect(wait.closed).toBe(1);
  const { waits } = wait;
  await nextTurn();
  expect(wait.waits).toBe(waits);
});
