import { access, constants, open, readdir, readFile, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { Device } from '../../contract/device.ts';
import { raisedPriority } from '../../engine/thread-priority.ts';
import { moreFolders, type StartProgram } from '../../observe/line-program.ts';
import { NetdevFiles } from '../../observe/netdev-files.ts';
import { codeOf } from '../../observe/number-file.ts';
import { persistentTapCommands } from '../../tap/tap-device.ts';
import { LinuxUsbFiles } from '../../transports/linux-usb-files.ts';
import {
  type LinuxFacts,
  type MachineNetdev,
  type PingTrial,
  type SoughtProgram,
  soughtPrograms,
  type Surroundings,
  type TunFacts,
  type UsbNode,
} from './machine.ts';

export interface LinuxProbeOptions {
  /** Where the file system starts; for tests. */
  readonly root?: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly userId: number | undefined;
  readonly startProgram: StartProgram;
}

/** Places in a set of capabilities: CAP_NET_ADMIN and CAP_SYS_NICE. */
const netAdminBit = 12n;
const sysNiceBit = 23n;
/** RLIMIT_NICE counts from the lowest priority upwards: 20 is a niceness of 0. */
const niceLimitOfNormal = 20;
const tapFlag = 0x0002;
const questionLimitMs = 3000;
/** The name that --tap is shown with. */
const exampleTap = 'qs0';

/**
 * Asks a Linux system about itself. It looks and opens, but changes nothing; the one thing it sends is a ping to itself.
 * What cannot be read is taken for not there.
 */
export class LinuxProbe {
  readonly #options: LinuxProbeOptions;
  readonly #root: string;
  readonly #usb: LinuxUsbFiles;
  readonly #netdevs: NetdevFiles;

  constructor(options: LinuxProbeOptions) {
    this.#options = options;
    this.#root = options.root ?? '/';
    this.#usb = new LinuxUsbFiles(this.#root);
    this.#netdevs = new NetdevFiles(this.#root);
  }

  /** @param devices as they are listed: what hangs on USB is looked at more closely */
  async facts(devices: readonly Device[]): Promise<LinuxFacts> {
    const programs = await this.#programs();
    const [usbDevices, hasUsbNodes, usbNodes, memory, mayRaisePriority, running, netdevs, ping, tun] =
      await Promise.all([
        this.#usbDevices(),
        this.#exists('dev/bus/usb'),
        this.#usbNodes(devices),
        this.#text('sys/module/usbcore/parameters/usbfs_memory_mb'),
        this.#mayRaisePriority(),
        this.#running(),
        this.#describeNetdevs(),
        programs.has('ping') ? this.#tryPing() : undefined,
        this.#tun(),
      ]);
    return {
      usbDevices,
      hasUsbNodes,
      usbNodes,
      usbMemoryMegabytes: memory === undefined || !/^\d+$/.test(memory) ? undefined : Number(memory),
      mayRaisePriority,
      running,
      netdevs,
      programs,
      ping,
      tun,
    };
  }

  /** What tells a container and a virtual machine, as far as it is told. */
  async surroundings(kernelRelease: string): Promise<Surroundings> {
    const marks = ['.dockerenv', 'run/.containerenv', 'run/systemd/container'];
    const found = await Promise.all(marks.map((mark) => this.#exists(mark)));
    if (found.includes(true)) return 'container';
    if (/microsoft/i.test(kernelRelease)) return 'wsl';
    const processor = await this.#text('proc/cpuinfo');
    return /^flags\s*:.*\bhypervisor\b/m.test(processor ?? '') ? 'virtual-machine' : 'hardware';
  }

  async #usbDevices(): Promise<number | undefined> {
    const entries = await readdir(this.#path('sys/bus/usb/devices')).catch(() => undefined);
    return entries?.filter((entry) => !entry.includes(':')).length;
  }

  async #usbNodes(devices: readonly Device[]): Promise<ReadonlyMap<string, UsbNode>> {
    const nodes = new Map<string, UsbNode>();
    for (const { id, mode } of devices) {
      const name = id.slice('usb:'.length);
      const address = mode === 'drive' ? await this.#usb.address(name) : undefined;
      if (address === undefined) continue;
      const path = this.#usb.nodePath(address);
      nodes.set(id, {
        path,
        // What may be opened by its mode may still be denied by a control group.
        failureCode: await this.#openFailure(path),
        holders: await this.#usb.holders(path),
        powerControl: await this.#text('sys/bus/usb/devices', name, 'power/control'),
      });
    }
    return nodes;
  }

  async #running(): Promise<ReadonlySet<string>> {
    const entries = await readdir(this.#path('proc')).catch((): string[] => []);
    const names = await Promise.all(
      entries.filter((entry) => /^\d+$/.test(entry)).map((pid) => this.#text('proc', pid, 'comm')),
    );
    return new Set(names.filter((name) => name !== undefined));
  }

  /** Those with a device behind them, as they are listed. */
  async #describeNetdevs(): Promise<readonly MachineNetdev[]> {
    const found: MachineNetdev[] = [];
    for (const name of await this.#netdevs.names()) {
      const description = await this.#netdevs.describe(name);
      if (description?.bus === undefined) continue;
      const [queue] = description.bqlQueues;
      const limit =
        queue === undefined ? undefined : join(this.#netdevs.limitsFolder(name, queue), 'limit_min');
      found.push({
        description,
        hasDefaultRoute: (await this.#netdevs.gateway(name)) !== undefined,
        limitsAreWritable: limit !== undefined && (await isAllowed(limit, constants.W_OK)),
      });
    }
    return found;
  }

  /** As it is looked for when it is started: the administrator's folders, too. */
  async #programs(): Promise<ReadonlySet<SoughtProgram>> {
    const path = [this.#options.environment['PATH'], moreFolders].filter(Boolean).join(delimiter);
    const found = new Set<SoughtProgram>();
    for (const program of soughtPrograms) {
      for (const folder of path.split(delimiter)) {
        if (await isAllowed(this.#path(folder, program), constants.X_OK)) found.add(program);
      }
    }
    return found;
  }

  async #tryPing(): Promise<PingTrial> {
    const version = await this.#ask('ping', ['-V']);
    const trial = await this.#ask('ping', ['-n', '-c', '1', '-W', '1', '-I', 'lo', '127.0.0.1']);
    const groupRange = await this.#text('proc/sys/net/ipv4/ping_group_range');
    return {
      isIputils: version.text.includes('iputils'),
      complaint: trial.exitCode === 0 ? '' : trial.lastError || `exit code ${trial.exitCode ?? 'none'}`,
      groupRange: groupRange?.replaceAll(/\s+/g, ' '),
    };
  }

  async #tun(): Promise<TunFacts> {
    const ownInterfaces: string[] = [];
    for (const name of await this.#netdevs.names()) {
      const flags = Number.parseInt((await this.#text('sys/class/net', name, 'tun_flags')) ?? '', 16);
      const owner = await this.#text('sys/class/net', name, 'owner');
      const isOwn = owner !== undefined && owner === String(this.#options.userId);
      if ((flags & tapFlag) !== 0 && isOwn) ownInterfaces.push(name);
    }
    return {
      failureCode: await this.#openFailure('dev/net/tun'),
      mayMake: await this.#hasCapability(netAdminBit),
      ownInterfaces,
      makeCommands: persistentTapCommands(exampleTap),
    };
  }

  async #hasCapability(bit: bigint): Promise<boolean> {
    const capabilities = /^CapEff:\s*([0-9a-f]+)$/m.exec((await this.#text('proc/self/status')) ?? '')?.[1];
    return (BigInt(`0x${capabilities ?? '0'}`) >> bit) % 2n === 1n;
  }

  async #mayRaisePriority(): Promise<boolean> {
    const limit = /^Max nice priority\s+(\d+)/m.exec((await this.#text('proc/self/limits')) ?? '')?.[1];
    return (
      Number(limit ?? 0) >= niceLimitOfNormal - raisedPriority || (await this.#hasCapability(sysNiceBit))
    );
  }

  /** Runs a program to its end; undefined as its exit code: it took too long. */
  #ask(
    name: string,
    programArguments: readonly string[],
  ): Promise<{ readonly text: string; readonly lastError: string; readonly exitCode: number | null }> {
    return new Promise((resolve) => {
      const lines: string[] = [];
      const timer = setTimeout(() => {
        program.stop();
        resolve({ text: lines.join('\n'), lastError: 'nothing in time', exitCode: null });
      }, questionLimitMs);
      const program = this.#options.startProgram(name, programArguments, {
        handleLine: (line) => lines.push(line),
        handleErrorLine: () => {},
        handleEnd: ({ lastError, exitCode }) => {
          clearTimeout(timer);
          resolve({ text: lines.join('\n'), lastError, exitCode });
        },
      });
    });
  }

  /** Opens a device node for a moment. */
  async #openFailure(path: string): Promise<string | undefined> {
    try {
      const file = await open(this.#path(path), constants.O_RDWR | constants.O_NONBLOCK);
      await file.close();
      return undefined;
    } catch (error) {
      return codeOf(error) || 'unknown';
    }
  }

  async #exists(path: string): Promise<boolean> {
    return (await stat(this.#path(path)).catch(() => undefined)) !== undefined;
  }

  async #text(...parts: readonly string[]): Promise<string | undefined> {
    const text = await readFile(this.#path(...parts), 'utf8').catch(() => '');
    return text.trim() === '' ? undefined : text.trim();
  }

  #path(...parts: readonly string[]): string {
    return join(this.#root, ...parts);
  }
}

async function isAllowed(path: string, mode: number): Promise<boolean> {
  try {
    await access(path, mode);
    return true;
  } catch {
    return false;
  }
}
