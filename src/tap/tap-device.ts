import { closeSync, constants, openSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { fromHex } from '../base/bytes.ts';
import { AppError } from '../base/errors.ts';
import type { FileWatch, ReadyFiles } from '../linux/ready-files.ts';
import { errorNumbers, pollEvents, type SystemCalls } from '../linux/system-calls.ts';

const devicePath = '/dev/net/tun';
/** _IOW('T', 202, int): attaches the file to an interface, which is made if there is none of that name. */
const tunSetIff = 0x400454ca;
/** _IOW('T', 226, int): tells the host whether there is a link. */
const tunSetCarrier = 0x400454e2;
const interfaceRequestBytes = 40;
const nameBytes = 16;
/** IFF_TAP: Ethernet frames; IFF_NO_PI: nothing in front of them. */
const tapWithoutInformation = 0x0002 | 0x1000;

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

/**
 * A TAP interface of this host (Linux): what the host sends into it can be read here as Ethernet frames, and frames written
 * here arrive at the host. Reading and writing never block.
 */
export class TapDevice {
  readonly name: string;
  readonly #calls: SystemCalls;
  readonly #fd: number;
  readonly #watch: FileWatch;
  #whenReadable: (() => void) | undefined;
  #closed = false;

  private constructor(name: string, { calls, files }: TapAccess, fd: number) {
    this.name = name;
    this.#calls = calls;
    this.#fd = fd;
    this.#watch = files.watch(fd, pollEvents.in, () => this.#handleReadable());
  }

  /**
   * Opens the interface of that name: one that is there already, if it is this user's, or else a new one, which takes
   * rights and lasts until it is closed.
   * @throws AppError `bad-input`, `access-denied` (with the commands that make one for this user), `device-busy`,
   *   `device-failed`
   */
  static open(name: string, access: TapAccess): TapDevice {
    const { calls } = access;
    if (!isInterfaceName(name)) {
      throw new AppError('bad-input', `"${name}" cannot be the name of a network interface`, {
        remedy: 'Choose at most 15 letters and digits, like qs0.',
      });
    }
    let fd: number;
    try {
      fd = openSync(devicePath, constants.O_RDWR | constants.O_NONBLOCK);
    } catch (error) {
      throw openFailure(name, error);
    }
    const request = Buffer.alloc(interfaceRequestBytes);
    request.write(name, 0, nameBytes - 1, 'latin1');
    request.writeUInt16LE(tapWithoutInformation, nameBytes);
    const result = calls.ioctl(fd, tunSetIff, request);
    if (result < 0) {
      closeSync(fd);
      throw attachFailure(name, -result);
    }
    return new TapDevice(name, access, fd);
  }

  /** Reads one frame. @returns its length; 0: there is none; -1: the interface is gone */
  read(buffer: Uint8Array): number {
    if (this.#closed) return -1;
    const result = this.#calls.read(this.#fd, buffer, buffer.length);
    if (result >= 0) return result;
    return -result === errorNumbers.again ? 0 : -1;
  }

  /** Hands one frame to the host. False: it did not take it (the interface is down, or out of memory). */
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
    const value = Buffer.alloc(4);
    value.writeInt32LE(on ? 1 : 0);
    this.#calls.ioctl(this.#fd, tunSetCarrier, value);
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
    this.#watch.close();
  }
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
