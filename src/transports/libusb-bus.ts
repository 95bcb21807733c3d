import type { Clock } from '../base/clock.ts';
import { Emitter, type Event } from '../base/emitter.ts';
import { AppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { findConfiguration, type FoundDevice, LibusbDevices } from './libusb-devices.ts';
import {
  accessDenied,
  deviceBusy,
  type FailedDevice,
  libusbFailure,
  noDeviceNode,
  noSuchDevice,
} from './libusb-errors.ts';
import { Deadline, InterfaceClaims } from './interface-claims.ts';
import { LibusbLease } from './libusb-lease.ts';
import { type LibusbLoader, libusbLoader } from './libusb-module.ts';
import { libusbErrno, libusbErrors } from './libusb-status.ts';
import { LibusbTransport } from './libusb-transport.ts';
import { LinuxUsbFiles, type UsbAddress } from './linux-usb-files.ts';
import {
  closeLimitMs,
  type CloseReport,
  type InterfaceDriver,
  type OpenRequest,
  type UsbBus,
  type UsbBusDevice,
  type UsbLease,
} from './usb-bus.ts';
import type { UsbPlatform } from './usb-platform.ts';
import type { UsbfsAccess } from './usbfs-device.ts';
import { type UsbWatch, watchLibusb, watchSysfs } from './usb-watch.ts';

/** Plugging one device in makes several events (a hub, a mode switch): the last one counts. */
const settleMs = 250;

export interface LibusbBusOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly platform: UsbPlatform;
  /** The package `usb`; absent: the real one. */
  readonly loader?: LibusbLoader;
  /** Linux: sysfs and device nodes; absent: the real ones. */
  readonly files?: LinuxUsbFiles;
  /** Linux: devices are driven through usbfs directly; absent: through libusb. */
  readonly usbfs?: UsbfsAccess | undefined;
}

/**
 * This machine's USB, through libusb (npm package `usb`, docs/decisions/usb.md).
 *
 * The package is loaded when a device is first opened or watched, so a machine without USB or without libusb's own
 * libraries can still use the rest of the program. On Linux the list comes from sysfs and needs neither the package nor
 * a permission.
 */
export class LibusbBus implements UsbBus {
  readonly #options: LibusbBusOptions;
  readonly #files: LinuxUsbFiles | undefined;
  readonly #devices: LibusbDevices;
  readonly #changed = new Emitter<void>();
  readonly #leases = new Map<string, LibusbLease>();
  /** Devices that are being opened, or looked at in a way that opens them: one at a time. */
  #queue: Promise<unknown> = Promise.resolve();
  #watch: Promise<UsbWatch> | undefined;
  #settling: NodeJS.Timeout | undefined;

