import { afterEach, describe, expect, test } from 'vitest';
import { type Clock, neverUs, type Polled } from '../../../src/base/clock.ts';
import { PacedLoop } from '../../../src/engine/paced-loop.ts';
import { type PacedTicks, PromptTicks } from '../../../src/engine/paced-ticks.ts';
import { monotonicClock } from '../../../src/engine/monotonic-clock.ts';

/** Ticks when the test says so. */
class HandTicks implements PacedTicks {
  tick: () => void = () => {};
  readonly dueInUs: number[] = [];
  stopped = false;

  start(tick: () => void): void {
    this.tick = tick;
  }
  caughtUp(dueInUs: number): void {
    this.dueInUs.push(dueInUs);
  }
  stop(): void {
    this.stopped = true;
  }
}

class HandClock implements Clock {
  us = 1_000_000;

  nowUs(): number {
    return this.us;
  }
}

/** Is due at the given times. */
class Appointments implements Polled {
  readonly #timesUs: number[];
  readonly kept: number[] = [];

  constructor(...timesUs: readonly number[]) {
    this.#timesUs = [...timesUs];
  }
  add(atUs: number): void {
    this.#timesUs.push(atUs);
  }
  pollAtUs(): number {
    return this.#timesUs[0] ?? neverUs;
  }
  poll(nowUs: number): void {
    if (nowUs < this.pollAtUs()) return;
    this.#timesUs.shift();
    this.kept.push(nowUs);
  }
}

const loops: PacedLoop[] = [];

afterEach(() => {
  for (const loop of loops.splice(0)) loop.close();
});

function loopOf(clock: Clock, ticks: PacedTicks, late: number[] = []): PacedLoop {
  const loop = new PacedLoop(
    clock,
    (error) => {
      throw error;
    },
    ticks,
    (us) => late.push(us),
  );
  loops.push(loop);
  return loop;
}

describe('simulated time that goes along with real time', () => {
  test('everything happens at its own time, however late the tick is, and the lateness is told', () => {
    const clock = new HandClock();
    const ticks = new HandTicks();
    const late: number[] = [];
    const loop = loopOf(clock, ticks, late);
    const part = new Appointments(1_000_300, 1_000_700, 1_020_000);
    loop.add(part);
    clock.us = 1_005_000;
    ticks.tick();
    expect(part.kept).toEqual([1_000_300, 1_000_700]);
    expect(loop.nowUs()).toBe(1_005_000);
    expect(late).toEqual([4700]);
    expect(ticks.dueInUs.at(-1)).toBe(15_000);
  });

  test('what comes from outside finds the simulation at the present time, and sets the next tick', () => {
    const clock = new HandClock();
    const ticks = new HandTicks();
    const loop = loopOf(clock, ticks);
    const part = new Appointments(1_001_000);
    loop.add(part);
    clock.us = 1_002_500;
    const seen: number[] = [];
    loop.run((nowUs) => {
      seen.push(nowUs, ...part.kept);
      part.add(nowUs + 400);
    });
    expect(seen).toEqual([1_002_500, 1_001_000]);
    expect(ticks.dueInUs.at(-1)).toBe(400);
  });

  test('a machine that slept: what was due for longer than a quarter of a second is not made up for', () => {
    const clock = new HandClock();
    const ticks = new HandTicks();
    const loop = loopOf(clock, ticks);
    const part = new Appointments(1_010_000);
    loop.add(part);
    clock.us = 11_000_000;
    ticks.tick();
    expect(part.kept).toEqual([1_010_000]);
    expect(loop.skippedUs).toBe(9_990_000 - 250_000);
    expect(loop.nowUs()).toBe(1_260_000);
  });

  test('time in which nothing was due is not skipped', () => {
    const clock = new HandClock();
    const ticks = new HandTicks();
    const loop = loopOf(clock, ticks);
    loop.add(new Appointments(60_000_000));
    clock.us = 11_000_000;
    loop.run((nowUs) => expect(nowUs).toBe(11_000_000));
    expect(loop.skippedUs).toBe(0);
  });

  test('closed, it does nothing any more', () => {
    const clock = new HandClock();
    const ticks = new HandTicks();
    const loop = loopOf(clock, ticks);
    const part = new Appointments(1_000_100);
    loop.add(part);
    loop.close();
    clock.us = 2_000_000;
    ticks.tick();
    loop.run(() => expect.unreachable());
    expect([part.kept, ticks.stopped, loop.running]).toEqual([[], true, false]);
  });
});

describe('prompt ticks', () => {
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      setTimeout(resolve, ms);
    });

  test('hundreds of appointments, closer together than timers can tell, are kept soon after they are due', async () => {
    const late: number[] = [];
    const loop = loopOf(monotonicClock, new PromptTicks(200), late);
    const startUs = loop.nowUs();
    const times = Array.from({ length: 300 }, (_, i) => startUs + 2000 + 700 * i);
    const part = new Appointments(...times);
    loop.add(part);
    loop.run(() => undefined);
    await pause(400);
    expect(part.kept).toEqual(times);
    const sorted = late.toSorted((a, b) => a - b);
    // On a machine that is busy with other things the worst may be anything.
    expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThan(2000);
  });

  test('a far appointment takes one timer and no turning in circles', async () => {
    let ticked = 0;
    const ticks = new PromptTicks(200);
    ticks.start(() => ticked++);
    ticks.caughtUp(60_000);
    await pause(30);
    expect(ticked).toBe(0);
    await pause(60);
    expect(ticked).toBe(1);
  });

  test('with nothing due, nothing is scheduled', async () => {
    let ticked = 0;
    const ticks = new PromptTicks(200);
    ticks.start(() => ticked++);
    ticks.caughtUp(neverUs);
    await pause(20);
    expect(ticked).toBe(0);
    ticks.caughtUp(100);
    await pause(20);
    expect(ticked).toBe(1);
    ticks.caughtUp(100);
    ticks.stop();
    await pause(20);
    expect(ticked).toBe(1);
  });
});
