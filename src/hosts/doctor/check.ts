import { type ErrorKind, errorTable, exitCodes } from '../../base/errors.ts';

/** Every check there is, and what it is about. Scripts depend on the names. */
export const checkGroups = {
  'node-version': 'program',
  'recordings-folder': 'program',
  'usb-library': 'drive',
  'usb-nodes': 'drive',
  'usb-device': 'drive',
  'usb-holders': 'drive',
  'usb-driver': 'drive',
  'usb-memory': 'drive',
  priority: 'drive',
  'modem-manager': 'drive',
  'own-network': 'drive',
  'kernel-bql': 'observe',
  netdev: 'observe',
  'usb-autosuspend': 'observe',
  'set-limits': 'observe',
  ping: 'observe',
  tc: 'observe',
  tap: 'tap',
  ip: 'tap',
  'network-manager': 'tap',
  iperf3: 'tap',
  irtt: 'tap',
} as const;

export type CheckId = keyof typeof checkGroups;
export type CheckGroup = (typeof checkGroups)[CheckId];

/**
 * - `ok`: nothing to do
 * - `warning`: something is left out, or may get in the way
 * - `problem`: it stops a device from being driven or observed, or what is measured from being kept
 * - `not-applicable`: there is nothing of the kind on this system
 */
export type CheckState = 'ok' | 'warning' | 'problem' | 'not-applicable';

/** What one check found. */
export interface Check {
  readonly id: CheckId;
  /** What it is about, where there may be several: `usb:1-1.4`, `net:eth0`. */
  readonly subject?: string;
  readonly state: CheckState;
  /** One sentence. */
  readonly message: string;
  /** What to do about it; commands stand on lines of their own. */
  readonly remedy?: string;
  /** Of a problem: how whoever uses the device would fail. */
  readonly kind?: ErrorKind;
}

/** What may stand beside a finding. */
interface About {
  readonly subject?: string | undefined;
  readonly remedy?: string | undefined;
}

function finding(id: CheckId, state: CheckState, message: string, { subject, remedy }: About): Check {
  return {
    id,
    ...(subject === undefined ? {} : { subject }),
    state,
    message,
    ...(remedy === undefined ? {} : { remedy }),
  };
}

export function ok(id: CheckId, message: string, subject?: string): Check {
  return finding(id, 'ok', message, { subject });
}

export function warning(id: CheckId, message: string, about: About = {}): Check {
  return finding(id, 'warning', message, about);
}

export function problem(id: CheckId, kind: ErrorKind, message: string, about: About = {}): Check {
  return { ...finding(id, 'problem', message, about), kind };
}

export function notApplicable(id: CheckId, message: string): Check {
  return finding(id, 'not-applicable', message, {});
}

/** What is asked of Linux alone. */
export function linuxOnly(id: CheckId, what: string): Check {
  return notApplicable(id, `${what} on Linux only.`);
}

/** A permission is what can be put right at once, so it is told first. */
const codesInOrder = [
  exitCodes.accessDenied,
  exitCodes.deviceFailed,
  exitCodes.noSuchDevice,
  exitCodes.usage,
] as const;

/**
 * The exit code that findings come to: 0 if none of them is a problem, else that of the problem which matters most: 4 (a
 * permission, a policy), 5 (the USB library, Node), 2 (no place for recordings).
 */
export function exitCodeOf(checks: readonly Check[]): number {
  const codes = new Set<number>(
    checks.flatMap(({ kind }) => (kind === undefined ? [] : [errorTable[kind].exitCode])),
  );
  return codesInOrder.find((code) => codes.has(code)) ?? exitCodes.ok;
}

/** The worst state among findings; `ok` if there are none that apply. */
export function worstState(checks: readonly Check[]): 'ok' | 'warning' | 'problem' {
  const states = new Set(checks.map(({ state }) => state));
  return states.has('problem') ? 'problem' : states.has('warning') ? 'warning' : 'ok';
}
