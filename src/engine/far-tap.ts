import { AppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { RunningSimDevice } from '../sim/create-sim-device.ts';
import type { Frame } from '../sim/frame.ts';
import type { FarEnd, FarSide } from '../sim/sim-network.ts';
import { TapDevice } from '../tap/tap-device.ts';
import { formatIpv4Address } from '../wire/ipv4-address.ts';
import { formatMacAddress } from '../wire/mac-address.ts';
import { runIp } from './ip-program.ts';
import { openLinuxFiles } from './linux-files.ts';
import type { RunNow } from './tap-bridge.ts';

/** Frames taken from the host in one go; then the rest of the simulation gets its turn. */
const batch = 64;

/** Where the far end is to be: the interface's name, and the network namespace that it is moved to. */
export interface FarTapPlace {
  readonly name: string;
  readonly namespace?: string | undefined;
}

/**
 * A TAP interface of this host (Linux) at the far end of a virtual device's link, with the far host's address: what the
 * device sends arrives there, at whatever stock programs serve there, and what they send goes down the link. Only the
 * device's own address still comes from the simulation. In a namespace of its own, since a host answers itself directly
 * where both ends are its own.
 */
export class FarTap {
  readonly #place: FarTapPlace;
  readonly #tap: TapDevice;
  readonly #log: Log;
  #farEnd: TapFarEnd | undefined;
  #configured = false;

  private constructor(place: FarTapPlace, tap: TapDevice, log: Log) {
    this.#place = place;
    this.#tap = tap;
    this.#log = log;
  }

  /** @throws AppError as {@link TapDevice.open} does, and `bad-input` on systems without TAP interfaces */
  static open(place: FarTapPlace, log: Log): FarTap {
    if (process.platform !== 'linux') {
      throw new AppError('bad-input', 'TAP interfaces work on Linux only so far', {
        remedy: 'Leave out --far-tap: the far end is then simulated, too.',
      });
    }
    return new FarTap(place, TapDevice.open(place.name, openLinuxFiles()), log);
  }

  /** Puts the interface at the far end of a device's link, until the next one. */
  join(device: RunningSimDevice, run: RunNow): void {
    if (this.#farEnd !== undefined) this.#farEnd.leave();
    this.#farEnd = new TapFarEnd(this.#tap, device.farSide, run);
    device.farSide.setFarEnd(this.#farEnd);
    if (this.#configured) return;
    this.#configured = true;
    void this.#configure(device);
  }

  /** Gives the interface the far host's address. What fails here the user may have done, and sees by what does not answer. */
  async #configure({ farHost }: RunningSimDevice): Promise<void> {
    const { name, namespace } = this.#place;
    const inside = namespace === undefined ? [] : ['-n', namespace];
    const cidr = `${formatIpv4Address(farHost.address)}/${farHost.prefixLength}`;
    const commands = [
      ...(namespace === undefined ? [] : [['link', 'set', name, 'netns', namespace]]),
      [...inside, 'link', 'set', name, 'address', formatMacAddress(farHost.macAddress)],
      [...inside, 'address', 'replace', cidr, 'dev', name],
      [...inside, 'link', 'set', name, 'up'],
    ];
    for (const command of commands) {
      // In order: one after another.
      // oxlint-disable-next-line no-await-in-loop
      const failure = await runIp(command);
      if (failure !== undefined) this.#log.log('warn', `ip ${command.join(' ')} failed: ${failure}`);
    }
  }

  close(): void {
    this.#farEnd?.leave();
    this.#tap.close();
  }
}

/** One device's link, joined with the interface. */
class TapFarEnd implements FarEnd {
  readonly #tap: TapDevice;
  readonly #side: FarSide;
  readonly #run: RunNow;
  #left = false;

  constructor(tap: TapDevice, side: FarSide, run: RunNow) {
    this.#tap = tap;
    this.#side = side;
    this.#run = run;
    this.#await();
  }

  leave(): void {
    this.#left = true;
  }

  handleFrame(frame: Frame): void {
    // What the host does not take is lost, as on any wire.
    if (!this.#left) this.#tap.write(frame.bytes, frame.length);
    this.#side.pool.give(frame);
  }

  #await(): void {
    if (!this.#left) this.#tap.whenReadable(() => this.#run((nowUs) => this.#take(nowUs)));
  }

  #take(nowUs: number): void {
    for (let i = 0; i < batch && !this.#left; i++) {
      const frame = this.#side.pool.take();
      const length = this.#tap.read(frame.bytes);
      if (length <= 0) {
        this.#side.pool.give(frame);
        // The interface is gone: nothing will come any more.
        if (length < 0) return;
        break;
      }
      frame.length = length;
      this.#side.sendDown(frame, nowUs);
    }
    this.#await();
  }
}
