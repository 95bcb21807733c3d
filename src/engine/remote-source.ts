import type { Clock } from '../base/clock.ts';
import { Emitter, type Dispose } from '../base/emitter.ts';
import { AppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Device } from '../contract/device.ts';
import type { Problem } from '../contract/problem.ts';
import { formatUsbId } from '../minidrivers/described-device.ts';
import { guessMinidriver } from '../minidrivers/registry.ts';
import {
  formatUsbipServer,
  parseUsbipDeviceId,
  parseUsbipServer,
  type UsbipServer,
} from '../transports/usbip-address.ts';
import { UsbipBus } from '../transports/usbip-bus.ts';
import type { UsbipImport } from '../transports/usbip-import.ts';
import type { UsbBusDevice } from '../transports/usb-bus.ts';
import { usbClasses } from '../wire/cdc-class.ts';
import { chooseMatch } from './choose-match.ts';
import { driveLease } from './drive-lease.ts';
import type { DeviceSource, ListedDevice } from './device-source.ts';
import type { OpenChoice, OpenedDevice } from './opened-device.ts';
import { looksLikeNetwork } from './usb-source.ts';

/** A USB/IP server that was named. */
export interface RemoteServer {
  /** As people write it: `host`, `host:port`. */
  readonly name: string;
  /** Why it did not tell its devices when it was asked last. */
  readonly problem: Problem | undefined;
  /** The same as an error. */
  readonly failure: AppError | undefined;
}

/** A server that did not answer is not asked again by a mere look at the list for so long: that would hold it up. */
const unansweredUs = 10_000_000;

interface Entry {
  readonly server: UsbipServer;
  readonly bus: UsbipBus;
  readonly stopListening: Dispose | undefined;
  notBeforeUs: number;
}

/**
 * Devices of other machines, through USB/IP servers that were named. A device that a server does not list may still be
 * there: another client has it, or the server was asked too early.
 */
export class RemoteSource implements DeviceSource {
  readonly #changed = new Emitter<void>();
  readonly onChange = this.#changed.event;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #watch: boolean;
  readonly #servers = new Map<string, Entry>();

  /** @param watch asks the servers again and again whether anything has changed */
  constructor(options: { readonly clock: Clock; readonly log: Log; readonly watch: boolean }) {
    this.#clock = options.clock;
    this.#log = options.log;
    this.#watch = options.watch;
  }

  // ---- servers ----

  /** @throws AppError `bad-input` */
  addServer(name: string): void {
    const server = parseUsbipServer(name);
    if (server === undefined) {
      throw new AppError('bad-input', `"${name}" is not the name of a server`, {
        remedy: 'Write host, host:port or [ipv6]:port; the port is 3240 if none is given.',
      });
    }
    this.#entry(server);
  }

  removeServer(name: string): void {
    const server = parseUsbipServer(name);
    const key = server === undefined ? '' : formatUsbipServer(server);
    const entry = this.#servers.get(key);
    if (entry === undefined) return;
    this.#servers.delete(key);
    entry.stopListening?.();
    this.#changed.emit();
  }

