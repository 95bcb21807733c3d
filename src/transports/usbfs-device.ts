import type { FileWatch, ReadyFiles } from '../linux/ready-files.ts';
import { errorNumbers, pollEvents, type SystemCalls } from '../linux/system-calls.ts';
import type {
  LibusbCallback,
  LibusbError,
  LibusbHandle,
  LibusbTransfer,
  LibusbTransferCallback,
} from './libusb-module.ts';
import { libusbErrors, libusbTransferStatus } from './libusb-status.ts';
import type { UsbAddress } from './linux-usb-files.ts';
import {
  getDriverBytes,
  interfaceIoctlBytes,
  libusbErrorOf,
  transferEndOf,
  urbTypes,
  usbfsRequests,
} from './usbfs-abi.ts';
import { UsbfsUrbs } from './usbfs-urbs.ts';

/** The driver name that interfaces have which a program has claimed. */
const ownDriver = 'usbfs';

/** By error number: why the node could not be opened. */
const openErrors: ReadonlyMap<number, number> = new Map([
  [errorNumbers.access, libusbErrors.access],
  [errorNumbers.perm, libusbErrors.access],
  [errorNumbers.noEntry, libusbErrors.noDevice],
  [errorNumbers.noDevice, libusbErrors.noDevice],
  [errorNumbers.noSuchAddress, libusbErrors.noDevice],
]);

/** So many transfers are taken back in one go: who asks again from inside each report could go on for ever. */
const mostReaped = 64;

/** What is needed to speak to usbfs. */
export interface UsbfsAccess {
  readonly calls: SystemCalls;
  readonly files: ReadyFiles;
}

/** Everything while a device is open. */
interface OpenNode {
  readonly fd: number;
  readonly urbs: UsbfsUrbs;
  readonly watch: FileWatch;
  /** By the number of its URB: the transfer that is out. */
  readonly out: (UsbfsTransfer | undefined)[];
}

/**
 * A device that is driven through Linux's usbfs directly, in the manner of libusb's: what is above need not know the
 * difference. Transfers that have ended are seen by whoever waits for the node ({@link ReadyFiles}), without a thread in
 * between: what a transfer costs falls to a third (docs/decisions/usbfs.md).
 *
 * Calls that may wait for the device (altsetting, halt, configuration, reset, release) run on another thread.
 */
export class UsbfsDevice implements LibusbHandle {
  readonly busNumber: number;
  readonly deviceAddress: number;
  readonly #nodePath: string;
  readonly #calls: SystemCalls;
  readonly #files: ReadyFiles;
  readonly #claimed = new Set<number>();
  #node: OpenNode | undefined;
  #callsBehind = 0;
  #resetting = false;
  /** To be closed once no call is out any more. */
  #closeWanted = false;

  constructor(access: UsbfsAccess, nodePath: string, address: UsbAddress) {
    this.#calls = access.calls;
    this.#files = access.files;
    this.#nodePath = nodePath;
    this.busNumber = address.busNumber;
    this.deviceAddress = address.deviceAddress;
  }

  createTransfer(
    endpointAddress: number,
    type: number,
    timeoutMs: number,
    callback: LibusbTransferCallback,
  ): LibusbTransfer {
    return new UsbfsTransfer(this, this.#calls, { endpointAddress, type, timeoutMs, callback });
  }

  __open(): void {
    if (this.#node !== undefined) return;
    const fd = this.#calls.open(this.#nodePath);
    if (fd < 0) throw usbfsError('open it', openErrors.get(-fd) ?? libusbErrors.io);
    const watch = this.#files.watch(fd, pollEvents.out, () => this.#reap());
    this.#node = { fd, urbs: new UsbfsUrbs(this.#calls), watch, out: [] };
    watch.arm();
  }

  /**
   * Ends whatever is still out, and gives back what is still claimed.
   * @throws LibusbError `busy` while a call is out on another thread; the device is closed once that has come back
   */
  __close(): void {
    const node = this.#node;
    if (node === undefined) return;
    if (this.#callsBehind > 0) {
      // The number of the node's file must not become another file's before the call has used it.
      this.#closeWanted = true;
      throw usbfsError('close it', libusbErrors.busy);
    }
    this.#node = undefined;
    this.#claimed.clear();
    // The kernel writes into our memory only when a transfer is taken back, which from here on none is.
    node.watch.close();
    endAll(node, libusbTransferStatus.cancelled);
  }

  __claimInterface(interfaceNumber: number): void {
    this.#call(`claim interface ${interfaceNumber}`, usbfsRequests.claimInterface, word(interfaceNumber));
    this.#claimed.add(interfaceNumber);
  }

  __releaseInterface(interfaceNumber: number, callback: LibusbCallback): void {
    this.#callBehind('release', usbfsRequests.releaseInterface, word(interfaceNumber), (error) => {
      if (error === undefined || error.errno === libusbErrors.notFound) {
        this.#claimed.delete(interfaceNumber);
      }
      callback(error);
    });
  }

