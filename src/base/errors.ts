/**
 * Failures as the user meets them. A failed request is an {@link AppError} with a closed kind; one table turns kinds
 * into words, one into exit codes, and nobody matches on message text.
 */

export const errorKinds = [
  'usage',
  'bad-input',
  'no-such-device',
  'no-such-session',
  'unsupported-device',
  'access-denied',
  'device-busy',
  'device-gone',
  'device-failed',
  'timed-out',
  'file-failed',
  'verdict-failed',
  'cancelled',
  'engine-gone',
  'internal',
] as const;

export type ErrorKind = (typeof errorKinds)[number];

/** Facts that belong to a failure; they cross the contract, so only plain values. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean>>;

/** Exit codes of the command line (DESIGN section 4); scripts depend on them. */
export const exitCodes = {
  ok: 0,
  internal: 1,
  usage: 2,
  noSuchDevice: 3,
  accessDenied: 4,
  deviceFailed: 5,
  verdictFailed: 6,
  interrupted: 130,
} as const;

/** What each kind means to a person, and which code a command ends with. */
export const errorTable: Readonly<Record<ErrorKind, { readonly title: string; readonly exitCode: number }>> =
  {
    usage: { title: 'The command was not understood', exitCode: exitCodes.usage },
    'bad-input': { title: 'The input cannot be used', exitCode: exitCodes.usage },
    'no-such-device': { title: 'No such device', exitCode: exitCodes.noSuchDevice },
    'no-such-session': { title: 'No such session', exitCode: exitCodes.usage },
    'unsupported-device': { title: 'No minidriver drives this device', exitCode: exitCodes.noSuchDevice },
    'access-denied': { title: 'Access to the device was denied', exitCode: exitCodes.accessDenied },
    'device-busy': { title: 'The device is in use by another program', exitCode: exitCodes.accessDenied },
    'device-gone': { title: 'The device went away', exitCode: exitCodes.deviceFailed },
    'device-failed': { title: 'The device failed', exitCode: exitCodes.deviceFailed },
    'timed-out': { title: 'Nothing answered in time', exitCode: exitCodes.deviceFailed },
    'file-failed': { title: 'The file cannot be read or written', exitCode: exitCodes.usage },
    'verdict-failed': { title: 'The scenario did not meet its criteria', exitCode: exitCodes.verdictFailed },
    cancelled: { title: 'Stopped on request', exitCode: exitCodes.interrupted },
    'engine-gone': { title: 'The engine stopped', exitCode: exitCodes.internal },
    internal: { title: 'Queuescope has a fault', exitCode: exitCodes.internal },
  };

/** A request that failed for a reason outside of our own code. */
export class AppError extends Error {
  readonly kind: ErrorKind;
  readonly details: ErrorDetails;
  /** What the user can do about it, as one or a few sentences; a command in it stands on a line of its own. */
  readonly remedy: string | undefined;

  constructor(
    kind: ErrorKind,
    message: string,
    options: { readonly details?: ErrorDetails; readonly remedy?: string; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AppError';
    this.kind = kind;
    this.details = options.details ?? {};
    this.remedy = options.remedy;
  }
}

/** A broken promise of our own code. It stops the session of the device it happened in, nothing else. */
export class InvariantError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvariantError';
  }
}

/** Throws an {@link InvariantError} unless `condition` holds. */
export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** Any thrown value as an AppError; what is not one already becomes `internal` with the original as its cause. */
export function asAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new AppError('internal', message, { cause: thrown });
}
