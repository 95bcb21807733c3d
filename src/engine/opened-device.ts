import type { AppError } from '../base/errors.ts';
import type { Device } from '../contract/device.ts';
import type { MeasurementOptions, MeasurementPath } from './measurement-path.ts';
import type { SessionLoop } from './session-loop.ts';

/** Something that a close could not give back. */
export interface NotReturned {
  /** What, and why; one sentence. */
  readonly message: string;
  readonly remedy?: string;
}

/** A device that is open for one session, with the loop that gives it its time. */
export interface OpenedDevice {
  readonly loop: SessionLoop;
  /** What was opened, in words. */
  readonly text: string;
  /** What it turned out to be, where that could not be told before. */
  readonly device?: Partial<Device>;
  /** Makes what measures it; called once. */
  createPath(options: MeasurementOptions): MeasurementPath;
  /** Why the device is gone, once it is; absent or undefined: it was unplugged. */
  lossReason?(): AppError | undefined;
  /** Gives the device back. Never rejects; what could not be given back is told. */
  close(): Promise<readonly NotReturned[]>;
}

/** What the user wants of a device that can be more than one thing. */
export interface OpenChoice {
  /** The USB configuration to drive it in; absent: where it is best driven. */
  readonly configuration?: number | undefined;
}

/**
 * Opens a device.
 * @param fail gets what goes wrong in the loop or the transport later on
 * @throws AppError (as a rejection) if it can't be opened
 */
export type OpenDevice = (fail: (error: unknown) => void, choice: OpenChoice) => Promise<OpenedDevice>;
