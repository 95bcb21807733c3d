import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { OpenRequest, UsbLease } from '../transports/usb-bus.ts';
import type { Match } from '../usbnet/minidriver.ts';
import { drive } from './drive.ts';
import type { LinuxFiles } from './linux-files.ts';
import type { OpenedDevice } from './opened-device.ts';
import { RealLoop } from './real-loop.ts';

export interface DriveLeaseOptions {
  readonly match: Match;
  readonly clock: Clock;
  readonly log: Log;
  /** Told what goes wrong in the loop or the transport later on. */
  readonly fail: (error: unknown) => void;
  /** What waits for the device's node, where the loop is to do that itself; absent: others do. */
  readonly linux?: LinuxFiles | undefined;
  /** Opens the device on its bus. */
  readonly open: (request: OpenRequest) => Promise<UsbLease>;
}

/** Opens a USB device with what its match needs of it, and drives it in real time. @throws AppError as `open` does */
export async function driveLease(
  options: DriveLeaseOptions,
): Promise<Pick<OpenedDevice, 'loop' | 'createPath' | 'close'>> {
  const { match, fail, log } = options;
  const loop = new RealLoop(options.clock, fail, options.linux?.files);
  const lease = await options.open({
    interfaces: [...new Set([match.controlInterface, match.dataInterface])],
    configurationValue: match.configurationValue,
    onHandlerError: (error) => {
      loop.close();
      fail(error);
    },
  });
  return drive({
    transport: lease.transport,
    match,
    loop,
    log,
    linux: options.linux,
    wake: () => loop.kick(),
    giveBack: async () => (await lease.close()).notReturned,
  });
}
