import { EventEmitter } from 'node:events';
import type {
  LibusbCallback,
  LibusbConfigDescriptor,
  LibusbDevice,
  LibusbDeviceDescriptor,
  LibusbError,
  LibusbHotplug,
  LibusbLoader,
  LibusbModule,
  LibusbTransferCallback,
} from '../../../src/transports/libusb-module.ts';
import { libusbErrors, libusbTransferStatus } from '../../../src/transports/libusb-status.ts';
import type { FakeSysfs } from './fake-sysfs.ts';

/**
 * Stands in for the package `usb` 2.18.0: behaves as its C++ sources do where that can be told from outside, traps
 * included (a transfer whose submit threw is useless, exceptions in callbacks vanish, a device with something pending
 * does not close).
 */

export function libusbError(errno: number): LibusbError {
  return Object.assign(new Error(`errno ${errno}`), { errno });
}

/** A kernel driver and the interfaces that it takes together, the first being the one it is attached to. */
export interface FakeKernelDriver {
  readonly name: string;
  readonly interfaces: readonly number[];
}

export interface FakeDeviceOptions {
  readonly busNumber?: number;
  readonly deviceAddress?: number;
  readonly portNumbers?: readonly number[] | undefined;
  readonly descriptor: LibusbDeviceDescriptor;
  readonly configurations?: readonly LibusbConfigDescriptor[];
  /** Interfaces of each configuration, by its value. */
  readonly interfaces?: Readonly<Record<number, readonly number[]>>;
  readonly activeConfiguration?: number;
  /** Drivers that the kernel has for each configuration. */
  readonly kernelDrivers?: Readonly<Record<number, readonly FakeKernelDriver[]>>;
  /** Interfaces that another program has claimed. */
  readonly claimedElsewhere?: readonly number[];
  readonly sysfs?: FakeSysfs;
  readonly strings?: Readonly<Record<number, string>>;
}

export class FakeTransfer {
  readonly device: FakeDevice;
  readonly endpointAddress: number;
  readonly type: number;
  readonly timeoutMs: number;
  readonly callback: LibusbTransferCallback;
  buffer: Buffer | undefined;
  cancelling = false;
  poisoned = false;

  constructor(
    device: LibusbDevice,
    endpointAddress: number,
    type: number,
    timeoutMs: number,
    callback: LibusbTransferCallback,
  ) {
    this.device = device as FakeDevice;
    this.endpointAddress = endpointAddress;
    this.type = type;
    this.timeoutMs = timeoutMs;
    this.callback = callback;
    this.device.usb.transfersMade++;
  }

  submit(buffer: Buffer): this {
    if (this.buffer !== undefined) throw new Error('Transfer is already active');
    if (!this.device.isOpen) throw new Error('Device is not open');
    this.buffer = buffer;
    const errno = this.device.unplugged ? libusbErrors.noDevice : this.device.submitErrors.shift();
    if (errno !== undefined && errno !== 0) {
      this.poisoned = true;
      throw libusbError(errno);
    }
    this.device.pending++;
    this.device.inFlight.push(this);
    this.device.handleSubmit(this);
    return this;
  }

  cancel(): boolean {
    if (this.device.unplugged) throw libusbError(libusbErrors.noDevice);
    if (!this.device.inFlight.includes(this) || this.cancelling) return false;
    this.cancelling = true;
    this.device.cancels++;
    this.device.onCancel();
    if (this.device.ignoresCancel) return true;
    const affected = this.device.usb.abortsWholePipes
      ? this.device.inFlight.filter((other) => other.endpointAddress === this.endpointAddress)
      : [this];
    for (const transfer of affected) this.device.end(transfer, libusbTransferStatus.cancelled, 0);
    return true;
  }
}

export class FakeDevice implements LibusbDevice {
  readonly usb: FakeUsb;
  readonly busNumber: number;
  readonly deviceAddress: number;
  readonly portNumbers: readonly number[] | undefined;
  readonly deviceDescriptor: LibusbDeviceDescriptor;
  readonly #options: FakeDeviceOptions;

