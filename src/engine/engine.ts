import { Emitter, type Dispose } from '../base/emitter.ts';
import { AppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Device } from '../contract/device.ts';
import type { EngineApi } from '../contract/engine-api.ts';
import type { MethodName, MethodParams, MethodResult } from '../contract/methods.ts';
import type { ExperimentStatus } from '../contract/experiment.ts';
import type { Session } from '../contract/session.ts';
import { defaultSessionSettings, type LiveSettings, type SessionSettings } from '../contract/settings.ts';
import type { TelemetryBatch } from '../contract/telemetry.ts';
import type { TelemetryParams, TopicName, TopicParams, TopicValue } from '../contract/topics.ts';
import { contractVersion } from '../contract/version.ts';
import { startLineProgram } from '../observe/line-program.ts';
import { builtInScenarios } from '../probes/built-in-scenarios.ts';
import type { ExperimentPhase } from '../probes/experiment.ts';
import type { Scenario } from '../probes/scenario.ts';
import type { DeviceSource, ListedDevice } from './device-source.ts';
import { DeviceSession, type ReopenDevice } from './device-session.ts';
import { ExperimentRunner } from './experiment-runner.ts';
import type { OpenDevice } from './opened-device.ts';
import type { RemoteServer, RemoteSource } from './remote-source.ts';
import { scenarioOf, summaryOfScenario } from './scenario-summary.ts';
import { SegmentPrograms } from './segment-programs.ts';
import { morePingsOfScenario, pingOfScenario } from './segment-settings.ts';
import type { Archive } from './session-recorder.ts';
import { unsupportedDevice } from './usb-source.ts';

/** Ended sessions that stay visible; the oldest is forgotten first. */
const endedSessions = 20;

export interface EngineOptions {
  /** In the order in which their devices are listed. */
  readonly sources: readonly DeviceSource[];
  /** The one of them that has the devices of servers; undefined: there is none. */
  readonly remote: RemoteSource | undefined;
  readonly archive: Archive | undefined;
  readonly version: string;
  readonly host: 'electron' | 'web' | 'cli';
  readonly platform: string;
  /** Wall clock, ISO 8601 with zone. */
  readonly wallClock: () => string;
  /** Unguessable or counted; unique in any case. */
  readonly newSessionId: () => string;
  readonly newSeed: () => number;
  readonly log: Log;
}

/** How a session is to be started; what is left out is as in `defaultSessionSettings`. */
export interface StartOptions {
  readonly deviceId: string;
  readonly settings: SessionSettings;
  readonly record: boolean;
  /** The file to record into; undefined: a new one in the library. */
  readonly recordPath?: string;
  /** How long the device is waited for when it goes away, milliseconds; absent: the session ends with it. */
  readonly waitMs?: number;
}

/** Keeps the devices and sessions, and answers the contract. */
export class Engine implements EngineApi {
  readonly #options: EngineOptions;
  readonly #sessions = new Map<string, DeviceSession>();
  /** By the id of the session. */
  readonly #experiments = new Map<string, ExperimentRunner>();
  /** What the sources list may have changed; the sessions' share of the list is not meant. */
  readonly #sourcesChanged = new Emitter<void>();
  readonly #devicesChanged = new Emitter<void>();
  readonly #sessionsChanged = new Emitter<void>();
  readonly #disposers: Dispose[] = [];

