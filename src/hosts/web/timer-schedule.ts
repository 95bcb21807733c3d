import type { Dispose } from '../../base/emitter.ts';
import type { Schedule } from '../../rpc/schedule.ts';

/** {@link Schedule} by Node's timers; what is scheduled does not keep the process alive. */
export const timerSchedule: Schedule = (delayUs, action) => {
  const timer = setTimeout(action, Math.ceil(delayUs / 1000));
  timer.unref();
  return () => clearTimeout(timer);
};

/** Calls `action` every `intervalMs`; does not keep the process alive. */
export function every(intervalMs: number, action: () => void): Dispose {
  const timer = setInterval(action, intervalMs);
  timer.unref();
  return () => clearInterval(timer);
}
