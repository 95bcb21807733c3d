import { AppError, exitCodes } from '../../base/errors.ts';
import type { Problem } from '../../contract/problem.ts';
import {
  type BqlSettings,
  defaultSessionSettings,
  maxLimitBytes,
  type SessionSettings,
} from '../../contract/settings.ts';
import { forEachRow } from '../../contract/telemetry.ts';
import type { DeviceSession, SessionPhase } from '../../engine/device-session.ts';
import { outcomeOf } from '../../engine/experiment-outcome.ts';
import { segmentRun } from '../../engine/experiment-segments.ts';
import { PhaseCollector } from '../../engine/phase-statistics.ts';
import type { ExperimentPhase } from '../../probes/experiment.ts';
import type { Command, CommandContext } from './command.ts';
import { usageError } from './output.ts';
import { Follower } from './follower.ts';
import { recordingExitCode } from './run.ts';
import { hostAddressOf } from './run-options.ts';

/** What `queuescope observe` was given. */
export interface ObserveOptions {
  /** `eth0`, or as "queuescope list" shows it: `net:eth0`. */
  readonly netdev: string;
  readonly bql?: 'on' | 'off' | 'ab';
  readonly duration?: number;
  readonly out?: string;
  readonly target?: string;
  readonly pingInterval?: number;
  readonly limitMin?: number;
  readonly limitMax?: number;
  readonly holdTime?: number;
  readonly sampleRate?: number;
  readonly json: boolean;
}

const defaultDurationSeconds = 10;
/** Opening takes milliseconds: after this something is wrong. */
const readyLimitMs = 10_000;
/** Answers that are still on their way at the end are waited for, but not as long as they may take to be lost. */
const lastAnswersMs = 1500;
const secondUs = 1e6;
/** After a switch the queue first has to fill or drain. */
const longestSettleUs = 2 * secondUs;

/**
 * `queuescope observe`: watches a network interface that the kernel keeps, with whatever traffic there is, and records it
 * if asked to. What is changed of BQL's limits is put back at the end.
 */
export const observe: Command<ObserveOptions> = async (context, options) => {
  const settings = settingsOf(options);
  const limits = limitsIn(options);
  const { netdev } = options;
  const { engine } = await context.engine('cli');
  const session = await engine.startSession({
    deviceId: netdev.startsWith('net:') ? netdev : `net:${netdev}`,
    settings,
    record: options.out !== undefined,
    ...(options.out === undefined ? {} : { recordPath: options.out }),
    waitMs: durationOf(options) * 1000,
  });
  const follower = new Follower(session, context.output, options.json);
  const collector = collect(session);
  const refusal = watchRefusal(session);
  let runs: readonly SessionPhase[] = [];
  const stopOnInterrupt = (): void => void session.stop();
  context.interrupted.addEventListener('abort', stopOnInterrupt);
  // While the interface was looked for, nobody listened.
  if (context.interrupted.aborted) stopOnInterrupt();
  try {
    if (await isMeasuring(session, context)) {
      if (Object.keys(limits).length > 0) session.configure({ bql: limits });
      if (refusal.problem === undefined) runs = await session.run(phasesOf(options));
      if (refusal.problem === undefined) await lastAnswers(session, context);
    }
  } finally {
    context.interrupted.removeEventListener('abort', stopOnInterrupt);
    refusal.dispose();
  }
  const isAway = session.snapshot.state === 'lost';
  const ended = await session.stop();
  const segments = runs.map((run) => segmentRun(run, []));
  const outcome = outcomeOf({ pass: [], arms: [], probes: [] }, segments, collector);
  follower.finish(ended, { scenario: 'observe', outcome });
  if (refusal.problem !== undefined) throw refused(refusal.problem);
  if (session.error !== undefined && session.error.kind !== 'cancelled') throw session.error;
  if (isAway) throw new AppError('device-gone', `${netdev} was gone at the end`, { details: { netdev } });
  if (context.interrupted.aborted) return exitCodes.interrupted;
  return recordingExitCode(session);
};

/** Keeps what is measured from now on. */
function collect(session: DeviceSession): PhaseCollector {
  const collector = new PhaseCollector();
  session.subscribe('samples', 0, ({ values }) =>
    forEachRow('samples', values, (row) => collector.addSample(row)),
  );
  session.subscribe('probes', 0, ({ values }) =>
    forEachRow('probes', values, (row) => collector.addProbe(row)),
  );
  return collector;
}