  constructor(options: EngineOptions) {
    this.#options = options;
    for (const source of options.sources) {
      this.#disposers.push(
        source.onChange(() => {
          this.#sourcesChanged.emit();
          this.#devicesChanged.emit();
        }),
      );
    }
  }

  /** Gives back every device and closes every recording, within a bounded time. */
  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.stop()));
    await Promise.all(this.#options.sources.map((source) => source.close()));
    for (const dispose of this.#disposers) dispose();
  }

  // ---- devices ----

  /** Everything that there is, with the sessions that have it; a device that was lost is still listed while one does. */
  async devices(): Promise<readonly Device[]> {
    const devices = (await this.#list()).map(({ device }) => device);
    const listed = new Set(devices.map(({ id }) => id));
    for (const session of this.#sessions.values()) {
      const { device } = session.snapshot;
      if (!session.isOver && !listed.has(device.id)) devices.push(device);
    }
    return devices.map((device) => {
      const session = this.#sessionOf(device.id);
      if (session === undefined) return device;
      const state = session.snapshot.state === 'lost' ? 'lost' : 'running';
      return { ...device, state, sessionId: session.id };
    });
  }

  // ---- the host's sleep ----

  /** The host is about to sleep: devices are given back. */
  handleSuspend(): void {
    for (const session of this.#sessions.values()) if (!session.isOver) session.handleSuspend();
  }

  /**
   * The host is awake again: devices are taken anew, whether it had told that it would sleep or not.
   * @param sleptMs how long it slept, if that is known
   */
  handleWake(sleptMs: number | undefined): void {
    for (const session of this.#sessions.values()) if (!session.isOver) session.handleWake(sleptMs);
  }

  // ---- servers ----

  /**
   * From now on the devices of a USB/IP server are among those that are listed. It may be away.
   * @param name `host`, `host:port`, `[ipv6]:port`
   * @throws AppError `bad-input`
   */
  addServer(name: string): void {
    if (this.#options.remote === undefined) throw new AppError('usage', 'no servers are used here');
    this.#options.remote.addServer(name);
  }

  removeServer(name: string): void {
    this.#options.remote?.removeServer(name);
  }

  /** The servers that were named, and what is wrong with them. */
  get servers(): readonly RemoteServer[] {
    return this.#options.remote?.servers ?? [];
  }

  // ---- finding ----

  async #list(): Promise<readonly ListedDevice[]> {
    const lists = await Promise.all(this.#options.sources.map((source) => source.list()));
    return lists.flat();
  }

  async #find(deviceId: string): Promise<ListedDevice | undefined> {
    const listed = (await this.#list()).find(({ device }) => device.id === deviceId);
    if (listed !== undefined) return listed;
    for (const source of this.#options.sources) {
      const found = await source.find?.(deviceId);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #sessionOf(deviceId: string): DeviceSession | undefined {
    for (const session of this.#sessions.values()) {
      if (!session.isOver && session.snapshot.device.id === deviceId) return session;
    }
    return undefined;
  }

  // ---- sessions ----

  /**
   * Starts driving a device.
   * @throws AppError `no-such-device`, `unsupported-device`, `device-busy`; what fails later is in the session's state
   */
  async startSession(start: StartOptions): Promise<DeviceSession> {
    const listed = await this.#find(start.deviceId);
    if (listed === undefined) {
      throw new AppError('no-such-device', `there is no device ${start.deviceId}`, {
        details: { deviceId: start.deviceId },
        remedy: 'See what there is with:\n  npx queuescope list',
      });
    }
    if (listed.open === undefined) throw unsupportedDevice(listed.device);
    const holder = this.#sessionOf(start.deviceId);
    if (holder !== undefined) {
      throw new AppError('device-busy', `${listed.device.name} is already being measured`, {
        details: { deviceId: start.deviceId, sessionId: holder.id },
      });
    }
    const { archive, wallClock, newSessionId, newSeed, log } = this.#options;
    const session = new DeviceSession({
      id: newSessionId(),
      device: listed.device,
      settings: start.settings,
      startedAt: wallClock(),
      open: listed.open,
      reopen: this.#reopen(listed, start.waitMs),
      record:
        start.record && archive !== undefined
          ? (snapshot) => archive.record(snapshot, start.recordPath)
          : undefined,
      recordingRequired: start.recordPath !== undefined,
      seed: newSeed(),
      log,
    });
    this.#keep(session);
    void session.start();
    return session;
  }

  #reopen(lost: ListedDevice, waitMs: number | undefined): ReopenDevice {
    const { id, name } = lost.device;
    const open: OpenDevice = async (fail, choice) => {
      const listed = await this.#find(id);
      if (listed === undefined) {
        throw new AppError('no-such-device', `${name} is not there`, { details: { deviceId: id } });
      }
      const { identity = lost.identity } = listed;
      if (lost.identity !== undefined && identity !== lost.identity) {
        throw new AppError('no-such-device', `there is another device in the place of ${name}`, {
          details: { deviceId: id },
          remedy: 'Plug in the one that was measured, at the same port.',
        });
      }
      if (listed.open === undefined) throw unsupportedDevice(listed.device);
      return listed.open(fail, choice);
    };
    return {
      open,
      onChange: this.#sourcesChanged.event,
      unplugLimitMs: waitMs,
    };
  }

  #keep(session: DeviceSession): void {
    this.#sessions.set(session.id, session);
    session.onChange(() => {
      this.#sessionsChanged.emit();
      const { state } = session.snapshot;
      if (session.isOver || state === 'starting' || state === 'lost') this.#devicesChanged.emit();
    });
    const ended = [...this.#sessions.values()].filter((other) => other.isOver);
    for (const old of ended.slice(0, Math.max(0, ended.length - endedSessions))) {
      this.#sessions.delete(old.id);
      this.#experiments.delete(old.id);
    }
    this.#sessionsChanged.emit();
    this.#devicesChanged.emit();
  }

  /**
   * Starts a session and takes it through a scenario; the session ends with it. How it goes is in the runner's status.
   * @throws AppError as {@link startSession}
   */
  async startExperiment(
    start: StartOptions & { readonly scenario: Scenario; readonly plan?: readonly ExperimentPhase[] },
  ): Promise<ExperimentRunner> {
    const { scenario, plan, ...rest } = start;
    const settings: SessionSettings = {
      ...rest.settings,
      bql: { ...rest.settings.bql, enabled: scenario.arms[0]?.bql.enabled ?? true },
      load: { ...rest.settings.load, enabled: false },
      ping: pingOfScenario(scenario, rest.settings.ping),
      morePings: morePingsOfScenario(scenario, rest.settings.ping),
    };
    const session = await this.startSession({ ...rest, settings });
    const runner = new ExperimentRunner({
      session,
      scenario,
      ...(plan === undefined ? {} : { plan }),
      programs: settings.tap === undefined ? undefined : new SegmentPrograms(startLineProgram, scenario),
    });
    this.#experiments.set(session.id, runner);
    session.announceExperiment(scenario.name);
    runner.finished.catch(() => undefined).finally(() => void session.stop());
    return runner;
  }

  #experiment(sessionId: string): ExperimentRunner {
    const runner = this.#experiments.get(sessionId);
    if (runner === undefined) {
      throw new AppError('no-such-session', `there is no experiment with session ${sessionId}`, {
        details: { sessionId },
      });
    }
    return runner;
  }

  #session(sessionId: string): DeviceSession {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) {
      throw new AppError('no-such-session', `there is no session ${sessionId}`, { details: { sessionId } });
    }
    return session;
  }

  get sessions(): readonly Session[] {
    return [...this.#sessions.values()].map((session) => session.snapshot);
  }

  // ---- the contract ----

  async call<M extends MethodName>(method: M, params: MethodParams<M>): Promise<MethodResult<M>> {
    const handler = this.#handlers[method] as (params: MethodParams<M>) => Promise<MethodResult<M>>;
    return handler(params);
  }

  readonly #handlers: { [M in MethodName]: (params: MethodParams<M>) => Promise<MethodResult<M>> } = {
    'engine.info': async () => ({
      version: this.#options.version,
      contractVersion,
      platform: this.#options.platform,
      host: this.#options.host,
    }),
    'devices.list': async () => [...(await this.devices())],
    'session.start': async (params) => {
      const session = await this.startSession({
        deviceId: params.deviceId,
        settings: settingsFor(params),
        record: params.record,
        // Who sees the session can end it.
        waitMs: Number.POSITIVE_INFINITY,
      });
      return session.snapshot;
    },
    'session.configure': async ({ sessionId, settings }) => {
      const session = this.#session(sessionId);
      session.configure(settings);
      return session.snapshot;
    },
    'session.note': async ({ sessionId, text }) => {
      this.#session(sessionId).note(text);
      return null;
    },
    'session.stop': async ({ sessionId }) => this.#session(sessionId).stop(),
    'scenarios.list': async () => builtInScenarios().map((scenario) => summaryOfScenario(scenario)),
    'experiment.start': async (params) => {
      const scenario = scenarioOf(params.scenario);
      const { maxDataBytes = scenario.maxDataBytes } = params;
      const runner = await this.startExperiment({
        deviceId: params.deviceId,
        scenario: { ...scenario, ...(maxDataBytes === undefined ? {} : { maxDataBytes }) },
        settings: settingsFor(params),
        record: params.record,
      });
      return runner.session.snapshot;
    },
    'experiment.stop': async ({ sessionId }) => {
      this.#experiment(sessionId).stop();
      return null;
    },
    'recordings.list': async () => this.#archive.list(),
    'report.create': async (params) => this.#archive.report(params),
  };

  get #archive(): Archive {
    const { archive } = this.#options;
    if (archive === undefined) throw new AppError('file-failed', 'recordings are not kept here');
    return archive;
  }

  subscribe<T extends TopicName>(
    topic: T,
    params: TopicParams<T>,
    listener: (value: TopicValue<T>) => void,
  ): Dispose {
    switch (topic) {
      case 'devices':
        return this.#subscribeDevices(listener as (value: Device[]) => void);
      case 'sessions': {
        const send = (): void => (listener as (value: Session[]) => void)([...this.sessions]);
        send();
        return this.#sessionsChanged.event(send);
      }
      case 'experiment': {
        const runner = this.#experiment((params as TopicParams<'experiment'>).sessionId);
        const send = (): void => (listener as (value: ExperimentStatus) => void)(runner.status);
        send();
        return runner.onChange(send);
      }
      case 'events': {
        const session = this.#session((params as TopicParams<'events'>).sessionId);
        const send = listener as (value: TopicValue<'events'>) => void;
        for (const event of session.events) send(event);
        return session.onEvent(send);
      }
    }
    throw new AppError('bad-input', `there is no topic ${String(topic)}`);
  }

  #subscribeDevices(listener: (value: Device[]) => void): Dispose {
    let closed = false;
    let wanted = false;
    let listing = false;
    const refresh = async (): Promise<void> => {
      if (listing) {
        wanted = true;
        return;
      }
      listing = true;
      do {
        wanted = false;
        const devices = await this.devices();
        if (!closed) listener([...devices]);
      } while (wanted && !closed);
      listing = false;
    };
    const start = (): void => {
      refresh().catch((error: unknown) => {
        listing = false;
        this.#options.log.log('error', 'devices could not be listed', { reason: String(error) });
      });
    };
    start();
    const dispose = this.#devicesChanged.event(start);
    return () => {
      closed = true;
      dispose();
    };
  }

  subscribeTelemetry(
    params: TelemetryParams,
    listener: (batch: TelemetryBatch) => void | Promise<void>,
  ): Dispose {
    return this.#session(params.sessionId).subscribe(params.table, params.historySeconds, listener);
  }
}

/** The settings that a `session.start` asks for, on top of the defaults. */
export function settingsFor(params: {
  readonly address?: SessionSettings['address'] | undefined;
  readonly target?: string | undefined;
  readonly settings?: LiveSettings | undefined;
  readonly sampleRateHz?: number | undefined;
}): SessionSettings {
  const base = defaultSessionSettings;
  const merge = <T extends object>(defaults: T, changes: object | undefined): T => ({
    ...defaults,
    ...Object.fromEntries(Object.entries(changes ?? {}).filter(([, value]) => value !== undefined)),
  });
  return {
    bql: merge(base.bql, params.settings?.bql),
    qdisc: merge(base.qdisc, params.settings?.qdisc),
    load: merge(base.load, params.settings?.load),
    ping: merge(base.ping, params.settings?.ping),
    address: params.address ?? base.address,
    sampleRateHz: params.sampleRateHz ?? base.sampleRateHz,
    ...(params.target === undefined ? {} : { target: params.target }),
  };
}
