import { createRequire } from 'node:module';

/**
 * The part of the npm package `usb` (2.18) that is used here, as types of our own so that a test can stand in for it.
 *
 * It is the layer of the addon itself. The package's `Interface` objects are left alone: they address interfaces by
 * their position in the configuration instead of by `bInterfaceNumber`, and so claim the wrong one on every device
 * whose numbers have gaps, as those of most modems do.
 */

/** What the addon throws or passes to callbacks. Failed calls have a negative errno, failed transfers a positive. */
export interface LibusbError extends Error {
  readonly errno?: number;
}

export type LibusbTransferCallback = (
  error: LibusbError | undefined,
  buffer: Buffer,
  actualLength: number,
) => void;

export type LibusbCallback = (error?: LibusbError) => void;

/** One `libusb_transfer`. Once `submit` has thrown it can't be used any more (2.18.0 takes it for active). */
export interface LibusbTransfer {
  submit(buffer: Buffer): unknown;
  /** False: it was not in flight. */
  cancel(): boolean;
}

export interface LibusbEndpointDescriptor {
  readonly bLength: number;
  readonly bDescriptorType: number;
  readonly bEndpointAddress: number;
  readonly bmAttributes: number;
  readonly wMaxPacketSize: number;
  readonly bInterval: number;
  readonly bRefresh: number;
  readonly bSynchAddress: number;
  readonly extra: Buffer;
}

export interface LibusbInterfaceDescriptor {
  readonly bLength: number;
  readonly bDescriptorType: number;
  readonly bInterfaceNumber: number;
  readonly bAlternateSetting: number;
  readonly bNumEndpoints: number;
  readonly bInterfaceClass: number;
  readonly bInterfaceSubClass: number;
  readonly bInterfaceProtocol: number;
  readonly iInterface: number;
  readonly extra: Buffer;
  readonly endpoints: readonly LibusbEndpointDescriptor[];
}

export interface LibusbConfigDescriptor {
  readonly bLength: number;
  readonly bDescriptorType: number;
  readonly wTotalLength: number;
  readonly bNumInterfaces: number;
  readonly bConfigurationValue: number;
  readonly iConfiguration: number;
  readonly bmAttributes: number;
  readonly bMaxPower: number;
  readonly extra: Buffer;
  readonly interfaces: readonly (readonly LibusbInterfaceDescriptor[])[];
}

export interface LibusbDeviceDescriptor {
  readonly bcdUSB: number;
  readonly bDeviceClass: number;
  readonly bDeviceSubClass: number;
  readonly bDeviceProtocol: number;
  readonly bMaxPacketSize0: number;
  readonly idVendor: number;
  readonly idProduct: number;
  readonly bcdDevice: number;
  readonly iManufacturer: number;
  readonly iProduct: number;
  readonly iSerialNumber: number;
  readonly bNumConfigurations: number;
}

/**
 * What is done with a device in order to drive it. All calls without a callback block until they are done. (A
 * `UsbfsDevice` offers the same without libusb.)
 */
export interface LibusbHandle {
  readonly busNumber: number;
  readonly deviceAddress: number;

  __open(): void;
  /** Throws while a transfer or another call with a callback is pending. */
  __close(): void;
  __setConfiguration(value: number, callback: LibusbCallback): void;
  __claimInterface(interfaceNumber: number): void;
  __releaseInterface(interfaceNumber: number, callback: LibusbCallback): void;
  __setInterface(interfaceNumber: number, alternateSetting: number, callback: LibusbCallback): void;
  __clearHalt(endpointAddress: number, callback: LibusbCallback): void;
  __isKernelDriverActive(interfaceNumber: number): boolean;
  __detachKernelDriver(interfaceNumber: number): void;
  __attachKernelDriver(interfaceNumber: number): void;
  reset(callback: LibusbCallback): void;
}

/** A device that libusb knows. */
export interface LibusbDevice extends LibusbHandle {
  /** Absent for root hubs, and where the system does not tell. */
  readonly portNumbers?: readonly number[] | undefined;
  readonly deviceDescriptor: LibusbDeviceDescriptor;
  __getConfigDescriptor(): LibusbConfigDescriptor;
  __getAllConfigDescriptors(): LibusbConfigDescriptor[];
}

/**
 * Makes transfers for one device.
 * @param timeoutMs 0: none
 */
export type CreateTransfer = (
  endpointAddress: number,
  type: number,
  timeoutMs: number,
  callback: LibusbTransferCallback,
) => LibusbTransfer;

export interface LibusbModule {
  /** 0, or why libusb could not be initialised; nothing else is usable then. */
  readonly INIT_ERROR: number;
  readonly Transfer: new (
    device: LibusbDevice,
    endpointAddress: number,
    type: number,
    timeoutMs: number,
    callback: LibusbTransferCallback,
  ) => LibusbTransfer;
  getDeviceList(): LibusbDevice[];
}

/** How the addon makes transfers for a device. */
export function transfersOf(module: LibusbModule, handle: LibusbDevice): CreateTransfer {
  return (endpointAddress, type, timeoutMs, callback) =>
    new module.Transfer(handle, endpointAddress, type, timeoutMs, callback);
}

/** The package's events, from the first instance of the addon only. */
export interface LibusbHotplug {
  on(event: 'attach' | 'detach', listener: (device: LibusbDevice) => void): unknown;
  off(event: 'attach' | 'detach', listener: (device: LibusbDevice) => void): unknown;
  /** Listening no longer keeps the process alive. */
  unrefHotplugEvents(): void;
}

/** How the addon comes into the process. */
export interface LibusbLoader {
  /** The package. Loads it at the first call. @throws whatever loading it throws (a library is missing) */
  load(): Promise<LibusbModule & LibusbHotplug>;
  /**
   * Another instance of the addon, with a libusb context of its own. On Linux libusb learns of new devices from udev
   * alone, and only a new context looks for itself. Each one costs a sleeping thread until the process ends.
   */
  loadAgain(): Promise<LibusbModule>;
}

/** Loads the real package. */
export const libusbLoader: LibusbLoader = {
  async load() {
    const { usb } = await import('usb');
    // The package's own types name its classes, and so fit no stand-in; a unit test checks that all of this is there.
    return usb as unknown as LibusbModule & LibusbHotplug;
  },

  async loadAgain() {
    await this.load();
    const require = createRequire(import.meta.url);
    const addon = Object.keys(require.cache).find((path) => /[\\/]usb[\\/].*\.node$/.test(path));
    if (addon === undefined) throw new Error('the addon of the package usb was not found');
    const first = require.cache[addon];
    // Node runs an addon's initialisation once for each time that its file is required anew.
    delete require.cache[addon];
    try {
      return require(addon) as LibusbModule;
    } finally {
      require.cache[addon] = first;
    }
  },
};
