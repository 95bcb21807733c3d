import { AppError, exitCodes } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { formatDuration } from '../../base/units.ts';
import { FarTap } from '../../engine/far-tap.ts';
import { monotonicClock } from '../../engine/monotonic-clock.ts';
import { threadPriority } from '../../engine/thread-priority.ts';
import { catalogue, findPersonality } from '../../sim/catalogue.ts';
import type { SimPersonality } from '../../sim/personality.ts';
import { SimUsbipExports } from '../../sim/usbip-exports.ts';
import type { UsbipEvent } from '../usbip/usbip-connection.ts';
import { startUsbipHost } from '../usbip/usbip-host.ts';
import type { Command } from './command.ts';
import { type Output, table } from './output.ts';

export interface ServeUsbipOptions {
  readonly devices: readonly string[];
  readonly host: string;
  readonly port: number;
  /** The memory between USB and link of every device, bytes; absent: as the device has it. */
  readonly fifo?: number;
  /** A TAP interface at the far end of the one device's link. */
  readonly farTap?: string;
  readonly farNetns?: string;
  readonly json: boolean;
}

/** Of what is left to chance in the devices: the same from one start to the next. */
const seed = 1;

/**
 * `queuescope serve-usbip`: virtual devices for other machines' drivers, until it is interrupted. With `--json` a line of
 * type `listening`, and then one for each device that is taken or given back.
 */
export const serveUsbip: Command<ServeUsbipOptions> = async (context, options) => {
  const { output } = context;
  const { fifo } = options;
  const exports = new SimUsbipExports(
    personalitiesOf(options.devices).map((each) =>
      fifo === undefined ? each : { ...each, fifoBytes: fifo },
    ),
    seed,
  );
  const farTap = openFarTap(exports, options, context.log);
  // What a device does late, its driver takes for the link's doing.
  const restorePriority = threadPriority.hold();
  const host = await startUsbipHost({
    exports,
    onDevice: farTap === undefined ? undefined : (device, run) => farTap.join(device, run),
    host: options.host,
    port: options.port,
    clock: monotonicClock,
    log: context.log,
    onEvent: (event) => {
      if (options.json) output.json(event);
      else output.note(describeEvent(event));
    },
  });
  tellDevices(output, exports, host.host, host.port, options.json);
  if (!context.interrupted.aborted) {
    await new Promise<void>((resolve) => {
      context.interrupted.addEventListener('abort', () => resolve());
    });
  }
  await host.close();
  farTap?.close();
  restorePriority();
  return exitCodes.ok;
};

/** @throws AppError `usage` where it would have to be at more than one place */
function openFarTap(exports: SimUsbipExports, options: ServeUsbipOptions, log: Log): FarTap | undefined {
  if (options.farTap === undefined) return undefined;
  if (exports.personalities.size !== 1) {
    throw new AppError('usage', '--far-tap is for one device', { remedy: 'Name the device.' });
  }
  return FarTap.open({ name: options.farTap, namespace: options.farNetns }, log);
}

/** @throws AppError `no-such-device` */
function personalitiesOf(names: readonly string[]): readonly SimPersonality[] {
  if (names.length === 0) return catalogue;
  return names.map((name) => {
    const personality = findPersonality(name.replace(/^sim:/, ''));
    if (personality === undefined) {
      throw new AppError('no-such-device', `there is no virtual device ${name}`, {
        details: { deviceId: name },
        remedy: `There are ${catalogue.map((each) => each.name).join(', ')}.`,
      });
    }
    return personality;
  });
}

function tellDevices(
  output: Output,
  exports: SimUsbipExports,
  host: string,
  port: number,
  json: boolean,
): void {
  const devices = Array.from(exports.personalities, ([busId, personality]) => ({
    busId,
    id: `sim:${personality.name}`,
    name: personality.product,
    speed: personality.speed,
    description: personality.description,
  }));
  if (json) {
    output.json({ type: 'listening', host, port, devices });
    return;
  }
  output.line(
    table([
      ['BUS ID', 'DEVICE', 'SPEED', 'WHAT IT IS'],
      ...devices.map(({ busId, id, speed, description }) => [busId, id, speed, description]),
    ]),
  );
  const [first] = devices;
  output.note(
    `Served at ${host} port ${port}. On a Linux machine that reaches it, as root:\n` +
      `  modprobe vhci-hcd && usbip --tcp-port ${port} attach --remote ${host} --busid ${first?.busId ?? '1-1'}`,
  );
}

function describeEvent(event: UsbipEvent): string {
  if (event.type === 'attached') return `${event.busId} was taken by ${event.peer}`;
  return (
    `${event.busId} was given back after ${event.seconds.toFixed(1)} s: ${event.completed} transfers done,` +
    ` ${event.failed} failed, ${event.unlinked} taken back;` +
    ` later than due by ${formatDuration(event.lateP50Us)} (median), at most ${formatDuration(event.lateMaxUs)}`
  );
}
