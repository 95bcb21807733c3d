import { closeSync, constants, openSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { fromHex } from '../base/bytes.ts';
import { AppError } from '../base/errors.ts';
import type { FileWatch, ReadyFiles } from '../linux/ready-files.ts';
import { errorNumbers, pollEvents, type SystemCalls } from '../linux/system-calls.ts';

const devicePath = '/dev/net/tun';
/** _IOW('T', 202, int): attaches the file to an interface, which is made if there is none of that name. */
const tunSetIff = 0x400454ca;
/** _IOR('T', 207, unsigned int): what of the flags that can be asked for there is. */
const tunGetFeatures = 0x800454cf;
/** _IOW('T', 208, unsigned int): what the host may leave to us. */
const tunSetOffload = 0x400454d0;
/** _IOW('T', 216, int): the length of the header in front of each frame. */
const tunSetVnetHeaderSize = 0x400454d8;
/** _IOW('T', 220, int): that header's numbers are little-endian. */
const tunSetVnetLittleEndian = 0x400454dc;
/** _IOW('T', 226, int): tells the host whether there is a link. */
const tunSetCarrier = 0x400454e2;
const interfaceRequestBytes = 40;
const nameBytes = 16;
/** IFF_TAP: Ethernet frames; IFF_NO_PI: nothing of tun's own in front of them. */
const tapWithoutInformation = 0x0002 | 0x1000;
/** IFF_VNET_HDR: a virtio_net_hdr in front of them. */
const withVnetHeader = 0x4000;
/** A virtio_net_hdr without `num_buffers`, as it is unless a program before us has set another. */
const vnetHeaderBytes = 10;
const offloads = {
  checksum: 0x01,
  tcpv4: 0x02,
  tcpv6: 0x04,
  tcpEcn: 0x08,
  udpv4: 0x20,
  udpv6: 0x40,
} as const;
const tcpOffloads = offloads.checksum | offloads.tcpv4 | offloads.tcpv6;
/** What is asked for, one after the other until the kernel takes it: UDP came with Linux 6.2. */
const offloadSteps: readonly number[] = [
  tcpOffloads | offloads.tcpEcn | offloads.udpv4 | offloads.udpv6,
  tcpOffloads | offloads.tcpEcn,
  tcpOffloads,
  offloads.checksum,
];

/** What is needed to speak to the kernel, and to wait for it. */
export interface TapAccess {
  readonly calls: SystemCalls;
  readonly files: ReadyFiles;
}

/** Linux's rule for names of interfaces, without the characters that a shell minds. */
export function isInterfaceName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$/.test(name);
}

/** Frames that the kernel gave up on their way to us, and from us (`/sys/class/net/NAME/statistics`). */
export interface TapDrops {
  /** The host sent them, but nobody had read those before (`tx_dropped`). */
  readonly fromHost: number;
  /** We handed them in, but the host did not take them (`rx_dropped`). */
  readonly toHost: number;
}

/** What stands in front of each frame that is read and written: nothing, or a virtio_net_hdr of 10 bytes, little-endian. */
export type TapHeader = 'none' | 'virtio';

/**
 * A TAP interface of this host (Linux): what the host sends into it can be read here as Ethernet frames, and frames written
 * here arrive at the host. Reading and writing never block.
 *
 * With a header in front of each frame, the host leaves checksums to us, and cutting its segments into frames: one read then
 * brings up to 64 KB.
 */
export class TapDevice {
  readonly name: string;
  readonly header: TapHeader;
  readonly #calls: SystemCalls;
  readonly #fd: number;
  readonly #watch: FileWatch;
  #whenReadable: (() => void) | undefined;
  #closed = false;

  private constructor(name: string, header: TapHeader, { calls, files }: TapAccess, fd: number) {
    this.name = name;
    this.header = header;
    this.#calls = calls;
    this.#fd = fd;
    this.#watch = files.watch(fd, pollEvents.in, () => this.#handleReadable());
  }

  /**
   * Opens the interface of that name: one that is there already, if it is this user's, or else a new one, which takes
   * rights and lasts until it is closed.
   * @param header wanted; a kernel that has none is used without
   * @throws AppError `bad-input`, `access-denied` (with the commands that make one for this user), `device-busy`,
   *   `device-failed`
   */
  static open(name: string, access: TapAccess, header: TapHeader = 'none'): TapDevice {
    if (!isInterfaceName(name)) {
      throw new AppError('bad-input', `"${name}" cannot be the name of a network interface`, {
        remedy: 'Choose at most 15 letters and digits, like qs0.',
      });
    }
    const { calls } = access;
    if (header === 'virtio') {
      const fd = attach(name, calls, 'virtio');
      if (fd !== undefined) return new TapDevice(name, 'virtio', access, fd);
    }
    const fd = attach(name, calls, 'none');
    if (fd === undefined) throw attachFailure(name, errorNumbers.invalid);
    return new TapDevice(name, 'none', access, fd);
  }

