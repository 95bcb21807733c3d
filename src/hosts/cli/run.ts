import { AppError, errorTable, exitCodes } from '../../base/errors.ts';
import { formatBitRate, formatBytes, formatDuration } from '../../base/units.ts';
import type { Session } from '../../contract/session.ts';
import {
  probeColumns,
  probeIndex,
  sampleColumns,
  sampleIndex,
  type TelemetryTable,
  telemetryTables,
} from '../../contract/telemetry.ts';
import type { DeviceSession, SessionPhase } from '../../engine/device-session.ts';
import { PhaseCollector, type PhaseStatistics } from '../../engine/phase-statistics.ts';
import { type ExperimentPhase, planExperiment } from '../../probes/experiment.ts';
import type { Command, CommandContext } from './command.ts';
import type { Output } from './output.ts';
import { type RunOptions, scenarioOf, settingsOf } from './run-options.ts';
import { phaseTable } from './simulate.ts';

/** From opening to measuring: a modem may need long for its address, but not for ever. */
const readyLimitMs = 60_000;
/** Probes that are still on their way at the end are waited for, but not as long as they may take to be lost. */
const lastProbesMs = 1500;
const progressIntervalUs = 1e6;

type MeasuredPhase = PhaseStatistics & {
  readonly name: string;
  readonly kind: ExperimentPhase['kind'];
  readonly bql: ExperimentPhase['bql'];
  readonly fromUs: number;
  readonly toUs: number;
};

/**
 * `queuescope run`: drives a device through the phases of a run, records it if asked to, and gives the device back.
 * With `--json` one JSON line for each thing that happens, the last one of type `result`.
 */
export const run: Command<RunOptions> = async (context, options) => {
  const scenario = scenarioOf(options);
  const settings = settingsOf(options, scenario);
  const phases = planExperiment(scenario).filter((phase) => options.load || phase.kind === 'idle');
  const plan = phases.length > 0 ? phases : asIdle(planExperiment(scenario));
  const { engine } = await context.engine('cli');
  const session = await engine.startSession({
    deviceId: options.device,
    settings,
    record: options.out !== undefined,
    ...(options.out === undefined ? {} : { recordPath: options.out }),
    ...(options.wait === undefined ? {} : { waitMs: options.wait * 1000 }),
  });
  const follower = new Follower(session, context.output, options.json);
  let runs: readonly SessionPhase[] = [];
  const stopOnInterrupt = (): void => void session.stop();
  context.interrupted.addEventListener('abort', stopOnInterrupt);
  // While the device was looked for, nobody listened.
  if (context.interrupted.aborted) stopOnInterrupt();
  try {
    if (await isReady(session, context)) {
      runs = await session.run(plan);
      await lastProbes(session, context);
    }
  } finally {
    context.interrupted.removeEventListener('abort', stopOnInterrupt);
  }
  const ended = await session.stop();
  follower.finish(ended, runs, scenario.name);
  if (session.error !== undefined && session.error.kind !== 'cancelled') throw session.error;
  if (context.interrupted.aborted) return exitCodes.interrupted;
  return recordingExitCode(session);
};

/** `--no-load`: the time of the run, with nothing but pings. */
function asIdle(phases: readonly ExperimentPhase[]): readonly ExperimentPhase[] {
  return phases.map((phase) => ({ ...phase, name: 'idle', kind: 'idle' }));
}

/** A run whose recording failed has not done what it was asked for. */
export function recordingExitCode(session: DeviceSession): number {
  const failure = session.recorder?.status.failure;
  return failure === undefined ? exitCodes.ok : errorTable[failure.kind].exitCode;
}

