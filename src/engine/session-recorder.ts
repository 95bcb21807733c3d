import type { Event } from '../base/emitter.ts';
import type { AppError } from '../base/errors.ts';
import type { MethodParams, MethodResult } from '../contract/methods.ts';
import type { RecordingStatus, Session, SessionEvent } from '../contract/session.ts';
import type { SessionSettings } from '../contract/settings.ts';
import type { TelemetryTable } from '../contract/telemetry.ts';

/** How a recording is doing. */
export interface RecorderStatus {
  readonly path: string;
  readonly state: RecordingStatus['state'];
  readonly sizeBytes: number;
  /** Set once `state` is `failed`. */
  readonly failure?: AppError;
}

/** A stretch of time under one set of conditions, with statistics of its own in a report. */
export interface PhaseStart {
  /** For people: "BQL off 2". */
  readonly name: string;
  readonly bqlEnabled: boolean;
  readonly loadEnabled: boolean;
  /** 0: as fast as the queue takes it. */
  readonly loadRateBitsPerSecond: number;
  readonly startUs: number;
  /** How long after its start the conditions need to take hold; statistics leave that out. Absent: not known. */
  readonly settleUs?: number;
}

/** What another program has written: iperf3's and irtt's JSON. */
export interface ProgramLine {
  readonly timeUs: number;
  readonly program: string;
  /** Name of the phase that it belongs to. */
  readonly phase: string;
  readonly line: string;
}

/**
 * Where a session's telemetry goes to be kept: the engine's side of a recording. Nothing here throws or waits on the
 * disk: after a failure the state is `failed`, what comes is counted as dropped, and the session goes on.
 */
export interface SessionRecorder {
  readonly status: RecorderStatus;
  /** At every change of state, and about once a second while the file grows. */
  readonly onStatus: Event<RecorderStatus>;
  /** Resolves when the file is there and can be written; rejects with AppError `file-failed` if it can't be made. */
  whenOpen(): Promise<void>;
  /** Rows of a table in the contract's column order. The values are copied: the array stays the caller's. */
  writeRows(table: TelemetryTable, values: Float64Array): void;
  writeEvent(event: SessionEvent): void;
  /** The session as it is now; facts and problems come from it. */
  writeSession(session: Session, timeUs: number): void;
  /** All settings as they are from `timeUs` on. */
  writeSettings(settings: SessionSettings, timeUs: number): void;
  /** Begins a phase, and ends the one before it if there is one. */
  startPhase(phase: PhaseStart): void;
  endPhase(timeUs: number): void;
  /** Keeps any JSON value under a name; a later one of that name replaces it. */
  writeMeta(key: string, value: unknown): void;
  writeProgramLine(line: ProgramLine): void;
  /** Ends the recording, before a deadline in any case. Never rejects. */
  close(): Promise<unknown>;
}

/** The recordings and what can be made of them; the engine is given one by its host. */
export interface Archive {
  /** Starts a recording of a session. @param path the file to make; undefined: a new one in the library's folder */
  record(session: Session, path: string | undefined): SessionRecorder;
  list(): Promise<MethodResult<'recordings.list'>>;
  /** @throws AppError `file-failed` */
  report(params: MethodParams<'report.create'>): Promise<MethodResult<'report.create'>>;
}
