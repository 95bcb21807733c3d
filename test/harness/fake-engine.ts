import { type Dispose, Emitter } from '../../src/base/emitter.ts';
import { AppError } from '../../src/base/errors.ts';
import { Random } from '../../src/base/random.ts';
import type { Device } from '../../src/contract/device.ts';
import type { EngineApi } from '../../src/contract/engine-api.ts';
import type { MethodName, MethodParams, MethodResult } from '../../src/contract/methods.ts';
import type { Problem } from '../../src/contract/problem.ts';
import type { Session } from '../../src/contract/session.ts';
import type { TelemetryBatch } from '../../src/contract/telemetry.ts';
import type { TelemetryParams, TopicName, TopicParams, TopicValue } from '../../src/contract/topics.ts';
import { contractVersion } from '../../src/contract/version.ts';
import { FakeExperiment, fakeScenarios } from './fake-experiment.ts';
import { type FakeLink, FakeSession } from './fake-session.ts';

/** Which devices there are: none at all, only the built-in ones, or a bench full of them. */
export type FakeBench = 'none' | 'virtual' | 'full';

export interface FakeEngineOptions {
  readonly seed?: number;
  readonly bench?: FakeBench;
  /** Wall clock at the start of the first session; time goes on from there as `advance` says. */
  readonly startedAt?: string;
}

interface FakeDevice {
  device: Device;
  readonly link: FakeLink;
}

/**
 * An engine that keeps the contract and invents what it measures: devices, sessions and telemetry, the same for the
 * same seed. It has no clock; `advance` moves its time.
 */
export class FakeEngine implements EngineApi {
  readonly #random: Random;
  readonly #startedAtMs: number;
  readonly #devices = new Map<string, FakeDevice>();
  readonly #sessions: FakeSession[] = [];
  readonly #experiments = new Map<string, FakeExperiment>();
  readonly #devicesChanged = new Emitter<void>();
  readonly #sessionsChanged = new Emitter<void>();
  #nowUs = 0;
  /** What has been asked, in order. */
  readonly calls: { readonly method: MethodName; readonly params: unknown }[] = [];
  /** The next call of a method fails with this. */
  readonly refusals = new Map<MethodName, AppError>();

  constructor(options: FakeEngineOptions = {}) {
    this.#random = new Random(options.seed ?? 1);
    this.#startedAtMs = Date.parse(options.startedAt ?? '2026-03-02T09:00:00Z');
    for (const fake of benches[options.bench ?? 'virtual']) this.#devices.set(fake.device.id, { ...fake });
  }

