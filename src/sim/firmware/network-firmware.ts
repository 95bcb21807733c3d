import type { DeviceFifo } from '../device-fifo.ts';
import type { FrameQueue } from '../frame.ts';
import type { FunctionCounters } from './function-counters.ts';
import type { Firmware } from './firmware.ts';

/** A firmware with a network behind it, as far as someone wants to look inside. */
export interface NetworkFirmware extends Firmware {
  readonly network: {
    readonly fifo: DeviceFifo;
    readonly hostQueue: FrameQueue;
    readonly counters: FunctionCounters;
  };
}
