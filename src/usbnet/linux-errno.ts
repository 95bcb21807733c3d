import type { TransferStatus } from './transfer.ts';

/** Linux's error numbers, as far as the ends of transfers are told in them over a wire (USB/IP). */
export const linuxErrno = {
  noEntry: 2,
  io: 5,
  noMemory: 12,
  noDevice: 19,
  brokenPipe: 32,
  timer: 62,
  protocol: 71,
  overflow: 75,
  illegalSequence: 84,
  connectionReset: 104,
  shutdown: 108,
  timedOut: 110,
  remoteIo: 121,
} as const;

const numbers: Readonly<Record<TransferStatus, number>> = {
  completed: 0,
  stall: linuxErrno.brokenPipe,
  cancelled: linuxErrno.connectionReset,
  'protocol-error': linuxErrno.protocol,
  overflow: linuxErrno.overflow,
  gone: linuxErrno.shutdown,
  'timed-out': linuxErrno.timedOut,
  failed: linuxErrno.io,
};

const statuses: ReadonlyMap<number, TransferStatus> = new Map([
  [0, 'completed'],
  [linuxErrno.noEntry, 'cancelled'],
  [linuxErrno.noDevice, 'gone'],
  [linuxErrno.brokenPipe, 'stall'],
  [linuxErrno.timer, 'protocol-error'],
  [linuxErrno.protocol, 'protocol-error'],
  [linuxErrno.overflow, 'overflow'],
  [linuxErrno.illegalSequence, 'protocol-error'],
  [linuxErrno.connectionReset, 'cancelled'],
  [linuxErrno.shutdown, 'gone'],
  [linuxErrno.timedOut, 'timed-out'],
]);

/** How a transfer ended as the kernel says it: 0, or a negative errno ({@link TransferStatus}). */
export function errnoOfStatus(status: TransferStatus): number {
  return status === 'completed' ? 0 : -numbers[status];
}

/** @param errno 0, or a negative errno; one that is not known is `failed` */
export function statusOfErrno(errno: number): TransferStatus {
  return statuses.get(errno === 0 ? 0 : -errno) ?? 'failed';
}
