import { Emitter, type Event } from '../base/emitter.ts';
import { AppError, asAppError } from '../base/errors.ts';
import { formatDuration } from '../base/units.ts';
import type { Log } from '../base/log.ts';
import type { Device } from '../contract/device.ts';
import type { Problem } from '../contract/problem.ts';
import {
  type Fact,
  type Session,
  type SessionEvent,
  type SessionState,
  type Stage,
  type StageName,
  stageNames,
} from '../contract/session.ts';
import { changedSettings, type LiveSettings, type SessionSettings } from '../contract/settings.ts';
import { probeColumns, sampleColumns, type TelemetryTable } from '../contract/telemetry.ts';
import { Experiment, type ExperimentPhase } from '../probes/experiment.ts';
import { RecoveryLadder } from '../usbnet/recovery-ladder.ts';
import { DeviceWait } from './device-wait.ts';
import type { MeasurementObserver, MeasurementPath, ReopenStep } from './measurement-path.ts';
import { tellRecovery } from './recovery-log.ts';
import type { OpenDevice, OpenedDevice } from './opened-device.ts';
import type { SessionLoop } from './session-loop.ts';
import { settingsOfSegment } from './segment-settings.ts';
import type { PhaseStart, SessionRecorder } from './session-recorder.ts';
import { TelemetryContinuity } from './telemetry-continuity.ts';
import { TelemetryFeed } from './telemetry-feed.ts';
import { TelemetryHistory } from './telemetry-history.ts';

/** Rows kept for readers that come later: half an hour at 20 Hz, and as many probes as fit into it at 10 a second. */
const sampleRows = 36_000;
const probeRows = 18_000;
/** Events kept; older ones are still in the recording. */
const eventLimit = 5000;
/** Taking an interface down takes at most this long (usbnet gives up after five seconds). */
const stopLimitMs = 8000;
/** What we have given back ourselves is there again within this time, or something is wrong with it. */
const takeAnewLimitMs = 60_000;
/** A reset of a port: the request's own five seconds, and the runner's grace. */
const resetLimitMs = 8000;

const recordingProblemId = 'recording-failed';

/** How a device that went away comes back. */
export interface ReopenDevice {
  /** Opens it if it is there again. @throws AppError (as a rejection) while it is not */
  readonly open: OpenDevice;
  /** It may be there again. */
  readonly onChange: Event<void>;
  /**
   * How long it is waited for when it was unplugged, milliseconds; infinite: until the session is stopped; undefined: the
   * session ends, and only what we have given back ourselves is taken anew.
   */
  readonly unplugLimitMs: number | undefined;
}

export interface DeviceSessionOptions {
  readonly id: string;
  readonly device: Device;
  readonly settings: SessionSettings;
  /** Wall clock now, ISO 8601. */
  readonly startedAt: string;
  readonly open: OpenDevice;
  /** How the device is opened again; undefined: the session ends with it. */
  readonly reopen: ReopenDevice | undefined;
  /** Makes the recorder, if the session is to be recorded. */
  readonly record: ((session: Session) => SessionRecorder) | undefined;
  /** Without a recording there is nothing to be done: the device is not even opened. */
  readonly recordingRequired: boolean;
  readonly seed: number;
  readonly log: Log;
}

/** Who has a part in the segments of a run, and is told of them. */
export interface SegmentObserver {
  /** It begins: its settings are set. Times of the telemetry. */
  handleStart?(phase: ExperimentPhase, timeUs: number): void;
  handleEnd?(run: SessionPhase): void;
}

/** A phase of an experiment, at times of the telemetry. */
export interface SessionPhase {
  readonly phase: ExperimentPhase;
  readonly startUs: number;
  readonly endUs: number;
}

/**
 * One device that is being driven, from its opening until it was given back: the state that the contract shows, the
 * telemetry so far, and the recording.
 *
 * A device that goes away may be waited for (`lost`). When it is back it is opened anew and all stages are gone through
 * again, in the same session and recording; the gap is marked by an event and by rows in which nothing is known.
 */