  constructor(options: LibusbBusOptions) {
    this.#options = options;
    this.#files = options.platform === 'linux' ? (options.files ?? new LinuxUsbFiles()) : undefined;
    this.#devices = new LibusbDevices({
      loader: options.loader ?? libusbLoader,
      platform: options.platform,
      files: this.#files,
      usbfs: options.usbfs,
      isOpenHere: (id) => this.#leases.has(id),
    });
  }

  list(): Promise<readonly UsbBusDevice[]> {
    return this.#files === undefined ? this.#inTurn(() => this.#devices.list()) : this.#devices.list();
  }

  async unavailable(): Promise<AppError | undefined> {
    if (this.#options.usbfs !== undefined) return undefined;
    try {
      await this.#devices.load();
      return undefined;
    } catch (error) {
      return error as AppError;
    }
  }

  readonly onChange: Event<void> = (listener) => {
    const dispose = this.#changed.event(listener);
    void this.#updateWatch();
    return () => {
      dispose();
      void this.#updateWatch();
    };
  };

  open(id: string, request: OpenRequest): Promise<UsbLease> {
    return this.#inTurn(async () => {
      if (this.#leases.has(id)) {
        throw new AppError('device-busy', `${id} is open already`, { details: { id } });
      }
      const found = await this.#devices.find(id);
      if (found === undefined) throw noSuchDevice(id);
      const lease = await this.#openFound(found, request);
      this.#leases.set(id, lease);
      await this.#updateWatch();
      return lease;
    });
  }

  async closeAll(): Promise<readonly CloseReport[]> {
    const deadline = new Deadline(closeLimitMs);
    // Whoever is opening a device at this moment gets it, and loses it again.
    await deadline.limit(this.#queue.then(() => undefined));
    const reports = await Promise.all(
      Array.from(this.#leases.values(), async (lease) => {
        const report = await deadline.limit(lease.close());
        return report === 'late' ? tooLate(lease.id) : report;
      }),
    );
    deadline.clear();
    return reports;
  }

  /**
   * Gives interfaces without a driver to the kernel again: a program that was killed while it drove a device leaves
   * them so. Linux only. Asks through sysfs (`/sys/bus/usb/drivers_probe`), for which one must be root, or else through
   * the device's node.
   * @returns the drivers that came
   * @throws AppError `no-such-device`, `access-denied`, `device-busy`: it is open here
   */
  async rebindKernelDriver(id: string): Promise<readonly InterfaceDriver[]> {
    const files = this.#files;
    if (files === undefined) return [];
    return this.#inTurn(async () => {
      const name = id.replace(/^usb:/, '');
      if (this.#leases.has(id)) throw new AppError('device-busy', `${id} is open here`, { details: { id } });
      if ((await files.address(name)) === undefined) throw noSuchDevice(id);
      const before = await files.interfaceDrivers(name);
      const free = (await files.interfaceNames(name)).filter(
        (entry) => !before.some(({ interfaceNumber }) => entry.endsWith(`.${interfaceNumber}`)),
      );
      try {
        for (const entry of free) await files.probeDriver(entry);
      } catch {
        await this.#attachThroughNode(id, free);
      }
      const after = await files.interfaceDrivers(name);
      return after.filter(
        ({ interfaceNumber }) => !before.some((other) => other.interfaceNumber === interfaceNumber),
      );
    });
  }

  async #attachThroughNode(id: string, interfaceNames: readonly string[]): Promise<void> {
    const found = await this.#devices.find(id);
    if (found === undefined) throw noSuchDevice(id);
    const { handle, failed } = found;
    try {
      handle.__open();
    } catch (error) {
      throw await this.#openFailure(failed, error);
    }
    try {
      for (const entry of interfaceNames) {
        try {
          handle.__attachKernelDriver(Number(entry.slice(entry.lastIndexOf('.') + 1)));
        } catch {
          // No driver wants this one, or another interface's driver took it along.
        }
      }
    } finally {
      handle.__close();
    }
  }

  // ---- opening ----

  async #openFound(found: FoundDevice, request: OpenRequest): Promise<LibusbLease> {
    const { handle, failed, info } = found;
    const configuration = findConfiguration(info, request);
    try {
      handle.__open();
    } catch (error) {
      throw await this.#openFailure(failed, error);
    }
    const claims = new InterfaceClaims({
      id: info.id,
      handle,
      log: this.#options.log,
      readDrivers: () => this.#devices.readDrivers(found),
      rebindRemedy: (interfaceNumber) => this.#rebindRemedy(info, interfaceNumber),
      activeConfiguration: info.activeConfiguration,
    });
    let doing = `choose configuration ${configuration.value}`;
    let interfaceNumber: number | undefined;
    try {
      await claims.begin();
      await claims.setConfiguration(configuration.value);
      for (interfaceNumber of request.interfaces) {
        doing = `claim interface ${interfaceNumber}`;
        claims.claim(interfaceNumber);
      }
    } catch (error) {
      // Who was in the way has to be found out before the interfaces change hands again.
      const failure = await this.#claimFailure(found, doing, interfaceNumber, error);
      await this.#undo(found, claims);
      throw failure;
    }

    const id = info.id;
    const { log, clock } = this.#options;
    const transport = new LibusbTransport({
      handle,
      createTransfer: found.createTransfer,
      device: { speed: info.speed, descriptor: info.descriptor, configuration },
      clock,
      onHandlerError:
        request.onHandlerError ??
        ((error) => log.log('error', 'the driver of a device threw', { id, error: String(error) })),
    });
    return new LibusbLease({
      id,
      handle,
      transport,
      claims,
      log,
      onClosed: () => {
        this.#leases.delete(id);
        void this.#updateWatch();
      },
    });
  }

  async #undo(found: FoundDevice, claims: InterfaceClaims): Promise<void> {
    const { log } = this.#options;
    const deadline = new Deadline(closeLimitMs);
    const notReturned = await claims.release(deadline);
    notReturned.push(...(await claims.restore(deadline)).notReturned);
    deadline.clear();
    try {
      found.handle.__close();
    } catch (error) {
      log.log('warn', 'could not close a device', { id: found.info.id, error: String(error) });
    }
    for (const { message } of notReturned) log.log('warn', message, { id: found.info.id });
  }

  async #openFailure(failed: FailedDevice, error: unknown): Promise<AppError> {
    const { platform } = this.#options;
    const errno = libusbErrno(error);
    // Windows says so of a device whose driver is none of those that libusb can talk to.
    const foreignDriver = platform === 'win32' && errno === libusbErrors.notSupported;
    if (errno === libusbErrors.access || foreignDriver) {
      return accessDenied(failed, platform, (await this.#files?.udevRuns()) ?? false, error);
    }
    if (errno === libusbErrors.busy) {
      return deviceBusy(failed, { interfaceNumber: undefined, driver: undefined, holders: [] }, error);
    }
    if (errno === libusbErrors.noDevice && (await this.#nodeIsMissing(failed))) {
      return noDeviceNode(failed, error);
    }
    return libusbFailure(failed, 'open it', error);
  }

  /** The system knows the device, but gives us nothing to open it by: a container, as a rule. */
  async #nodeIsMissing(failed: FailedDevice): Promise<boolean> {
    const files = this.#files;
    if (files === undefined || failed.nodePath === undefined) return false;
    if ((await files.nodeAccess(failed.nodePath)) !== 'missing') return false;
    return (await files.address(failed.id.replace(/^usb:/, ''))) !== undefined;
  }

  async #claimFailure(
    found: FoundDevice,
    doing: string,
    interfaceNumber: number | undefined,
    error: unknown,
  ): Promise<AppError> {
    const errno = libusbErrno(error);
    if (errno === libusbErrors.access) return this.#openFailure(found.failed, error);
    if (errno !== libusbErrors.busy) return libusbFailure(found.failed, doing, error);
    const drivers = await this.#devices.readDrivers(found);
    // A configuration can't be chosen while anyone has any interface.
    const owner = drivers.find((other) =>
      interfaceNumber === undefined ? other.driver === 'usbfs' : other.interfaceNumber === interfaceNumber,
    );
    const { nodePath } = found.failed;
    const holders = nodePath === undefined ? [] : ((await this.#files?.holders(nodePath)) ?? []);
    return deviceBusy(
      found.failed,
      { interfaceNumber: interfaceNumber ?? owner?.interfaceNumber, driver: owner?.driver, holders },
      error,
    );
  }

  #rebindRemedy(info: UsbBusDevice, interfaceNumber: number): string {
    if (this.#options.platform !== 'linux') return 'Unplug the device and plug it in again.';
    const name = info.id.replace(/^usb:/, '');
    return [
      'Unplug the device and plug it in again, or as root run',
      `echo ${name}:${info.activeConfiguration ?? 1}.${interfaceNumber} > /sys/bus/usb/drivers_probe`,
    ].join('\n');
  }

  /** Runs work that opens devices, one after another. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#queue.then(work);
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  // ---- plugging in and out ----

  /** Watches while somebody listens or a device is open. */
  async #updateWatch(): Promise<void> {
    const wanted = this.#changed.listenerCount > 0 || this.#leases.size > 0;
    if (wanted && this.#watch === undefined) {
      this.#watch = this.#startWatch();
      await this.#watch;
    } else if (!wanted && this.#watch !== undefined) {
      const watch = this.#watch;
      this.#watch = undefined;
      clearTimeout(this.#settling);
      (await watch).stop();
    }
  }

  async #startWatch(): Promise<UsbWatch> {
    const listener = {
      handleAttach: () => this.#settle(),
      handleDetach: (device: UsbAddress) => {
        for (const lease of this.#leases.values()) {
          const { busNumber, deviceAddress } = lease.handle;
          if (busNumber === device.busNumber && deviceAddress === device.deviceAddress) {
            lease.transport.handleDetach();
          }
        }
        this.#settle();
      },
    };
    const files = this.#files;
    if (files !== undefined && !(await files.udevRuns())) return watchSysfs(files, listener);
    try {
      return watchLibusb(await this.#devices.load(), listener);
    } catch (error) {
      this.#options.log.log('warn', 'plugging in and out is not noticed', { error: String(error) });
      return files === undefined ? { stop() {} } : watchSysfs(files, listener);
    }
  }

  #settle(): void {
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => this.#changed.emit(), settleMs);
    this.#settling.unref();
  }
}

function tooLate(id: string): CloseReport {
  return {
    reattached: [],
    notReturned: [
      {
        message: `Closing ${id} takes too long.`,
        remedy: 'Once this program has ended, unplug the device and plug it in again.',
      },
    ],
    transfersLost: 0,
  };
}