  isOpen = false;
  unplugged = false;
  /** Calls and transfers that keep the device from closing. */
  pending = 0;
  activeConfiguration: number;
  readonly claimed = new Set<number>();
  readonly claimedElsewhere: Set<number>;
  /** Driver by interface. */
  readonly drivers = new Map<number, string>();
  readonly inFlight: FakeTransfer[] = [];
  cancels = 0;
  onCancel: () => void = () => {};
  /** What was done to the device, in order. */
  readonly log: string[] = [];
  /** Errors of coming submits, in order; 0 lets one through. */
  submitErrors: number[] = [];
  /** Error by call ("claim 1"). */
  readonly failures = new Map<string, number>();
  openError: number | undefined;
  ignoresCancel = false;
  /** How transfers end that the kernel takes off their endpoints. */
  flushStatus = { status: libusbTransferStatus.noDevice as number, actualLength: 0 };
  /** Linux kills what is queued on an interface that is released. */
  releaseEndsTransfers = false;
  /** Answers control transfers: data, or a transfer status. */
  onControl: (setup: Buffer) => Uint8Array | number = () => new Uint8Array(0);

  constructor(usb: FakeUsb, options: FakeDeviceOptions) {
    this.usb = usb;
    this.#options = options;
    this.busNumber = options.busNumber ?? 1;
    this.deviceAddress = options.deviceAddress ?? 2;
    this.portNumbers = options.portNumbers ?? [1];
    this.deviceDescriptor = options.descriptor;
    this.activeConfiguration = options.activeConfiguration ?? 1;
    this.claimedElsewhere = new Set(options.claimedElsewhere);
    this.#appear();
  }

  get name(): string {
    return `${this.busNumber}-${this.portNumbers?.join('.') ?? ''}`;
  }

  #appear(): void {
    const value = this.activeConfiguration;
    for (const number of this.#options.interfaces?.[value] ?? []) {
      this.#options.sysfs?.addInterface(this.name, value, number);
    }
    for (const number of this.claimedElsewhere) this.#setDriver(number, 'usbfs');
    for (const driver of this.#options.kernelDrivers?.[value] ?? []) this.#bind(driver);
  }

