import type { Log } from '../base/log.ts';
import type { DriverTuning, Match } from '../usbnet/minidriver.ts';
import type { Transport } from '../usbnet/transport.ts';
import { DataPath } from './data-path.ts';
import { EventLoopLag } from './event-loop-lag.ts';
import type { LinuxFiles } from './linux-files.ts';
import type { NotReturned, OpenedDevice } from './opened-device.ts';
import type { SessionLoop } from './session-loop.ts';
import { TapLink } from './tap-link.ts';
import { threadPriority } from './thread-priority.ts';

/** Drivers that collect packets send as soon as no more are at hand: our timers are too coarse for anything finer. */
export const endOfBurst: DriverTuning = { txTimerUs: 0 };

export interface DriveOptions {
  readonly transport: Transport;
  readonly match: Match;
  readonly loop: SessionLoop;
  readonly log: Log;
  /** What waits for the device's node, and is to wait for a TAP interface, too; absent: each for itself. */
  readonly linux?: LinuxFiles | undefined;
  /** The transport has reported something: the loop is to look at its parts soon. */
  readonly wake: () => void;
  /** Gives the device back. */
  readonly giveBack: () => Promise<readonly NotReturned[]>;
}

/** An open USB device that our own stack drives, whatever moves its bytes. */
export function drive(options: DriveOptions): Pick<OpenedDevice, 'loop' | 'createPath' | 'close'> {
  const { transport, match, loop, log, wake } = options;
  const lag = new EventLoopLag();
  const restorePriority = threadPriority.hold();
  let tap: TapLink | undefined;
  return {
    loop,
    createPath: (measurement) => {
      const name = measurement.settings.tap;
      tap =
        name === undefined ? undefined : TapLink.open(name, log, (action) => loop.run(action), options.linux);
      return new DataPath({ ...measurement, transport, match, tuning: endOfBurst, lag, log, wake, tap });
    },
    close: () => {
      lag.close();
      restorePriority();
      tap?.close();
      return options.giveBack();
    },
  };
}