/** Waits until the session measures. False: it ended, or was interrupted. @throws AppError `timed-out` */
async function isReady(session: DeviceSession, context: CommandContext): Promise<boolean> {
  const answered = (): boolean =>
    session.snapshot.stages.some((stage) => stage.name === 'target' && stage.status === 'done');
  const timer = { handle: undefined as NodeJS.Timeout | undefined };
  try {
    return await new Promise<boolean>((resolve, reject) => {
      const check = (): void => {
        if (answered()) resolve(true);
      };
      const dispose = session.onChange(check);
      timer.handle = setTimeout(() => {
        dispose();
        reject(notReady(session));
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
    if (context.interrupted.aborted) await session.stop();
  }
}

function notReady(session: DeviceSession): AppError {
  const stage = session.snapshot.stages.find((candidate) => candidate.status !== 'done');
  const [problem] = session.snapshot.problems;
  return new AppError(
    'timed-out',
    `after ${readyLimitMs / 1000} s the device is still at "${stage?.name ?? 'open'}": ${problem?.message ?? stage?.text ?? 'no answer'}`,
    {
      details: { deviceId: session.snapshot.device.id, stage: stage?.name ?? 'open' },
      ...(problem?.remedy === undefined ? {} : { remedy: problem.remedy }),
    },
  );
}

async function lastProbes(session: DeviceSession, context: CommandContext): Promise<void> {
  if (!session.isConfigurable || context.interrupted.aborted) return;
  session.configure({ load: { enabled: false }, ping: { enabled: false } });
  await Promise.race([
    session.ended,
    new Promise((resolve) => {
      setTimeout(resolve, lastProbesMs);
    }),
  ]);
}

/** Tells what happens in a session: as JSON lines, or as notes for a person. */
export class Follower {
  readonly #session: DeviceSession;
  readonly #output: Output;
  readonly #json: boolean;
  readonly #collector = new PhaseCollector();
  #progressUs = 0;
  #lastRttUs = Number.NaN;

  constructor(session: DeviceSession, output: Output, json: boolean) {
    this.#session = session;
    this.#output = output;
    this.#json = json;
    if (json) output.json({ type: 'session', session: session.snapshot });
    for (const event of session.events) this.#handleEvent(event.kind, event.text, event.timeUs);
    session.onEvent((event) => this.#handleEvent(event.kind, event.text, event.timeUs));
    session.subscribe('samples', 0, ({ values }) =>
      this.#eachRow('samples', values, (row) => this.#handleSample(row)),
    );
    session.subscribe('probes', 0, ({ values }) =>
      this.#eachRow('probes', values, (row) => this.#handleProbe(row)),
    );
  }

  #eachRow(table: TelemetryTable, values: Float64Array, handle: (row: Float64Array) => void): void {
    const columns = telemetryTables[table].length;
    for (let start = 0; start < values.length; start += columns) {
      handle(values.subarray(start, start + columns));
    }
  }

  #handleEvent(kind: string, text: string, timeUs: number): void {
    if (this.#json) this.#output.json({ type: 'event', timeUs, kind, text });
    else this.#output.note(`${(timeUs / 1e6).toFixed(1).padStart(7)} s  ${text}`);
  }

  #handleSample(row: Float64Array): void {
    this.#collector.addSample(row);
    if (this.#json) {
      this.#output.json({ type: 'sample', ...named(sampleColumns, row) });
      return;
    }
    const timeUs = row[sampleIndex.timeUs] ?? 0;
    if (timeUs < this.#progressUs) return;
    this.#progressUs = timeUs + progressIntervalUs;
    this.#output.note(
      `${(timeUs / 1e6).toFixed(1).padStart(7)} s  ping ${formatDuration(this.#lastRttUs)}` +
        `  in flight ${formatBytes(row[sampleIndex.inflightBytes] ?? 0)}` +
        `  limit ${formatBytes(row[sampleIndex.limitBytes] ?? Number.NaN)}` +
        `  up ${formatBitRate(row[sampleIndex.txBitsPerSecond] ?? 0)}`,
    );
  }

  #handleProbe(row: Float64Array): void {
    this.#collector.addProbe(row);
    this.#lastRttUs = row[probeIndex.rttUs] ?? Number.NaN;
    if (this.#json) this.#output.json({ type: 'probe', ...named(probeColumns, row) });
  }

  /** The last word: what each phase measured, and what became of the device. */
  finish(ended: Session, runs: readonly SessionPhase[], scenario: string): void {
    const phases: MeasuredPhase[] = runs.map(({ phase, startUs, endUs }) => {
      const fromUs = Math.min(startUs + phase.settleUs, endUs);
      const { name, kind, bql } = phase;
      return { name, kind, bql, fromUs, toUs: endUs, ...this.#collector.statistics(fromUs, endUs) };
    });
    if (this.#json) {
      const segments = phases.filter((phase) => phase.kind === 'load');
      const idle = phases.find((phase) => phase.kind === 'idle') ?? null;
      this.#output.json({ type: 'result', scenario, state: ended.state, idle, segments, session: ended });
      return;
    }
    if (phases.length > 0) this.#output.line(phaseTable(phases));
    // A file that could not even be made has no size.
    if (ended.recording !== undefined && ended.recording.sizeBytes > 0) {
      this.#output.note(`recorded in ${this.#session.recorder?.status.path ?? ended.recording.fileName}`);
    }
    for (const problem of ended.problems) {
      if (problem.id === 'failed' || problem.id === 'gone') continue;
      this.#output.note(`${problem.severity}: ${problem.message}`);
      if (problem.remedy !== undefined) this.#output.note(problem.remedy);
    }
  }
}

/** A row as an object; what does not exist is null. */
function named(columns: readonly string[], row: Float64Array): Record<string, number | null> {
  return Object.fromEntries(
    columns.map((column, index) => {
      const value = row[index] ?? Number.NaN;
      return [column, Number.isNaN(value) ? null : value];
    }),
  );
}
