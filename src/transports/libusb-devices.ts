import { AppError } from '../base/errors.ts';
import type { UsbSpeed } from '../usbnet/transport.ts';
import type { ConfigurationDescriptor } from '../wire/usb-descriptor.ts';
import { type DeviceDescriptors, inferSpeed, parseDeviceDescriptors } from './device-descriptors.ts';
import { configurationBytesFromLibusb, deviceDescriptorFromLibusb } from './libusb-descriptors.ts';
import { accessRemedy, describeHolders, type FailedDevice, missingNodeRemedy } from './libusb-errors.ts';
import {
  type CreateTransfer,
  type LibusbDevice,
  type LibusbHandle,
  type LibusbHotplug,
  type LibusbLoader,
  type LibusbModule,
  transfersOf,
} from './libusb-module.ts';
import { type DeviceStrings, readDeviceStrings } from './libusb-strings.ts';
import { parseBosDescriptor } from '../wire/usb-bos.ts';
import type { LinuxUsbDevice, LinuxUsbFiles } from './linux-usb-files.ts';
import { parseConfigurationDescriptor } from '../wire/usb-descriptor.ts';
import type { InterfaceDriver, OpenRequest, UsbBusDevice, UsbBusProblem } from './usb-bus.ts';
import type { UsbPlatform } from './usb-platform.ts';
import { type UsbfsAccess, UsbfsDevice } from './usbfs-device.ts';

const hubClass = 9;
const idPrefix = 'usb:';

/** A device with everything that is needed to open it. */
export interface FoundDevice {
  readonly info: UsbBusDevice;
  readonly handle: LibusbHandle;
  readonly createTransfer: CreateTransfer;
  /** The value of the configuration that it is in now, where it is not for sysfs to say. */
  readonly activeConfiguration?: () => number | undefined;
  readonly failed: FailedDevice;
}

export interface LibusbDevicesOptions {
  readonly loader: LibusbLoader;
  readonly platform: UsbPlatform;
  /** Linux only. */
  readonly files: LinuxUsbFiles | undefined;
  /** Linux: devices are opened through usbfs directly; undefined: through libusb. */
  readonly usbfs?: UsbfsAccess | undefined;
  /** Whether a device is open in this program: such a handle must be left alone. */
  readonly isOpenHere: (id: string) => boolean;
}

/** Lists and describes devices: on Linux from sysfs, elsewhere from libusb. */
export class LibusbDevices {
  readonly #options: LibusbDevicesOptions;
  #loading: Promise<LibusbModule & LibusbHotplug> | undefined;
  /** The instance whose list is the latest. */
  #latest: LibusbModule | undefined;
  readonly #strings = new WeakMap<LibusbDevice, DeviceStrings>();

  constructor(options: LibusbDevicesOptions) {
    this.#options = options;
  }