  /** Lets time pass. */
  advance(elapsedUs: number): void {
    this.#nowUs += elapsedUs;
    let changed = false;
    for (const session of this.#sessions) {
      if (!session.advance(elapsedUs)) continue;
      changed = true;
      if (session.session.state === 'failed') this.#giveBack(session);
    }
    for (const [id, experiment] of this.#experiments) this.#advanceExperiment(id, experiment, elapsedUs);
    if (changed) this.#sessionsChanged.emit();
  }

  #advanceExperiment(id: string, experiment: FakeExperiment, elapsedUs: number): void {
    if (experiment.isOver) return;
    experiment.advance(elapsedUs, this.#session(id).session.state === 'running');
    this.#experimentsChanged.emit();
    if (experiment.isOver) this.#stop(id);
  }
  readonly #experimentsChanged = new Emitter<void>();

  /** The device goes away; its session, if it has one, waits for it. */
  unplug(deviceId: string): void {
    const fake = this.#find(deviceId);
    const session = this.#liveSessionOf(deviceId);
    if (session === undefined) this.#devices.delete(deviceId);
    else {
      session.lose();
      fake.device = { ...fake.device, state: 'lost' };
    }
    this.#devicesChanged.emit();
    this.#sessionsChanged.emit();
  }

  /** A device that was unplugged is back. */
  replug(deviceId: string): void {
    const fake = this.#find(deviceId);
    this.#liveSessionOf(deviceId)?.returnDevice();
    fake.device = { ...fake.device, state: 'running' };
    this.#devicesChanged.emit();
    this.#sessionsChanged.emit();
  }

  /** The device takes no more bytes. */
  stall(deviceId: string): void {
    this.#liveSessionOf(deviceId)?.stall();
    this.#sessionsChanged.emit();
  }

  /** The way to the measurement ends at the address. */
  failNextStart(deviceId: string): void {
    this.#failing.add(deviceId);
  }
  readonly #failing = new Set<string>();

  setProblems(deviceId: string, problems: readonly Problem[]): void {
    const fake = this.#find(deviceId);
    fake.device = { ...fake.device, problems: [...problems] };
    this.#devicesChanged.emit();
  }

  call<M extends MethodName>(method: M, params: MethodParams<M>): Promise<MethodResult<M>> {
    this.calls.push({ method, params });
    const refusal = this.refusals.get(method);
    this.refusals.delete(method);
    if (refusal !== undefined) return Promise.reject(refusal);
    try {
      return Promise.resolve(this.#answer(method, params) as MethodResult<M>);
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  subscribe<T extends TopicName>(
    topic: T,
    params: TopicParams<T>,
    listener: (value: TopicValue<T>) => void,
  ): Dispose {
    const deliver = listener as (value: unknown) => void;
    if (topic === 'events') {
      const session = this.#session((params as TopicParams<'events'>).sessionId);
      for (const event of session.events) deliver(event);
      return session.onEvent(deliver);
    }
    if (topic === 'experiment') {
      const experiment = this.#experiment((params as TopicParams<'experiment'>).sessionId);
      deliver(experiment.status);
      return this.#experimentsChanged.event(() => deliver(experiment.status));
    }
    const state = (): unknown =>
      topic === 'devices' ? this.#deviceList() : this.#sessions.map((session) => this.#shown(session));
    deliver(state());
    const changed = topic === 'devices' ? this.#devicesChanged : this.#sessionsChanged;
    return changed.event(() => deliver(state()));
  }

  subscribeTelemetry(
    params: TelemetryParams,
    listener: (batch: TelemetryBatch) => void | Promise<void>,
  ): Dispose {
    const session = this.#session(params.sessionId);
    const history = session.history(params.table, params.historySeconds);
    if (history.length > 0) void listener({ table: params.table, values: history, skippedRows: 0 });
    return session.onBatch((batch) => {
      if (batch.table === params.table) void listener(batch);
    });
  }

  #answer(method: MethodName, params: unknown): unknown {
    switch (method) {
      case 'scenarios.list':
        return fakeScenarios;
      case 'experiment.start':
        return this.#startExperiment(params as MethodParams<'experiment.start'>);
      case 'experiment.stop': {
        const { sessionId } = params as MethodParams<'experiment.stop'>;
        this.#experiment(sessionId).stop();
        this.#experimentsChanged.emit();
        this.#stop(sessionId);
        return null;
      }
      case 'engine.info':
        return { version: '0.1.0', contractVersion, platform: 'fake', host: 'web' };
      case 'devices.list':
        return this.#deviceList();
      case 'session.start':
        return this.#start(params as MethodParams<'session.start'>);
      case 'session.configure': {
        const { sessionId, settings } = params as MethodParams<'session.configure'>;
        const session = this.#session(sessionId);
        session.configure(settings);
        this.#sessionsChanged.emit();
        return session.session;
      }
      case 'session.note': {
        const { sessionId, text } = params as MethodParams<'session.note'>;
        this.#session(sessionId).note(text);
        return null;
      }
      case 'session.stop':
        return this.#stop((params as MethodParams<'session.stop'>).sessionId);
      case 'recordings.list':
        return this.#sessions.flatMap((session) => session.recordingInfo ?? []);
      case 'report.create': {
        const { recordingId, format } = params as MethodParams<'report.create'>;
        if (format === 'flent' || format === 'pdf') {
          const fileName = `${recordingId}.${format === 'flent' ? 'flent.gz' : format}`;
          // The bytes 1f 8b ff.
          return [{ fileName, mediaType: 'application/octet-stream', text: 'H4v/', encoding: 'base64' }];
        }
        const mediaTypes = { html: 'text/html', csv: 'text/csv', json: 'application/json' };
        return [
          {
            fileName: `${recordingId}.${format}`,
            mediaType: mediaTypes[format],
            text: format === 'json' ? '{}' : `report of ${recordingId}`,
          },
        ];
      }
    }
  }

  #start(params: MethodParams<'session.start'>): Session {
    const fake = this.#find(params.deviceId);
    if (fake.device.state !== 'available') {
      throw new AppError('access-denied', `${params.deviceId} cannot be opened`, {
        remedy: 'Unplug the device and plug it in again.',
      });
    }
    const session = new FakeSession({
      id: `session-${this.#sessions.length + 1}`,
      device: fake.device,
      link: fake.link,
      startedAt: new Date(this.#startedAtMs + this.#nowUs / 1000).toISOString(),
      random: this.#random,
      params,
      fails: this.#failing.delete(params.deviceId),
    });
    this.#sessions.push(session);
    fake.device = { ...fake.device, state: 'running', sessionId: session.session.id };
    this.#devicesChanged.emit();
    this.#sessionsChanged.emit();
    return session.session;
  }

  #startExperiment(params: MethodParams<'experiment.start'>): Session {
    const scenario = fakeScenarios.find(({ name }) => name === params.scenario);
    if (scenario === undefined) throw new AppError('bad-input', `there is no scenario "${params.scenario}"`);
    const { id } = this.#start({ deviceId: params.deviceId, record: params.record });
    this.#experiments.set(id, new FakeExperiment(id, params.deviceId, scenario, params.maxDataBytes));
    this.#sessionsChanged.emit();
    return this.#shown(this.#session(id));
  }

  /** A session as clients see it. */
  #shown({ session }: FakeSession): Session {
    const experiment = this.#experiments.get(session.id);
    return experiment === undefined ? session : { ...session, experiment: experiment.scenario.name };
  }

  #experiment(sessionId: string): FakeExperiment {
    const experiment = this.#experiments.get(sessionId);
    if (experiment === undefined) throw new AppError('no-such-session', `no experiment with ${sessionId}`);
    return experiment;
  }