  /** Reads one frame, behind its header if there is one. @returns the length of both; 0: there is none; -1: the interface is gone */
  read(buffer: Uint8Array): number {
    if (this.#closed) return -1;
    const result = this.#calls.read(this.#fd, buffer, buffer.length);
    if (result >= 0) return result;
    return -result === errorNumbers.again ? 0 : -1;
  }

  /** Hands one frame to the host, with its header if there is one. False: it was not taken (interface down, no memory). */
  write(frame: Uint8Array, length: number): boolean {
    return !this.#closed && this.#calls.write(this.#fd, frame, length) === length;
  }

  /** Calls `ready` once, as soon as there is something to read; not any more after {@link close}. */
  whenReadable(ready: () => void): void {
    if (this.#closed) return;
    this.#whenReadable = ready;
    this.#watch.arm();
  }

  #handleReadable(): void {
    this.#watch.disarm();
    const ready = this.#whenReadable;
    this.#whenReadable = undefined;
    ready?.();
  }

  /** Tells the host whether frames that it sends can go anywhere. */
  setCarrier(on: boolean): void {
    if (this.#closed) return;
    setNumber(this.#fd, this.#calls, tunSetCarrier, on ? 1 : 0);
  }

  /** The MAC address that the host uses on this interface; undefined if that can't be read. */
  macAddress(): Uint8Array | undefined {
    try {
      return fromHex(readFileSync(`/sys/class/net/${this.name}/address`, 'utf8').trim());
    } catch {
      return undefined;
    }
  }

  drops(): TapDrops {
    return { fromHost: this.#statistic('tx_dropped'), toHost: this.#statistic('rx_dropped') };
  }

  #statistic(file: string): number {
    try {
      return Number(readFileSync(`/sys/class/net/${this.name}/statistics/${file}`, 'utf8'));
    } catch {
      return 0;
    }
  }

  /** Gives the interface back; one that we made disappears. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // An interface that stays is the next program's, which may know nothing of long segments.
    if (this.header === 'virtio') this.#calls.ioctlNumber(this.#fd, tunSetOffload, 0);
    this.#watch.close();
  }
}

/**
 * Opens the interface. Undefined: this kernel has no such header.
 * @throws AppError as {@link TapDevice.open}
 */
function attach(name: string, calls: SystemCalls, header: TapHeader): number | undefined {
  let fd: number;
  try {
    fd = openSync(devicePath, constants.O_RDWR | constants.O_NONBLOCK);
  } catch (error) {
    throw openFailure(name, error);
  }
  if (header === 'virtio' && !hasVnetHeader(fd, calls)) {
    closeSync(fd);
    return undefined;
  }
  const request = Buffer.alloc(interfaceRequestBytes);
  request.write(name, 0, nameBytes - 1, 'latin1');
  request.writeUInt16LE(tapWithoutInformation | (header === 'virtio' ? withVnetHeader : 0), nameBytes);
  const result = calls.ioctl(fd, tunSetIff, request);
  if (result < 0) {
    closeSync(fd);
    throw attachFailure(name, -result);
  }
  if (header === 'virtio') {
    if (!setUpVnetHeader(fd, calls)) {
      closeSync(fd);
      return undefined;
    }
  } else {
    // A program before us that ended in a crash may have left it otherwise.
    calls.ioctlNumber(fd, tunSetOffload, 0);
  }
  return fd;
}

function hasVnetHeader(fd: number, calls: SystemCalls): boolean {
  const features = Buffer.alloc(4);
  return calls.ioctl(fd, tunGetFeatures, features) >= 0 && (features.readUInt32LE(0) & withVnetHeader) !== 0;
}

/** Settles what the header looks like, and what the host may leave to us. False: not as it must be. */
function setUpVnetHeader(fd: number, calls: SystemCalls): boolean {
  if (!setNumber(fd, calls, tunSetVnetHeaderSize, vnetHeaderBytes)) return false;
  if (!setNumber(fd, calls, tunSetVnetLittleEndian, 1)) return false;
  return offloadSteps.some((step) => calls.ioctlNumber(fd, tunSetOffload, step) >= 0);
}

/** An ioctl whose argument is a number in memory. */
function setNumber(fd: number, calls: SystemCalls, request: number, value: number): boolean {
  const memory = Buffer.alloc(4);
  memory.writeInt32LE(value);
  return calls.ioctl(fd, request, memory) >= 0;
}

/** The commands that make a TAP interface for a user who then needs no rights. */
export function persistentTapCommands(name: string): string {
  const user = userInfo().username;
  return (
    `sudo ip tuntap add dev ${name} mode tap user ${user}\n` +
    `sudo ip link set ${name} up\n` +
    `(and when it is no longer wanted: sudo ip tuntap del dev ${name} mode tap)`
  );
}

function openFailure(name: string, error: unknown): AppError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  if (code === 'ENOENT' || code === 'ENODEV' || code === 'ENXIO') {
    return new AppError('device-failed', `this system has no TAP interfaces (${devicePath}: ${code})`, {
      details: { code },
      remedy: 'Load the kernel module:\nsudo modprobe tun',
      cause: error,
    });
  }
  return new AppError('access-denied', `${devicePath} cannot be opened (${code})`, {
    details: { code },
    remedy: `Make a TAP interface that belongs to you:\n${persistentTapCommands(name)}`,
    cause: error,
  });
}

function attachFailure(name: string, errorNumber: number): AppError {
  const details = { name, errorNumber };
  switch (errorNumber) {
    case errorNumbers.perm:
    case errorNumbers.access:
      return new AppError('access-denied', `there is no right to use or make the TAP interface ${name}`, {
        details,
        remedy: `Make one that belongs to you:\n${persistentTapCommands(name)}`,
      });
    case errorNumbers.busy:
      return new AppError('device-busy', `the TAP interface ${name} is in use by another program`, {
        details,
      });
    case errorNumbers.invalid:
      return new AppError('bad-input', `${name} exists and is no TAP interface`, {
        details,
        remedy: 'Choose a name that is not taken.',
      });
    default:
      return new AppError(
        'device-failed',
        `the TAP interface ${name} cannot be opened (error ${errorNumber})`,
        {
          details,
        },
      );
  }
}