  /** The package `usb`. @throws AppError if it can't be used on this machine */
  load(): Promise<LibusbModule & LibusbHotplug> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  async #load(): Promise<LibusbModule & LibusbHotplug> {
    let module: LibusbModule & LibusbHotplug;
    try {
      module = await this.#options.loader.load();
    } catch (error) {
      throw unusable(error instanceof Error ? error.message : String(error), error);
    }
    if (module.INIT_ERROR !== 0) throw unusable(`libusb_init: error ${module.INIT_ERROR}`, undefined);
    return module;
  }

  async list(): Promise<readonly UsbBusDevice[]> {
    const { files } = this.#options;
    if (files !== undefined) {
      const devices = await Promise.all((await files.names()).map((name) => this.#describeByName(name)));
      return devices.filter((device) => device !== undefined);
    }
    let module: LibusbModule;
    try {
      module = await this.load();
    } catch {
      return [];
    }
    const devices: UsbBusDevice[] = [];
    for (const handle of module.getDeviceList()) {
      if (handle.deviceDescriptor.bDeviceClass === hubClass) continue;
      devices.push(await this.#describe(module, handle));
    }
    return devices;
  }

  /** Undefined: there is no such device. @throws AppError if libusb can't be used */
  async find(id: string): Promise<FoundDevice | undefined> {
    const { files } = this.#options;
    if (files === undefined) {
      const module = await this.load();
      const handle = module.getDeviceList().find((device) => idOf(device) === id);
      if (handle === undefined) return undefined;
      const info = await this.#describe(module, handle);
      return { info, ...withTransfers(module, handle), failed: failedDevice(info, undefined) };
    }

    const device = id.startsWith(idPrefix) ? await files.read(id.slice(idPrefix.length)) : undefined;
    const info = device === undefined ? undefined : await this.#describeLinux(device);
    if (device === undefined || info === undefined) return undefined;
    const nodePath = files.nodePath(device);
    const failed = failedDevice(info, nodePath);
    const { usbfs } = this.#options;
    if (usbfs !== undefined) {
      const handle = new UsbfsDevice(usbfs, nodePath, device);
      return { info, handle, createTransfer: handle.createTransfer.bind(handle), failed };
    }
    await this.load();
    for (const renew of [false, true]) {
      const module = await this.#instance(renew);
      const handle = module
        .getDeviceList()
        .find(
          (other) => other.busNumber === device.busNumber && other.deviceAddress === device.deviceAddress,
        );
      if (handle !== undefined) return { info, ...withTransfers(module, handle), failed };
    }
    return undefined;
  }

  /** @param renew looks for devices anew: libusb may not have heard of one (no udev, or not yet) */
  async #instance(renew: boolean): Promise<LibusbModule> {
    if (renew) this.#latest = await this.#options.loader.loadAgain();
    this.#latest ??= await this.load();
    return this.#latest;
  }

  /** Who has the interfaces now. @param found open, where it is not for sysfs to say */
  async readDrivers(found: FoundDevice): Promise<readonly InterfaceDriver[]> {
    const { files } = this.#options;
    if (files !== undefined) return files.interfaceDrivers(found.info.id.slice(idPrefix.length));
    const configuration = activeConfigurationOf(found.info.configurations, found.activeConfiguration?.());
    const drivers: InterfaceDriver[] = [];
    for (const { number } of configuration?.interfaces ?? []) {
      try {
        if (found.handle.__isKernelDriverActive(number)) {
          drivers.push({ interfaceNumber: number, driver: 'of the system' });
        }
      } catch {
        // Nothing that this system can tell.
      }
    }
    return drivers;
  }

  // ---- Linux ----

  async #describeByName(name: string): Promise<UsbBusDevice | undefined> {
    const device = await this.#options.files?.read(name);
    return device === undefined ? undefined : this.#describeLinux(device);
  }

  /** Undefined for hubs, and for what has no device descriptor. */
  async #describeLinux(device: LinuxUsbDevice): Promise<UsbBusDevice | undefined> {
    const parsed = parseDeviceDescriptors(device.descriptors, device.speed);
    if (parsed === undefined || parsed.descriptor.deviceClass === hubClass) return undefined;
    const { descriptor, configurations } = parsed;
    return {
      id: idPrefix + device.name,
      vendorId: descriptor.vendorId,
      productId: descriptor.productId,
      manufacturer: device.manufacturer,
      product: device.product,
      serialNumber: device.serialNumber,
      speed: device.speed,
      ...superSpeedOf(device.bosDescriptor),
      descriptor,
      configurations,
      activeConfiguration: device.activeConfiguration,
      interfaceDrivers: device.interfaceDrivers,
      problems: await this.#linuxProblems(device, parsed),
    };
  }

  async #linuxProblems(device: LinuxUsbDevice, parsed: DeviceDescriptors): Promise<UsbBusProblem[]> {
    const { files } = this.#options;
    if (files === undefined) return [];
    const problems = descriptorProblems(parsed.problems);
    const { vendorId, productId } = parsed.descriptor;
    const id = idPrefix + device.name;
    const nodePath = files.nodePath(device);
    const nodeAccess = await files.nodeAccess(nodePath);
    if (nodeAccess === 'denied') {
      problems.push({
        id: 'access-denied',
        severity: 'error',
        message: `There is no permission to open ${nodePath}.`,
        remedy: accessRemedy({ id, vendorId, productId, nodePath }, 'linux', await files.udevRuns()),
      });
    } else if (nodeAccess === 'missing') {
      problems.push({
        id: 'no-node',
        severity: 'error',
        message: `There is no device node ${nodePath}.`,
        remedy: missingNodeRemedy,
      });
    }
    if (!device.authorized) {
      problems.push({
        id: 'not-authorized',
        severity: 'error',
        message: 'A policy of this system (USBGuard, for one) keeps the device from being used.',
        remedy: `Allow the device there, or as root run\necho 1 > /sys/bus/usb/devices/${device.name}/authorized`,
      });
    }
    const program = device.interfaceDrivers.find(({ driver }) => driver === 'usbfs');
    if (program !== undefined && !this.#options.isOpenHere(id)) {
      const holders = await files.holders(nodePath);
      problems.push({
        id: 'in-use',
        severity: 'warning',
        message: `Interface ${program.interfaceNumber} is in use by ${describeHolders(holders)}.`,
      });
    }
    return problems;
  }

  // ---- other systems ----

  async #describe(module: LibusbModule, handle: LibusbDevice): Promise<UsbBusDevice> {
    const id = idOf(handle);
    const descriptor = deviceDescriptorFromLibusb(handle.deviceDescriptor);
    const configurations: ConfigurationDescriptor[] = [];
    const broken: string[] = [];
    try {
      for (const configuration of handle.__getAllConfigDescriptors()) {
        const parsed = parseConfigurationDescriptor(configurationBytesFromLibusb(configuration));
        if (parsed.ok) configurations.push(parsed.value);
        else broken.push(parsed.problem);
      }
    } catch (error) {
      broken.push(`libusb has no configurations (${String(error)})`);
    }
    const speed: UsbSpeed = inferSpeed(descriptor, configurations);
    const strings = await this.#stringsOf(module, handle);
    return {
      id,
      vendorId: descriptor.vendorId,
      productId: descriptor.productId,
      ...strings,
      speed,
      descriptor,
      configurations,
      activeConfiguration: activeValueOf(handle),
      interfaceDrivers: [],
      problems: descriptorProblems(broken),
    };
  }

  /** Names have to be asked of the device, which opens it for a moment: once, whatever comes of it. */
  async #stringsOf(module: LibusbModule, handle: LibusbDevice): Promise<DeviceStrings> {
    const known = this.#strings.get(handle);
    if (known !== undefined) return known;
    const none: DeviceStrings = { manufacturer: undefined, product: undefined, serialNumber: undefined };
    if (this.#options.isOpenHere(idOf(handle))) return none;
    const strings = await readDeviceStrings(module, handle).catch(() => none);
    this.#strings.set(handle, strings);
    return strings;
  }
}

