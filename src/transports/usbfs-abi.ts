import { errorNumbers } from '../linux/system-calls.ts';
import { libusbErrors, libusbTransferStatus } from './libusb-status.ts';

/**
 * Numbers of Linux's usbfs (`include/uapi/linux/usbdevice_fs.h`), as they are on 64-bit little-endian machines whose ioctl
 * numbers are the generic ones: x86-64 and arm64.
 */
export const usbfsRequests = {
  /** _IOR('U', 4, struct usbdevfs_setinterface) */
  setInterface: 0x80085504,
  /** _IOR('U', 5, unsigned int) */
  setConfiguration: 0x80045505,
  /** _IOW('U', 8, struct usbdevfs_getdriver) */
  getDriver: 0x41045508,
  /** _IOR('U', 10, struct usbdevfs_urb) */
  submitUrb: 0x8038550a,
  /** _IO('U', 11) */
  discardUrb: 0x550b,
  /** _IOW('U', 13, void *) */
  reapUrbNoDelay: 0x4008550d,
  /** _IOR('U', 15, unsigned int) */
  claimInterface: 0x8004550f,
  /** _IOR('U', 16, unsigned int) */
  releaseInterface: 0x80045510,
  /** _IOWR('U', 18, struct usbdevfs_ioctl) */
  interfaceIoctl: 0xc0105512,
  /** _IO('U', 20) */
  reset: 0x5514,
  /** _IOR('U', 21, unsigned int) */
  clearHalt: 0x80045515,
  /** _IO('U', 22), by way of `interfaceIoctl` */
  disconnect: 0x5516,
  /** _IO('U', 23), by way of `interfaceIoctl` */
  connect: 0x5517,
} as const;

/** `struct usbdevfs_ioctl`: interface, request, pointer. */
export const interfaceIoctlBytes = 16;
/** `struct usbdevfs_getdriver`: interface, name. */
export const getDriverBytes = 4 + 256;

/** Where the fields of `struct usbdevfs_urb` lie, in bytes. */
export const urbFields = {
  type: 0,
  endpoint: 1,
  status: 4,
  flags: 8,
  buffer: 16,
  bufferLength: 24,
  actualLength: 28,
} as const;
export const urbBytes = 56;

/** `type` of an URB, by libusb's type of transfer; isochronous ones are not supported here. */
export const urbTypes: Readonly<Record<number, number>> = { 0: 2, 2: 3, 3: 1 };

/** By error number: why a call failed. */
const callErrors: ReadonlyMap<number, number> = new Map([
  [errorNumbers.perm, libusbErrors.access],
  [errorNumbers.noEntry, libusbErrors.notFound],
  [errorNumbers.noMemory, libusbErrors.noMemory],
  [errorNumbers.access, libusbErrors.access],
  [errorNumbers.busy, libusbErrors.busy],
  [errorNumbers.noDevice, libusbErrors.noDevice],
  [errorNumbers.invalid, libusbErrors.notFound],
  [errorNumbers.pipe, libusbErrors.pipe],
  [errorNumbers.noData, libusbErrors.notFound],
  [errorNumbers.overflow, libusbErrors.overflow],
  [errorNumbers.shutdown, libusbErrors.noDevice],
  [errorNumbers.timedOut, libusbErrors.timeout],
]);

/** @param errorNumber positive */
export function libusbErrorOf(errorNumber: number): number {
  return callErrors.get(errorNumber) ?? libusbErrors.io;
}

/** By error number: how an URB ended, as libusb tells it. Whatever else there may be is an error of the bus. */
const urbEnds: ReadonlyMap<number, number> = new Map<number, number>([
  [0, libusbTransferStatus.completed],
  [errorNumbers.noDevice, libusbTransferStatus.noDevice],
  [errorNumbers.shutdown, libusbTransferStatus.noDevice],
  [errorNumbers.pipe, libusbTransferStatus.stall],
  [errorNumbers.overflow, libusbTransferStatus.overflow],
  // Ended by the kernel (−ENOENT) or unlinked (−ECONNRESET, 104): wanted, flushed or unplugged, which the owner tells apart.
  [errorNumbers.noEntry, libusbTransferStatus.noDevice],
  [104, libusbTransferStatus.noDevice],
]);

/** @param status of an URB: 0, or minus an error number */
export function transferEndOf(status: number): number {
  return urbEnds.get(-status) ?? libusbTransferStatus.error;
}
