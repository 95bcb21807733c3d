import type { LibusbDevice, LibusbHotplug } from './libusb-module.ts';
import type { LinuxUsbFiles, UsbAddress } from './linux-usb-files.ts';

/** Watches what is plugged in and out. */
export interface UsbWatch {
  stop(): void;
}

export interface UsbWatchListener {
  handleAttach(): void;
  handleDetach(device: UsbAddress): void;
}

/** Listens to libusb. Does not keep the process alive. */
export function watchLibusb(hotplug: LibusbHotplug, listener: UsbWatchListener): UsbWatch {
  const attach = (): void => listener.handleAttach();
  const detach = (device: LibusbDevice): void => listener.handleDetach(device);
  hotplug.on('attach', attach);
  hotplug.on('detach', detach);
  hotplug.unrefHotplugEvents();
  return {
    stop: () => {
      hotplug.off('attach', attach);
      hotplug.off('detach', detach);
    },
  };
}

const pollIntervalMs = 500;

/**
 * Looks into sysfs twice a second: for Linux without udev (containers, small systems). libusb hears of devices from
 * udev alone there; the package's own polling (`pollHotplug`) asks libusb and so never sees a change either. While nothing
 * happens a look is one number to read, since frames may have to be moved meanwhile.
 */
export function watchSysfs(files: LinuxUsbFiles, listener: UsbWatchListener): UsbWatch {
  let known: ReadonlyMap<string, UsbAddress> | undefined;
  let seenEvents: string | undefined;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  const look = async (): Promise<void> => {
    // Before what it counts is looked at: what changes meanwhile is seen next time.
    const events = await files.eventCount();
    if (events === undefined || events !== seenEvents) await lookClosely();
    seenEvents = events;
    if (!stopped) timer = setTimeout(() => void look(), pollIntervalMs).unref();
  };
  const lookClosely = async (): Promise<void> => {
    const now = new Map<string, UsbAddress>();
    for (const name of await files.names()) {
      const address = await files.address(name);
      if (address !== undefined) now.set(`${name}@${address.deviceAddress}`, address);
    }
    if (stopped) return;
    if (known !== undefined) {
      for (const [key, device] of known) if (!now.has(key)) listener.handleDetach(device);
      for (const key of now.keys()) if (!known.has(key)) listener.handleAttach();
    }
    known = now;
  };
  void look();
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
