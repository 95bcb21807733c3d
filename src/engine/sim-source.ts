import type { Clock } from '../base/clock.ts';
import { Emitter } from '../base/emitter.ts';
import type { Device } from '../contract/device.ts';
import { matchDevice } from '../minidrivers/registry.ts';
import { catalogue } from '../sim/catalogue.ts';
import { createSimDevice } from '../sim/create-sim-device.ts';
import { type FirmwareName, identityOf, type SimPersonality } from '../sim/personality.ts';
import type { DeviceSource, ListedDevice } from './device-source.ts';
import { drive } from './drive.ts';
import { FarTap } from './far-tap.ts';
import { AppError } from '../base/errors.ts';
import type { Match, MinidriverName } from '../usbnet/minidriver.ts';
import type { UsbDevice } from '../usbnet/transport.ts';
import type { Log } from '../base/log.ts';
import type { OpenedDevice } from './opened-device.ts';
import { PacedLoop } from './paced-loop.ts';
import { PromptTicks } from './paced-ticks.ts';

/** Between two looks at TAP interfaces while something is about to be due. */
const napUs = 200;

/** Virtual devices, in simulated time that goes along with real time. */
export class SimSource implements DeviceSource {
  readonly onChange = new Emitter<void>().event;
  readonly #clock: Clock;
  readonly #log: Log;
  #seed = 1;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  async list(): Promise<readonly ListedDevice[]> {
    return catalogue.map((personality) => ({
      device: describe(personality),
      open: (fail) => this.#open(personality, fail),
    }));
  }

  async #open(personality: SimPersonality, fail: (error: unknown) => void): Promise<OpenedDevice> {
    const loop = new PacedLoop(this.#clock, fail);
    const device = createSimDevice(personality, { seed: this.#seed++, nowUs: loop.nowUs() });
    for (const part of device.polled) loop.add(part);
    let farTap: FarTap | undefined;
    const driven = drive({
      transport: device.transport,
      match: matchOf(device.transport.device),
      loop,
      log: this.#log,
      // Reports come from parts of the same loop, which polls all of them anyway.
      wake: () => {},
      giveBack: async () => {
        farTap?.close();
        return [];
      },
    });
    return {
      ...driven,
      createPath: (options) => {
        const { tap, farTap: name, farNamespace: namespace } = options.settings;
        // Programs of the host live in real time.
        if (tap !== undefined || name !== undefined) loop.setTicks(new PromptTicks(napUs));
        if (name !== undefined) {
          farTap = FarTap.open({ name, namespace }, this.#log);
          farTap.join(device, (action) => loop.run(action));
        }
        return driven.createPath(options);
      },
      text: personality.description,
    };
  }

  async close(): Promise<void> {}
}

/** How a virtual device is driven: decided from its descriptors, like that of any other. */
export function matchOf(device: UsbDevice): Match {
  const [match] = matchDevice({ descriptor: device.descriptor, configurations: [device.configuration] });
  if (match === undefined) {
    throw new AppError('unsupported-device', 'no minidriver drives this virtual device');
  }
  return match;
}

/** What drives which firmware; that it is so is decided from descriptors, as {@link matchOf} does it. */
const minidrivers: Readonly<Record<FirmwareName, MinidriverName>> = {
  'cdc-ecm': 'cdc_ether',
  'cdc-ncm': 'cdc_ncm',
  'huawei-ncm': 'huawei_cdc_ncm',
  'cdc-eem': 'cdc_eem',
  rndis: 'rndis_host',
  ax88179: 'ax88179_178a',
  ax88172: 'asix',
  ax88178: 'asix',
  ax88772: 'asix',
  ax88772a: 'asix',
  ax88772b: 'asix',
};

function describe(personality: SimPersonality): Device {
  const identity = identityOf(personality);
  return {
    id: `sim:${personality.name}`,
    mode: 'simulate',
    vendorId: identity.vendorId,
    productId: identity.productId,
    name: personality.product,
    manufacturer: identity.manufacturer,
    speed: personality.speed,
    function: personality.function,
    minidriver: minidrivers[personality.firmware],
    state: 'available',
    description: personality.description,
    problems: [],
  };
}
