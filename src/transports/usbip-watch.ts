import type { UsbipListedDevice } from '../wire/usbip.ts';
import type { UsbWatch } from './usb-watch.ts';

/** How often a server is asked: gently, since it may be a small machine. */
export interface UsbipWatchPace {
  readonly pollMs: number;
  /** At most so long between two attempts at a server that does not answer; the wait doubles up to that. */
  readonly longestWaitMs: number;
}

export const usualUsbipWatchPace: UsbipWatchPace = { pollMs: 5000, longestWaitMs: 60_000 };

/**
 * Asks a server for its devices again and again, and tells when the answer is another one than before (no answer being
 * one, too). Does not keep the process alive.
 */
export function watchUsbip(
  fetchList: () => Promise<readonly UsbipListedDevice[]>,
  handleChange: () => void,
  pace: UsbipWatchPace = usualUsbipWatchPace,
): UsbWatch {
  let known: string | undefined;
  let stopped = false;
  let waitMs = pace.pollMs;
  let timer: NodeJS.Timeout | undefined;

  const look = async (): Promise<void> => {
    let now: string;
    try {
      now = JSON.stringify(await fetchList());
      waitMs = pace.pollMs;
    } catch {
      now = 'no answer';
      waitMs = Math.min(2 * waitMs, pace.longestWaitMs);
    }
    if (stopped) return;
    if (known !== undefined && known !== now) handleChange();
    known = now;
    timer = setTimeout(() => void look(), waitMs).unref();
  };
  void look();
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
