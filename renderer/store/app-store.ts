import { computed, effect, type ReadonlySignal, type Signal, signal, untracked } from '@preact/signals';
import { AppError, asAppError } from '../../src/base/errors.ts';
import type { EngineApi } from '../../src/contract/engine-api.ts';
import type { ExperimentStatus, ScenarioSummary } from '../../src/contract/experiment.ts';
import type { MethodName, MethodParams, MethodResult } from '../../src/contract/methods.ts';
import type { Session } from '../../src/contract/session.ts';
import type { LiveSettings } from '../../src/contract/settings.ts';
import type { EngineLink, LinkState } from '../engine-link.ts';
import { type DeviceEntry, isLive, isSending } from './device-entry.ts';
import { Drafts } from './drafts.ts';
import { EngineStore } from './engine-store.ts';
import type { Preferences } from './preferences.ts';
import { type Readings, ReadingsCalculator } from './readings.ts';
import { shownSeconds, ViewState } from './view-state.ts';

export type Section = 'live' | 'experiment' | 'compare' | 'recordings' | 'settings';
export type RecordingInfo = MethodResult<'recordings.list'>[number];
export type ReportFormat = MethodParams<'report.create'>['format'];
export type ReportFile = MethodResult<'report.create'>[number];

/**
 * All state of the window. Views read its signals and call its methods; it knows neither the page nor a timer: time
 * passes when `tick` is called.
 */
export class AppStore {
  readonly link: ReadonlySignal<LinkState>;
  readonly linkProblem: ReadonlySignal<AppError | undefined>;
  readonly engine: EngineStore;
  readonly view = new ViewState();
  readonly drafts = new Drafts();
  readonly preferences: Preferences;
  readonly section = signal<Section>('live');
  readonly selectedId = signal<string | undefined>(undefined);
  readonly recordings = signal<readonly RecordingInfo[] | undefined>(undefined);
  readonly scenarios = signal<readonly ScenarioSummary[] | undefined>(undefined);
  /** The session whose experiment is shown; undefined: one is being chosen. */
  readonly shownExperiment = signal<string | undefined>(undefined);
  /** Requests that failed and have not been made again with success since, by what they were about. */
  readonly failures = signal<ReadonlyMap<string, AppError>>(new Map());
  /** Requests that have not been answered yet, by what they are about. */
  readonly pending = signal<ReadonlySet<string>>(new Set());
  readonly selected = computed<DeviceEntry | undefined>(() =>
    this.engine.entries.value.find((entry) => entry.device.id === this.selectedId.value),
  );
  readonly liveEntries = computed(() => this.engine.entries.value.filter((entry) => isLive(entry.session)));

  readonly #link: EngineLink;
  readonly #nowMs: () => number;
  readonly #readings = new Map<
    string,
    { readonly shown: Signal<Readings | undefined>; readonly calculator: ReadingsCalculator }
  >();
  #readingsDueMs = 0;

  /** @param onData see EngineStore */
  constructor(link: EngineLink, preferences: Preferences, nowMs: () => number, onData: () => void) {
    this.#link = link;
    this.link = link.state;
    this.linkProblem = link.problem;
    this.preferences = preferences;
    this.#nowMs = nowMs;
    this.engine = new EngineStore(nowMs, onData);
    effect(() => {
      const state = link.state.value;
      // An engine in the same process answers while it is asked: what that reads is not what this depends on.
      untracked(() => {
        if (state.phase === 'open') this.engine.attach(state.api);
        else this.engine.detach();
      });
    });
    effect(() => {
      // A window that opens while something runs shows that, once.
      const [first] = this.liveEntries.value;
      if (first === undefined || this.selectedId.peek() !== undefined) return;
      this.selectedId.value = first.device.id;
    });
    effect(() => {
      // The same for an experiment.
      const first = [...this.engine.experiments.value.values()].find(isUnderWay);
      if (first === undefined || this.shownExperiment.peek() !== undefined) return;
      this.shownExperiment.value = first.sessionId;
    });
  }

  retryLink(): void {
    this.#link.retry();
  }

  select(deviceId: string): void {
    this.selectedId.value = deviceId;
    this.section.value = 'live';
  }