/** The configuration that a request is about. @throws AppError `bad-input` if the device has no such thing */
export function findConfiguration(info: UsbBusDevice, request: OpenRequest): ConfigurationDescriptor {
  const value = request.configurationValue ?? info.activeConfiguration ?? info.configurations[0]?.value;
  const configuration = activeConfigurationOf(info.configurations, value);
  const details = { id: info.id };
  if (configuration === undefined) {
    throw new AppError('bad-input', `${info.id} has no configuration ${value ?? ''}`, { details });
  }
  for (const wanted of request.interfaces) {
    if (configuration.interfaces.some(({ number }) => number === wanted)) continue;
    throw new AppError('bad-input', `${info.id} has no interface ${wanted}`, { details });
  }
  return configuration;
}

function activeConfigurationOf(
  configurations: readonly ConfigurationDescriptor[],
  value: number | undefined,
): ConfigurationDescriptor | undefined {
  return configurations.find((configuration) => configuration.value === value);
}

function activeValueOf(handle: LibusbDevice): number | undefined {
  try {
    return handle.__getConfigDescriptor().bConfigurationValue;
  } catch {
    return undefined;
  }
}

function withTransfers(
  module: LibusbModule,
  handle: LibusbDevice,
): Pick<FoundDevice, 'handle' | 'createTransfer' | 'activeConfiguration'> {
  return {
    handle,
    createTransfer: transfersOf(module, handle),
    activeConfiguration: () => activeValueOf(handle),
  };
}

function idOf(device: LibusbDevice): string {
  const path = device.portNumbers?.join('.') ?? `@${device.deviceAddress}`;
  return `${idPrefix}${device.busNumber}-${path}`;
}

function failedDevice(info: UsbBusDevice, nodePath: string | undefined): FailedDevice {
  return { id: info.id, vendorId: info.vendorId, productId: info.productId, nodePath };
}

function descriptorProblems(problems: readonly string[]): UsbBusProblem[] {
  return problems.length === 0
    ? []
    : [
        {
          id: 'bad-descriptors',
          severity: 'warning',
          message: `A configuration of the device can't be read: ${problems.join('; ')}.`,
        },
      ];
}

function unusable(reason: string, cause: unknown): AppError {
  return new AppError('device-failed', `USB devices cannot be opened on this machine (${reason})`, {
    remedy: 'On Linux, libusb needs libudev: install the package libudev1 (Debian) or systemd-libs.',
    cause,
  });
}

function superSpeedOf(bosDescriptor: Uint8Array | undefined): Pick<UsbBusDevice, 'isSuperSpeedCapable'> {
  if (bosDescriptor === undefined) return {};
  const parsed = parseBosDescriptor(bosDescriptor);
  return parsed.ok ? { isSuperSpeedCapable: parsed.value.superSpeed !== undefined } : {};
}
