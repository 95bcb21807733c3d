import type { Socket } from 'node:net';
import type { Clock } from '../base/clock.ts';
import { AppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { RequestResult, UsbSpeed } from '../usbnet/transport.ts';
import { configurationTotalLength, deviceDescriptorLength, descriptorTypes } from '../wire/usb-descriptor.ts';
import { languageEnglishUnitedStates, parseStringDescriptor } from '../wire/usb-string.ts';
import type { UsbipDevice, UsbipSpeed } from '../wire/usbip.ts';
import { deviceIdOf } from '../wire/usbip-urb.ts';
import { parseDeviceDescriptors } from './device-descriptors.ts';
import { findConfiguration } from './libusb-devices.ts';
import type { CloseReport, OpenRequest, UsbBusDevice, UsbLease } from './usb-bus.ts';
import { deviceLost } from './usbip-errors.ts';
import { codeOf, type ImportedDevice } from './usbip-socket.ts';
import { UsbipTransport } from './usbip-transport.ts';

const tickMs = 250;
/** Until TCP asks a peer that says nothing whether it is there; our own question usually comes before that. */
const keepAliveMs = 5000;
/** Each descriptor may take so long: a server on the other side of the world, a device that sleeps. */
const requestTimeoutMs = 3000;
const drainLimitMs = 2000;
const farewellMs = 500;

const getDescriptor = 6;
const configurationHeaderLength = 9;
const maxStringLength = 255;
const maxConfigurations = 8;

export interface UsbipImportOptions {
  /** `usbip://<host>[:<port>]/<busid>` */
  readonly id: string;
  readonly imported: ImportedDevice;
  readonly clock: Clock;
  readonly log: Log;
  /** The device was given back; called once. */
  readonly onClosed: () => void;
}

/** The speed that a server tells, in our words. Nothing wireless was ever sold. */
export function usbSpeedOf(speed: UsbipSpeed): UsbSpeed {
  return speed === 'wireless' ? 'unknown' : speed;
}

/**
 * A device that a server has handed out: what it is can only be asked now, over the same connection as all that
 * follows. It is leased to one driver then, or closed.
 */
export class UsbipImport implements UsbLease {
  readonly id: string;
  readonly transport: UsbipTransport;
  readonly #options: UsbipImportOptions;
  readonly #socket: Socket;
  readonly #ticks: NodeJS.Timeout;
  #device: UsbBusDevice | undefined;
  #corked = false;
  #code: string | undefined;
  #lossReason: AppError | undefined;
  #onHandlerError: (error: unknown) => void;
  #closed: Promise<CloseReport> | undefined;

  /** @throws AppError `device-failed`, `device-gone` */
  static async open(options: UsbipImportOptions): Promise<UsbipImport> {
    const opened = new UsbipImport(options);
    try {
      await opened.#enumerate(options.imported.record);
      return opened;
    } catch (error) {
      await opened.close();
      throw opened.lossReason ?? error;
    }
  }

  private constructor(options: UsbipImportOptions) {
    const { id, imported, clock, log } = options;
    this.id = id;
    this.#options = options;
    this.#onHandlerError = (error) =>
      log.log('error', 'the driver of a device threw', { id, error: String(error) });
    const socket = imported.socket;
    this.#socket = socket;
    this.transport = new UsbipTransport({
      deviceId: deviceIdOf(imported.record.busNumber, imported.record.deviceNumber),
      clock,
      write: (bytes) => this.#write(bytes),
      onLost: (loss) => {
        this.#lossReason = deviceLost(id, loss, loss === 'broken' ? this.#code : undefined);
        socket.destroy();
      },
      onHandlerError: (error) => this.#onHandlerError(error),
    });
    socket.setKeepAlive(true, keepAliveMs);
    socket.on('error', (error: NodeJS.ErrnoException) => (this.#code = codeOf(error)));
    socket.on('close', (hadError) => this.transport.lose(hadError ? 'broken' : 'closed'));
    if (socket.destroyed) this.transport.lose('closed');
    socket.on('data', (bytes) => this.transport.handleBytes(bytes));
    if (imported.rest.length > 0) this.transport.handleBytes(imported.rest);
    socket.resume();
    this.#ticks = setInterval(() => this.transport.tick(), tickMs);
  }

  /** What the device says of itself. */
  get device(): UsbBusDevice {
    if (this.#device === undefined) throw new AppError('internal', `${this.id} was not looked at`);
    return this.#device;
  }

  /** Why the device was lost; undefined: it was not. */
  get lossReason(): AppError | undefined {
    return this.#lossReason;
  }

  /** Chooses the configuration; from here on the device is the driver's. @throws AppError `bad-input`, `device-failed` */
  async lease(request: OpenRequest): Promise<UsbLease> {
    const configuration = findConfiguration(this.device, request);
    if (configuration.value !== this.device.activeConfiguration) {
      const { status } = await this.transport.perform(
        UsbipTransport.configurationRequest(configuration.value, requestTimeoutMs),
      );
      if (status !== 'completed') throw this.#failed(`choose configuration ${configuration.value}`, status);
    }
    const { speed, descriptor } = this.device;
    this.transport.setDevice({ speed, descriptor, configuration });
    if (request.onHandlerError !== undefined) this.#onHandlerError = request.onHandlerError;
    return this;
  }

  close(): Promise<CloseReport> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<CloseReport> {
    const { transport } = this;
    transport.startClosing();
    if (transport.loss === undefined) await transport.waitUntilIdle(drainLimitMs);
    clearInterval(this.#ticks);
    const transfersLost = transport.dispose();
    await endSocket(this.#socket);
    this.#options.onClosed();
    // The server resets the device when its client leaves: there is nothing else to be given back.
    return { reattached: [], notReturned: [], transfersLost };
  }

  /** What is written within a turn of the event loop leaves together. */
  #write(bytes: Uint8Array): void {
    if (!this.#corked) {
      this.#corked = true;
      this.#socket.cork();
      queueMicrotask(() => {
        this.#corked = false;
        this.#socket.uncork();
      });
    }
    this.#socket.write(bytes);
  }

  // ---- what the device is ----

  async #enumerate(record: UsbipDevice): Promise<void> {
    const speed = usbSpeedOf(record.speed);
    const bytes = [...(await this.#descriptor(descriptorTypes.device, 0, deviceDescriptorLength))];
    const count = Math.min(bytes[deviceDescriptorLength - 1] ?? 0, maxConfigurations);
    for (let index = 0; index < count; index++) {
      const head = await this.#descriptor(descriptorTypes.configuration, index, configurationHeaderLength);
      const length = configurationTotalLength(head) ?? configurationHeaderLength;
      bytes.push(...(await this.#descriptor(descriptorTypes.configuration, index, length)));
    }
    const parsed = parseDeviceDescriptors(Uint8Array.from(bytes), speed);
    if (parsed === undefined) throw new AppError('device-failed', `${this.id} has no device descriptor`);
    const { descriptor, configurations, problems } = parsed;
    this.#device = {
      id: this.id,
      vendorId: descriptor.vendorId,
      productId: descriptor.productId,
      manufacturer: await this.#string(descriptor.manufacturerIndex),
      product: await this.#string(descriptor.productIndex),
      serialNumber: await this.#string(descriptor.serialIndex),
      speed,
      descriptor,
      configurations,
      activeConfiguration: record.configurationValue === 0 ? undefined : record.configurationValue,
      interfaceDrivers: [],
      problems: problems.map((problem) => ({
        id: 'bad-descriptors',
        severity: 'warning',
        message: `A configuration of the device can't be read: ${problem}.`,
      })),
    };
  }

  async #descriptor(type: number, index: number, length: number): Promise<Uint8Array> {
    const { status, data } = await this.#ask(type, index, 0, length);
    if (status !== 'completed') throw this.#failed('read its descriptors', status);
    return data;
  }

  /** Names are a convenience: without an answer there is none. */
  async #string(index: number): Promise<string | undefined> {
    if (index === 0 || this.transport.loss !== undefined) return undefined;
    const { status, data } = await this.#ask(
      descriptorTypes.string,
      index,
      languageEnglishUnitedStates,
      maxStringLength,
    );
    return status === 'completed' ? parseStringDescriptor(data) : undefined;
  }

  #ask(type: number, index: number, language: number, length: number): Promise<RequestResult> {
    return this.transport.perform({
      kind: 'control-in',
      requestType: 0x80,
      request: getDescriptor,
      value: (type << 8) | index,
      index: language,
      length,
      timeoutMs: requestTimeoutMs,
    });
  }

  #failed(doing: string, status: string): AppError {
    return (
      this.#lossReason ??
      new AppError('device-failed', `could not ${doing} on ${this.id} (${status})`, {
        details: { id: this.id, status },
        remedy: 'Unplug the device at the server and plug it in again.',
      })
    );
  }
}

/** Lets what was written leave, for a limited time. */
function endSocket(socket: Socket): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => socket.destroy(), farewellMs);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.end();
  });
}
