import { constants } from 'node:fs';
import { access, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { UsbSpeed } from '../usbnet/transport.ts';
import type { InterfaceDriver } from './usb-bus.ts';

/** How the system numbers a device. */
export interface UsbAddress {
  readonly busNumber: number;
  /** Another one each time that the device is plugged in. */
  readonly deviceAddress: number;
}

/** What Linux's sysfs says of one USB device. */
export interface LinuxUsbDevice extends UsbAddress {
  /** The kernel's name: `<bus>-<port path>`. */
  readonly name: string;
  readonly speed: UsbSpeed;
  readonly manufacturer: string | undefined;
  readonly product: string | undefined;
  readonly serialNumber: string | undefined;
  readonly activeConfiguration: number | undefined;
  /** False: a policy (USBGuard) keeps the system from using it. */
  readonly authorized: boolean;
  /** Device descriptor and all configurations, as the device sent them. */
  readonly descriptors: Uint8Array;
  /** The Binary device Object Store; undefined: it has none, or the kernel (before 6.10) does not show it. */
  readonly bosDescriptor: Uint8Array | undefined;
  readonly interfaceDrivers: readonly InterfaceDriver[];
}

/** A program that has a device node open. */
export interface NodeHolder {
  readonly pid: number;
  readonly command: string;
}

/** What access(2) says of a device node. */
export type NodeAccess = 'ok' | 'denied' | 'missing';

const speeds: Readonly<Record<string, UsbSpeed>> = {
  '1.5': 'low',
  '12': 'full',
  '480': 'high',
  '5000': 'super',
  '10000': 'super-plus',
  '20000': 'super-plus',
};

/** `1-1.4`, but neither a root hub (`usb1`) nor an interface (`1-1.4:1.0`). */
const deviceName = /^\d+-\d+(\.\d+)*$/;

/** Linux's files about USB: sysfs, device nodes, and who has them open. Nothing here needs a permission to look. */
export class LinuxUsbFiles {
  readonly #root: string;

  /** @param root where the file system starts; for tests */
  constructor(root = '/') {
    this.#root = root;
  }

  /** The names of all devices that are plugged in, root hubs left out; empty if the kernel has no USB. */
  async names(): Promise<string[]> {
    const entries = await readdir(this.#path('sys/bus/usb/devices')).catch(() => []);
    return entries.filter((entry) => deviceName.test(entry)).sort(compareNames);
  }

  /** Undefined if the device is not there, or goes while it is looked at. */
  async read(name: string): Promise<LinuxUsbDevice | undefined> {
    const [descriptors, address] = await Promise.all([
      readFile(this.#devicePath(name, 'descriptors')).catch(() => undefined),
      this.address(name),
    ]);
    if (descriptors === undefined || address === undefined) return undefined;
    const [speed, manufacturer, product, serialNumber, activeConfiguration, authorized] = await Promise.all([
      this.#readText(name, 'speed'),
      this.#readText(name, 'manufacturer'),
      this.#readText(name, 'product'),
      this.#readText(name, 'serial'),
      this.#readNumber(name, 'bConfigurationValue'),
      this.#readNumber(name, 'authorized'),
    ]);
    return {
      ...address,
      name,
      speed: speeds[speed ?? ''] ?? 'unknown',
      manufacturer,
      product,
      serialNumber,
      activeConfiguration,
      authorized: authorized !== 0,
      descriptors: new Uint8Array(descriptors),
      bosDescriptor: await this.#readBytes(name, 'bos_descriptors'),
      interfaceDrivers: await this.interfaceDrivers(name),
    };
  }

  /** How a device is numbered; undefined once it is unplugged. */
  async address(name: string): Promise<UsbAddress | undefined> {
    const [busNumber, deviceAddress] = await Promise.all([
      this.#readNumber(name, 'busnum'),
      this.#readNumber(name, 'devnum'),
    ]);
    return busNumber === undefined || deviceAddress === undefined ? undefined : { busNumber, deviceAddress };
  }

  /**
   * A count that the kernel raises for whatever is plugged in or out, USB or not: as long as it stays the same, nothing has
   * changed. Undefined where it is not shown.
   */
  async eventCount(): Promise<string | undefined> {
    return readFile(this.#path('sys/kernel/uevent_seqnum'), 'utf8').catch(() => undefined);
  }

  /** Which interfaces of the active configuration have a driver, in the order of their numbers. */
  async interfaceDrivers(name: string): Promise<InterfaceDriver[]> {
    const drivers: InterfaceDriver[] = [];
    for (const entry of await this.interfaceNames(name)) {
      const target = await readlink(this.#devicePath(entry, 'driver')).catch(() => undefined);
      if (target !== undefined) {
        drivers.push({ interfaceNumber: interfaceNumberOf(entry), driver: basename(target) });
      }
    }
    return drivers;
  }

  /** The kernel's names of the interfaces of the active configuration (`1-1:1.0`), in the order of their numbers. */
  async interfaceNames(name: string): Promise<string[]> {
    const entries = await readdir(this.#devicePath(name)).catch(() => []);
    return entries
      .filter((entry) => entry.startsWith(`${name}:`))
      .sort((a, b) => interfaceNumberOf(a) - interfaceNumberOf(b));
  }

  /** The node through which a program reaches a device. */
  nodePath({ busNumber, deviceAddress }: UsbAddress): string {
    const threeDigits = (value: number): string => value.toString().padStart(3, '0');
    return `/dev/bus/usb/${threeDigits(busNumber)}/${threeDigits(deviceAddress)}`;
  }

  async nodeAccess(nodePath: string): Promise<NodeAccess> {
    try {
      await access(this.#path(nodePath), constants.R_OK | constants.W_OK);
      return 'ok';
    } catch {
      // Told apart without trusting the error: a folder that may not be entered denies, too.
      const node = await stat(this.#path(nodePath)).catch((error: NodeJS.ErrnoException) => error.code);
      return node === 'ENOENT' || node === 'ENOTDIR' ? 'missing' : 'denied';
    }
  }

  /** Other programs that have the node open; those of other users are seen by root only. */
  async holders(nodePath: string): Promise<NodeHolder[]> {
    const holders: NodeHolder[] = [];
    for (const entry of await readdir(this.#path('proc')).catch(() => [])) {
      const pid = Number(entry);
      if (!Number.isInteger(pid) || pid === process.pid) continue;
      if (await this.#hasOpen(entry, nodePath)) {
        const command = await readFile(this.#path('proc', entry, 'comm'), 'utf8').catch(() => '');
        holders.push({ pid, command: command.trim() });
      }
    }
    return holders;
  }

  async #hasOpen(pid: string, path: string): Promise<boolean> {
    const folder = this.#path('proc', pid, 'fd');
    for (const descriptor of await readdir(folder).catch(() => [])) {
      if ((await readlink(join(folder, descriptor)).catch(() => '')) === path) return true;
    }
    return false;
  }

  /** Asks the kernel to look for a driver for an interface that has none. @throws with `code` EACCES, ENODEV, … */
  async probeDriver(interfaceName: string): Promise<void> {
    await writeFile(this.#path('sys/bus/usb/drivers_probe'), interfaceName, { flag: 'r+' });
  }

  /** Whether udev runs: without it, libusb hears of nothing that is plugged in. */
  async udevRuns(): Promise<boolean> {
    return (await stat(this.#path('run/udev/control')).catch(() => undefined)) !== undefined;
  }

  async #readBytes(name: string, attribute: string): Promise<Uint8Array | undefined> {
    const bytes = await readFile(this.#devicePath(name, attribute)).catch(() => undefined);
    return bytes === undefined || bytes.length === 0 ? undefined : new Uint8Array(bytes);
  }

  async #readText(name: string, attribute: string): Promise<string | undefined> {
    const text = await readFile(this.#devicePath(name, attribute), 'utf8').catch(() => '');
    return text.trim() === '' ? undefined : text.trim();
  }

  async #readNumber(name: string, attribute: string): Promise<number | undefined> {
    const text = await this.#readText(name, attribute);
    return text === undefined || !/^\d+$/.test(text) ? undefined : Number(text);
  }

  #devicePath(name: string, ...rest: string[]): string {
    return this.#path('sys/bus/usb/devices', name, ...rest);
  }

  #path(...parts: string[]): string {
    return join(this.#root, ...parts);
  }
}

/** `1-1.4:2.10` → 10. */
function interfaceNumberOf(interfaceName: string): number {
  return Number(interfaceName.slice(interfaceName.lastIndexOf('.') + 1));
}

/** By bus, then by ports, as numbers. */
function compareNames(a: string, b: string): number {
  const left = a.split(/[-.]/).map(Number);
  const right = b.split(/[-.]/).map(Number);
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? -1) - (right[i] ?? -1);
    if (difference !== 0) return difference;
  }
  return 0;
}