  #stop(sessionId: string): Session {
    const session = this.#session(sessionId);
    session.stop();
    this.#giveBack(session);
    this.#sessionsChanged.emit();
    return session.session;
  }

  #giveBack(session: FakeSession): void {
    const { device } = session.session;
    const fake = this.#devices.get(device.id);
    if (fake !== undefined) {
      if (fake.device.state === 'lost') this.#devices.delete(device.id);
      else {
        const { sessionId: _ended, ...rest } = fake.device;
        fake.device = { ...rest, state: 'available' };
      }
    }
    this.#devicesChanged.emit();
  }

  #deviceList(): Device[] {
    return [...this.#devices.values()].map((fake) => fake.device);
  }

  #find(deviceId: string): FakeDevice {
    const fake = this.#devices.get(deviceId);
    if (fake === undefined) throw new AppError('no-such-device', `there is no device ${deviceId}`);
    return fake;
  }

  #session(sessionId: string): FakeSession {
    const session = this.#sessions.find((one) => one.session.id === sessionId);
    if (session === undefined) throw new AppError('no-such-session', `there is no session ${sessionId}`);
    return session;
  }

  #liveSessionOf(deviceId: string): FakeSession | undefined {
    return this.#sessions.find((one) => one.session.device.id === deviceId && one.isLive);
  }
}

