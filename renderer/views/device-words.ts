import type { Device, Mode, UsbSpeedName } from '../../src/contract/device.ts';

/** What a badge says and what it means. */
export interface Word {
  readonly text: string;
  readonly meaning: string;
}

export const speedWords: Readonly<Record<UsbSpeedName, Word | undefined>> = {
  low: { text: 'USB low', meaning: 'USB low speed, 1.5 Mbit/s.' },
  full: { text: 'USB full', meaning: 'USB full speed, 12 Mbit/s.' },
  high: { text: 'USB 2', meaning: 'USB high speed, 480 Mbit/s: usbnet keeps up to 60 frames in flight.' },
  super: { text: 'USB 3', meaning: 'USB SuperSpeed, 5 Gbit/s: usbnet keeps up to 300 frames in flight.' },
  'super-plus': {
    text: 'USB 3+',
    meaning: 'USB SuperSpeed Plus, 10 Gbit/s or more: usbnet keeps up to 300 frames in flight.',
  },
  unknown: undefined,
};

export const modeWords: Readonly<Record<Mode, Word>> = {
  drive: { text: 'drive', meaning: 'Queuescope drives the device itself, in place of the kernel.' },
  remote: { text: 'remote', meaning: 'The device hangs on another machine and is driven over USB/IP.' },
  observe: { text: 'observe', meaning: 'The kernel keeps the device; its BQL files and counters are read.' },
  simulate: { text: 'virtual', meaning: 'A built-in model of a device, its bus and its link.' },
};

/** "0bda:8153", or nothing for what has no such numbers. */
export function usbIds(device: Device): string | undefined {
  if (device.vendorId === undefined || device.productId === undefined) return undefined;
  return `${fourDigits(device.vendorId)}:${fourDigits(device.productId)}`;
}

function fourDigits(id: number): string {
  return id.toString(16).padStart(4, '0');
}