export class DeviceSession implements MeasurementObserver {
  readonly id: string;
  readonly samples = new TelemetryHistory(sampleColumns.length, sampleRows);
  readonly probes = new TelemetryHistory(probeColumns.length, probeRows);
  readonly #options: DeviceSessionOptions;
  readonly #log: Log;
  readonly #changed = new Emitter<void>();
  readonly #event = new Emitter<SessionEvent>();
  readonly #moreProbe = new Emitter<{ readonly index: number; readonly row: Float64Array }>();
  readonly #feeds = { samples: new TelemetryFeed('samples'), probes: new TelemetryFeed('probes') } as const;
  readonly #events: SessionEvent[] = [];
  readonly #problems = new Map<string, Problem>();
  readonly #ended: Promise<Session>;
  #resolveEnded: (session: Session) => void = () => {};
  #state: SessionState = 'starting';
  #stages: readonly Stage[] = stageNames.map((name) => ({ name, status: 'pending' }));
  #facts: readonly Fact[] = [];
  #settings: SessionSettings;
  #recorder: SessionRecorder | undefined;
  readonly #continuity = new TelemetryContinuity();
  #device: Device;
  /** Resolves once the first opening has come to an end, well or not. */
  #opening: Promise<void> = Promise.resolve();
  #opened: OpenedDevice | undefined;
  /** That of the device, open or lost: the session's clock. */
  #loop: SessionLoop | undefined;
  #path: MeasurementPath | undefined;
  #startUs = 0;
  #scenario: string | undefined;
  #experiment: Experiment | undefined;
  /** Ends {@link run} if no experiment does. */
  #endRun: (() => void) | undefined;
  #wait: DeviceWait | undefined;
  /** Resolves once a lost device is open again, or given up. */
  #recovery: Promise<void> | undefined;
  readonly #ladder = new RecoveryLadder((report) => tellRecovery(report, this));
  /** Why the device is being given back, and what is to be done before it is taken anew. */
  #interruption: Interruption | undefined;
  /** Resolves when the host is awake again; undefined: it is. */
  #sleep: { readonly ended: Promise<void>; readonly end: () => void } | undefined;
  #finishing = false;
  #isOver = false;
  #error: AppError | undefined;
  #snapshot: Session | undefined;

