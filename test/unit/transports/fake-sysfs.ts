import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A folder that looks like the parts of a Linux file system that matter for USB. */
export class FakeSysfs {
  readonly root = mkdtempSync(join(tmpdir(), 'queuescope-sysfs-'));

  constructor(options: { readonly udev?: boolean } = {}) {
    mkdirSync(join(this.root, 'sys/bus/usb/devices'), { recursive: true });
    mkdirSync(join(this.root, 'proc'), { recursive: true });
    if (options.udev === true) this.write('run/udev/control', '');
  }

  write(path: string, content: string | Uint8Array): void {
    const full = join(this.root, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, content);
  }

  /** @param attributes overrides and additions, by file name */
  addDevice(
    name: string,
    address: number,
    descriptors: Uint8Array,
    attributes: Readonly<Record<string, string>> = {},
  ): void {
    const bus = name.split('-')[0] ?? '';
    const files = {
      busnum: bus,
      devnum: `${address}`,
      speed: '480',
      bConfigurationValue: '1',
      authorized: '1',
      ...attributes,
    };
    for (const [file, content] of Object.entries(files)) {
      this.write(`sys/bus/usb/devices/${name}/${file}`, `${content}\n`);
    }
    this.write(`sys/bus/usb/devices/${name}/descriptors`, descriptors);
    this.write(this.nodePath(name, address), '');
  }

  removeDevice(name: string): void {
    rmSync(join(this.root, 'sys/bus/usb/devices', name), { recursive: true });
  }

  /** Interfaces of a configuration appear both beside their device and inside it, as in the real one. */
  addInterface(deviceName: string, configuration: number, interfaceNumber: number): void {
    const entry = `${deviceName}:${configuration}.${interfaceNumber}`;
    mkdirSync(join(this.root, 'sys/bus/usb/devices', deviceName, entry), { recursive: true });
    symlinkSync(join(deviceName, entry), join(this.root, 'sys/bus/usb/devices', entry));
  }

  removeInterface(deviceName: string, configuration: number, interfaceNumber: number): void {
    const entry = `${deviceName}:${configuration}.${interfaceNumber}`;
    rmSync(join(this.root, 'sys/bus/usb/devices', entry), { force: true });
    rmSync(join(this.root, 'sys/bus/usb/devices', deviceName, entry), { recursive: true, force: true });
  }

  setDriver(
    deviceName: string,
    configuration: number,
    interfaceNumber: number,
    driver: string | undefined,
  ): void {
    const folder = join(
      this.root,
      'sys/bus/usb/devices',
      deviceName,
      `${deviceName}:${configuration}.${interfaceNumber}`,
    );
    rmSync(join(folder, 'driver'), { force: true });
    if (driver !== undefined) symlinkSync(`../../../drivers/${driver}`, join(folder, 'driver'));
  }

  /** A program that has a file open. */
  addProcess(pid: number, command: string, openPath: string): void {
    this.write(`proc/${pid}/comm`, `${command}\n`);
    mkdirSync(join(this.root, `proc/${pid}/fd`), { recursive: true });
    symlinkSync(openPath, join(this.root, `proc/${pid}/fd/19`));
  }

  nodePath(name: string, address: number): string {
    const bus = name.split('-')[0] ?? '';
    return `/dev/bus/usb/${bus.padStart(3, '0')}/${address.toString().padStart(3, '0')}`;
  }

  dispose(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
