import { computed, signal } from '@preact/signals';
import type { Dispose } from '../../src/base/emitter.ts';
import type { Device } from '../../src/contract/device.ts';
import type { ExperimentStatus } from '../../src/contract/experiment.ts';
import type { EngineApi } from '../../src/contract/engine-api.ts';
import type { Session } from '../../src/contract/session.ts';
import { deviceEntries } from './device-entry.ts';
import { rememberedSeconds, SessionData } from './session-data.ts';

/** The engine's state as this window sees it: devices, sessions and what is measured. */
export class EngineStore {
  readonly devices = signal<readonly Device[]>([]);
  readonly sessions = signal<readonly Session[]>([]);
  /** How the experiments go that there are, by session. */
  readonly experiments = signal<ReadonlyMap<string, ExperimentStatus>>(new Map());
  /** The first list of devices has come. */
  readonly ready = signal(false);
  readonly entries = computed(() => deviceEntries(this.devices.value, this.sessions.value));

  readonly #nowMs: () => number;
  readonly #onData: () => void;
  readonly #data = new Map<string, SessionData>();
  #subscriptions: Dispose[] = [];
  readonly #sessionSubscriptions = new Map<string, Dispose>();
  readonly #experimentSubscriptions = new Map<string, Dispose>();

  /**
   * @param nowMs this window's clock
   * @param onData called when telemetry or an event came in: something may have to be drawn
   */
  constructor(nowMs: () => number, onData: () => void) {
    this.#nowMs = nowMs;
    this.#onData = onData;
  }

  /** Listens to an engine, in place of the one before. What was there stays on show until the new one has spoken. */
  attach(api: EngineApi): void {
    this.detach();
    this.#subscriptions = [
      api.subscribe('devices', {}, (devices) => {
        this.devices.value = devices;
        this.ready.value = true;
      }),
      api.subscribe('sessions', {}, (sessions) => {
        this.#follow(api, sessions);
        this.#followExperiments(api, sessions);
        this.sessions.value = sessions;
      }),
    ];
  }

  detach(): void {
    for (const dispose of this.#subscriptions) dispose();
    this.#subscriptions = [];
    for (const dispose of this.#sessionSubscriptions.values()) dispose();
    this.#sessionSubscriptions.clear();
    for (const dispose of this.#experimentSubscriptions.values()) dispose();
    this.#experimentSubscriptions.clear();
  }

  /** What is remembered of a session; empty for one that is not known. */
  dataOf(sessionId: string): SessionData {
    let data = this.#data.get(sessionId);
    if (data === undefined) {
      data = new SessionData();
      this.#data.set(sessionId, data);
    }
    return data;
  }

  #follow(api: EngineApi, sessions: readonly Session[]): void {
    const known = new Set(sessions.map((session) => session.id));
    for (const [id, dispose] of this.#sessionSubscriptions) {
      if (known.has(id)) continue;
      dispose();
      this.#sessionSubscriptions.delete(id);
      this.#data.delete(id);
    }
    for (const { id } of sessions) {
      if (this.#sessionSubscriptions.has(id)) continue;
      const data = this.dataOf(id);
      // The engine sends what was measured so far once more.
      data.clear();
      const takeIn = (batch: Parameters<SessionData['addBatch']>[0]): void => {
        data.addBatch(batch, this.#nowMs());
        this.#onData();
      };
      const disposers = [
        api.subscribe('events', { sessionId: id }, (event) => {
          data.addEvent(event);
          this.#onData();
        }),
        api.subscribeTelemetry(
          { sessionId: id, table: 'samples', historySeconds: rememberedSeconds },
          takeIn,
        ),
        api.subscribeTelemetry({ sessionId: id, table: 'probes', historySeconds: rememberedSeconds }, takeIn),
      ];
      this.#sessionSubscriptions.set(id, () => {
        for (const dispose of disposers) dispose();
      });
    }
  }

  #followExperiments(api: EngineApi, sessions: readonly Session[]): void {
    const running = new Set(
      sessions.filter(({ experiment }) => experiment !== undefined).map(({ id }) => id),
    );
    for (const [id, dispose] of this.#experimentSubscriptions) {
      if (running.has(id)) continue;
      dispose();
      this.#experimentSubscriptions.delete(id);
      this.#putExperiment(id, undefined);
    }
    for (const id of running) {
      if (this.#experimentSubscriptions.has(id)) continue;
      const dispose = api.subscribe('experiment', { sessionId: id }, (status) =>
        this.#putExperiment(id, status),
      );
      this.#experimentSubscriptions.set(id, dispose);
    }
  }

  #putExperiment(sessionId: string, status: ExperimentStatus | undefined): void {
    const experiments = new Map(this.experiments.peek());
    if (status === undefined) experiments.delete(sessionId);
    else experiments.set(sessionId, status);
    this.experiments.value = experiments;
  }
}