  /** Starts a session with the device's draft. @returns whether it worked; if not, `failures` says why */
  async start(deviceId: string): Promise<boolean> {
    const { settings, record } = this.drafts.of(deviceId);
    const session = await this.#call(deviceKey(deviceId), 'session.start', {
      deviceId,
      address: settings.address,
      ...(settings.target === undefined ? {} : { target: settings.target }),
      settings: { bql: settings.bql, qdisc: settings.qdisc, load: settings.load, ping: settings.ping },
      sampleRateHz: settings.sampleRateHz,
      record,
    });
    return session !== undefined;
  }

  async stop(session: Session): Promise<void> {
    await this.#call(deviceKey(session.device.id), 'session.stop', { sessionId: session.id });
  }

  /** Changes what is running, or the draft if nothing is. */
  async configure(entry: DeviceEntry, settings: LiveSettings): Promise<void> {
    this.drafts.change(entry.device.id, settings);
    if (!isLive(entry.session)) return;
    await this.#call(settingsKey(entry.device.id), 'session.configure', {
      sessionId: entry.session.id,
      settings,
    });
  }

  /** @returns whether the note was taken */
  async note(session: Session, text: string): Promise<boolean> {
    const key = `note ${session.id}`;
    return (await this.#call(key, 'session.note', { sessionId: session.id, text })) !== undefined;
  }

  async listScenarios(): Promise<void> {
    const scenarios = await this.#call('scenarios', 'scenarios.list', {});
    if (scenarios !== undefined) this.scenarios.value = scenarios;
  }

  /**
   * Starts a session with the device's draft and takes it through a scenario.
   * @param maxDataBytes what may be sent and received; undefined: what the scenario says
   */
  async startExperiment(deviceId: string, scenario: string, maxDataBytes: number | undefined): Promise<void> {
    const { settings, record } = this.drafts.of(deviceId);
    const session = await this.#call(experimentKey, 'experiment.start', {
      deviceId,
      scenario,
      address: settings.address,
      ...(settings.target === undefined ? {} : { target: settings.target }),
      ...(maxDataBytes === undefined ? {} : { maxDataBytes }),
      record,
    });
    if (session === undefined) return;
    this.selectedId.value = deviceId;
    this.shownExperiment.value = session.id;
  }

  async stopExperiment({ sessionId }: ExperimentStatus): Promise<void> {
    await this.#call(experimentKey, 'experiment.stop', { sessionId });
  }

  async listRecordings(): Promise<void> {
    const recordings = await this.#call('recordings', 'recordings.list', {});
    if (recordings !== undefined) this.recordings.value = recordings;
  }

  createReport(recordingId: string, format: ReportFormat): Promise<readonly ReportFile[] | undefined> {
    return this.#call(reportKey(recordingId), 'report.create', { recordingId, format });
  }

  /** Right edge of what is shown of a session, microseconds. */
  viewEndUs(session: Session): number {
    const frozen = this.view.frozenEnds.value.get(session.id);
    return frozen ?? this.engine.dataOf(session.id).edgeUs(this.#nowMs(), isSending(session) && this.#open());
  }

  /** Length of what is shown of a session, microseconds. */
  viewLengthUs(session: Session): number {
    const firstUs = this.engine.dataOf(session.id).samples.firstUs;
    const recordedUs = Number.isNaN(firstUs) ? 0 : this.viewEndUs(session) - firstUs;
    return shownSeconds(this.view.windowSeconds.value, recordedUs / 1e6) * 1e6;
  }

  /** Freezes the view of these sessions, or lets them follow again if they are frozen. */
  togglePause(sessions: readonly Session[]): void {
    if (sessions.some((session) => this.view.isFrozen(session.id))) {
      for (const session of sessions) this.view.follow(session.id);
      return;
    }
    this.view.freeze(sessions.map((session) => [session.id, this.viewEndUs(session)] as const));
  }

  /** The large figures of a session, renewed a few times a second; undefined before the first sample. */
  readingsOf(session: Session): ReadonlySignal<Readings | undefined> {
    let entry = this.#readings.get(session.id);
    if (entry === undefined) {
      entry = { shown: signal<Readings | undefined>(undefined), calculator: new ReadingsCalculator() };
      this.#readings.set(session.id, entry);
    }
    return entry.shown;
  }

  /** To be called with every frame that is drawn. */
  tick(): void {
    const nowMs = this.#nowMs();
    if (nowMs < this.#readingsDueMs) return;
    this.#readingsDueMs = nowMs + readingsEveryMs;
    const sessions = this.engine.sessions.peek();
    for (const [id, { shown, calculator }] of this.#readings) {
      const session = sessions.find((one) => one.id === id);
      if (session === undefined) {
        this.#readings.delete(id);
        continue;
      }
      shown.value = calculator.compute(
        this.engine.dataOf(id),
        this.viewEndUs(session),
        this.view.windowSeconds.peek() * 1e6,
      );
    }
  }

  dismissFailure(key: string): void {
    if (!this.failures.peek().has(key)) return;
    const failures = new Map(this.failures.peek());
    failures.delete(key);
    this.failures.value = failures;
  }

  #open(): boolean {
    return this.link.peek().phase === 'open';
  }

  async #call<M extends MethodName>(
    key: string,
    method: M,
    params: MethodParams<M>,
  ): Promise<MethodResult<M> | undefined> {
    const api = this.#api();
    this.pending.value = new Set(this.pending.peek()).add(key);
    try {
      if (api === undefined) throw new AppError('engine-gone', 'The engine cannot be reached at the moment.');
      const result = await api.call(method, params);
      this.dismissFailure(key);
      return result;
    } catch (thrown) {
      this.failures.value = new Map(this.failures.peek()).set(key, asAppError(thrown));
      return undefined;
    } finally {
      const pending = new Set(this.pending.peek());
      pending.delete(key);
      this.pending.value = pending;
    }
  }

  #api(): EngineApi | undefined {
    const state = this.link.peek();
    return state.phase === 'open' ? state.api : undefined;
  }
}

/** It is not over yet. */
export function isUnderWay({ state }: ExperimentStatus): boolean {
  return state === 'preparing' || state === 'running' || state === 'ending';
}

/** Faster than this, figures cannot be read. */
const readingsEveryMs = 250;

/** What a failure of starting or stopping is filed under. */
export function deviceKey(deviceId: string): string {
  return `device ${deviceId}`;
}

/** What a failure of starting or stopping an experiment is filed under. */
export const experimentKey = 'experiment';

/** What a refused change of settings is filed under. */
export function settingsKey(deviceId: string): string {
  return `settings ${deviceId}`;
}

/** What a failed report is filed under. */
export function reportKey(recordingId: string): string {
  return `report ${recordingId}`;
}
