import type { Log } from '../base/log.ts';
import type { CloseReport, InterfaceDriver, NotReturned } from './usb-bus.ts';
import type { LibusbCallback, LibusbError, LibusbHandle } from './libusb-module.ts';
import { libusbErrno, libusbErrors } from './libusb-status.ts';

/** How long a driver may take to come back after it was attached; most are there at once. */
const driverStepMs = 50;
const driverSteps = 10;

export interface InterfaceClaimsOptions {
  /** For log lines. */
  readonly id: string;
  /** Open. */
  readonly handle: LibusbHandle;
  readonly log: Log;
  /** Which drivers have which interfaces at this moment. */
  readonly readDrivers: () => Promise<readonly InterfaceDriver[]>;
  /** How the user can bring a kernel driver back by hand. */
  readonly rebindRemedy: (interfaceNumber: number) => string;
  readonly activeConfiguration: number | undefined;
}

/** What giving back came to, for the report of a close. */
export type GivenBack = Pick<CloseReport, 'reattached' | 'notReturned'>;

/** A limit of time that the steps of a close share. */
export class Deadline {
  readonly #passed: Promise<'late'>;
  #timer: NodeJS.Timeout | undefined;

  constructor(limitMs: number) {
    this.#passed = new Promise((resolve) => {
      this.#timer = setTimeout(() => resolve('late'), limitMs);
    });
  }

  /** The outcome of `work`, or `late`. */
  limit<T>(work: Promise<T>): Promise<T | 'late'> {
    return Promise.race([work, this.#passed]);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}

/**
 * What was taken from the system to drive a device (kernel drivers, interfaces, the configuration), and how to give
 * it back. Every step that was done is undone by {@link giveBack}, wherever taking stopped.
 */
export class InterfaceClaims {
  readonly #options: InterfaceClaimsOptions;
  readonly #claimed: number[] = [];
  /** One entry a detach: macOS counts them. */
  readonly #detached: number[] = [];
  #driversBefore: readonly InterfaceDriver[] = [];
  #configurationBefore: number | undefined;
  #configurationChanged = false;

  constructor(options: InterfaceClaimsOptions) {
    this.#options = options;
  }

  /** Notes how things are. To be called first: detaching one driver may take others along (cdc_ncm has two interfaces). */
  async begin(): Promise<void> {
    this.#driversBefore = (await this.#options.readDrivers()).filter(({ driver }) => driver !== 'usbfs');
  }

  /**
   * Chooses a configuration. The system refuses that while any interface has a driver, so all are detached.
   * @throws LibusbError
   */
  async setConfiguration(value: number): Promise<void> {
    if (value === this.#options.activeConfiguration) return;
    for (const { interfaceNumber } of this.#driversBefore) this.#detach(interfaceNumber);
    const error = await called((done) => this.#options.handle.__setConfiguration(value, done));
    if (error !== undefined) throw error;
    this.#configurationBefore = this.#options.activeConfiguration;
    this.#configurationChanged = true;
  }

  /** Takes an interface, from its driver if it has one. @throws LibusbError */
  claim(interfaceNumber: number): void {
    const { handle } = this.#options;
    this.#detach(interfaceNumber);
    try {
      handle.__claimInterface(interfaceNumber);
    } catch (error) {
      if (libusbErrno(error) !== libusbErrors.busy) throw error;
      // A driver may have come in between: its module was being loaded, or another interface's driver took this one.
      this.#detach(interfaceNumber);
      handle.__claimInterface(interfaceNumber);
    }
    this.#claimed.push(interfaceNumber);
  }

  #detach(interfaceNumber: number): void {
    const { handle, log, id } = this.#options;
    try {
      if (!handle.__isKernelDriverActive(interfaceNumber)) return;
      handle.__detachKernelDriver(interfaceNumber);
      this.#detached.push(interfaceNumber);
      log.log('info', 'took the interface from its kernel driver', { id, interfaceNumber });
    } catch (error) {
      const errno = libusbErrno(error);
      // There is none, or the system has no such thing. If there is one after all, the claim will say so.
      if (errno === libusbErrors.notFound || errno === libusbErrors.notSupported) return;
      throw error;
    }
  }

  /** Sets back the given altsettings, to 0. For interfaces that are still claimed. */
  async resetAltSettings(interfaceNumbers: Iterable<number>, deadline: Deadline): Promise<NotReturned[]> {
    const notReturned: NotReturned[] = [];
    for (const interfaceNumber of interfaceNumbers) {
      if (!this.#claimed.includes(interfaceNumber)) continue;
      const error = await deadline.limit(
        called((done) => this.#options.handle.__setInterface(interfaceNumber, 0, done)),
      );
      if (error === undefined || isGone(error)) continue;
      notReturned.push({
        message: `Interface ${interfaceNumber} could not be set back to its altsetting 0 (${describe(error)}).`,
      });
    }
    return notReturned;
  }

  /** Lets go of the interfaces. On Linux that also ends whatever is still queued on them. */
  async release(deadline: Deadline): Promise<NotReturned[]> {
    const notReturned: NotReturned[] = [];
    for (const interfaceNumber of this.#claimed.splice(0)) {
      const error = await deadline.limit(
        called((done) => this.#options.handle.__releaseInterface(interfaceNumber, done)),
      );
      if (error === undefined || isGone(error) || isErrno(error, libusbErrors.notFound)) continue;
      notReturned.push({
        message: `Interface ${interfaceNumber} could not be released (${describe(error)}).`,
        remedy: 'It is free once this program has ended.',
      });
    }
    return notReturned;
  }

  /** Brings configuration and kernel drivers back. For after {@link release}. */
  async restore(deadline: Deadline): Promise<GivenBack> {
    const notReturned: NotReturned[] = [];
    let gone = false;
    const attempt = (work: () => void): void => {
      try {
        work();
      } catch (error) {
        if (isGone(error)) gone = true;
      }
    };
    const { handle, readDrivers } = this.#options;
    const lost = this.#configurationChanged ? this.#driversBefore : await this.#missingDrivers();

    const before = this.#configurationBefore;
    if (this.#configurationChanged && before !== undefined) {
      for (const { interfaceNumber, driver } of await readDrivers()) {
        if (driver !== 'usbfs') attempt(() => handle.__detachKernelDriver(interfaceNumber));
      }
      const error = await deadline.limit(called((done) => handle.__setConfiguration(before, done)));
      if (error !== undefined && isGone(error)) gone = true;
      else if (error !== undefined) {
        notReturned.push({
          message: `Configuration ${before} could not be chosen again (${describe(error)}).`,
          remedy: 'Unplug the device and plug it in again.',
        });
      }
    }
    this.#configurationChanged = false;

    // Twice attached is no harm (macOS counts, Linux answers that the interface is busy).
    for (const interfaceNumber of this.#detached.splice(0)) {
      attempt(() => handle.__attachKernelDriver(interfaceNumber));
    }
    let missing = await this.#missingDrivers();
    for (const { interfaceNumber } of missing) attempt(() => handle.__attachKernelDriver(interfaceNumber));
    for (let step = 0; missing.length > 0 && !gone && step < driverSteps; step++) {
      if ((await deadline.limit(sleep(driverStepMs))) === 'late') break;
      missing = await this.#missingDrivers();
    }
    if (gone) return { reattached: [], notReturned: [] };

    for (const { interfaceNumber, driver } of missing) {
      notReturned.push({
        message: `The kernel driver ${driver} did not come back to interface ${interfaceNumber}.`,
        remedy: this.#options.rebindRemedy(interfaceNumber),
      });
    }
    const reattached = lost.filter((driver) => !missing.includes(driver));
    return { reattached, notReturned };
  }

  async #missingDrivers(): Promise<readonly InterfaceDriver[]> {
    const now = await this.#options.readDrivers();
    return this.#driversBefore.filter(
      ({ interfaceNumber }) => !now.some((other) => other.interfaceNumber === interfaceNumber),
    );
  }
}

/** Runs a call of libusb that answers through a callback; resolves with its error. */
export function called(start: (done: LibusbCallback) => void): Promise<LibusbError | undefined> {
  return new Promise((resolve) => {
    try {
      start(resolve);
    } catch (error) {
      resolve(error instanceof Error ? error : new Error(String(error)));
    }
  });
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

function isErrno(error: unknown, errno: number): boolean {
  return libusbErrno(error) === errno;
}

function isGone(error: unknown): boolean {
  return isErrno(error, libusbErrors.noDevice);
}

function describe(error: LibusbError | 'late'): string {
  return error === 'late' ? 'it took too long' : error.message;
}