  __setConfiguration(value: number, callback: LibusbCallback): void {
    this.#callBehind('choose a configuration', usbfsRequests.setConfiguration, word(value), callback);
  }

  __setInterface(interfaceNumber: number, alternateSetting: number, callback: LibusbCallback): void {
    const argument = Buffer.alloc(8);
    argument.writeUInt32LE(interfaceNumber, 0);
    argument.writeUInt32LE(alternateSetting, 4);
    this.#callBehind('choose an altsetting', usbfsRequests.setInterface, argument, callback);
  }

  __clearHalt(endpointAddress: number, callback: LibusbCallback): void {
    this.#callBehind('clear a halt', usbfsRequests.clearHalt, word(endpointAddress), callback);
  }

  __isKernelDriverActive(interfaceNumber: number): boolean {
    const argument = Buffer.alloc(getDriverBytes);
    argument.writeUInt32LE(interfaceNumber, 0);
    const result = this.#calls.ioctl(this.#open().fd, usbfsRequests.getDriver, argument);
    if (result === -errorNumbers.noData) return false;
    if (result < 0) throw usbfsError('ask for the driver', libusbErrorOf(-result));
    const end = argument.indexOf(0, 4);
    return argument.toString('latin1', 4, end < 0 ? getDriverBytes : end) !== ownDriver;
  }

  __detachKernelDriver(interfaceNumber: number): void {
    // A program that has claimed the interface is no driver, and is not to be thrown out.
    if (!this.__isKernelDriverActive(interfaceNumber)) {
      throw usbfsError('detach the driver', libusbErrors.notFound);
    }
    this.#interfaceCall('detach the driver', interfaceNumber, usbfsRequests.disconnect);
  }

  __attachKernelDriver(interfaceNumber: number): void {
    const found = this.#interfaceCall('attach the driver', interfaceNumber, usbfsRequests.connect);
    if (found === 0) throw usbfsError('attach the driver', libusbErrors.notFound);
  }