const virtualModem: FakeDevice = {
  device: {
    id: 'sim:modem',
    mode: 'simulate',
    vendorId: 0x1d6b,
    productId: 0x0104,
    name: 'Virtual cellular modem',
    manufacturer: 'Queuescope',
    speed: 'super',
    function: 'wwan',
    minidriver: 'cdc_ether',
    reason: 'Its communications interface is of the Ethernet class.',
    state: 'available',
    description: 'USB 3 modem, 10 Mbit/s up, 40 ms to the far end',
    problems: [],
  },
  link: { uplinkBitsPerSecond: 10e6, baseRttUs: 40_000, queueFrames: 300 },
};

const virtualAdapter: FakeDevice = {
  device: {
    id: 'sim:adapter',
    mode: 'simulate',
    vendorId: 0x1d6b,
    productId: 0x0103,
    name: 'Virtual Ethernet adapter',
    manufacturer: 'Queuescope',
    speed: 'super',
    function: 'ethernet',
    minidriver: 'cdc_ncm',
    reason: 'Its communications interface is of the NCM class.',
    state: 'available',
    description: 'USB 3 adapter, 100 Mbit/s',
    problems: [],
  },
  link: { uplinkBitsPerSecond: 100e6, baseRttUs: 600, queueFrames: 300 },
};

const realDevices: readonly FakeDevice[] = [
  {
    device: {
      id: 'usb:2-1.4',
      mode: 'drive',
      vendorId: 0x2c7c,
      productId: 0x0801,
      name: 'Quectel RM520N-GL',
      manufacturer: 'Quectel',
      speed: 'super',
      function: 'wwan',
      minidriver: 'cdc_ether',
      reason: 'Its communications interface is of the Ethernet class.',
      state: 'available',
      problems: [
        {
          id: 'modem-manager',
          severity: 'warning',
          message: 'ModemManager is running and may talk to this modem at the same time.',
          remedy: 'Stop it for as long as you measure:\nsudo systemctl stop ModemManager',
        },
      ],
    },
    link: { uplinkBitsPerSecond: 38e6, baseRttUs: 24_000, queueFrames: 300 },
  },
  {
    device: {
      id: 'usb:1-3',
      mode: 'drive',
      vendorId: 0x18d1,
      productId: 0x4ee7,
      name: 'Pixel 8 (tethering)',
      manufacturer: 'Google',
      speed: 'high',
      function: 'ethernet',
      minidriver: 'cdc_ncm',
      reason: 'Its communications interface is of the NCM class.',
      state: 'inaccessible',
      problems: [
        {
          id: 'access-denied',
          severity: 'error',
          message: 'No permission to open /dev/bus/usb/001/007.',
          remedy:
            'Allow the user at the desk to open it, once, then plug it in again:\n' +
            `echo 'SUBSYSTEM=="usb", ATTR{idVendor}=="18d1", MODE="0660", TAG+="uaccess"' | sudo tee /etc/udev/rules.d/70-queuescope.rules\n` +
            'sudo udevadm control --reload',
        },
      ],
    },
    link: { uplinkBitsPerSecond: 20e6, baseRttUs: 30_000, queueFrames: 60 },
  },
  {
    device: {
      id: 'usb:1-4',
      mode: 'drive',
      vendorId: 0x0b95,
      productId: 0x1790,
      name: 'AX88179 Gigabit Ethernet',
      manufacturer: 'ASIX',
      speed: 'super',
      function: 'ethernet',
      reason: 'It has only a vendor interface, and no minidriver for 0b95:1790 is here yet.',
      state: 'unsupported',
      problems: [],
    },
    link: { uplinkBitsPerSecond: 100e6, baseRttUs: 500, queueFrames: 300 },
  },
];

const benches: Readonly<Record<FakeBench, readonly FakeDevice[]>> = {
  none: [],
  virtual: [virtualModem, virtualAdapter],
  full: [...realDevices, virtualModem, virtualAdapter],
};
