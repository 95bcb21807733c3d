import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SleepWatch } from '../../../src/engine/sleep-watch.ts';

let sinceBootMs = 1_000_000;
let awakeMs = 5;
let watch: SleepWatch;
const slept: number[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  slept.length = 0;
  watch = new SleepWatch({ sinceBootMs: () => sinceBootMs, awakeMs: () => awakeMs });
  watch.onWake((ms) => slept.push(ms));
});
afterEach(() => {
  watch.close();
  vi.useRealTimers();
});

function pass(ms: number, asleepMs = 0): void {
  sinceBootMs += ms + asleepMs;
  awakeMs += ms;
  vi.advanceTimersByTime(ms);
}

test('time that passes is no sleep, nor are clocks that are read at slightly different times', () => {
  for (let i = 0; i < 100; i++) {
    pass(1000);
    sinceBootMs += i % 2 === 0 ? 20 : -20;
  }
  expect(slept).toEqual([]);
});

test('a sleep is told once, with its length, a second after waking at the latest', () => {
  pass(5000);
  pass(1000, 3_600_000);
  expect(slept).toEqual([3_600_000]);
  pass(5000);
  expect(slept).toHaveLength(1);
});

test('a clock that is a little fast does not add up to a sleep', () => {
  for (let i = 0; i < 10_000; i++) pass(1000, 1);
  expect(slept).toEqual([]);
});

test('nothing is told once it is closed', () => {
  watch.close();
  pass(2000, 60_000);
  expect(slept).toEqual([]);
});
