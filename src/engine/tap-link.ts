import { AppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Problem } from '../contract/problem.ts';
import type { Ipv4Configuration } from '../ip/ip-stack.ts';
import type { Netif } from '../netif/netif.ts';
import { TapDevice } from '../tap/tap-device.ts';
import { formatIpv4Address, formatIpv4Cidr } from '../wire/ipv4-address.ts';
import { formatMacAddress } from '../wire/mac-address.ts';
import { runIp } from './ip-program.ts';
import { openLinuxFiles, type LinuxFiles } from './linux-files.ts';
import { monotonicClock } from './monotonic-clock.ts';
import { type RunNow, TapBridge } from './tap-bridge.ts';

/**
 * Frames that may wait in the interface for us to take them: in the order that they came, whatever their priority, and so
 * not many. What is more the kernel drops (its tun driver holds nobody back), and counts: enough for what comes while the
 * event loop is elsewhere. A segment of TCP that is yet to be cut counts as one.
 */
const queueFrames = 256;

/** Who is told that the host's side could not be set up, or (undefined) that it is. */
export type TapReport = (problem: Problem | undefined) => void;

/**
 * A TAP interface for one session: opened before the device is, joined with its interface once that exists, and given its
 * address by the host's own `ip` program where that is allowed.
 */
export class TapLink {
  readonly #tap: TapDevice;
  readonly #log: Log;
  readonly #run: RunNow;
  #bridge: TapBridge | undefined;

  private constructor(tap: TapDevice, log: Log, run: RunNow) {
    this.#tap = tap;
    this.#log = log;
    this.#run = run;
  }

  /**
   * @param linux what waits for the interface; absent: something of its own
   * @throws AppError as {@link TapDevice.open} does, and `bad-input` on systems without TAP interfaces
   */
  static open(name: string, log: Log, run: RunNow, linux?: LinuxFiles): TapLink {
    if (process.platform !== 'linux') {
      throw new AppError('bad-input', 'TAP interfaces work on Linux only so far', {
        remedy: 'Leave out --tap: load and pings of Queuescope itself need none.',
      });
    }
    return new TapLink(TapDevice.open(name, linux ?? openLinuxFiles(), 'virtio'), log, run);
  }

  get name(): string {
    return this.#tap.name;
  }
  get bridge(): TapBridge | undefined {
    return this.#bridge;
  }

  /** Frames that were lost between the host and us, either way. */
  get droppedFrames(): number {
    const { fromHost, toHost } = this.#tap.drops();
    return fromHost + toHost + (this.#bridge?.refused ?? 0) + (this.#bridge?.malformedFromHost ?? 0);
  }

  /** Brings the host's side up with the device's MAC address and joins it with the device's interface. */
  join(netif: Netif, report: TapReport): void {
    const mac = formatMacAddress(netif.macAddress);
    const commands = [
      ['link', 'set', this.name, 'address', mac],
      ['link', 'set', this.name, 'txqueuelen', String(queueFrames)],
      ['link', 'set', this.name, 'mtu', String(netif.mtuBytes), 'up'],
    ];
    void this.#configure(commands).then((failed) => {
      // Another MAC address is no hindrance: the bridge exchanges them.
      this.#bridge = new TapBridge(this.#tap, netif, this.#run, monotonicClock);
      this.#tap.setCarrier(netif.carrier);
      const upFailed = failed.find((command) => command.includes('up'));
      report(upFailed === undefined ? undefined : notConfigured(this.name, [upFailed]));
    });
  }

  /** Gives the host the address that the device's interface has. */
  setAddress(configuration: Ipv4Configuration, report: TapReport): void {
    const cidr = formatIpv4Cidr(configuration);
    void this.#configure([['address', 'replace', cidr, 'dev', this.name]]).then((failed) => {
      report(failed.length === 0 ? undefined : notConfigured(this.name, failed));
    });
  }

  setCarrier(on: boolean): void {
    this.#tap.setCarrier(on);
  }

  close(): void {
    if (this.#bridge === undefined) this.#tap.close();
    else this.#bridge.close();
  }

  /** Runs `ip` for each command in turn; answers with those that failed. */
  async #configure(commands: readonly (readonly string[])[]): Promise<readonly (readonly string[])[]> {
    const failed: (readonly string[])[] = [];
    for (const command of commands) {
      const error = await runIp(command);
      if (error === undefined) continue;
      this.#log.log('debug', 'ip failed', { command: command.join(' '), reason: error });
      failed.push(command);
    }
    return failed;
  }
}

function notConfigured(name: string, failed: readonly (readonly string[])[]): Problem {
  return {
    id: 'tap-not-configured',
    severity: 'warning',
    message: `The host's side of ${name} could not be set up: that takes rights.`,
    remedy: `Do it by hand:\n${failed.map((command) => `sudo ip ${command.join(' ')}`).join('\n')}`,
  };
}

/** How the host reaches the network behind the device, in words. */
export function describeTap(link: TapLink, configuration: Ipv4Configuration): string {
  const route =
    configuration.gateway === undefined
      ? ''
      : `; everything else: ip route add DESTINATION via ${formatIpv4Address(configuration.gateway)} dev ${link.name}`;
  return `${link.name} has ${formatIpv4Cidr(configuration)}${route}`;
}
