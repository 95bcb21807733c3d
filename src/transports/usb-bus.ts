import type { Event } from '../base/emitter.ts';
import type { AppError } from '../base/errors.ts';
import type { Transport, UsbSpeed } from '../usbnet/transport.ts';
import type { ConfigurationDescriptor, DeviceDescriptor } from '../wire/usb-descriptor.ts';

/** Which driver of the operating system has an interface. `usbfs` (Linux) stands for a program. */
export interface InterfaceDriver {
  readonly interfaceNumber: number;
  readonly driver: string;
}

/** A lasting fault of one device, as far as it can be seen without opening it. */
export interface UsbBusProblem {
  /** Stable within the device: `access-denied`, `no-node`, `not-authorized`, `in-use`, `bad-descriptors`. */
  readonly id: string;
  readonly severity: 'info' | 'warning' | 'error';
  /** What is wrong, one sentence. */
  readonly message: string;
  /** What to do about it; commands stand on lines of their own. */
  readonly remedy?: string;
}

/** A device on a bus, described without opening it wherever that can be done. Hubs are left out. */
export interface UsbBusDevice {
  /** `usb:<bus>-<port path>` (`usb:1-1.4`), or what the bus calls it. Stable while the device stays plugged in. */
  readonly id: string;
  readonly vendorId: number;
  readonly productId: number;
  /** The device's own strings; undefined if it has none or they could not be read. */
  readonly manufacturer: string | undefined;
  readonly product: string | undefined;
  readonly serialNumber: string | undefined;
  readonly speed: UsbSpeed;
  /** Whether the device says that it can do USB 3, whatever it runs at now; absent: not known. */
  readonly isSuperSpeedCapable?: boolean;
  readonly descriptor: DeviceDescriptor;
  /** All configurations whose descriptors make sense, in the device's order. */
  readonly configurations: readonly ConfigurationDescriptor[];
  /** `bConfigurationValue` of the active one; undefined: the device is not configured. */
  readonly activeConfiguration: number | undefined;
  /** Interfaces of the active configuration that have a driver, as far as the system tells. */
  readonly interfaceDrivers: readonly InterfaceDriver[];
  readonly problems: readonly UsbBusProblem[];
}

/** What a driver needs of a device. */
export interface OpenRequest {
  /** `bInterfaceNumber`s to claim; no others are touched. */
  readonly interfaces: readonly number[];
  /** `bConfigurationValue`; absent: the active one. */
  readonly configurationValue?: number;
  /**
   * Gets what a {@link Transport} handler throws. It must stop the session: the state of whoever threw is unknown.
   * Absent: it is logged.
   */
  readonly onHandlerError?: (error: unknown) => void;
}

/** Something that a close could not give back. */
export interface NotReturned {
  /** What, and why; one sentence. */
  readonly message: string;
  readonly remedy?: string;
}

/** How far a device could be given back in the state in which it was found. */
export interface CloseReport {
  /** Interfaces that have their driver of before again. */
  readonly reattached: readonly InterfaceDriver[];
  /** Empty: all is as it was. */
  readonly notReturned: readonly NotReturned[];
  /** Transfers whose end the bus never told; they were reported to the handler as `gone`. */
  readonly transfersLost: number;
}

/** A device that is open for us alone. */
export interface UsbLease {
  readonly id: string;
  readonly transport: Transport;
  /**
   * Ends everything that is out, waits for it, and gives the device back. Takes at most {@link closeLimitMs}, never
   * fails, and may be called again: the first report is the answer.
   */
  close(): Promise<CloseReport>;
}

/** The longest that closing one device takes. Several are closed side by side. */
export const closeLimitMs = 5000;

/** Where USB devices are found and opened: the machine's own bus, or that of a USB/IP server. */
export interface UsbBus {
  /** What is plugged in now; empty if there is no USB at all. */
  list(): Promise<readonly UsbBusDevice[]>;

  /** Something was plugged in or out. Comes once things have settled; {@link list} says what there is. */
  readonly onChange: Event<void>;

  /** Why no device can be opened at all (a library is missing, a server does not answer); undefined: nothing. */
  unavailable(): Promise<AppError | undefined>;

  /**
   * Opens a device and claims interfaces, taking them from their drivers. On failure everything is as before.
   * @throws AppError `no-such-device`, `access-denied`, `device-busy`, `device-gone`, `device-failed`, `bad-input`
   */
  open(id: string, request: OpenRequest): Promise<UsbLease>;

  /** Closes every open device, opened or still opening, within {@link closeLimitMs}. For the end of the program. */
  closeAll(): Promise<readonly CloseReport[]>;
}
