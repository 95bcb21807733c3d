import { deviceIdOf } from '../wire/usbip-urb.ts';
import type { UsbipDevice, UsbipListedDevice } from '../wire/usbip.ts';
import { createSimDevice, type RunningSimDevice } from './create-sim-device.ts';
import type { SimPersonality } from './personality.ts';

/** A device that one connection has for itself. */
export interface UsbipExport {
  readonly record: UsbipDevice;
  /** What transfers name it by. */
  readonly deviceId: number;
  readonly device: RunningSimDevice;
  /** The connection has ended. */
  release(): void;
}

/** What a USB/IP server has to offer. */
export interface UsbipExports {
  list(): readonly UsbipListedDevice[];
  take(busId: string, nowUs: number): UsbipExport | 'busy' | 'no-such-device';
}

const busNumber = 1;

/**
 * Virtual devices as `1-1`, `1-2`, … of one bus. Whoever takes one gets it as if it had just been plugged in, with a link
 * and a far host of its own.
 */
export class SimUsbipExports implements UsbipExports {
  readonly #devices: readonly UsbipListedDevice[];
  readonly #personalities = new Map<string, SimPersonality>();
  readonly #taken = new Set<string>();
  #seed: number;

  /** @param seed of what is left to chance in the first device that is taken; each later one has the next */
  constructor(personalities: readonly SimPersonality[], seed: number) {
    this.#seed = seed;
    this.#devices = personalities.map((personality, index) => {
      const busId = `${busNumber}-${index + 1}`;
      this.#personalities.set(busId, personality);
      return describe(personality, busId, index + 1);
    });
  }

  /** The personality behind each bus id, in order. */
  get personalities(): ReadonlyMap<string, SimPersonality> {
    return this.#personalities;
  }

  list(): readonly UsbipListedDevice[] {
    return this.#devices;
  }

  take(busId: string, nowUs: number): UsbipExport | 'busy' | 'no-such-device' {
    const personality = this.#personalities.get(busId);
    const record = this.#devices.find((device) => device.busId === busId);
    if (personality === undefined || record === undefined) return 'no-such-device';
    if (this.#taken.has(busId)) return 'busy';
    this.#taken.add(busId);
    return {
      record,
      deviceId: deviceIdOf(record.busNumber, record.deviceNumber),
      device: createSimDevice(personality, { seed: this.#seed++, nowUs }),
      release: () => this.#taken.delete(busId),
    };
  }
}

/** What a list says of a device: what it says of itself. */
function describe(personality: SimPersonality, busId: string, deviceNumber: number): UsbipListedDevice {
  const { device } = createSimDevice(personality, { seed: 0, nowUs: 0 }).transport;
  const { descriptor, configuration } = device;
  const interfaces = configuration.interfaces.map(({ altSettings }) => {
    const [first] = altSettings;
    return [
      first?.interfaceClass ?? 0,
      first?.interfaceSubclass ?? 0,
      first?.interfaceProtocol ?? 0,
    ] as const;
  });
  return {
    path: `/queuescope/sim/${personality.name}`,
    busId,
    busNumber,
    deviceNumber,
    speed: personality.speed,
    vendorId: descriptor.vendorId,
    productId: descriptor.productId,
    deviceVersion: descriptor.deviceVersion,
    deviceClass: [descriptor.deviceClass, descriptor.deviceSubclass, descriptor.deviceProtocol],
    configurationValue: configuration.value,
    configurationCount: descriptor.configurationCount,
    interfaceCount: interfaces.length,
    interfaces,
  };
}
