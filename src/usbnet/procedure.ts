import type { DeviceRequest, RequestResult } from './transport.ts';
import type { TransferStatus } from './transfer.ts';

/**
 * Driver code that talks with its device step by step, written straight down and run without a clock or a thread: a
 * generator that yields what it wants done and gets the answer back. A {@link ProcedureRunner} carries it out over a
 * transport; a test can carry it out over an array of answers.
 */
export type Procedure<T> = Generator<ProcedureStep, T, RequestResult>;

export type ProcedureStep = DeviceRequest | { readonly kind: 'sleep'; readonly us: number };

/** Each control transfer may take this long (spec 2.1). */
export const controlTimeoutMs = 5000;

/** A step that failed where the driver can't go on without it. It ends the procedure. */
export class DriverError extends Error {
  /** Which step of which driver, in words ("read the NTB parameters"). */
  readonly stage: string;
  readonly status: TransferStatus | undefined;

  constructor(stage: string, reason: string, status?: TransferStatus) {
    super(`could not ${stage}: ${reason}`);
    this.name = 'DriverError';
    this.stage = stage;
    this.status = status;
  }
}

const statusWords: Readonly<Record<TransferStatus, string>> = {
  completed: 'the answer was not usable',
  stall: 'the device refused it',
  cancelled: 'it was cancelled',
  'protocol-error': 'the bus reported a protocol error',
  overflow: 'the device sent too much',
  gone: 'the device is gone',
  'timed-out': 'the device did not answer in time',
  failed: 'the transfer failed',
};

/** In words, for a message. */
export function describeStatus(status: TransferStatus): string {
  return statusWords[status];
}

/** Where a control request goes: `bmRequestType` without the direction bit. */
export type ControlRecipient = 'standard-device' | 'class-interface' | 'vendor-device';

const recipientBits: Readonly<Record<ControlRecipient, number>> = {
  'standard-device': 0x00,
  'class-interface': 0x21,
  'vendor-device': 0x40,
};

/** Reads up to `length` bytes; the result may be shorter or a failure. */
export function* controlIn(
  recipient: ControlRecipient,
  request: number,
  value: number,
  index: number,
  length: number,
): Procedure<RequestResult> {
  return yield {
    kind: 'control-in',
    requestType: recipientBits[recipient] | 0x80,
    request,
    value,
    index,
    length,
    timeoutMs: controlTimeoutMs,
  };
}

const noData = new Uint8Array(0);

/** Writes; without data the values are the message. */
export function* controlOut(
  recipient: ControlRecipient,
  request: number,
  value: number,
  index: number,
  data: Uint8Array = noData,
): Procedure<TransferStatus> {
  const result = yield {
    kind: 'control-out',
    requestType: recipientBits[recipient],
    request,
    value,
    index,
    data,
    timeoutMs: controlTimeoutMs,
  };
  return result.status;
}

/** Chooses an altsetting, on the host and on the device. */
export function* setInterface(interfaceNumber: number, alternateSetting: number): Procedure<TransferStatus> {
  const result = yield {
    kind: 'set-interface',
    interfaceNumber,
    alternateSetting,
    timeoutMs: controlTimeoutMs,
  };
  return result.status;
}

/** Ends a halt of an endpoint and starts its data toggle or sequence anew, on the host and on the device. */
export function* clearHalt(endpointAddress: number): Procedure<TransferStatus> {
  const result = yield { kind: 'clear-halt', endpointAddress, timeoutMs: controlTimeoutMs };
  return result.status;
}

/**
 * Resets the device's port. What the device was told by its driver is forgotten; it may also come back as a new one.
 * @throws DriverError if the bus could not do it
 */
export function* resetPort(): Procedure<void> {
  const { status } = yield { kind: 'reset', timeoutMs: controlTimeoutMs };
  // A device that is enumerated anew is gone for who had it: that is what was wanted.
  if (status !== 'completed' && status !== 'gone') {
    throw new DriverError('reset the port', describeStatus(status), status);
  }
}

export function* sleep(us: number): Procedure<void> {
  yield { kind: 'sleep', us };
}
