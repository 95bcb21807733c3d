import {
  errorNumbers,
  pollEvents,
  pollFileBytes,
  type SystemCalls,
} from '../../../src/linux/system-calls.ts';
import { urbBytes, urbFields, usbfsRequests } from '../../../src/transports/usbfs-abi.ts';

/**
 * Stands in for Linux with one USB device: files, memory at addresses, and usbfs as it looks from outside (claims, URBs, what
 * ends them, an unplug). Nothing happens by itself: {@link FakeUsbfs.turn} runs what other threads do.
 */

const badFile = 9;
const badAddress = 14;
const noData = 61;
const broken = 32;
const stoppedByKernel = errorNumbers.noEntry;

export const nodePath = '/dev/bus/usb/001/002';
/** Above 4 GB, as memory of 64-bit machines is: the high words matter. */
const firstAddress = 0x7f12_0000_0000;
const usPerSecond = 1_000_000;

export interface FakeUrb {
  readonly address: number;
  readonly type: number;
  readonly endpoint: number;
  readonly buffer: number;
  readonly length: number;
  status: number;
  actualLength: number;
  /** What came from the device. */
  data: Uint8Array | undefined;
}

/** An open file: of the device, or one to wake somebody by. */
interface FakeFile {
  readonly kind: 'node' | 'event';
  /** Of an event: what was written to it. */
  count: number;
  readonly claimed: Set<number>;
  readonly pending: FakeUrb[];
  readonly completed: FakeUrb[];
  /** Threads that are at work on it. */
  users: number;
}

interface Wait {
  readonly files: Uint8Array;
  readonly count: number;
  readonly fds: readonly number[];
  readonly done: (result: number) => void;
}

export interface FakeUsbfsOptions {
  /** Interfaces with the endpoints that they have. */
  readonly interfaces: Readonly<Record<number, readonly number[]>>;
  /** Driver by interface. */
  readonly drivers?: Readonly<Record<number, string>>;
}

/** Who has which interface; somebody may want to hear of it (sysfs). */
class InterfaceDrivers extends Map<number, string> {
  onChange: (interfaceNumber: number, driver: string | undefined) => void = () => {};

  override set(interfaceNumber: number, driver: string): this {
    super.set(interfaceNumber, driver);
    this.onChange(interfaceNumber, driver);
    return this;
  }
  override delete(interfaceNumber: number): boolean {
    this.onChange(interfaceNumber, undefined);
    return super.delete(interfaceNumber);
  }
}

export class FakeUsbfs implements SystemCalls {
  readonly #files = new Map<number, FakeFile>();
  readonly #memory = new Map<ArrayBufferLike, number>();
  #nextAddress = firstAddress;
  readonly #waits: Wait[] = [];
  readonly #jobs: (() => void)[] = [];
  readonly #endpoints: ReadonlyMap<number, number>;

  /** Who has which interface: a kernel driver, or `usbfs`. */
  readonly drivers = new InterfaceDrivers();
  readonly interfaces: Set<number>;
  plugged = true;
  nowUs = 0;
  /** What was asked of the device, in order. */
  readonly log: string[] = [];
  /** Error numbers of coming submits, in order; 0 lets one through. */
  submitErrors: number[] = [];
  /** Error number by what is asked ("reset"). */
  readonly failures = new Map<string, number>();
  /** Other threads run by themselves, as soon as the event loop turns. */
  automatic = false;
  openError = 0;
  eventError = 0;
  /** Drivers that the kernel has: they take interfaces when they are asked to attach, and after a reset. */
  readonly ownDrivers = new Map<number, string>();
  urbsMade = 0;
  polls = 0;
  /** What no program may do. */
  readonly violations: string[] = [];

