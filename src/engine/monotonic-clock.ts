import { performance } from 'node:perf_hooks';
import type { Clock } from '../base/clock.ts';

/** Microseconds since this process started, monotonic. */
export const monotonicClock: Clock = {
  nowUs() {
    return performance.now() * 1000;
  },
};