  constructor(options: DeviceSessionOptions) {
    this.id = options.id;
    this.#options = options;
    this.#log = options.log;
    this.#settings = options.settings;
    this.#device = options.device;
    this.#ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  /** Whenever anything in {@link snapshot} has changed. */
  get onChange(): Event<void> {
    return this.#changed.event;
  }
  get onEvent(): Event<SessionEvent> {
    return this.#event.event;
  }
  /** What became of a probe of one of the further pings; the row is valid during the call only. */
  get onMoreProbe(): Event<{ readonly index: number; readonly row: Float64Array }> {
    return this.#moreProbe.event;
  }
  get events(): readonly SessionEvent[] {
    return this.#events;
  }
  /** Resolves once the device was given back and the recording is closed. */
  get ended(): Promise<Session> {
    return this.#ended;
  }
  /** Why the session failed; undefined if it did not. */
  get error(): AppError | undefined {
    return this.#error;
  }
  get isOver(): boolean {
    return this.#isOver;
  }
  /** The device is there and the session is not about to end: settings can be changed. */
  get isConfigurable(): boolean {
    return this.#path !== undefined && !this.#finishing;
  }
  get recorder(): SessionRecorder | undefined {
    return this.#recorder;
  }

  /** The session as the contract shows it. */
  get snapshot(): Session {
    this.#snapshot ??= this.#takeSnapshot();
    return this.#snapshot;
  }

  #takeSnapshot(): Session {
    const status = this.#recorder?.status;
    const fileName = status?.path.split(/[\\/]/).at(-1);
    return {
      id: this.id,
      device: this.#device,
      state: this.#state,
      startedAt: this.#options.startedAt,
      stages: [...this.#stages],
      settings: this.#settings,
      facts: [...this.#facts],
      problems: [...this.#problems.values()],
      ...(this.#scenario === undefined ? {} : { experiment: this.#scenario }),
      ...(status !== undefined && fileName !== undefined
        ? { recording: { id: fileName, fileName, state: status.state, sizeBytes: status.sizeBytes } }
        : {}),
    };
  }

  #change(): void {
    this.#snapshot = undefined;
    this.#recorder?.writeSession(this.snapshot, this.#timeUs);
    this.#changed.emit();
  }

  /** Time of the telemetry now. */
  get #timeUs(): number {
    return this.#loop === undefined ? 0 : this.#loop.nowUs() - this.#startUs;
  }

  // ---- start ----

  /** Opens the device and begins. Whatever goes wrong ends up in the session's state. */
  async start(): Promise<void> {
    this.handleStage('open', 'active', this.#options.device.name);
    if (this.#options.record !== undefined) {
      const recorder = this.#options.record(this.snapshot);
      this.#recorder = recorder;
      recorder.onStatus((status) => {
        if (status.state === 'failed') this.handleProblem(recordingProblem(status.failure));
        this.#change();
      });
    }
    try {
      if (this.#options.recordingRequired) await this.#recorder?.whenOpen();
      if (this.#finishing) return;
      const opened = await this.#open();
      if (this.#finishing) return;
      this.#startUs = opened.loop.nowUs();
      this.#begin(opened);
      this.#recorder?.writeSettings(this.#settings, 0);
    } catch (error) {
      if (this.#finishing) return;
      const failure = asAppError(error);
      this.handleStage('open', 'failed', failure.message);
      this.handleFailure(failure);
    }
  }

  /** Whoever ends the session meanwhile has to wait for it: only what is open can be given back. */
  async #open(): Promise<OpenedDevice> {
    const opening = this.#options.open((error) => this.handleFailure(asAppError(error)), this.#settings);
    this.#opening = opening.then(
      (opened) => {
        this.#opened = opened;
        // Too late for the end of the session, which did not wait any longer.
        if (this.#isOver) void this.#giveBack();
      },
      () => {},
    );
    const opened = await opening;
    await this.#opening;
    return opened;
  }

  #begin(opened: OpenedDevice): void {
    this.#loop = opened.loop;
    this.#device = { ...this.#device, ...opened.device };
    this.handleStage('open', 'done', opened.text);
    opened.loop.run((nowUs) => {
      const path = opened.createPath({
        settings: this.#settings,
        seed: this.#options.seed,
        observer: this,
        startUs: this.#startUs,
        recovery: this.#ladder,
      });
      this.#path = path;
      opened.loop.add(path);
      path.start(nowUs);
    });
    if (this.#experiment !== undefined) this.#drive(opened.loop, this.#experiment);
  }

  // ---- what can be asked of it ----

  configure(changes: LiveSettings): void {
    const opened = this.#opened;
    const path = this.#path;
    if (opened === undefined || path === undefined || !this.isConfigurable) {
      throw new AppError('device-gone', 'the session is not running', { details: { sessionId: this.id } });
    }
    opened.loop.run((nowUs) => path.configure(changes, nowUs));
    this.#settings = path.settings;
    this.#recorder?.writeSettings(this.#settings, this.#timeUs);
    this.#change();
  }

  /** Says that the session is taken through a scenario, from when on the topic `experiment` tells of it. */
  announceExperiment(scenario: string): void {
    this.#scenario = scenario;
    this.#change();
  }

  /** Keeps a JSON value under a name in the recording, if there is one; a later one of that name replaces it. */
  keep(key: string, value: unknown): void {
    this.#recorder?.writeMeta(key, value);
  }

  /** Keeps a line that another program has written in the recording. */
  keepLine(program: string, phase: string, line: string): void {
    this.#recorder?.writeProgramLine({ timeUs: this.#timeUs, program, phase, line });
  }

  note(text: string): void {
    this.#addEvent('note', text, this.#timeUs);
  }

  /**
   * Takes the device through an experiment; resolves with the phases as they were, also when it ends early. Its time goes
   * on while the device is lost.
   */
  async run(
    phases: readonly ExperimentPhase[],
    segments: SegmentObserver = {},
  ): Promise<readonly SessionPhase[]> {
    const runs: SessionPhase[] = [];
    const startUs = this.#startUs;
    const base = this.#settings;
    await new Promise<void>((resolve) => {
      const experiment = new Experiment(phases, {
        handlePhaseStart: (phase, nowUs) => {
          this.#startPhase(phase, base, nowUs);
          segments.handleStart?.(phase, nowUs - startUs);
        },
        handlePhaseEnd: ({ phase, startUs: fromUs, endUs }) => {
          const run = { phase, startUs: fromUs - startUs, endUs: endUs - startUs };
          runs.push(run);
          this.#recorder?.endPhase(run.endUs);
          segments.handleEnd?.(run);
        },
        handleExperimentEnd: () => resolve(),
      });
      this.#experiment = experiment;
      this.#endRun = resolve;
      // Without a device it begins when there is one.
      if (this.#opened !== undefined) this.#drive(this.#opened.loop, experiment);
      if (this.#finishing) resolve();
    });
    this.#experiment = undefined;
    this.#endRun = undefined;
    return runs;
  }

  /** Ends a {@link run} early; the session goes on. */
  endRun(): void {
    this.#experiment?.stop(this.#loop?.nowUs() ?? 0);
    this.#endRun?.();
  }

  /** Where a {@link run} is: the number of its segment from 0, and what is left of that; undefined without one. */
  get runPosition(): { readonly index: number; readonly leftUs: number } | undefined {
    const current = this.#experiment?.current;
    if (current === undefined) return undefined;
    const leftUs = Math.max(0, current.endsAtUs - (this.#loop?.nowUs() ?? 0));
    return { index: current.index, leftUs };
  }

  #drive(loop: SessionLoop, experiment: Experiment): void {
    loop.add(experiment);
    if (!experiment.running) loop.run((nowUs) => experiment.start(nowUs));
  }

  #startPhase(phase: ExperimentPhase, base: SessionSettings, nowUs: number): void {
    const changes = settingsOfSegment(phase, base, this.#settings);
    const path = this.#path;
    // A lost device gets them when it is back.
    if (path === undefined) this.#settings = changedSettings(this.#settings, changes);
    else path.configure(changes, nowUs);
    this.#settings = path?.settings ?? this.#settings;
    const timeUs = nowUs - this.#startUs;
    const start: PhaseStart = {
      name: phase.name,
      bqlEnabled: phase.bql === 'on',
      loadEnabled: phase.by !== 'none',
      loadRateBitsPerSecond: this.#settings.load.rateBitsPerSecond,
      startUs: timeUs,
      settleUs: phase.settleUs,
    };
    this.#recorder?.startPhase(start);
    this.#recorder?.writeSettings(this.#settings, timeUs);
    this.#addEvent('phase', phase.name, timeUs);
    this.#change();
  }

  /** Ends the session and gives the device back; resolves with its last state. */
  stop(): Promise<Session> {
    this.#finish('stopped');
    return this.#ended;
  }

  // ---- readers ----

  subscribe(
    table: TelemetryTable,
    historySeconds: number,
    listener: Parameters<TelemetryFeed['subscribe']>[1],
  ): () => void {
    const history = table === 'samples' ? this.samples : this.probes;
    const rows = history.since(history.lastUs - historySeconds * 1e6);
    return this.#feeds[table].subscribe(rows, listener);
  }

  // ---- reports of the measurement ----

  handleStage(name: StageName, status: Stage['status'], text: string | undefined): void {
    const stage: Stage = text === undefined ? { name, status } : { name, status, text };
    this.#stages = this.#stages.map((other) => (other.name === name ? stage : other));
    this.#addEvent('stage', `${name}: ${text ?? status}`, this.#timeUs);
    if (name === 'measure' && status === 'active' && this.#state === 'starting') this.#state = 'running';
    this.#change();
  }

  handleFacts(facts: readonly Fact[]): void {
    const replaced = new Set(facts.map((fact) => fact.name));
    this.#facts = [...this.#facts.filter((fact) => !replaced.has(fact.name)), ...facts];
    this.#change();
  }

  handleSettings(settings: SessionSettings): void {
    this.#settings = settings;
    this.#recorder?.writeSettings(settings, this.#timeUs);
    this.#change();
  }

  handleSample(row: Float64Array): void {
    this.#continuity.handleSample(row);
    this.#keepSample(row);
  }

  #keepSample(row: Float64Array): void {
    this.samples.push(row);
    this.#feeds.samples.push(row);
    this.#recorder?.writeRows('samples', row);
  }

  handleProbe(row: Float64Array): void {
    this.#continuity.handleProbe(row);
    this.probes.push(row);
    this.#feeds.probes.push(row);
    this.#recorder?.writeRows('probes', row);
  }

  handleMoreProbe(index: number, row: Float64Array): void {
    this.#moreProbe.emit({ index, row });
  }

  handleEvent(kind: SessionEvent['kind'], text: string, nowUs: number): void {
    this.#addEvent(kind, text, nowUs - this.#startUs);
  }

  handleProblem(problem: Problem): void {
    const known = this.#problems.get(problem.id);
    if (known !== undefined && known.message === problem.message) return;
    this.#problems.set(problem.id, problem);
    this.#change();
  }

  handleCured(problemId: string): void {
    if (this.#problems.delete(problemId)) this.#change();
  }

  handleStalled(stalled: boolean): void {
    if (this.#state !== 'running' && this.#state !== 'stalled') return;
    this.#state = stalled ? 'stalled' : 'running';
    this.#change();
  }

  handleReopen(step: ReopenStep): void {
    const { reopen } = this.#options;
    const nowUs = this.#loop?.nowUs() ?? 0;
    if (reopen === undefined) {
      this.#ladder.handleStepDone(step, false, 'the device cannot be opened again here', nowUs);
      return;
    }
    const text = step === 'reset' ? "the device's port is reset" : 'the driver lets the device go';
    const error = new AppError('device-failed', `${text}, because nothing moves`, {
      remedy: 'Nothing has to be done for now.',
    });
    this.#lose(reopen, error, { kind: 'recovery', step });
  }

  handleFailure(error: AppError): void {
    // What still comes of a device that is being given back is of no interest.
    if (this.#interruption !== undefined) return;
    const { reopen } = this.#options;
    if (reopen !== undefined && this.#opened !== undefined) {
      if (error.kind === 'device-gone' && reopen.unplugLimitMs !== undefined) {
        this.#lose(reopen, error, { kind: 'unplug' });
        return;
      }
      const step = this.#nextReopenStep(error);
      if (step !== undefined) {
        this.#lose(reopen, error, { kind: 'recovery', step });
        return;
      }
    }
    this.#error ??= error;
    this.#problems.set('failed', {
      id: 'failed',
      severity: 'error',
      message: error.message,
      ...(error.remedy === undefined ? {} : { remedy: error.remedy }),
    });
    this.#addEvent('error', error.message, this.#timeUs);
    this.#finish('failed');
  }

  handleGone(): void {
    if (this.#interruption !== undefined) return;
    const { reopen } = this.#options;
    const reason = this.#opened?.lossReason?.();
    const error =
      reason ??
      new AppError('device-gone', 'the device was unplugged', {
        details: { deviceId: this.#device.id },
      });
    if (reopen?.unplugLimitMs !== undefined) {
      this.#lose(reopen, error, { kind: 'unplug' });
      return;
    }
    this.#error ??= error;
    this.#problems.set('gone', {
      id: 'gone',
      severity: 'error',
      message:
        reason === undefined
          ? 'The device was unplugged while it was being measured.'
          : `While it was being measured, ${reason.message}.`,
      remedy:
        reason?.remedy ?? 'What was recorded up to then is kept. Plug it in again and start a new session.',
    });
    this.#finish('lost');
  }

  /** What is left to be tried with a device that failed while it was being recovered. */
  #nextReopenStep(error: AppError): ReopenStep | undefined {
    const nowUs = this.#loop?.nowUs() ?? 0;
    while (this.#ladder.recovering !== undefined) {
      const step = this.#ladder.handleFailure(error.message, nowUs);
      if (step === 'rebind' || step === 'reset') return step;
    }
    return undefined;
  }

  // ---- the host's sleep ----

  /** The host is about to sleep: the device is given back before, since it may lose its power. */
  handleSuspend(): void {
    const { reopen } = this.#options;
    if (reopen === undefined || this.#device.mode === 'simulate' || this.#sleep !== undefined) return;
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#sleep = { ended, end };
    if (this.#opened === undefined) return;
    this.#lose(reopen, asleepError('the host goes to sleep'), { kind: 'sleep' });
  }

  /**
   * The host is awake again.
   * @param sleptMs how long it slept, as far as that is known
   */
  handleWake(sleptMs: number | undefined): void {
    const sleep = this.#sleep;
    this.#sleep = undefined;
    if (sleep !== undefined) {
      sleep.end();
      return;
    }
    const { reopen } = this.#options;
    if (reopen === undefined || this.#device.mode === 'simulate' || this.#opened === undefined) return;
    // Nobody had told that it would: what the device was told before cannot be relied on any more.
    const length = sleptMs === undefined ? '' : ` for ${formatDuration(sleptMs * 1000)}`;
    this.#lose(reopen, asleepError(`the host has slept${length}`), { kind: 'sleep' });
  }

  // ---- a lost device ----

  #lose(reopen: ReopenDevice, error: AppError, interruption: Interruption): void {
    if (this.#finishing || this.#recovery !== undefined) return;
    this.#interruption = interruption;
    const lostAtUs = this.#timeUs;
    this.#state = 'lost';
    this.#stages = stageNames.map((name) => ({ name, status: 'pending' }));
    for (const id of this.#problems.keys()) if (id !== recordingProblemId) this.#problems.delete(id);
    this.#keepSample(this.#continuity.gapRow(lostAtUs));
    this.#tellLost(error, undefined);
    this.handleStage('open', 'active', 'waiting for the device');
    this.#recovery = this.#recover(reopen, error, lostAtUs).finally(() => (this.#recovery = undefined));
  }

  /** @param attempt why it can't be had again yet */
  #tellLost(error: AppError, attempt: AppError | undefined): void {
    const still =
      attempt === undefined || attempt.message === error.message ? '' : `; now: ${attempt.message}`;
    this.handleProblem({
      id: 'gone',
      severity: 'error',
      message: `Measuring is interrupted: ${error.message}${still}.`,
      remedy: `${attempt?.remedy ?? error.remedy ?? 'Plug it in again.'}\nIt goes on as soon as the device is back.`,
    });
  }

  async #recover(reopen: ReopenDevice, error: AppError, lostAtUs: number): Promise<void> {
    await this.#giveBack();
    await this.#sleep?.ended;
    if (this.#isFinishing()) return;
    const wait = new DeviceWait({
      open: () => reopen.open((failure) => this.handleFailure(asAppError(failure)), this.#settings),
      onChange: reopen.onChange,
      limitMs:
        this.#interruption?.kind === 'unplug'
          ? (reopen.unplugLimitMs ?? 0)
          : Math.max(reopen.unplugLimitMs ?? 0, takeAnewLimitMs),
      handleAttempt: (attempt) => this.#tellLost(error, attempt),
    });
    this.#wait = wait;
    const outcome = await wait.outcome;
    this.#wait = undefined;
    switch (outcome.kind) {
      case 'cancelled':
        return;
      case 'opened':
        this.#opened = outcome.opened;
        if (!this.#isFinishing()) this.#resume(outcome.opened, lostAtUs);
        return;
      case 'failed':
        this.#interruption = undefined;
        this.#error ??= outcome.error;
        this.#finish('failed');
        return;
      case 'too-late':
        this.#error ??= error;
        this.#finish('lost');
        return;
    }
  }

  #resume(opened: OpenedDevice, lostAtUs: number): void {
    this.#loop = opened.loop;
    this.#continuity.resume();
    const backAtUs = this.#timeUs;
    this.#keepSample(this.#continuity.gapRow(backAtUs));
    this.#problems.delete('gone');
    this.#state = 'starting';
    this.#addEvent('gap', `the device is back after ${formatDuration(backAtUs - lostAtUs)}`, backAtUs);
    const interruption = this.#interruption;
    this.#interruption = undefined;
    if (interruption?.kind === 'recovery') {
      this.#ladder.handleStepDone(interruption.step, true, undefined, opened.loop.nowUs());
    }
    this.#begin(opened);
  }

  /** Read through a method: it changes while something is waited for. */
  #isFinishing(): boolean {
    return this.#finishing;
  }

  #addEvent(kind: SessionEvent['kind'], text: string, timeUs: number): void {
    const event: SessionEvent = { timeUs, kind, text };
    if (this.#events.length === eventLimit) this.#events.shift();
    this.#events.push(event);
    this.#recorder?.writeEvent(event);
    this.#event.emit(event);
  }

  // ---- end ----

  #finish(endState: 'stopped' | 'failed' | 'lost'): void {
    if (this.#finishing) return;
    this.#finishing = true;
    // While the recording can still be told where the phase ended.
    this.#experiment?.stop(this.#loop?.nowUs() ?? 0);
    this.#endRun?.();
    if (endState === 'stopped') this.#state = 'stopping';
    this.#change();
    void this.#end(endState).then((session) => this.#resolveEnded(session));
  }

  async #end(endState: SessionState): Promise<Session> {
    const lastUs = this.#timeUs;
    this.#wait?.cancel();
    this.#sleep?.end();
    await within(this.#opening, stopLimitMs);
    await this.#recovery;
    await this.#giveBack();
    this.#state = endState;
    this.#isOver = true;
    this.#stages = this.#stages.map((stage) =>
      stage.status === 'active' ? { ...stage, status: endState === 'stopped' ? 'done' : 'failed' } : stage,
    );
    this.#snapshot = undefined;
    if (this.#recorder !== undefined) {
      this.#recorder.writeSession(this.snapshot, lastUs);
      await this.#recorder.close();
    }
    this.#change();
    return this.snapshot;
  }

  async #giveBack(): Promise<void> {
    await this.#takeDown();
    const interruption = this.#interruption;
    if (interruption?.kind === 'recovery' && interruption.step === 'reset') await this.#resetPort();
    const opened = this.#opened;
    this.#opened = undefined;
    this.#path = undefined;
    if (opened === undefined) return;
    opened.loop.close();
    for (const notReturned of await opened.close()) {
      this.#problems.set('not-returned', { id: 'not-returned', severity: 'warning', ...notReturned });
    }
  }

  /** Resets the port of the device that was just taken down; in vain, if the loop or the path can't. */
  async #resetPort(): Promise<void> {
    const { loop } = this.#opened ?? {};
    const path = this.#path;
    if (loop?.running !== true || path?.resetPort === undefined) return;
    const error = await new Promise<AppError | undefined>((resolve) => {
      const timer = setTimeout(() => {
        resolve(new AppError('timed-out', 'the port was not reset in time'));
      }, resetLimitMs);
      loop.run((nowUs) =>
        path.resetPort?.(nowUs, (resetError) => {
          clearTimeout(timer);
          resolve(resetError);
        }),
      );
    });
    if (error !== undefined) this.#addEvent('recovery', error.message, this.#timeUs);
  }

  /** Waits until nothing is in flight any more, for a limited time. */
  async #takeDown(): Promise<void> {
    const { loop } = this.#opened ?? {};
    const path = this.#path;
    if (loop === undefined || path === undefined) return;
    const error = await new Promise<AppError | undefined>((resolve) => {
      const timer = setTimeout(() => {
        resolve(new AppError('timed-out', 'the interface could not be taken down in time'));
      }, stopLimitMs);
      const done = (stopError: AppError | undefined): void => {
        clearTimeout(timer);
        resolve(stopError);
      };
      // After a failure the loop no longer runs; then there is nothing left to wait for but the transport's own close.
      if (!loop.running) done(undefined);
      else loop.run((nowUs) => path.stop(nowUs, done));
    });
    if (error === undefined) return;
    this.#error ??= error;
    this.#log.log('error', 'session did not stop cleanly', { reason: error.message });
  }
}

/** Waits for a promise that does not reject, but no longer than this. */
async function within(promise: Promise<void>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([promise, limit]);
  clearTimeout(timer);
}

/** Why a session without an end has no device for a while. */
type Interruption =
  | { readonly kind: 'unplug' }
  | { readonly kind: 'sleep' }
  | { readonly kind: 'recovery'; readonly step: ReopenStep };

function asleepError(message: string): AppError {
  return new AppError('device-gone', message, { remedy: 'Nothing has to be done for now.' });
}

function recordingProblem(failure: AppError | undefined): Problem {
  return {
    id: recordingProblemId,
    severity: 'error',
    message: `Recording stopped: ${failure?.message ?? 'the file could not be written'}.`,
    ...(failure?.remedy === undefined ? {} : { remedy: failure.remedy }),
  };
}
