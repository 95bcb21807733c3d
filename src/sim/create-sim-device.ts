import { neverUs, type Polled } from '../base/clock.ts';
import type { Transport } from '../usbnet/transport.ts';
import type { BusObserver } from './bus-observer.ts';
import { busTiming } from './bus-timing.ts';
import type { FarHostCounters } from './far-host.ts';
import type { FunctionCounters } from './firmware/function-counters.ts';
import { makeFirmware, makeNetwork, type SimPersonality } from './personality.ts';
import { SimBus } from './sim-bus.ts';
import { SimDevice } from './sim-device.ts';
import type { FarSide, SimNetwork } from './sim-network.ts';

export interface SimDeviceOptions {
  /** Of everything that is left to chance; same seed, same scenario: same bytes at the same times. */
  readonly seed: number;
  readonly nowUs: number;
  readonly observer?: BusObserver;
}

/** What goes on inside of a simulated device, which no driver can see. A copy. */
export interface SimInspection {
  /** The memory between USB and link, bytes, and the most it ever held. */
  readonly fifoFillBytes: number;
  readonly fifoMaxFillBytes: number;
  /** How often it was full and refused a packet. */
  readonly fifoNaks: number;
  /** Whole frames among it, which wait for the link or are on their way out. */
  readonly upQueueFrames: number;
  readonly upQueueBytes: number;
  /** What waits beyond the link for its way down. */
  readonly downQueueFrames: number;
  readonly downQueueBytes: number;
  /** What waits in the device for the host. */
  readonly hostQueueFrames: number;
  readonly hostQueueBytes: number;
  readonly upRateBitsPerSecond: number;
  readonly downRateBitsPerSecond: number;
  readonly upSentFrames: number;
  readonly upSentBytes: number;
  readonly upLostFrames: number;
  readonly downSentFrames: number;
  readonly downSentBytes: number;
  readonly downLostFrames: number;
  /** Frames that found the queue beyond the link full. */
  readonly downDroppedFrames: number;
  /** Frames between device and far host, and in them; 0 once all has come to rest. */
  readonly framesInUse: number;
  readonly carrier: boolean;
  readonly device: Readonly<FunctionCounters>;
  readonly farHost: Readonly<FarHostCounters>;
}

/** A virtual device in use: what a driver needs, and what a test wants to see and do. */
export interface RunningSimDevice {
  readonly personality: SimPersonality;
  readonly transport: Transport & Polled;
  /** What has to be driven by time: all of it, the transport included. */
  readonly polled: readonly Polled[];
  /** Address, prefix length and MAC address of the far host; the address it leases to its client. */
  readonly farHost: {
    readonly address: number;
    readonly prefixLength: number;
    readonly macAddress: Uint8Array;
    readonly clientAddress: number;
  };
  /** Where something else can take the place of the far host. */
  readonly farSide: FarSide;
  unplug(nowUs: number): void;
  inspect(nowUs: number): SimInspection;
  /** See {@link SimDevice.injectStall}. */
  injectStall(endpointAddress: number, nowUs: number): void;
  /** See {@link SimDevice.injectSilence}. */
  injectSilence(endpointAddress: number, us: number, nowUs: number): void;
  dropCarrier(nowUs: number): void;
  raiseCarrier(nowUs: number): void;
}

/** Makes a virtual device and plugs it in: enumerated, configured, its carrier on. */
export function createSimDevice(personality: SimPersonality, options: SimDeviceOptions): RunningSimDevice {
  const { seed, nowUs, observer } = options;
  const network = makeNetwork(personality, seed);
  const firmware = makeFirmware(personality, network);
  const device = new SimDevice(firmware, personality.speed);
  const bus = new SimBus({
    device,
    timing: busTiming(personality.speed, personality.bus),
    nowUs,
    ...(observer === undefined ? {} : { observer }),
  });
  const { up, down, farHost } = network;
  const functionSide = firmware.network;
  return {
    personality,
    transport: bus,
    polled: [new BusAndNetwork(bus, network)],
    farHost,
    farSide: network,
    unplug: (atUs) => bus.unplug(atUs),
    injectStall: (endpointAddress, atUs) => device.injectStall(endpointAddress, atUs),
    injectSilence: (endpointAddress, us, atUs) => device.injectSilence(endpointAddress, us, atUs),
    dropCarrier: (atUs) => network.setCarrier(false, atUs),
    raiseCarrier: (atUs) => network.setCarrier(true, atUs),
    inspect: (atUs) => ({
      fifoFillBytes: functionSide.fifo.fillBytes,
      fifoMaxFillBytes: functionSide.fifo.maxFillBytes,
      fifoNaks: functionSide.fifo.naks,
      upQueueFrames: up.queuedFrames,
      upQueueBytes: up.queuedBytes,
      downQueueFrames: down.queuedFrames,
      downQueueBytes: down.queuedBytes,
      hostQueueFrames: functionSide.hostQueue.length,
      hostQueueBytes: functionSide.hostQueue.bytes,
      upRateBitsPerSecond: up.rateAt(atUs),
      downRateBitsPerSecond: down.rateAt(atUs),
      upSentFrames: up.sentFrames,
      upSentBytes: up.sentBytes,
      upLostFrames: up.lostFrames,
      downSentFrames: down.sentFrames,
      downSentBytes: down.sentBytes,
      downLostFrames: down.lostFrames,
      downDroppedFrames: down.droppedFrames,
      framesInUse: network.pool.inUse,
      carrier: network.carrier,
      device: { ...functionSide.counters },
      farHost: { ...farHost.counters },
    }),
  };
}

/**
 * Bus and network as one part, which do everything in the order of its time even if they are polled late. At the same
 * time the network comes first: a frame that leaves makes room for a packet that comes.
 */
class BusAndNetwork implements Polled {
  readonly #bus: SimBus;
  readonly #network: SimNetwork;

  constructor(bus: SimBus, network: SimNetwork) {
    this.#bus = bus;
    this.#network = network;
  }

  pollAtUs(): number {
    const busAtUs = this.#bus.pollAtUs();
    const networkAtUs = this.#network.pollAtUs();
    return networkAtUs < busAtUs ? networkAtUs : busAtUs;
  }

  poll(nowUs: number): void {
    for (;;) {
      const busAtUs = this.#bus.eventAtUs();
      const networkAtUs = this.#network.pollAtUs();
      if (networkAtUs <= busAtUs) {
        if (networkAtUs > nowUs || networkAtUs === neverUs) break;
        this.#network.poll(networkAtUs);
      } else {
        if (busAtUs > nowUs) break;
        this.#bus.advance(busAtUs);
      }
    }
    this.#bus.poll(nowUs);
  }
}
