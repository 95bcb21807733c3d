import { neverUs, type Polled } from '../base/clock.ts';
import { Random } from '../base/random.ts';
import { FarHost, isForDhcpServer } from './far-host.ts';
import { type Frame, FramePool } from './frame.ts';
import { LinkDirection } from './link-direction.ts';
import { RateSchedule, type RateStep } from './rate-schedule.ts';

/** A link as data. */
export interface LinkProfile {
  /** Bits per second. */
  readonly upBitsPerSecond: number;
  readonly downBitsPerSecond: number;
  /** Bytes that each frame costs beyond its own: 24 on an Ethernet wire, 0 on a cellular link. */
  readonly overheadBytes: number;
  /** Propagation, each way. */
  readonly delayUs: number;
  /** That a frame is lost, 0 … 1, each way; absent: 0. */
  readonly upLoss?: number;
  readonly downLoss?: number;
  /** Rates over time, instead of the constant ones (which then are what the device says of its link). */
  readonly upSchedule?: readonly RateStep[];
  readonly downSchedule?: readonly RateStep[];
  /** Both schedules start anew after this long. */
  readonly scheduleRepeatUs?: number;
  /** Bytes that may wait at the far end of the link for their way down; what is more is dropped. */
  readonly downQueueBytes: number;
}

/** The device, as its network sees it. */
export interface NetworkDevice {
  /** A frame of that length has left on the link: its memory is free. */
  handleFrameSent(lengthBytes: number, nowUs: number): void;
  /** A frame has arrived for the host; it is the device's now. */
  handleFrame(frame: Frame, nowUs: number): void;
  handleCarrier(on: boolean, nowUs: number): void;
}

/** What stands at the far end of the link in place of the far host, which then only leases the address. */
export interface FarEnd {
  /** A frame has arrived; it is the far end's now, and goes back to the pool when it is done with. */
  handleFrame(frame: Frame, nowUs: number): void;
}

/** The far end of a link, for whatever is to stand there. */
export interface FarSide {
  readonly pool: FramePool;
  setFarEnd(farEnd: FarEnd): void;
  /** Puts a frame on its way down; it is taken over. False: the queue was full. */
  sendDown(frame: Frame, nowUs: number): boolean;
}

export interface SimNetworkOptions {
  readonly link: LinkProfile;
  readonly farHost: {
    readonly macAddress: Uint8Array;
    readonly address: number;
    readonly prefixLength: number;
    readonly clientAddress: number;
  };
  readonly seed: number;
}

/** What is beyond a simulated device: a link, and the far host (or another far end) behind it. */
export class SimNetwork implements Polled, FarSide {
  readonly pool = new FramePool();
  readonly up: LinkDirection;
  readonly down: LinkDirection;
  readonly farHost: FarHost;
  readonly link: LinkProfile;
  #device: NetworkDevice | undefined;
  #farEnd: FarEnd | undefined;
  #carrier = true;

  constructor(options: SimNetworkOptions) {
    const { link } = options;
    this.link = link;
    const random = new Random(options.seed);
    const common = { overheadBytes: link.overheadBytes, delayUs: link.delayUs, random, pool: this.pool };
    this.up = new LinkDirection(
      {
        ...common,
        rate: schedule(link.upBitsPerSecond, link.upSchedule, link.scheduleRepeatUs),
        lossProbability: link.upLoss ?? 0,
        // The device's own memory is the limit.
        queueBytes: Number.POSITIVE_INFINITY,
      },
      {
        handleFrameSent: (lengthBytes, nowUs) => this.#device?.handleFrameSent(lengthBytes, nowUs),
        handleFrame: (frame, nowUs) => this.#handleFrameForFarEnd(frame, nowUs),
      },
    );
    this.down = new LinkDirection(
      {
        ...common,
        rate: schedule(link.downBitsPerSecond, link.downSchedule, link.scheduleRepeatUs),
        lossProbability: link.downLoss ?? 0,
        queueBytes: link.downQueueBytes,
      },
      {
        handleFrameSent: () => undefined,
        handleFrame: (frame, nowUs) => this.#handleFrameForDevice(frame, nowUs),
      },
    );
    this.farHost = new FarHost({
      ...options.farHost,
      pool: this.pool,
      send: (frame, nowUs) => this.down.send(frame, nowUs),
      linkBitsPerSecond: (nowUs) => this.down.rateAt(nowUs),
    });
  }

  get carrier(): boolean {
    return this.#carrier;
  }

  /** Says which device is at this end. Set once. */
  setDevice(device: NetworkDevice): void {
    this.#device = device;
  }

  setFarEnd(farEnd: FarEnd): void {
    this.#farEnd = farEnd;
  }

  setCarrier(on: boolean, nowUs: number): void {
    if (on === this.#carrier) return;
    this.#carrier = on;
    this.up.setCarrier(on);
    this.down.setCarrier(on);
    this.#device?.handleCarrier(on, nowUs);
  }

  /** Sends a frame from the device to the far host; it is taken over. */
  sendUp(frame: Frame, nowUs: number): void {
    this.up.send(frame, nowUs);
  }

  sendDown(frame: Frame, nowUs: number): boolean {
    return this.down.send(frame, nowUs);
  }

  #handleFrameForFarEnd(frame: Frame, nowUs: number): void {
    if (this.#farEnd === undefined || isForDhcpServer(frame.bytes, frame.length)) {
      this.farHost.handleFrame(frame, nowUs);
    } else {
      this.#farEnd.handleFrame(frame, nowUs);
    }
  }

  #handleFrameForDevice(frame: Frame, nowUs: number): void {
    if (this.#device === undefined) this.pool.give(frame);
    else this.#device.handleFrame(frame, nowUs);
  }

  pollAtUs(): number {
    const upAtUs = this.up.pollAtUs();
    const downAtUs = this.down.pollAtUs();
    const farAtUs = this.farHost.pollAtUs();
    const linkAtUs = upAtUs < downAtUs ? upAtUs : downAtUs;
    return linkAtUs < farAtUs ? linkAtUs : farAtUs;
  }

  /** Does all that is due, each thing at its own time. */
  poll(nowUs: number): void {
    for (;;) {
      const atUs = this.pollAtUs();
      if (atUs > nowUs || atUs === neverUs) return;
      if (this.up.pollAtUs() <= atUs) this.up.advance(atUs);
      else if (this.down.pollAtUs() <= atUs) this.down.advance(atUs);
      else this.farHost.poll(atUs);
    }
  }
}

function schedule(
  rateBitsPerSecond: number,
  steps: readonly RateStep[] | undefined,
  repeatUs: number | undefined,
): RateSchedule {
  return steps === undefined ? RateSchedule.constant(rateBitsPerSecond) : new RateSchedule(steps, repeatUs);
}
