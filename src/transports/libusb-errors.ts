import { AppError, type ErrorDetails } from '../base/errors.ts';
import type { NodeHolder } from './linux-usb-files.ts';
import { libusbErrno, libusbErrors } from './libusb-status.ts';
import type { UsbPlatform } from './usb-platform.ts';

/** The device that an error is about, as far as its texts need it. */
export interface FailedDevice {
  readonly id: string;
  readonly vendorId: number;
  readonly productId: number;
  /** Linux: the node through which the device is opened. */
  readonly nodePath: string | undefined;
}

/** Sorts before 73-seat-late.rules, which is what turns the tag `uaccess` into a permission. */
export const udevRulesFile = '/etc/udev/rules.d/70-queuescope.rules';

function hexId(id: number): string {
  return id.toString(16).padStart(4, '0');
}

/** The line that lets whoever sits at the machine use such devices. */
export function udevRule(vendorId: number, productId: number): string {
  return (
    `SUBSYSTEM=="usb", ATTR{idVendor}=="${hexId(vendorId)}", ATTR{idProduct}=="${hexId(productId)}", ` +
    'MODE="0660", TAG+="uaccess"'
  );
}

/** What to do about a device that may not be opened. */
export function accessRemedy(device: FailedDevice, platform: UsbPlatform, udevRuns: boolean): string {
  switch (platform) {
    case 'linux': {
      const node = device.nodePath ?? 'its node below /dev/bus/usb';
      if (!udevRuns) {
        return `No udev runs on this machine. Until the device is plugged in again, root can allow it with\nchmod a+rw ${node}`;
      }
      return [
        `As root, put this line into ${udevRulesFile}:`,
        udevRule(device.vendorId, device.productId),
        'then run',
        `udevadm control --reload-rules && udevadm trigger ${node}`,
        'The rule serves who sits at the machine. For a login over SSH append , GROUP="plugdev" to it and join that group.',
      ].join('\n');
    }
    case 'darwin':
      return 'macOS lets a program take a device from its driver only as root (sudo). A device without a driver can be used without.';
    case 'win32':
      return 'Give the interfaces the WinUSB driver with Zadig (zadig.akeo.ie). To undo it, remove the device with its driver in the Device Manager and plug it in again.';
    case 'other':
      return 'Run the program as a user who may open USB devices.';
  }
}

/** Opening the device was refused. */
export function accessDenied(
  device: FailedDevice,
  platform: UsbPlatform,
  udevRuns: boolean,
  cause: unknown,
): AppError {
  const where = device.nodePath === undefined ? '' : ` (${device.nodePath})`;
  return new AppError('access-denied', `There is no permission to open ${device.id}${where}`, {
    details: detailsOf(device),
    remedy: accessRemedy(device, platform, udevRuns),
    cause,
  });
}

/** What to do where a device has no node. */
export const missingNodeRemedy = 'In a container, pass /dev/bus/usb through to it.';

/** The system knows the device, but there is no node to open it by. */
export function noDeviceNode(device: FailedDevice, cause: unknown): AppError {
  return new AppError('access-denied', `There is no device node ${device.nodePath ?? ''} for ${device.id}`, {
    details: detailsOf(device),
    remedy: missingNodeRemedy,
    cause,
  });
}

/** Who keeps us from an interface, as far as it can be told. */
export interface InterfaceOwner {
  /** Undefined: the device as a whole. */
  readonly interfaceNumber: number | undefined;
  /** Driver in the kernel; `usbfs` stands for a program. */
  readonly driver: string | undefined;
  readonly holders: readonly NodeHolder[];
}

export function describeHolders(holders: readonly NodeHolder[]): string {
  if (holders.length === 0) return 'another program';
  return holders.map((holder) => `${holder.command} (process ${holder.pid})`).join(', ');
}

/** Someone else has an interface. */
export function deviceBusy(device: FailedDevice, owner: InterfaceOwner, cause: unknown): AppError {
  const isProgram = owner.driver === undefined || owner.driver === 'usbfs';
  const who = isProgram ? describeHolders(owner.holders) : `the kernel driver ${owner.driver}`;
  const holder = owner.holders[0];
  const { interfaceNumber } = owner;
  const what = interfaceNumber === undefined ? device.id : `Interface ${interfaceNumber} of ${device.id}`;
  return new AppError('device-busy', `${what} is in use by ${who}`, {
    details: {
      ...detailsOf(device),
      ...(interfaceNumber === undefined ? {} : { interfaceNumber }),
      ...(isProgram ? {} : { driver: owner.driver ?? '' }),
      ...(holder === undefined || !isProgram ? {} : { pid: holder.pid, command: holder.command }),
    },
    remedy: isProgram
      ? 'End that program, or let it let go of the device, and try again.'
      : 'Try again; if the driver takes the interface back each time, unload its module while the device is driven from here.',
    cause,
  });
}

/** A failure of libusb as the user meets it. @param doing what failed ("open usb:1-1"), for the message */
export function libusbFailure(device: FailedDevice, doing: string, thrown: unknown): AppError {
  const errno = libusbErrno(thrown);
  const options = { details: detailsOf(device), cause: thrown };
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  if (errno === libusbErrors.noDevice) {
    return new AppError('device-gone', `${device.id} went away: could not ${doing}`, options);
  }
  return new AppError('device-failed', `Could not ${doing} on ${device.id} (${reason})`, options);
}

export function noSuchDevice(id: string): AppError {
  return new AppError('no-such-device', `There is no USB device ${id}`, { details: { id } });
}

function detailsOf(device: FailedDevice): ErrorDetails {
  return {
    id: device.id,
    vendorId: device.vendorId,
    productId: device.productId,
    ...(device.nodePath === undefined ? {} : { nodePath: device.nodePath }),
  };
}