  /**
   * The port's reset. The kernel would give interfaces of a program to its own drivers meanwhile: they are released before,
   * and claimed again after (as libusb does), also if it failed. Nothing is taken meanwhile: the kernel would claim for us
   * what a transfer needs. Fails with `notFound` if the device is another one now, or does not have them any more.
   */
  reset(callback: LibusbCallback): void {
    const interfaces = [...this.#claimed];
    this.#releaseAll(interfaces, () => {
      this.#callBehind('reset it', usbfsRequests.reset, undefined, (error) => {
        this.#resetting = false;
        if (error?.errno === libusbErrors.noDevice) {
          callback(usbfsError('find it after the reset', libusbErrors.notFound));
          return;
        }
        // What was given back meanwhile stays so.
        const lost = interfaces.filter((each) => this.#claimed.has(each) && !this.#claimAgain(each));
        if (error !== undefined) callback(usbfsError('reset it', libusbErrors.other));
        else if (lost.length > 0) {
          callback(usbfsError(`claim interfaces ${lost.join()} after the reset`, libusbErrors.notFound));
        } else callback();
      });
    });
    this.#resetting = true;
  }

  /** Releasing may wait for the device, if there is an altsetting to set back: on another thread, one after another. */
  #releaseAll(interfaces: readonly number[], done: () => void): void {
    const [first, ...others] = interfaces;
    if (first === undefined) {
      done();
      return;
    }
    this.#callBehind('release', usbfsRequests.releaseInterface, word(first), () => {
      this.#releaseAll(others, done);
    });
  }

  /** @returns whether it has it again; a driver may have come in between */
  #claimAgain(interfaceNumber: number): boolean {
    try {
      if (this.__isKernelDriverActive(interfaceNumber)) this.__detachKernelDriver(interfaceNumber);
      this.__claimInterface(interfaceNumber);
      return true;
    } catch {
      this.#claimed.delete(interfaceNumber);
      return false;
    }
  }

  // ---- transfers ----

  /** Hands an URB to the kernel. @throws LibusbError */
  submitUrb(transfer: UsbfsTransfer, type: number, address: number, length: number): void {
    const { fd, urbs, out } = this.#open();
    if (this.#resetting) throw usbfsError('submit while it is reset', libusbErrors.busy);
    const urb = urbs.take();
    if (urb === undefined) throw usbfsError('submit', libusbErrors.noMemory);
    urbs.fill(urb, type, transfer.endpointAddress, address, length);
    const result = this.#calls.ioctlNumber(fd, usbfsRequests.submitUrb, urbs.addressOf(urb));
    if (result < 0) {
      urbs.give(urb);
      throw usbfsError('submit', libusbErrorOf(-result));
    }
    out[urb] = transfer;
    transfer.urb = urb;
  }

  /** Ends an URB; how it ended comes as for any other. @returns whether it was still out */
  discardUrb(urb: number): boolean {
    const { fd, urbs } = this.#open();
    const result = this.#calls.ioctlNumber(fd, usbfsRequests.discardUrb, urbs.addressOf(urb));
    if (result === -errorNumbers.noDevice) throw usbfsError('cancel', libusbErrors.noDevice);
    return result >= 0;
  }

  /** Takes back what has ended, and reports it. What is left is still ready, and seen again. */
  #reap(): void {
    for (let count = 0; count < mostReaped; count++) {
      // What is reported may close the device.
      const node = this.#node;
      if (node === undefined) return;
      const { fd, urbs, out } = node;
      const result = this.#calls.ioctlNumber(fd, usbfsRequests.reapUrbNoDelay, urbs.reapedAddress);
      if (result < 0) {
        if (result === -errorNumbers.again) return;
        // Unplugged: what has not come back by now is not waited for.
        node.watch.disarm();
        endAll(node, libusbTransferStatus.noDevice);
        return;
      }
      const urb = urbs.reaped;
      const transfer = out[urb];
      const status = urbs.statusOf(urb);
      const length = urbs.actualLengthOf(urb);
      out[urb] = undefined;
      urbs.give(urb);
      transfer?.handleEnd(transferEndOf(status), length);
    }
  }

  // ---- calls ----

  #open(): OpenNode {
    if (this.#node === undefined) throw usbfsError('use it: it is not open', libusbErrors.io);
    return this.#node;
  }

  #call(doing: string, request: number, argument: Uint8Array): number {
    const result = this.#calls.ioctl(this.#open().fd, request, argument);
    if (result < 0) throw usbfsError(doing, libusbErrorOf(-result));
    return result;
  }

  #interfaceCall(doing: string, interfaceNumber: number, request: number): number {
    const argument = Buffer.alloc(interfaceIoctlBytes);
    argument.writeUInt32LE(interfaceNumber, 0);
    argument.writeUInt32LE(request, 4);
    return this.#call(doing, usbfsRequests.interfaceIoctl, argument);
  }

  #callBehind(
    doing: string,
    request: number,
    argument: Uint8Array | undefined,
    callback: LibusbCallback,
  ): void {
    const { fd, watch } = this.#open();
    this.#callsBehind++;
    // Each call locks the device: who takes transfers back meanwhile would wait for the other thread.
    watch.disarm();
    this.#calls.ioctlBehind(fd, request, argument, (result) => {
      this.#callsBehind--;
      try {
        callback(result < 0 ? usbfsError(doing, libusbErrorOf(-result)) : undefined);
      } finally {
        if (this.#callsBehind === 0) {
          this.#node?.watch.arm();
          if (this.#closeWanted) this.__close();
        }
      }
    });
  }
}