  constructor(options: FakeUsbfsOptions) {
    this.interfaces = new Set(Object.keys(options.interfaces).map(Number));
    this.#endpoints = new Map(
      Object.entries(options.interfaces).flatMap(([number, endpoints]) =>
        endpoints.map((endpoint) => [endpoint, Number(number)] as const),
      ),
    );
    for (const [key, name] of Object.entries(options.drivers ?? {})) this.drivers.set(Number(key), name);
  }

  // ---- what a test looks at ----

  get openFiles(): number {
    return [...this.#files.values()].filter(({ kind }) => kind === 'node').length;
  }
  get openEvents(): number {
    return [...this.#files.values()].filter(({ kind }) => kind === 'event').length;
  }
  /** Calls that another thread has not ended. */
  get waiting(): number {
    return this.#waits.length;
  }
  get pending(): readonly FakeUrb[] {
    return this.#nodes.flatMap(({ pending }) => pending);
  }

  get #nodes(): readonly FakeFile[] {
    return [...this.#files.values()].filter(({ kind }) => kind === 'node');
  }

  // ---- what the world does ----

  /** The device is done with an URB. @param status 0 or an error number */
  end(urb: FakeUrb, status = 0, data: Uint8Array | number = 0): void {
    const file = this.#nodes.find(({ pending }) => pending.includes(urb));
    if (file === undefined) throw new Error('not pending');
    urb.data = typeof data === 'number' ? undefined : data;
    this.#complete(file, urb, status, typeof data === 'number' ? data : data.length);
  }

  unplug(): void {
    this.plugged = false;
    for (const file of this.#nodes) {
      for (const urb of file.pending.slice()) this.#complete(file, urb, stoppedByKernel, 0);
      file.claimed.clear();
    }
    this.drivers.clear();
  }

  /** The state in which the device is gone already, but what was pending has not been ended yet. */
  unplugLate(): void {
    this.plugged = false;
  }

  /** Another program, as root, throws us out of an interface. */
  stealInterface(interfaceNumber: number, driver: string): void {
    for (const file of this.#nodes) {
      if (file.claimed.delete(interfaceNumber)) this.#killUrbs(file, interfaceNumber);
    }
    this.drivers.set(interfaceNumber, driver);
  }

  /** Runs what other threads have finished by now: jobs, and waits for files that are ready. */
  turn(): void {
    for (const job of this.#jobs.splice(0)) job();
    for (const wait of this.#waits.slice()) {
      if (this.#look(wait.files, wait.count) > 0) this.#endWait(wait);
    }
  }

  /** The limit of every wait is over. */
  expire(): void {
    for (const wait of this.#waits.slice()) {
      this.#look(wait.files, wait.count);
      this.#endWait(wait);
    }
  }

  #turnSoon(): void {
    if (this.automatic) setImmediate(() => this.turn());
  }

  #endWait(wait: Wait): void {
    this.#waits.splice(this.#waits.indexOf(wait), 1);
    for (const fd of wait.fds) this.#use(fd, -1);
    wait.done(0);
  }

  // ---- files ----

  open(path: string): number {
    if (path !== nodePath) return -errorNumbers.noEntry;
    if (this.openError !== 0) return -this.openError;
    if (!this.plugged) return -errorNumbers.noDevice;
    return this.#add('node');
  }

  #add(kind: FakeFile['kind']): number {
    // The lowest number that is free: numbers come again at once.
    let fd = 3;
    while (this.#files.has(fd)) fd++;
    this.#files.set(fd, { kind, count: 0, claimed: new Set(), pending: [], completed: [], users: 0 });
    return fd;
  }

  close(fd: number): void {
    const file = this.#files.get(fd);
    if (file === undefined) {
      this.violations.push(`close of ${fd}, which is not open`);
      return;
    }
    if (file.users > 0) this.violations.push(`close of ${fd} while a thread uses it`);
    for (const each of file.claimed) this.drivers.delete(each);
    this.#files.delete(fd);
  }

  #use(fd: number, by: number): void {
    const file = this.#files.get(fd);
    if (file !== undefined) file.users += by;
  }

  eventFile(): number {
    return this.eventError !== 0 ? -this.eventError : this.#add('event');
  }

  read(fd: number, _buffer: Uint8Array, length: number): number {
    const file = this.#files.get(fd);
    if (file?.kind !== 'event') return -badFile;
    if (file.count === 0) return -errorNumbers.again;
    file.count = 0;
    return length;
  }

  write(fd: number, buffer: Uint8Array, length: number): number {
    const file = this.#files.get(fd);
    if (file?.kind !== 'event') return -badFile;
    file.count += buffer[0] ?? 0;
    this.#turnSoon();
    return length;
  }

  // ---- waiting ----

  poll(files: Uint8Array, count: number, timeout: Uint8Array): number {
    this.polls++;
    const ready = this.#look(files, count);
    if (ready > 0) return ready;
    const view = new DataView(timeout.buffer, timeout.byteOffset);
    this.nowUs += view.getUint32(0, true) * usPerSecond + view.getUint32(8, true) / 1000;
    return 0;
  }

  pollBehind(files: Uint8Array, count: number, _timeoutMs: number, done: (result: number) => void): void {
    const fds = this.#fdsOf(files, count);
    for (const fd of fds) this.#use(fd, 1);
    this.#waits.push({ files, count, fds, done });
  }

  #fdsOf(files: Uint8Array, count: number): number[] {
    const view = new DataView(files.buffer, files.byteOffset);
    return Array.from({ length: count }, (_, index) => view.getInt32(index * pollFileBytes, true)).filter(
      (fd) => fd >= 0,
    );
  }

  #look(files: Uint8Array, count: number): number {
    const view = new DataView(files.buffer, files.byteOffset);
    let ready = 0;
    for (let index = 0; index < count; index++) {
      const at = index * pollFileBytes;
      const wanted = view.getInt16(at + 4, true);
      const events = this.#eventsOf(view.getInt32(at, true), wanted);
      view.setInt16(at + 6, events, true);
      if (events !== 0) ready++;
    }
    return ready;
  }

  #eventsOf(fd: number, wanted: number): number {
    if (fd < 0) return 0;
    const file = this.#files.get(fd);
    if (file === undefined) {
      this.violations.push(`poll of ${fd}, which is not open`);
      return 0x20;
    }
    if (file.kind === 'event') return file.count > 0 ? wanted & pollEvents.in : 0;
    const completed = file.completed.length > 0 ? pollEvents.out : 0;
    return (completed & wanted) | (this.plugged ? 0 : pollEvents.hangUp | pollEvents.error);
  }

  // ---- memory ----

  addressOf(memory: Uint8Array): number {
    let base = this.#memory.get(memory.buffer);
    if (base === undefined) {
      base = this.#nextAddress;
      this.#memory.set(memory.buffer, base);
      this.#nextAddress += Math.ceil(memory.buffer.byteLength / 4096 + 1) * 4096;
    }
    return base + memory.byteOffset;
  }

  /** The bytes at an address; undefined: nobody has given us that. */
  memoryAt(address: number, length: number): Uint8Array | undefined {
    for (const [memory, base] of this.#memory) {
      if (address >= base && address + length <= base + memory.byteLength) {
        return new Uint8Array(memory, address - base, length);
      }
    }
    return undefined;
  }

  // ---- ioctl ----

  ioctlBehind(
    fd: number,
    request: number,
    argument: Uint8Array | undefined,
    done: (result: number) => void,
  ): void {
    this.#use(fd, 1);
    this.#jobs.push(() => {
      const result = this.ioctl(fd, request, argument);
      this.#use(fd, -1);
      done(result);
    });
    this.#turnSoon();
  }

  ioctl(fd: number, request: number, argument: Uint8Array | undefined): number {
    const file = this.#files.get(fd);
    if (file === undefined) {
      this.violations.push(`ioctl of ${fd}, which is not open`);
      return -badFile;
    }
    if (!this.plugged) return -errorNumbers.noDevice;
    const view = argument === undefined ? undefined : new DataView(argument.buffer, argument.byteOffset);
    const value = view?.getUint32(0, true) ?? 0;
    switch (request) {
      case usbfsRequests.claimInterface:
        return this.#asked(`claim ${value}`) || this.#claim(file, value);
      case usbfsRequests.releaseInterface:
        return this.#asked(`release ${value}`) || this.#release(file, value);
      case usbfsRequests.getDriver: {
        const driver = this.drivers.get(value);
        if (driver === undefined) return -noData;
        argument?.set(new TextEncoder().encode(`${driver}\0`), 4);
        return 0;
      }
      case usbfsRequests.interfaceIoctl:
        return this.#interfaceIoctl(value, view?.getUint32(4, true) ?? 0);
      case usbfsRequests.setInterface: {
        const failed = this.#asked(`alt ${value} ${view?.getUint32(4, true) ?? 0}`);
        if (failed !== 0) return failed;
        if (!file.claimed.has(value)) return -errorNumbers.invalid;
        for (const urb of this.#urbsOf(file, value)) this.#complete(file, urb, errorNumbers.shutdown, 0);
        return 0;
      }
      case usbfsRequests.setConfiguration:
        return this.#asked(`configure ${value}`) || (this.drivers.size > 0 ? -errorNumbers.busy : 0);
      case usbfsRequests.clearHalt:
        return this.#asked(`clear-halt ${value}`);
      case usbfsRequests.reset:
        return this.#asked('reset') || this.#reset();
      default:
        this.violations.push(`ioctl ${request.toString(16)} with memory`);
        return -25;
    }
  }

  ioctlNumber(fd: number, request: number, argument: number): number {
    const file = this.#files.get(fd);
    if (file === undefined) {
      this.violations.push(`ioctl of ${fd}, which is not open`);
      return -badFile;
    }
    if (request === usbfsRequests.reapUrbNoDelay) return this.#reap(file, argument);
    if (!this.plugged) return -errorNumbers.noDevice;
    switch (request) {
      case usbfsRequests.submitUrb:
        return this.#submit(file, argument);
      case usbfsRequests.discardUrb: {
        const urb = file.pending.find(({ address }) => address === argument);
        if (urb === undefined) return -errorNumbers.invalid;
        this.#complete(file, urb, stoppedByKernel, 0);
        return 0;
      }
      default:
        this.violations.push(`ioctl ${request.toString(16)} with a number`);
        return -25;
    }
  }

  #asked(what: string): number {
    this.log.push(what);
    return -(this.failures.get(what) ?? 0);
  }

  #claim(file: FakeFile, interfaceNumber: number): number {
    if (!this.interfaces.has(interfaceNumber)) return -errorNumbers.noEntry;
    if (file.claimed.has(interfaceNumber)) return 0;
    if (this.drivers.has(interfaceNumber)) return -errorNumbers.busy;
    file.claimed.add(interfaceNumber);
    this.drivers.set(interfaceNumber, 'usbfs');
    return 0;
  }

  #release(file: FakeFile, interfaceNumber: number): number {
    if (!file.claimed.delete(interfaceNumber)) return -errorNumbers.invalid;
    this.drivers.delete(interfaceNumber);
    this.#killUrbs(file, interfaceNumber);
    return 0;
  }

  #interfaceIoctl(interfaceNumber: number, request: number): number {
    const driver = this.drivers.get(interfaceNumber);
    if (request === usbfsRequests.disconnect) {
      const failed = this.#asked(`detach ${interfaceNumber}`);
      if (failed !== 0) return failed;
      if (driver === undefined) return -noData;
      this.drivers.delete(interfaceNumber);
      return 0;
    }
    const failed = this.#asked(`attach ${interfaceNumber}`);
    if (failed !== 0) return failed;
    if (driver !== undefined) return -errorNumbers.busy;
    const own = this.ownDrivers.get(interfaceNumber);
    if (own === undefined) return 0;
    this.drivers.set(interfaceNumber, own);
    return 1;
  }

  /** Throws out programs that still have interfaces, and lets drivers have them. */
  #reset(): number {
    for (const file of this.#nodes) {
      for (const each of file.claimed) {
        this.violations.push(`reset with interface ${each} claimed`);
        this.#release(file, each);
      }
    }
    for (const [number, driver] of this.ownDrivers) this.drivers.set(number, driver);
    return 0;
  }

  // ---- URBs ----

  #urbsOf(file: FakeFile, interfaceNumber: number): FakeUrb[] {
    return file.pending.filter(({ endpoint }) => this.#endpoints.get(endpoint) === interfaceNumber);
  }

  #killUrbs(file: FakeFile, interfaceNumber: number): void {
    for (const urb of this.#urbsOf(file, interfaceNumber)) this.#complete(file, urb, stoppedByKernel, 0);
  }

  #complete(file: FakeFile, urb: FakeUrb, status: number, actualLength: number): void {
    file.pending.splice(file.pending.indexOf(urb), 1);
    urb.status = -status;
    urb.actualLength = actualLength;
    file.completed.push(urb);
    this.#turnSoon();
  }

  #submit(file: FakeFile, address: number): number {
    const failed = this.submitErrors.shift() ?? 0;
    if (failed !== 0) return -failed;
    const memory = this.memoryAt(address, urbBytes);
    if (memory === undefined) return -badAddress;
    const view = new DataView(memory.buffer, memory.byteOffset);
    const urb: FakeUrb = {
      address,
      type: view.getUint8(urbFields.type),
      endpoint: view.getUint8(urbFields.endpoint),
      buffer: Number(view.getBigUint64(urbFields.buffer, true)),
      length: view.getInt32(urbFields.bufferLength, true),
      status: 0,
      actualLength: 0,
      data: undefined,
    };
    if (file.pending.some((other) => other.address === address)) this.violations.push('an URB twice');
    if (urb.length > 0 && this.memoryAt(urb.buffer, urb.length) === undefined) return -badAddress;
    const owner = this.#endpoints.get(urb.endpoint);
    if (owner !== undefined && !file.claimed.has(owner)) {
      // Claimed with a warning, as the kernel does it.
      const claimed = this.#claim(file, owner);
      if (claimed < 0) return claimed;
    }
    this.urbsMade++;
    file.pending.push(urb);
    return 0;
  }

  #reap(file: FakeFile, answer: number): number {
    const urb = file.completed.shift();
    if (urb === undefined) return this.plugged ? -errorNumbers.again : -errorNumbers.noDevice;
    const memory = this.memoryAt(urb.address, urbBytes);
    const place = this.memoryAt(answer, 8);
    if (memory === undefined || place === undefined) return -badAddress;
    const view = new DataView(memory.buffer, memory.byteOffset);
    view.setInt32(urbFields.status, urb.status, true);
    view.setInt32(urbFields.actualLength, urb.actualLength, true);
    if (urb.data !== undefined) {
      const setup = urb.type === 2 ? 8 : 0;
      this.memoryAt(urb.buffer + setup, urb.data.length)?.set(urb.data);
    }
    new DataView(place.buffer, place.byteOffset).setBigUint64(0, BigInt(urb.address), true);
    return 0;
  }
}

/** Error numbers that URBs of this fake end with. */
export const urbErrors = {
  stall: broken,
  protocol: 71,
  overflow: 75,
  shutdown: 108,
  killed: stoppedByKernel,
};
