import { formatElapsed } from '../../src/base/units.ts';

export interface TimeTick {
  /** Seconds from the right edge, 0 or less. */
  readonly x: number;
  readonly label: string;
}

/**
 * Marks of the time axis. While the view follows, they stand still and count back from now; in a frozen view they stand
 * on round times of the session.
 */
export function timeTicks(
  windowSeconds: number,
  widthPixels: number,
  frozenEdgeUs: number | undefined,
): TimeTick[] {
  const step = timeStep(windowSeconds, widthPixels);
  const ticks: TimeTick[] = [];
  if (frozenEdgeUs === undefined) {
    for (let back = 0; back <= windowSeconds; back += step) {
      ticks.push({ x: -back, label: agoLabel(back, step) });
    }
    return ticks.toReversed();
  }
  const edge = frozenEdgeUs / 1e6;
  const first = Math.ceil((edge - windowSeconds) / step) * step;
  for (let at = first; at <= edge; at += step) {
    if (at >= 0) ticks.push({ x: at - edge, label: formatElapsed(at * 1e6) });
  }
  return ticks;
}

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300] as const;
const labelWidthPixels = 72;

function timeStep(windowSeconds: number, widthPixels: number): number {
  const most = Math.max(2, Math.floor(widthPixels / labelWidthPixels));
  return steps.find((step) => windowSeconds / step <= most && Number.isInteger(windowSeconds / step)) ?? 300;
}

function agoLabel(seconds: number, step: number): string {
  if (seconds === 0) return 'now';
  return step % 60 === 0 ? `−${seconds / 60} min` : `−${seconds} s`;
}
