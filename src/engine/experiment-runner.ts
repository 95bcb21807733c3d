import { cpus } from 'node:os';
import type { Dispose } from '../base/emitter.ts';
import { Emitter, type Event } from '../base/emitter.ts';
import { AppError } from '../base/errors.ts';
import type { ExperimentStatus } from '../contract/experiment.ts';
import { forEachRow } from '../contract/telemetry.ts';
import { type ExperimentPhase, planDurationUs, planExperiment, planNotes } from '../probes/experiment.ts';
import type { Scenario } from '../probes/scenario.ts';
import { cappedWords, DataMeter } from './data-meter.ts';
import type { DeviceSession, SessionPhase } from './device-session.ts';
import { type ExperimentOutcome, outcomeOf } from './experiment-outcome.ts';
import { segmentRun, type SegmentRun } from './experiment-segments.ts';
import { PhaseCollector } from './phase-statistics.ts';
import type { SegmentPrograms } from './segment-programs.ts';
import type { MeasurementQuality } from '../statistics/validity.ts';
import { verdictOf } from './verdict-words.ts';

/** From opening to measuring: a modem may need long for its address, but not for ever. */
const readyLimitMs = 60_000;
/** Probes that are still on their way at the end are waited for, but not as long as they may take to be lost. */
const lastProbesMs = 1500;
const statusIntervalMs = 1000;

export interface ExperimentRunnerOptions {
  readonly session: DeviceSession;
  readonly scenario: Scenario;
  /** Segments instead of the scenario's own. */
  readonly plan?: readonly ExperimentPhase[];
  /** iperf3 and irtt over a TAP interface; undefined: there is none. */
  readonly programs: SegmentPrograms | undefined;
}

/** How an experiment ended, and what it gave up to then. */
export interface FinishedExperiment {
  readonly state: Extract<ExperimentStatus['state'], 'done' | 'stopped' | 'failed'>;
  readonly outcome: ExperimentOutcome;
  readonly notes: readonly string[];
  readonly dataBytes: number;
}

/**
 * Takes a session through a scenario in real time: settings, other programs, progress, the cap on data, and what the
 * recording keeps of it. However it ends, what was measured up to then is reduced and kept. It begins when it is first
 * asked how it {@link finished}, and leaves the session running: whoever started that stops it.
 */
export class ExperimentRunner {
  readonly #options: ExperimentRunnerOptions;
  readonly #plan: readonly ExperimentPhase[];
  readonly #collector = new PhaseCollector();
  readonly #data = new DataMeter();
  readonly #changed = new Emitter<void>();
  readonly #runs: SegmentRun[] = [];
  readonly #notes: string[] = [];
  readonly #disposers: Dispose[] = [];
  #state: ExperimentStatus['state'] = 'preparing';
  #segment = 0;
  #wasLost = false;
  #isStopped = false;
  /** Ends {@link #ready} early. */
  #stopWaiting: () => void = () => {};
  #processors = { idle: 0, total: 0 };
  #verdict: ExperimentStatus['verdict'];
  #finished: Promise<FinishedExperiment> | undefined;

