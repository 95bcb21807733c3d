import type { Clock } from '../base/clock.ts';
import { Emitter, type Event } from '../base/emitter.ts';
import { AppError, asAppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { UsbipListedDevice } from '../wire/usbip.ts';
import type { ConfigurationDescriptor } from '../wire/usb-descriptor.ts';
import type { CloseReport, OpenRequest, UsbBus, UsbBusDevice, UsbLease } from './usb-bus.ts';
import type { UsbWatch } from './usb-watch.ts';
import { formatUsbipDeviceId, isBusId, parseUsbipDeviceId, type UsbipServer } from './usbip-address.ts';
import { usbSpeedOf, UsbipImport } from './usbip-import.ts';
import { fetchDeviceList, importDevice, type UsbipLimits, usualUsbipLimits } from './usbip-socket.ts';
import { type UsbipWatchPace, usualUsbipWatchPace, watchUsbip } from './usbip-watch.ts';

const hubClass = 9;
const noExtra = new Uint8Array(0);

export interface UsbipBusOptions {
  readonly server: UsbipServer;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: UsbipLimits;
  readonly pace?: UsbipWatchPace;
}

/**
 * The devices that a USB/IP server offers. A device that another client has is not among them, so one that is not
 * listed may still be asked for.
 *
 * What a list tells of a device is its ids, its speed, and the class triples of its interfaces. Endpoints, other
 * configurations and names can be asked only once the server has handed it out ({@link import}).
 */
export class UsbipBus implements UsbBus {
  readonly server: UsbipServer;
  readonly #options: UsbipBusOptions;
  readonly #limits: UsbipLimits;
  readonly #changed = new Emitter<void>();
  readonly #imports = new Map<string, UsbipImport>();
  #opening: Promise<unknown> = Promise.resolve();
  #watch: UsbWatch | undefined;
  #failure: AppError | undefined;

  constructor(options: UsbipBusOptions) {
    this.#options = options;
    this.server = options.server;
    this.#limits = options.limits ?? usualUsbipLimits;
  }

  /** Empty too if the server does not answer; {@link failure} says so then. */
  async list(): Promise<readonly UsbBusDevice[]> {
    try {
      const devices = await this.#fetch();
      return devices
        .filter((device) => isBusId(device.busId) && device.deviceClass[0] !== hubClass)
        .map((device) => describe(this.server, device));
    } catch {
      return [];
    }
  }

  async #fetch(): Promise<readonly UsbipListedDevice[]> {
    try {
      const devices = await fetchDeviceList(this.server, this.#limits);
      this.#failure = undefined;
      return devices;
    } catch (error) {
      this.#failure = asAppError(error);
      throw error;
    }
  }

  /** Why the server did not tell its devices when it was asked last; undefined: it did. */
  get failure(): AppError | undefined {
    return this.#failure;
  }

  /** Asks the server. */
  async unavailable(): Promise<AppError | undefined> {
    await this.#fetch().catch(() => undefined);
    return this.#failure;
  }

  readonly onChange: Event<void> = (listener) => {
    const dispose = this.#changed.event(listener);
    this.#updateWatch();
    return () => {
      dispose();
      this.#updateWatch();
    };
  };

  #updateWatch(): void {
    if (this.#changed.listenerCount === 0) {
      this.#watch?.stop();
      this.#watch = undefined;
    } else {
      this.#watch ??= watchUsbip(
        () => this.#fetch(),
        () => this.#changed.emit(),
        this.#options.pace ?? usualUsbipWatchPace,
      );
    }
  }

  /**
   * Takes a device from the server and looks at it.
   * @throws AppError `no-such-device`, `device-busy`, `device-gone`, `device-failed`, `timed-out`
   */
  import(id: string): Promise<UsbipImport> {
    const opening = this.#opening.then(() => this.#import(id));
    this.#opening = opening.catch(() => undefined);
    return opening;
  }

  async #import(id: string): Promise<UsbipImport> {
    const parsed = parseUsbipDeviceId(id);
    if (parsed === undefined) throw new AppError('bad-input', `${id} is not the id of a USB/IP device`);
    if (this.#imports.has(id)) {
      throw new AppError('device-busy', `${id} is open already`, { details: { id } });
    }
    const imported = await importDevice(this.server, parsed.busId, this.#limits);
    const { clock, log } = this.#options;
    const opened = await UsbipImport.open({
      id,
      imported,
      clock,
      log,
      onClosed: () => this.#imports.delete(id),
    });
    this.#imports.set(id, opened);
    return opened;
  }

  async open(id: string, request: OpenRequest): Promise<UsbLease> {
    const imported = await this.import(id);
    try {
      return await imported.lease(request);
    } catch (error) {
      await imported.close();
      throw error;
    }
  }

  async closeAll(): Promise<readonly CloseReport[]> {
    this.#watch?.stop();
    this.#watch = undefined;
    // Each step of an opening has its own deadline.
    await this.#opening;
    return Promise.all(Array.from(this.#imports.values(), (imported) => imported.close()));
  }
}

/** A device as far as a list tells: its active configuration has interfaces, but no endpoints. */
function describe(server: UsbipServer, device: UsbipListedDevice): UsbBusDevice {
  const [deviceClass, deviceSubclass, deviceProtocol] = device.deviceClass;
  const speed = usbSpeedOf(device.speed);
  const configuration: ConfigurationDescriptor = {
    value: device.configurationValue,
    nameIndex: 0,
    attributes: 0,
    maxPowerMa: 0,
    associations: [],
    extra: noExtra,
    interfaces: device.interfaces.map(([interfaceClass, interfaceSubclass, interfaceProtocol], number) => ({
      number,
      altSettings: [
        {
          interfaceNumber: number,
          alternateSetting: 0,
          interfaceClass,
          interfaceSubclass,
          interfaceProtocol,
          nameIndex: 0,
          endpoints: [],
          extra: noExtra,
        },
      ],
    })),
  };
  return {
    id: formatUsbipDeviceId(server, device.busId),
    vendorId: device.vendorId,
    productId: device.productId,
    manufacturer: undefined,
    product: undefined,
    serialNumber: undefined,
    speed,
    descriptor: {
      usbVersion: speed === 'super' || speed === 'super-plus' ? 0x0300 : 0x0200,
      deviceClass,
      deviceSubclass,
      deviceProtocol,
      maxPacketSize0: 0,
      vendorId: device.vendorId,
      productId: device.productId,
      deviceVersion: device.deviceVersion,
      manufacturerIndex: 0,
      productIndex: 0,
      serialIndex: 0,
      configurationCount: device.configurationCount,
    },
    configurations: [configuration],
    activeConfiguration: device.configurationValue === 0 ? undefined : device.configurationValue,
    interfaceDrivers: [],
    problems: [],
  };
}
