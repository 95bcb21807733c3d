import type { SubmitResult } from '../usbnet/transport.ts';
import type { TransferStatus } from '../usbnet/transfer.ts';
import type { LibusbError } from './libusb-module.ts';

/** `enum libusb_transfer_status`: how a transfer ended. */
export const libusbTransferStatus = {
  completed: 0,
  error: 1,
  timedOut: 2,
  cancelled: 3,
  stall: 4,
  noDevice: 5,
  overflow: 6,
} as const;

/** `enum libusb_error`: why a call failed. */
export const libusbErrors = {
  io: -1,
  invalidParam: -2,
  access: -3,
  noDevice: -4,
  notFound: -5,
  busy: -6,
  timeout: -7,
  overflow: -8,
  pipe: -9,
  interrupted: -10,
  noMemory: -11,
  notSupported: -12,
  other: -99,
} as const;

/** `enum libusb_transfer_type`. */
export const libusbTransferTypes = { control: 0, isochronous: 1, bulk: 2, interrupt: 3 } as const;

/** By `libusb_transfer_status`. */
const transferStatuses: readonly TransferStatus[] = [
  'completed',
  'protocol-error',
  'timed-out',
  'cancelled',
  'stall',
  'gone',
  'overflow',
];

const callStatuses: ReadonlyMap<number, TransferStatus> = new Map([
  [libusbErrors.io, 'protocol-error'],
  [libusbErrors.noDevice, 'gone'],
  [libusbErrors.timeout, 'timed-out'],
  [libusbErrors.overflow, 'overflow'],
  [libusbErrors.pipe, 'stall'],
]);

const submitResults: ReadonlyMap<number, SubmitResult> = new Map([
  [libusbErrors.noDevice, 'gone'],
  [libusbErrors.pipe, 'stall'],
  [libusbErrors.noMemory, 'no-memory'],
]);

export function libusbErrno(thrown: unknown): number | undefined {
  const errno = thrown instanceof Error ? (thrown as LibusbError).errno : undefined;
  return typeof errno === 'number' ? errno : undefined;
}

/** What the error of a transfer's or a call's callback means; none means that it went well. */
export function transferStatusOf(error: LibusbError | undefined): TransferStatus {
  if (error === undefined) return 'completed';
  const errno = libusbErrno(error) ?? libusbErrors.other;
  if (errno >= 0) return transferStatuses[errno] ?? 'failed';
  return callStatuses.get(errno) ?? 'failed';
}

/** Why a transfer was not taken. */
export function submitResultOf(thrown: unknown): SubmitResult {
  return submitResults.get(libusbErrno(thrown) ?? libusbErrors.other) ?? 'failed';
}