  get servers(): readonly RemoteServer[] {
    return Array.from(this.#servers, ([name, { bus }]) => ({
      name,
      problem: bus.failure === undefined ? undefined : problemOf(bus.failure),
      failure: bus.failure,
    }));
  }

  #entry(server: UsbipServer): Entry {
    const key = formatUsbipServer(server);
    const known = this.#servers.get(key);
    if (known !== undefined) return known;
    const bus = new UsbipBus({ server, clock: this.#clock, log: this.#log });
    const entry: Entry = {
      server,
      bus,
      stopListening: this.#watch ? bus.onChange(() => this.#handleChange(entry)) : undefined,
      notBeforeUs: 0,
    };
    this.#servers.set(key, entry);
    this.#changed.emit();
    return entry;
  }

  #handleChange(entry: Entry): void {
    entry.notBeforeUs = 0;
    this.#changed.emit();
  }

  // ---- devices ----

  async list(): Promise<readonly ListedDevice[]> {
    const lists = await Promise.all(Array.from(this.#servers.values(), (entry) => this.#listServer(entry)));
    return lists.flat();
  }

  async #listServer(entry: Entry): Promise<readonly ListedDevice[]> {
    const { bus } = entry;
    if (this.#clock.nowUs() < entry.notBeforeUs) return [];
    const devices = await bus.list();
    if (bus.failure !== undefined) entry.notBeforeUs = this.#clock.nowUs() + unansweredUs;
    return devices.filter(mayBeNetwork).map((device) => ({
      device: describeListed(entry.server, device),
      open: (fail, choice) => this.#open(bus, device.id, fail, choice),
      identity: formatUsbId(device.vendorId, device.productId),
    }));
  }

  /** Whoever names a device names its server. */
  async find(deviceId: string): Promise<ListedDevice | undefined> {
    const parsed = parseUsbipDeviceId(deviceId);
    if (parsed === undefined) return undefined;
    const entry = this.#entry(parsed.server);
    entry.notBeforeUs = 0;
    const listed = (await this.#listServer(entry)).find(({ device }) => device.id === deviceId);
    if (listed !== undefined) return listed;
    return {
      device: {
        id: deviceId,
        mode: 'remote',
        name: `Device ${parsed.busId} of ${formatUsbipServer(parsed.server)}`,
        speed: 'unknown',
        state: 'available',
        problems: [],
      },
      // Why it is not listed is the server's to say.
      open: (fail, choice) => this.#open(entry.bus, deviceId, fail, choice),
    };
  }

  async #open(
    bus: UsbipBus,
    id: string,
    fail: (error: unknown) => void,
    choice: OpenChoice,
  ): Promise<OpenedDevice> {
    const imported = await bus.import(id);
    try {
      return await this.#openImported(imported, fail, choice);
    } catch (error) {
      await imported.close();
      throw error;
    }
  }

  async #openImported(
    imported: UsbipImport,
    fail: (error: unknown) => void,
    choice: OpenChoice,
  ): Promise<OpenedDevice> {
    const usbDevice = imported.device;
    const match = chooseMatch(usbDevice, choice);
    const driven = await driveLease({
      match,
      clock: this.#clock,
      log: this.#log,
      fail,
      open: (request) => imported.lease(request),
    });
    return {
      ...driven,
      text: `${usbDevice.product ?? usbDevice.id} was handed out by the server`,
      device: {
        vendorId: usbDevice.vendorId,
        productId: usbDevice.productId,
        name: usbDevice.product ?? `USB device ${formatUsbId(usbDevice.vendorId, usbDevice.productId)}`,
        ...(usbDevice.manufacturer === undefined ? {} : { manufacturer: usbDevice.manufacturer }),
        speed: usbDevice.speed,
        function: match.networkFunction,
        minidriver: match.driver,
        reason: match.reason,
      },
      lossReason: () => imported.lossReason,
    };
  }

  async close(): Promise<void> {
    for (const { stopListening } of this.#servers.values()) stopListening?.();
    await Promise.all(Array.from(this.#servers.values(), ({ bus }) => bus.closeAll()));
  }
}

function problemOf(failure: AppError): Problem {
  return {
    id: 'server',
    severity: 'error',
    message: failure.message,
    ...(failure.remedy === undefined ? {} : { remedy: failure.remedy }),
  };
}

/** Classes of a device as a whole that leave open what its interfaces are. */
const openClasses: ReadonlySet<number> = new Set([
  0,
  usbClasses.communications,
  usbClasses.miscellaneous,
  usbClasses.wirelessController,
  usbClasses.vendorSpecific,
]);

/**
 * Linux' server takes a device from its driver to offer it, and with that its configuration: there are no interfaces
 * to tell of, and what it is can only be seen when it is opened.
 */
function tellsNothing(device: UsbBusDevice): boolean {
  return device.configurations.every(({ interfaces }) => interfaces.length === 0);
}

function mayBeNetwork(device: UsbBusDevice): boolean {
  return tellsNothing(device)
    ? openClasses.has(device.descriptor.deviceClass)
    : looksLikeNetwork(device) || guessMinidriver(device) !== undefined;
}

function describeListed(server: UsbipServer, device: UsbBusDevice): Device {
  const minidriver = guessMinidriver(device);
  return {
    id: device.id,
    mode: 'remote',
    vendorId: device.vendorId,
    productId: device.productId,
    name: `USB device ${formatUsbId(device.vendorId, device.productId)} of ${formatUsbipServer(server)}`,
    speed: device.speed,
    ...(minidriver === undefined ? {} : { minidriver }),
    ...(tellsNothing(device) ? { reason: 'what it is can be seen only once the server hands it out' } : {}),
    state: 'available',
    problems: [],
  };
}
