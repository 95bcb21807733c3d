import type { Event } from '../base/emitter.ts';
import type { Device } from '../contract/device.ts';
import type { OpenDevice } from './opened-device.ts';

/** A device that can be listed, and opened if it can be driven. */
export interface ListedDevice {
  readonly device: Device;
  /** Undefined: nothing here drives it; `device.reason` says why. */
  readonly open: OpenDevice | undefined;
  /**
   * Which one it is among those that could be at its place: ids and serial number. Something else at the place of a device
   * that went away is not that device come back. Absent: that can't be told.
   */
  readonly identity?: string;
}

/** One of the ways to devices: the USB bus, the simulator, … */
export interface DeviceSource {
  list(): Promise<readonly ListedDevice[]>;
  /** A device that is not listed, or not yet, but has this id. */
  find?(deviceId: string): Promise<ListedDevice | undefined>;
  /** What {@link list} answers may have changed. */
  readonly onChange: Event<void>;
  /** Gives back what is still open, within a bounded time. */
  close(): Promise<void>;
}
