import type { Session, SessionEvent } from '../contract/session.ts';
import type { SessionSettings } from '../contract/settings.ts';
import type { TelemetryTable } from '../contract/telemetry.ts';
import type { PhaseStart, ProgramLine } from '../engine/session-recorder.ts';

/** The machine and program that a recording was made with; all plain text, nothing that names a person. */
export interface RecordingHost {
  /** `linux`, `darwin`, `win32`. */
  readonly platform: string;
  readonly architecture: string;
  /** The kernel's release: `6.19.2`. */
  readonly kernel: string;
  readonly cpu: string;
  readonly cpuCount: number;
  readonly node: string;
  /** Absent outside of Electron. */
  readonly electron?: string;
}

/** What is known when a recording starts. */
export interface RecordingHeader {
  readonly appVersion: string;
  readonly host: RecordingHost;
  readonly session: Session;
}

/** One thing to be recorded that is not a row of telemetry. */
export type RecordingEntry =
  | { readonly type: 'event'; readonly event: SessionEvent }
  /** The session as it is now. Problems that are no longer in it count as cured at `timeUs`. */
  | { readonly type: 'session'; readonly timeUs: number; readonly session: Session }
  /** All settings as they are from `timeUs` on. */
  | { readonly type: 'settings'; readonly timeUs: number; readonly settings: SessionSettings }
  /** Ends the phase before it, if that has no end yet. */
  | { readonly type: 'phase-start'; readonly phase: PhaseStart }
  | { readonly type: 'phase-end'; readonly timeUs: number }
  | { readonly type: 'program-line'; readonly line: ProgramLine }
  /** Anything else that JSON can say. */
  | { readonly type: 'meta'; readonly key: string; readonly value: unknown };

/** What is stored in one transaction. Rows lie one after the other, in the order of the contract's columns. */
export interface RecordingBatch {
  readonly samples: Float64Array;
  readonly probes: Float64Array;
  readonly entries: readonly RecordingEntry[];
}

/** How many of each kind; of what was left out, for one. */
export type RecordingCounts = Record<TelemetryTable | 'entries', number>;

export function noCounts(): RecordingCounts {
  return { samples: 0, probes: 0, entries: 0 };
}
