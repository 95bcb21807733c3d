import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { EventLoopLag } from '../../../src/engine/event-loop-lag.ts';
import { monotonicClock } from '../../../src/engine/monotonic-clock.ts';

const lag = new EventLoopLag();
afterEach(() => lag.close());

function holdUp(us: number): void {
  const endUs = monotonicClock.nowUs() + us;
  while (monotonicClock.nowUs() < endUs);
}

test('is what held the event loop up, and is told once', async () => {
  expect(lag.takeMaxUs()).toBeNaN();
  await sleep(25);
  lag.takeMaxUs();
  holdUp(80_000);
  await sleep(5);
  // The timer was due within the next 10 ms when the loop was held up.
  expect(lag.takeMaxUs()).toBeGreaterThan(65_000);
  expect(lag.takeMaxUs()).toBeNaN();
});
