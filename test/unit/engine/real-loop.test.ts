import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { neverUs } from '../../../src/base/clock.ts';
import { RealLoop } from '../../../src/engine/real-loop.ts';

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