  #setDriver(interfaceNumber: number, driver: string | undefined): void {
    if (driver === undefined) this.drivers.delete(interfaceNumber);
    else this.drivers.set(interfaceNumber, driver);
    this.#options.sysfs?.setDriver(this.name, this.activeConfiguration, interfaceNumber, driver);
  }

  #bind(driver: FakeKernelDriver): boolean {
    if (driver.interfaces.some((number) => this.drivers.has(number))) return false;
    for (const number of driver.interfaces) this.#setDriver(number, driver.name);
    return true;
  }

  #fail(call: string): void {
    this.log.push(call);
    if (!this.isOpen) throw new Error('Device is not opened');
    if (this.unplugged) throw libusbError(libusbErrors.noDevice);
    const errno = this.failures.get(call);
    if (errno !== undefined) throw libusbError(errno);
  }

  /** A call that runs in the thread pool. */
  #later(call: string, callback: LibusbCallback, work: () => number | undefined): void {
    if (!this.isOpen) throw new Error('Device is not opened');
    this.log.push(call);
    this.pending++;
    const run = (): void => {
      this.pending--;
      const errno = this.unplugged ? libusbErrors.noDevice : (this.failures.get(call) ?? work());
      callback(errno === undefined ? undefined : libusbError(errno));
    };
    if (this.failures.get(call) !== neverAnswers) this.usb.queue(run);
  }

  __open(): void {
    this.log.push('open');
    if (this.unplugged) throw libusbError(libusbErrors.noDevice);
    if (this.openError !== undefined) throw libusbError(this.openError);
    this.isOpen = true;
  }

  __close(): void {
    if (this.pending > 0) throw new Error("Can't close device with a pending request");
    this.log.push('close');
    this.isOpen = false;
    for (const number of this.claimed) this.#setDriver(number, undefined);
    this.claimed.clear();
  }

  __getConfigDescriptor(): LibusbConfigDescriptor {
    const found = this.#options.configurations?.find(
      ({ bConfigurationValue }) => bConfigurationValue === this.activeConfiguration,
    );
    if (found === undefined) throw libusbError(libusbErrors.notFound);
    return found;
  }

  __getAllConfigDescriptors(): LibusbConfigDescriptor[] {
    return [...(this.#options.configurations ?? [])];
  }

  __setConfiguration(value: number, callback: LibusbCallback): void {
    this.#later(`configure ${value}`, callback, () => {
      if (this.drivers.size > 0) return libusbErrors.busy;
      for (const number of this.#options.interfaces?.[this.activeConfiguration] ?? []) {
        this.#options.sysfs?.removeInterface(this.name, this.activeConfiguration, number);
      }
      this.activeConfiguration = value;
      this.#options.sysfs?.write(`sys/bus/usb/devices/${this.name}/bConfigurationValue`, `${value}\n`);
      this.#appear();
      return undefined;
    });
  }

  __claimInterface(interfaceNumber: number): void {
    this.#fail(`claim ${interfaceNumber}`);
    if (
      !(this.#options.interfaces?.[this.activeConfiguration] ?? [interfaceNumber]).includes(interfaceNumber)
    ) {
      throw libusbError(libusbErrors.notFound);
    }
    if (this.drivers.has(interfaceNumber)) throw libusbError(libusbErrors.busy);
    this.claimed.add(interfaceNumber);
    this.#setDriver(interfaceNumber, 'usbfs');
  }

  __releaseInterface(interfaceNumber: number, callback: LibusbCallback): void {
    this.#later(`release ${interfaceNumber}`, callback, () => {
      if (!this.claimed.delete(interfaceNumber)) return libusbErrors.notFound;
      this.#setDriver(interfaceNumber, undefined);
      if (this.releaseEndsTransfers) this.#flush(interfaceNumber);
      return undefined;
    });
  }

  __setInterface(interfaceNumber: number, alternateSetting: number, callback: LibusbCallback): void {
    this.#later(`alt ${interfaceNumber} ${alternateSetting}`, callback, () => {
      if (!this.claimed.has(interfaceNumber)) return libusbErrors.notFound;
      this.#flush(interfaceNumber);
      return undefined;
    });
  }

  __clearHalt(endpointAddress: number, callback: LibusbCallback): void {
    this.#later(`clear-halt ${endpointAddress}`, callback, () => undefined);
  }

  __isKernelDriverActive(interfaceNumber: number): boolean {
    if (this.usb.hasNoKernelDrivers) throw libusbError(libusbErrors.notSupported);
    const driver = this.drivers.get(interfaceNumber);
    return driver !== undefined && driver !== 'usbfs';
  }

  __detachKernelDriver(interfaceNumber: number): void {
    this.#fail(`detach ${interfaceNumber}`);
    const driver = this.drivers.get(interfaceNumber);
    if (driver === undefined || driver === 'usbfs') throw libusbError(libusbErrors.notFound);
    // A driver that has several interfaces leaves all of them.
    for (const [number, other] of this.drivers) if (other === driver) this.#setDriver(number, undefined);
  }

  __attachKernelDriver(interfaceNumber: number): void {
    this.#fail(`attach ${interfaceNumber}`);
    if (this.drivers.has(interfaceNumber)) throw libusbError(libusbErrors.busy);
    const driver = this.#options.kernelDrivers?.[this.activeConfiguration]?.find(
      ({ interfaces }) => interfaces[0] === interfaceNumber,
    );
    if (driver === undefined || !this.#bind(driver)) throw libusbError(libusbErrors.notFound);
  }

  reset(callback: LibusbCallback): void {
    this.#later('reset', callback, () => this.#flush());
  }

  /** The kernel takes off what is queued. The news may come after the answer. */
  #flush(interfaceNumber?: number): undefined {
    for (const transfer of this.inFlight.slice()) {
      if (transfer.endpointAddress === 0) continue;
      // The gadget's interrupt endpoint is on interface 0, the bulk endpoints are on interface 1.
      const owner = transfer.type === 3 ? 0 : 1;
      const applies = interfaceNumber === undefined || interfaceNumber === owner;
      if (applies) this.end(transfer, this.flushStatus.status, this.flushStatus.actualLength);
    }
  }

  // ---- what a test does ----

  handleSubmit(transfer: FakeTransfer): void {
    const { buffer } = transfer;
    if (transfer.endpointAddress !== 0 || buffer === undefined) return;
    const strings = this.#options.strings;
    const index = buffer[2] ?? 0;
    const text = strings?.[index];
    const answer =
      buffer[1] === 6 && buffer[3] === 3 && text !== undefined
        ? Buffer.concat([Buffer.from([2 + 2 * text.length, 3]), Buffer.from(text, 'utf16le')])
        : this.onControl(Buffer.from(buffer));
    if (typeof answer === 'number') {
      if (answer !== neverAnswers) this.end(transfer, answer, 0);
      return;
    }
    buffer.set(answer, 8);
    this.end(transfer, libusbTransferStatus.completed, answer.length);
  }

  /** The bus is done with a transfer; its callback comes with the next turn. */
  end(transfer: FakeTransfer, status: number, actualLength: number): void {
    const index = this.inFlight.indexOf(transfer);
    if (index < 0) throw new Error('not in flight');
    this.inFlight.splice(index, 1);
    this.usb.queue(() => {
      this.pending--;
      const { buffer } = transfer;
      transfer.buffer = undefined;
      transfer.cancelling = false;
      const error = status === 0 ? undefined : libusbError(status);
      transfer.callback(error, buffer ?? Buffer.alloc(0), actualLength);
    });
  }

  /** Pulls the plug: what is in flight comes back. */
  unplug(status: number = libusbTransferStatus.noDevice): void {
    this.unplugged = true;
    for (const transfer of this.inFlight.slice()) this.end(transfer, status, 0);
  }
}

