import type { Mode, UsbSpeedName } from '../contract/device.ts';

export const speedWords: Readonly<Record<UsbSpeedName, string>> = {
  low: 'low speed (1.5 Mbit/s)',
  full: 'full speed (12 Mbit/s)',
  high: 'high speed (480 Mbit/s)',
  super: 'SuperSpeed (5 Gbit/s)',
  'super-plus': 'SuperSpeed Plus (10 Gbit/s or more)',
  unknown: 'unknown speed',
};

export const modeWords: Readonly<Record<Mode, string>> = {
  drive: 'driven by Queuescope in place of the kernel',
  remote: 'driven by Queuescope over USB/IP',
  observe: 'driven by the kernel, observed by Queuescope',
  simulate: 'virtual device',
};
