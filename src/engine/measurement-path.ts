import type { Polled } from '../base/clock.ts';
import type { AppError } from '../base/errors.ts';
import type { Problem } from '../contract/problem.ts';
import type { Fact, SessionEvent, Stage, StageName } from '../contract/session.ts';
import type { RecoveryLadder, RecoveryStep } from '../usbnet/recovery-ladder.ts';
import type { LiveSettings, SessionSettings } from '../contract/settings.ts';

/** Who is told what happens on a device's way to a measurement, and in it. */
export interface MeasurementObserver {
  handleStage(name: StageName, status: Stage['status'], text: string | undefined): void;
  handleFacts(facts: readonly Fact[]): void;
  /** The settings are not those that were asked for, or have been changed by somebody else. */
  handleSettings(settings: SessionSettings): void;
  /** Rows of the telemetry tables, valid during the call only. */
  handleSample(row: Float64Array): void;
  handleProbe(row: Float64Array): void;
  /** The same of one of the session's further pings, by its place among them. */
  handleMoreProbe?(index: number, row: Float64Array): void;
  handleEvent(kind: SessionEvent['kind'], text: string, nowUs: number): void;
  handleProblem(problem: Problem): void;
  handleCured(problemId: string): void;
  handleStalled(stalled: boolean): void;
  /** The device is to be given back and taken anew, for `reset` with a reset of its port in between. */
  handleReopen(step: ReopenStep): void;
  /** The device can't be measured (any more). */
  handleFailure(error: AppError): void;
  handleGone(): void;
}

/** Steps of the recovery ladder that are not for a path to take. */
export type ReopenStep = Extract<RecoveryStep, 'rebind' | 'reset'>;

/** What every path to a measurement is started with. */
export interface MeasurementOptions {
  readonly settings: SessionSettings;
  readonly seed: number;
  readonly observer: MeasurementObserver;
  /** Time 0 of the telemetry. */
  readonly startUs: number;
  /** Decides what is done about a stall, over all openings of the device; absent: nothing is. */
  readonly recovery?: RecoveryLadder;
}

/**
 * What measures one device: our own stack (drive, remote, simulate) or the kernel's, read from outside (observe). It is
 * told the time; a loop polls it.
 */
export interface MeasurementPath extends Polled {
  readonly settings: SessionSettings;
  start(nowUs: number): void;
  /** Changes settings while measuring. */
  configure(changes: LiveSettings, nowUs: number): void;
  /** Once it has stopped: resets the device's port, if it has one of its own. */
  resetPort?(nowUs: number, done: (error: AppError | undefined, nowUs: number) => void): void;
  /** Ends the measurement; `done` is called once nothing is in flight any more, or with why that was not reached. */
  stop(nowUs: number, done: (error: AppError | undefined, nowUs: number) => void): void;
}
