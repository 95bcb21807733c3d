import type { Device } from '../../contract/device.ts';
import type { NetdevDescription } from '../../observe/netdev-files.ts';
import type { NodeHolder } from '../../transports/linux-usb-files.ts';
import type { UsbPlatform } from '../../transports/usb-platform.ts';

/** Where the system runs, as far as it matters for the way to a device. */
export type Surroundings = 'hardware' | 'container' | 'virtual-machine' | 'wsl';

/** A failure that has its words already. */
export interface KnownFailure {
  readonly message: string;
  readonly remedy: string | undefined;
}

/** The folder that recordings go to unless they are named. */
export interface RecordingsFolder {
  readonly path: string;
  /** Why nothing can be written there, such as EACCES; undefined: it can. */
  readonly failureCode: string | undefined;
  readonly freeBytes: number;
}

/** What Linux says of a USB device beyond what the list of devices has. */
export interface UsbNode {
  readonly path: string;
  /** Why it could not be opened for a moment, such as EPERM; undefined: it could. */
  readonly failureCode: string | undefined;
  /** Other programs that have it open, as far as they are seen. */
  readonly holders: readonly NodeHolder[];
  /** `auto`: the system lets it sleep when it is idle. */
  readonly powerControl: string | undefined;
}

/** A network interface that the kernel keeps, with a device behind it. */
export interface MachineNetdev {
  readonly description: NetdevDescription;
  /** The machine's way to everywhere else goes through it. */
  readonly hasDefaultRoute: boolean;
  /** Whether this user may write its limits. */
  readonly limitsAreWritable: boolean;
}

/** The programs that are looked for. */
export const soughtPrograms = ['ping', 'tc', 'ip', 'iperf3', 'irtt'] as const;
export type SoughtProgram = (typeof soughtPrograms)[number];

/** How one `ping` over the loopback interface went. */
export interface PingTrial {
  readonly isIputils: boolean;
  /** What it complained about; empty: it did not. */
  readonly complaint: string;
  /** `net.ipv4.ping_group_range`: "1 0" is nobody. */
  readonly groupRange: string | undefined;
}

/** What a TAP interface needs. */
export interface TunFacts {
  /** Why /dev/net/tun could not be opened, such as ENOENT; undefined: it could. */
  readonly failureCode: string | undefined;
  /** Whether this user may make interfaces (CAP_NET_ADMIN). */
  readonly mayMake: boolean;
  /** TAP interfaces that belong to this user. */
  readonly ownInterfaces: readonly string[];
  /** The commands that make one. */
  readonly makeCommands: string;
}

/** What only Linux tells. */
export interface LinuxFacts {
  /** USB devices that the kernel knows, hubs among them; undefined: it has no USB. */
  readonly usbDevices: number | undefined;
  /** Whether /dev/bus/usb is there. */
  readonly hasUsbNodes: boolean;
  /** By device id. */
  readonly usbNodes: ReadonlyMap<string, UsbNode>;
  /** usbcore's usbfs_memory_mb; 0: no bound. */
  readonly usbMemoryMegabytes: number | undefined;
  /** Whether this user may raise the priority of the thread that moves frames. */
  readonly mayRaisePriority: boolean;
  /** Names of the programs that run, as far as they are seen. */
  readonly running: ReadonlySet<string>;
  readonly netdevs: readonly MachineNetdev[];
  readonly programs: ReadonlySet<SoughtProgram>;
  readonly ping: PingTrial | undefined;
  readonly tun: TunFacts;
}

/** What a machine says of itself: all that the checks look at. */
export interface Machine {
  readonly platform: UsbPlatform;
  readonly surroundings: Surroundings;
  /** Of the kernel, such as "6.19.0". */
  readonly kernelRelease: string;
  /** Without the "v". */
  readonly nodeVersion: string;
  readonly isRoot: boolean;
  readonly recordings: RecordingsFolder;
  /** Why no USB device at all can be opened. */
  readonly usbLibraryFailure: KnownFailure | undefined;
  /** As `queuescope list` has them. */
  readonly devices: readonly Device[];
  readonly linux: LinuxFacts | undefined;
}
