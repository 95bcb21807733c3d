import type { Clock } from '../base/clock.ts';
import { Emitter, type Event } from '../base/emitter.ts';
import { AppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Device } from '../contract/device.ts';
import type { Problem } from '../contract/problem.ts';
import { formatUsbId } from '../minidrivers/described-device.ts';
import type { NetdevDescription } from '../observe/netdev-files.ts';
import { isNetdevName } from '../observe/netdev-files.ts';
import { watchNetdevs } from '../observe/netdev-watch.ts';
import { findLeftLimits, type LeftLimits, restoreLeftLimits } from '../observe/queue-limits.ts';
import type { DeviceSource, ListedDevice } from './device-source.ts';
import { EventLoopLag } from './event-loop-lag.ts';
import { describeQueues, usbSpeedOf } from './netdev-facts.ts';
import { ObservePath } from './observe-path.ts';
import type { ObserveSystem } from './observe-system.ts';
import type { OpenedDevice } from './opened-device.ts';
import { RealLoop } from './real-loop.ts';

const idPrefix = 'net:';
const cleanedUp = 'limits that a killed session had left were put back';

/** The network interfaces that this machine's kernel keeps (Linux). */
export class NetdevSource implements DeviceSource {
  readonly #system: ObserveSystem;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #changed = new Emitter<void>();
  readonly #stopWatching: () => void;

  constructor(system: ObserveSystem, clock: Clock, log: Log) {
    this.#system = system;
    this.#clock = clock;
    this.#log = log;
    this.#stopWatching = watchNetdevs(system.files, () => this.#changed.emit());
  }

  get onChange(): Event<void> {
    return this.#changed.event;
  }

  /** Those with a device behind them: USB, PCI, virtio. The others (tunnels, bridges, veth) are found by their names. */
  async list(): Promise<readonly ListedDevice[]> {
    const names = await this.#system.files.names();
    const netdevs = await Promise.all(names.map((name) => this.#system.files.describe(name)));
    const listed: ListedDevice[] = [];
    for (const netdev of netdevs) {
      if (netdev?.bus !== undefined) listed.push(await this.#listed(netdev));
    }
    return listed;
  }

  async find(deviceId: string): Promise<ListedDevice | undefined> {
    const name = deviceId.slice(idPrefix.length);
    if (!deviceId.startsWith(idPrefix) || !isNetdevName(name)) return undefined;
    const netdev = await this.#system.files.describe(name);
    return netdev === undefined ? undefined : this.#listed(netdev);
  }

  async #listed(netdev: NetdevDescription): Promise<ListedDevice> {
    const left = await this.#findLeft(netdev.name);
    const { usb } = netdev;
    return {
      device: describe(netdev, left),
      open: (fail) => this.#open(netdev.name, fail),
      // Something else may have got the name of what was unplugged.
      ...(usb === undefined ? {} : { identity: formatUsbId(usb.vendorId, usb.productId) }),
    };
  }

  async #findLeft(name: string): Promise<LeftLimits | undefined> {
    const { files, journal } = this.#system;
    const entry = journal.left().find(({ netdev }) => netdev === name);
    return entry === undefined ? undefined : findLeftLimits(files, entry);
  }

  async #open(name: string, fail: (error: unknown) => void): Promise<OpenedDevice> {
    const netdev = await this.#system.files.describe(name);
    if (netdev === undefined) {
      throw new AppError('device-gone', `${name} is not there any more`, { details: { netdev: name } });
    }
    const hasCleanedUp = await this.#cleanUpAfterOthers(name);
    const loop = new RealLoop(this.#clock, fail);
    const lag = new EventLoopLag();
    let path: ObservePath | undefined;
    return {
      loop,
      text: `${name} is read; the kernel keeps it${hasCleanedUp ? `; ${cleanedUp}` : ''}`,
      createPath: (options) => {
        path = new ObservePath({
          ...options,
          system: this.#system,
          netdev,
          lag,
          run: (action) => loop.run(action),
        });
        return path;
      },
      lossReason: () =>
        new AppError('device-gone', `${name} is gone: unplugged, renamed, or without its driver`, {
          details: { netdev: name },
          remedy: 'What was measured is kept.',
        }),
      close: async () => {
        lag.close();
        return path?.release() ?? [];
      },
    };
  }

  /** A program that was killed while it had the limits raised could not put them back. */
  async #cleanUpAfterOthers(name: string): Promise<boolean> {
    const left = await this.#findLeft(name);
    if (left === undefined || !restoreLeftLimits(left)) return false;
    this.#system.journal.remove(name);
    this.#log.log('warn', cleanedUp, { netdev: name });
    return true;
  }

  async close(): Promise<void> {
    this.#stopWatching();
  }
}

function describe(netdev: NetdevDescription, left: LeftLimits | undefined): Device {
  const { name, usb, driver } = netdev;
  return {
    id: idPrefix + name,
    mode: 'observe',
    ...(usb === undefined ? {} : { vendorId: usb.vendorId, productId: usb.productId }),
    name:
      usb?.product === undefined
        ? driver === undefined
          ? name
          : `${name} (${driver})`
        : `${usb.product} (${name})`,
    ...(usb?.manufacturer === undefined ? {} : { manufacturer: usb.manufacturer }),
    speed: usbSpeedOf(netdev),
    ...(netdev.function === undefined ? {} : { function: netdev.function }),
    netdev: name,
    ...(driver === undefined ? {} : { kernelDriver: driver }),
    state: 'available',
    description: `${name}, kept by the kernel: ${describeQueues(netdev)}`,
    problems: left === undefined ? [] : [leftProblem(left)],
  };
}

function leftProblem({ netdev, files, commands }: LeftLimits): Problem {
  const values = files.map(({ path, is, was }) => `${path.split('/').at(-1)} ${is} (was ${was})`);
  return {
    id: 'limits-left',
    severity: 'warning',
    message: `A session that was killed has left ${netdev} with ${[...new Set(values)].join(', ')}.`,
    remedy: `Start a session as root, or put it back:\n${commands}`,
  };
}