interface TransferOptions {
  readonly endpointAddress: number;
  readonly type: number;
  readonly timeoutMs: number;
  readonly callback: LibusbTransferCallback;
}

/** One transfer through usbfs; used again and again. */
class UsbfsTransfer implements LibusbTransfer {
  readonly endpointAddress: number;
  readonly #device: UsbfsDevice;
  readonly #calls: SystemCalls;
  readonly #type: number;
  readonly #timeoutMs: number;
  readonly #callback: LibusbTransferCallback;
  /** The number of its URB, while it is out. */
  urb: number | undefined;
  /** Kept from being freed while the kernel has its address. */
  #buffer: Buffer = Buffer.alloc(0);
  #memory: ArrayBufferLike | undefined;
  #memoryAddress = 0;
  #ending: 'cancelled' | 'timed-out' | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(device: UsbfsDevice, calls: SystemCalls, options: TransferOptions) {
    this.#device = device;
    this.#calls = calls;
    this.endpointAddress = options.endpointAddress;
    this.#type = urbTypes[options.type] ?? 0;
    this.#timeoutMs = options.timeoutMs;
    this.#callback = options.callback;
  }

  submit(buffer: Buffer): void {
    if (this.urb !== undefined) throw usbfsError('submit twice', libusbErrors.busy);
    this.#buffer = buffer;
    this.#ending = undefined;
    this.#device.submitUrb(this, this.#type, this.#addressOf(buffer), buffer.length);
    if (this.#timeoutMs > 0) this.#timer = setTimeout(() => this.#handleTimeout(), this.#timeoutMs);
  }

  /** Asking for an address costs a call: the memory is the same each time. Empty memory has none. */
  #addressOf(buffer: Buffer): number {
    if (buffer.length === 0) return 0;
    if (this.#memory !== buffer.buffer) {
      this.#memory = buffer.buffer;
      this.#memoryAddress = this.#calls.addressOf(buffer) - buffer.byteOffset;
    }
    return this.#memoryAddress + buffer.byteOffset;
  }

  #handleTimeout(): void {
    try {
      this.#end('timed-out');
    } catch {
      // No device any more: its end comes without our asking.
    }
  }

  cancel(): boolean {
    return this.#end('cancelled');
  }

  #end(reason: 'cancelled' | 'timed-out'): boolean {
    if (this.urb === undefined) return false;
    const ending = this.#ending;
    this.#ending ??= reason;
    const wasOut = this.#device.discardUrb(this.urb);
    // It has ended by itself, and that is what will be told.
    if (!wasOut) this.#ending = ending;
    return wasOut;
  }

  /** @param status as libusb tells it */
  handleEnd(status: number, actualLength: number): void {
    clearTimeout(this.#timer);
    this.urb = undefined;
    let end = status;
    // Asked to end by us, and ended by the kernel before anything else came of it.
    const isEnded = status === libusbTransferStatus.cancelled || status === libusbTransferStatus.noDevice;
    if (isEnded && this.#ending !== undefined) {
      end = this.#ending === 'cancelled' ? libusbTransferStatus.cancelled : libusbTransferStatus.timedOut;
    }
    const error = end === libusbTransferStatus.completed ? undefined : usbfsError('move bytes', end);
    this.#callback(error, this.#buffer, actualLength);
  }
}

/** Ends all that is out, without the kernel: it can't be taken back any more. */
function endAll({ out }: OpenNode, status: number): void {
  for (const [urb, transfer] of out.entries()) {
    out[urb] = undefined;
    transfer?.handleEnd(status, 0);
  }
}

/** An error in the form that libusb's have: `errno` is libusb's number, not the system's. */
function usbfsError(doing: string, errno: number): LibusbError {
  return Object.assign(new Error(`usbfs could not ${doing} (${errno})`), { errno });
}

function word(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(value, 0);
  return buffer;
}