/** @throws AppError `usage` */
function settingsOf(options: ObserveOptions): SessionSettings {
  const { target, limitMin = 0, limitMax = maxLimitBytes } = options;
  if (target !== undefined) hostAddressOf('--target', target);
  if (limitMin > limitMax) throw usageError('--limit-min is larger than --limit-max');
  const base = defaultSessionSettings;
  return {
    ...base,
    load: { ...base.load, enabled: false },
    ping: { ...base.ping, intervalMs: options.pingInterval ?? base.ping.intervalMs },
    ...(target === undefined ? {} : { target }),
    sampleRateHz: options.sampleRate ?? base.sampleRateHz,
  };
}

/** The limits that were named: only these are set. */
function limitsIn({ limitMin, limitMax, holdTime }: ObserveOptions): Partial<BqlSettings> {
  return {
    ...(limitMin === undefined ? {} : { limitMinBytes: limitMin }),
    ...(limitMax === undefined ? {} : { limitMaxBytes: limitMax }),
    ...(holdTime === undefined ? {} : { holdTimeMs: holdTime }),
  };
}

function durationOf({ duration = defaultDurationSeconds }: ObserveOptions): number {
  return duration;
}

/** One stretch as it is, or first without and then with BQL. The load is that of other programs. */
function phasesOf(options: ObserveOptions): readonly ExperimentPhase[] {
  const { bql } = options;
  const arms = bql === 'ab' ? (['off', 'on'] as const) : ([bql ?? 'on'] as const);
  const durationUs = (durationOf(options) * secondUs) / arms.length;
  return arms.map((arm) => ({
    name: bql === undefined ? 'observed' : `BQL ${arm} 1`,
    kind: 'load',
    bql: arm,
    arm: bql === undefined ? 'observed' : `BQL ${arm}`,
    pair: 1,
    direction: 'up',
    settings: { bql: { enabled: arm === 'on' }, qdisc: undefined, load: undefined },
    by: 'udp',
    durationUs,
    tailUs: 0,
    settleUs: bql === undefined ? 0 : Math.min(longestSettleUs, durationUs / 4),
  }));
}

/** Waits until the session measures. False: it ended, or was interrupted. @throws AppError `timed-out` */
async function isMeasuring(session: DeviceSession, context: CommandContext): Promise<boolean> {
  const timer = { handle: undefined as NodeJS.Timeout | undefined };
  try {
    return await new Promise<boolean>((resolve, reject) => {
      const check = (): void => {
        if (session.snapshot.state === 'running') resolve(!context.interrupted.aborted);
      };
      const dispose = session.onChange(check);
      timer.handle = setTimeout(() => {
        dispose();
        reject(new AppError('timed-out', 'the interface could not be opened in time'));
      }, readyLimitMs);
      void session.ended.then(() => {
        dispose();
        resolve(false);
      });
      check();
    });
  } catch (error) {
    await session.stop();
    throw error;
  } finally {
    clearTimeout(timer.handle);
  }
}

/** The pings of the last moments may still be answered; those that are sent meanwhile belong to no phase. */
async function lastAnswers(session: DeviceSession, context: CommandContext): Promise<void> {
  if (session.isOver || context.interrupted.aborted) return;
  const timer = { handle: undefined as NodeJS.Timeout | undefined };
  const over = new Promise<void>((resolve) => {
    timer.handle = setTimeout(resolve, lastAnswersMs);
  });
  await Promise.race([session.ended, over]);
  clearTimeout(timer.handle);
}

interface Refusal {
  problem: Problem | undefined;
  dispose(): void;
}

/** Whoever asks for limits that cannot be set is told at once, not after a run without them. */
function watchRefusal(session: DeviceSession): Refusal {
  const refusal: Refusal = { problem: undefined, dispose: () => {} };
  refusal.dispose = session.onChange(() => {
    const problem = session.snapshot.problems.find(({ id }) => id in refusalKinds);
    if (problem === undefined || refusal.problem !== undefined) return;
    refusal.problem = problem;
    void session.stop();
  });
  return refusal;
}

const refusalKinds = { 'limits-denied': 'access-denied', 'limits-invalid': 'bad-input' } as const;

function refused({ id, message, remedy }: Problem): AppError {
  return new AppError(
    id === 'limits-denied' ? refusalKinds['limits-denied'] : refusalKinds['limits-invalid'],
    message,
    remedy === undefined ? {} : { remedy },
  );
}
