import { openSync } from 'node:fs';
import { constants } from 'node:fs';
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
    let fd: number;
    try {
      fd = openSync(this.#nodePath, constants.O_RDWR);
    } catch (error) {
      throw openError(error);
    }
    const watch = this.#files.watch(fd, pollEvents.out, () => this.#reap());
    this.#node = { fd, urbs: new UsbfsUrbs(this.#calls), watch, out: [] };
    watch.arm();
  }

  __close(): void {
    if (this.#node === undefined) return;
    if (this.#callsBehind > 0) throw usbfsError('close it', libusbErrors.busy);
    // Closing the node ends whatever is still out, and gives back what is still claimed.
    this.#node.watch.close();
    this.#node = undefined;
    this.#claimed.clear();
  }

  __claimInterface(interfaceNumber: number): void {
    this.#call(`claim interface ${interfaceNumber}`, usbfsRequests.claimInterface, word(interfaceNumber));
    this.#claimed.add(interfaceNumber);
  }

  __releaseInterface(interfaceNumber: number, callback: LibusbCallback): void {
    this.#callBehind('release', usbfsRequests.releaseInterface, word(interfaceNumber), (error) => {
      if (error === undefined) this.#claimed.delete(interfaceNumber);
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
   * and claimed again after (as libusb does).
   */
  reset(callback: LibusbCallback): void {
    const interfaces = [...this.#claimed];
    const { fd } = this.#open();
    for (const each of interfaces) this.#calls.ioctl(fd, usbfsRequests.releaseInterface, word(each));
    this.#callBehind('reset it', usbfsRequests.reset, undefined, (error) => {
      if (error !== undefined) {
        callback(
          error.errno === libusbErrors.noDevice ? usbfsError('reset it', libusbErrors.notFound) : error,
        );
        return;
      }
      for (const each of interfaces) {
        try {
          if (this.__isKernelDriverActive(each)) this.__detachKernelDriver(each);
          this.__claimInterface(each);
        } catch {
          this.#claimed.delete(each);
          callback(usbfsError('claim its interfaces after the reset', libusbErrors.notFound));
          return;
        }
      }
      callback();
    });
  }

  // ---- transfers ----

  /** Hands an URB to the kernel. @throws LibusbError */
  submitUrb(transfer: UsbfsTransfer, type: number, address: number, length: number): void {
    const { fd, urbs, out } = this.#open();
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

  /** Takes back what has ended, and reports it. */
  #reap(): void {
    for (;;) {
      // What is reported may close the device.
      const node = this.#node;
      if (node === undefined) return;
      const { fd, urbs, out } = node;
      const result = this.#calls.ioctlNumber(fd, usbfsRequests.reapUrbNoDelay, urbs.reapedAddress);
      if (result < 0) {
        if (result === -errorNumbers.again) return;
        // Unplugged, and nothing more comes.
        node.watch.disarm();
        for (const [urb, transfer] of out.entries()) {
          out[urb] = undefined;
          transfer?.handleEnd(libusbTransferStatus.noDevice, 0);
        }
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
    const { fd } = this.#open();
    this.#callsBehind++;
    this.#calls.ioctlBehind(fd, request, argument, (result) => {
      this.#callsBehind--;
      callback(result < 0 ? usbfsError(doing, libusbErrorOf(-result)) : undefined);
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
    // Asking for the address costs a call: the memory is the same each time.
    if (this.#memory !== buffer.buffer) {
      this.#memory = buffer.buffer;
      this.#memoryAddress = buffer.length === 0 ? 0 : this.#calls.addressOf(buffer) - buffer.byteOffset;
    }
    this.#buffer = buffer;
    this.#ending = undefined;
    this.#device.submitUrb(this, this.#type, this.#memoryAddress + buffer.byteOffset, buffer.length);
    if (this.#timeoutMs > 0) this.#timer = setTimeout(() => this.#end('timed-out'), this.#timeoutMs);
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
    if (status === libusbTransferStatus.noDevice && this.#ending !== undefined) {
      end = this.#ending === 'cancelled' ? libusbTransferStatus.cancelled : libusbTransferStatus.timedOut;
    }
    const error = end === libusbTransferStatus.completed ? undefined : usbfsError('move bytes', end);
    this.#callback(error, this.#buffer, actualLength);
  }
}

/** An error in the form that libusb's have: `errno` is libusb's number, not the system's. */
function usbfsError(doing: string, errno: number): LibusbError {
  return Object.assign(new Error(`usbfs could not ${doing} (${errno})`), { errno });
}

function openError(error: unknown): LibusbError {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return usbfsError('open it', libusbErrors.access);
    case 'ENOENT':
    case 'ENODEV':
    case 'ENXIO':
      return usbfsError('open it', libusbErrors.noDevice);
    default:
      return usbfsError(`open it: ${String(code)}`, libusbErrors.io);
  }
}

function word(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(value, 0);
  return buffer;
}