  constructor(options: ExperimentRunnerOptions) {
    this.#options = options;
    this.#plan = options.plan ?? planExperiment(options.scenario, options.programs !== undefined);
    const notes = planNotes(options.scenario, this.#plan, options.programs !== undefined);
    for (const note of notes) this.#note(note);
  }

  get session(): DeviceSession {
    return this.#options.session;
  }

  /** How it ended. Rejects with AppError `timed-out` if the device did not get as far as being measured. */
  get finished(): Promise<FinishedExperiment> {
    this.#finished ??= this.#run();
    return this.#finished;
  }

  get plan(): readonly ExperimentPhase[] {
    return this.#plan;
  }

  /** Whenever anything in {@link status} has changed, and once a second while it runs. */
  get onChange(): Event<void> {
    return this.#changed.event;
  }

  get status(): ExperimentStatus {
    const { session, scenario } = this.#options;
    const position = session.runPosition;
    const index = position?.index ?? this.#segment - 1;
    const rest = this.#plan.slice(index + 1);
    const leftUs = this.#isOver ? 0 : planDurationUs(rest) + (position?.leftUs ?? 0);
    return {
      sessionId: session.id,
      deviceId: session.snapshot.device.id,
      scenario: scenario.name,
      state: this.#state,
      segment: this.#segment,
      segments: this.#plan.length,
      segmentName: this.#plan[this.#segment - 1]?.name ?? '',
      secondsLeft: leftUs / 1e6,
      seconds: planDurationUs(this.#plan) / 1e6,
      dataBytes: Math.round(this.#data.bytes),
      ...(scenario.maxDataBytes === undefined ? {} : { maxDataBytes: scenario.maxDataBytes }),
      notes: [...this.#notes],
      ...(this.#verdict === undefined ? {} : { verdict: this.#verdict }),
    };
  }

  get #isOver(): boolean {
    return this.#state === 'done' || this.#state === 'stopped' || this.#state === 'failed';
  }

  #note(text: string): void {
    if (!this.#notes.includes(text)) this.#notes.push(text);
  }

  #change(state: ExperimentStatus['state'] = this.#state): void {
    this.#state = state;
    this.#changed.emit();
  }

  /** Ends it before its time; what was measured is kept. */
  stop(reason = 'stopped on request'): void {
    if (this.#isStopped || this.#isOver) return;
    this.#isStopped = true;
    this.#note(reason);
    this.#stopWaiting();
    this.#options.session.endRun();
  }

  async #run(): Promise<FinishedExperiment> {
    const { session, programs } = this.#options;
    const timer = setInterval(() => this.#changed.emit(), statusIntervalMs);
    try {
      this.#listen();
      this.#keep();
      if (await this.#ready()) {
        await programs?.prepare(session, (note) => this.#note(note));
        this.#processors = processorTimes();
        this.#change('running');
        if (!this.#hasStopped()) await this.#carryOut();
        this.#change('ending');
        programs?.close();
        // A segment that was cut short does not count, and nobody waits for its probes.
        if (!this.#hasStopped()) await this.#lastProbes();
      }
      return this.#finish();
    } catch (error) {
      this.#change('failed');
      throw error;
    } finally {
      clearInterval(timer);
      for (const dispose of this.#disposers) dispose();
      programs?.close();
    }
  }

  /** Read through a method: it changes while something is waited for. */
  #hasStopped(): boolean {
    return this.#isStopped;
  }

  // ---- telemetry ----

  #listen(): void {
    const { session } = this.#options;
    this.#disposers.push(
      session.subscribe('samples', 0, ({ values }) =>
        forEachRow('samples', values, (row) => this.#handleSample(row)),
      ),
      session.subscribe('probes', 0, ({ values }) =>
        forEachRow('probes', values, (row) => this.#collector.addProbe(row)),
      ),
      session.onMoreProbe(({ index, row }) => this.#collector.addMoreProbe(index, row)),
      session.onChange(() => {
        if (session.snapshot.state === 'lost') this.#wasLost = true;
      }),
    );
  }

  #handleSample(row: Float64Array): void {
    this.#collector.addSample(row);
    this.#data.addSample(row);
    const { maxDataBytes } = this.#options.scenario;
    if (maxDataBytes !== undefined && this.#state === 'running' && this.#data.bytes >= maxDataBytes) {
      this.stop(cappedWords(maxDataBytes));
    }
  }

  // ---- the way through it ----

  /** Waits until the session measures. False: it ended, or was stopped. @throws AppError `timed-out` */
  async #ready(): Promise<boolean> {
    const { session } = this.#options;
    const answered = (): boolean =>
      session.snapshot.stages.some((stage) => stage.name === 'target' && stage.status === 'done');
    const timer = { handle: undefined as NodeJS.Timeout | undefined };
    let dispose: Dispose = () => {};
    try {
      return await new Promise<boolean>((resolve, reject) => {
        const check = (): void => {
          if (answered()) resolve(true);
        };
        dispose = session.onChange(check);
        timer.handle = setTimeout(() => reject(notReady(session)), readyLimitMs);
        this.#stopWaiting = () => resolve(false);
        void session.ended.then(() => resolve(false));
        if (this.#isStopped || session.isOver) resolve(false);
        check();
      });
    } finally {
      clearTimeout(timer.handle);
      dispose();
    }
  }

  async #carryOut(): Promise<void> {
    const { session, programs } = this.#options;
    await session.run(this.#plan, {
      handleStart: (phase) => {
        this.#segment = this.#plan.indexOf(phase) + 1;
        this.#wasLost = session.snapshot.state === 'lost';
        programs?.startSegment(phase);
        this.#changed.emit();
      },
      handleEnd: (run) => this.#endSegment(run),
    });
  }

  #endSegment(run: SessionPhase): void {
    const { phase } = run;
    const { programs } = this.#options;
    const report = programs?.endSegment(phase);
    for (const note of report?.notes ?? []) this.#note(`${phase.name}: ${note}`);
    const ended = segmentRun(run, [
      ...(this.#wasLost ? ['the device was away'] : []),
      ...(report?.notes ?? []),
    ]);
    this.#runs.push({
      ...ended,
      counts: ended.counts && !this.#wasLost && report?.loadFailed !== true,
      ...(report?.iperf3 === undefined ? {} : { iperf3: report.iperf3 }),
      ...(report?.irtt === undefined ? {} : { irtt: report.irtt }),
    });
    this.#keepSegment();
  }

  async #lastProbes(): Promise<void> {
    const { session } = this.#options;
    if (!session.isConfigurable) return;
    session.configure({
      load: { enabled: false },
      download: { enabled: false },
      ping: { enabled: false },
    });
    await Promise.race([
      session.ended,
      new Promise((resolve) => {
        setTimeout(resolve, lastProbesMs);
      }),
    ]);
  }

  #finish(): FinishedExperiment {
    const { session, scenario } = this.#options;
    const complete = this.#runs.length === this.#plan.length && !this.#isStopped;
    const state = complete ? 'done' : session.error === undefined ? 'stopped' : 'failed';
    const outcome = outcomeOf(scenario, this.#runs, this.#collector, this.#quality());
    this.#verdict = verdictOf(outcome, this.#runs, this.#collector);
    this.#change(state);
    this.#keep(outcome);
    return { state, outcome, notes: [...this.#notes], dataBytes: Math.round(this.#data.bytes) };
  }

  /** How busy the machine was, all processors together, from the first segment on; and what is known of the device. */
  #quality(): MeasurementQuality {
    const usb2Fallback = this.#options.session.snapshot.problems.some(({ id }) => id === 'usb2-fallback');
    const now = processorTimes();
    const total = now.total - this.#processors.total;
    if (total <= 0 || this.#segment === 0) return { usb2Fallback };
    return { usb2Fallback, cpuBusyShare: 1 - (now.idle - this.#processors.idle) / total };
  }

  // ---- the recording ----

  /** What the recording says of the experiment; at its end with what it came to. */
  #keep(outcome?: ExperimentOutcome): void {
    const { session, scenario } = this.#options;
    session.keep('experiment', {
      version: 1,
      scenario,
      state: this.#state,
      notes: this.#notes,
      dataBytes: Math.round(this.#data.bytes),
      ...(outcome === undefined ? {} : { outcome, verdict: this.#verdict }),
    });
  }

  /** One entry a segment, so that one that was killed has those up to then. */
  #keepSegment(): void {
    const run = this.#runs.at(-1);
    if (run === undefined) return;
    const { phase, startUs, endUs, ...rest } = run;
    const { name, arm, pair, direction, by, settleUs, tailUs } = phase;
    const number = String(this.#runs.length).padStart(5, '0');
    this.#options.session.keep(`experiment.segment.${number}`, {
      name,
      arm,
      pair,
      direction,
      load: by,
      startUs,
      endUs,
      settleUs,
      tailUs,
      ...rest,
    });
  }
}

/** Milliseconds that the processors have had, and have done nothing in. */
function processorTimes(): { readonly idle: number; readonly total: number } {
  let idle = 0;
  let total = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    total += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return { idle, total };
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