/** As the errno of a call or a control transfer: its answer never comes. */
export const neverAnswers = 4711;

export class FakeUsb extends EventEmitter implements LibusbModule, LibusbHotplug {
  readonly INIT_ERROR: number = 0;
  readonly Transfer = FakeTransfer;
  readonly devices: FakeDevice[] = [];
  /** macOS: cancelling one transfer ends all on its endpoint. */
  abortsWholePipes = false;
  /** Windows. */
  hasNoKernelDrivers = false;
  transfersMade = 0;
  /** Exceptions that left a callback: in the real addon nobody would ever hear of them. */
  readonly vanishedExceptions: unknown[] = [];
  /** False: callbacks wait for {@link turn}. */
  automatic = true;
  readonly #queued: (() => void)[] = [];

  getDeviceList(): FakeDevice[] {
    return this.devices.filter((device) => !device.unplugged);
  }

  unrefHotplugEvents(): void {
    // Nothing holds the process.
  }

  queue(callback: () => void): void {
    this.#queued.push(callback);
    // One callback, then microtasks, as the addon does it.
    if (this.automatic) setImmediate(() => this.turn(1));
  }

  get queued(): number {
    return this.#queued.length;
  }

  /** Runs up to `count` callbacks that are waiting. */
  turn(count = Number.POSITIVE_INFINITY): void {
    for (let i = 0; i < count; i++) {
      const callback = this.#queued.shift();
      if (callback === undefined) return;
      try {
        callback();
      } catch (error) {
        this.vanishedExceptions.push(error);
      }
    }
  }

  addDevice(options: FakeDeviceOptions): FakeDevice {
    const device = new FakeDevice(this, options);
    this.devices.push(device);
    return device;
  }
}

/** @param later what further instances of the addon see */
export function loaderOf(usb: FakeUsb, later: () => FakeUsb = () => usb): LibusbLoader {
  return { load: () => Promise.resolve(usb), loadAgain: () => Promise.resolve(later()) };
}

export const ncmDeviceDescriptor: LibusbDeviceDescriptor = {
  bcdUSB: 0x0200,
  bDeviceClass: 0,
  bDeviceSubClass: 0,
  bDeviceProtocol: 0,
  bMaxPacketSize0: 64,
  idVendor: 0x1d6b,
  idProduct: 0x0103,
  bcdDevice: 0x0703,
  iManufacturer: 1,
  iProduct: 2,
  iSerialNumber: 3,
  bNumConfigurations: 1,
};
