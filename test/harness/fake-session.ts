import { noFaults } from './no-faults.ts';
import { Emitter } from '../../src/base/emitter.ts';
import type { Random } from '../../src/base/random.ts';
import type { Device } from '../../src/contract/device.ts';
import type { MethodParams, MethodResult } from '../../src/contract/methods.ts';
import { type Session, type SessionEvent, stageNames } from '../../src/contract/session.ts';
import {
  defaultSessionSettings,
  type LiveSettings,
  type SessionSettings,
} from '../../src/contract/settings.ts';
import {
  type ProbeColumn,
  probeColumns,
  type SampleColumn,
  sampleColumns,
  type TelemetryBatch,
  type TelemetryTable,
} from '../../src/contract/telemetry.ts';

/** How a fake device behaves. */
export interface FakeLink {
  readonly uplinkBitsPerSecond: number;
  readonly baseRttUs: number;
  /** Frames that usbnet keeps in flight to it. */
  readonly queueFrames: number;
}

interface FakeSessionOptions {
  readonly id: string;
  readonly device: Device;
  readonly link: FakeLink;
  readonly startedAt: string;
  readonly random: Random;
  readonly params: MethodParams<'session.start'>;
  /** Gets no address. */
  readonly fails: boolean;
}

const frameBytes = 1514;
const stageUs = 150_000;
const stageTexts = [
  'interfaces 0 and 1 claimed',
  'on interfaces 0 and 1',
  'up',
  '10.64.0.2/24 by DHCP in 12 ms',
  '10.64.0.1 answers in 41 ms',
] as const;

/**
 * One session of the fake engine. The queue is a tank: the load fills it at once up to the limit (BQL) or to the driver's
 * queue length, the link drains it, and a ping waits for what is in it.
 */
export class FakeSession {
  session: Session;
  readonly events: SessionEvent[] = [];
  readonly #events = new Emitter<SessionEvent>();
  readonly #batches = new Emitter<TelemetryBatch>();
  readonly onEvent = this.#events.event;
  readonly onBatch = this.#batches.event;
  readonly #options: FakeSessionOptions;
  readonly #history: Record<TelemetryTable, number[]> = { samples: [], probes: [] };
  #nowUs = 0;
  #nextSampleUs = 0;
  #nextProbeUs = 0;
  #stagesDone = 0;
  #inflightBytes = 0;
  #limitBytes = 0;
  #sequence = 0;
  #dropped = 0;

  constructor(options: FakeSessionOptions) {
    this.#options = options;
    const { params } = options;
    const settings = merge(defaultSessionSettings, params.settings ?? {});
    this.session = {
      id: options.id,
      device: { ...options.device, state: 'running', sessionId: options.id },
      state: 'starting',
      startedAt: options.startedAt,
      stages: stageNames.map((name) => ({ name, status: name === 'open' ? 'active' : 'pending' })),
      settings: {
        ...settings,
        address: params.address ?? settings.address,
        sampleRateHz: params.sampleRateHz ?? settings.sampleRateHz,
        ...(params.target === undefined ? {} : { target: params.target }),
      },
      facts: factsOf(options),
      problems: [],
      ...(params.record
        ? {
            recording: {
              id: `${options.id}-recording`,
              fileName: `${options.device.id.replace(':', '-')}-${options.id}.qscope`,
              state: 'recording' as const,
              sizeBytes: 4096,
            },
          }
        : {}),
    };
  }

  get isLive(): boolean {
    return this.session.state !== 'stopped' && this.session.state !== 'failed';
  }

  get recordingInfo(): MethodResult<'recordings.list'>[number] | undefined {
    const { recording } = this.session;
    return recording === undefined
      ? undefined
      : {
          id: recording.id,
          fileName: recording.fileName,
          deviceName: this.session.device.name,
          startedAt: this.session.startedAt,
          durationUs: this.#nowUs,
          sizeBytes: recording.sizeBytes,
          recording: recording.state === 'recording',
        };
  }

  /** @returns whether the session itself changed, beside its telemetry */
  advance(elapsedUs: number): boolean {
    if (!this.isLive) return false;
    const untilUs = this.#nowUs + elapsedUs;
    const before = this.session;
    while (this.session.state === 'starting' && this.#stagesDone * stageUs + stageUs <= untilUs) {
      this.#nextStage();
    }
    if (this.session.state !== 'running' && this.session.state !== 'stalled') {
      this.#nowUs = untilUs;
      this.#nextSampleUs = this.#nextProbeUs = untilUs;
      return this.session !== before;
    }
    const samples: number[] = [];
    const probes: number[] = [];
    const intervalUs = 1e6 / this.session.settings.sampleRateHz;
    for (;;) {
      const nextUs = Math.min(this.#nextSampleUs, this.#nextProbeUs);
      if (nextUs > untilUs) break;
      if (this.#nextSampleUs <= this.#nextProbeUs) {
        this.#nextSampleUs += intervalUs;
        this.#sample(nextUs, intervalUs, samples);
      } else {
        this.#nextProbeUs += this.session.settings.ping.intervalMs * 1000;
        if (this.session.settings.ping.enabled) this.#probe(nextUs, probes);
      }
    }
    this.#nowUs = untilUs;
    this.#send('samples', samples);
    this.#send('probes', probes);
    this.#growRecording();
    return this.session !== before;
  }

  configure(change: LiveSettings): void {
    const before = this.session.settings;
    this.session = { ...this.session, settings: merge(before, change) };
    const { bql } = this.session.settings;
    if (bql.enabled !== before.bql.enabled) {
      this.#event(bql.enabled ? 'bql-on' : 'bql-off', `BQL ${onOff(bql.enabled)}`);
    }
    const { load } = this.session.settings;
    if (load.enabled !== before.load.enabled) this.#event('settings', `Load ${onOff(load.enabled)}`);
  }

  note(text: string): void {
    this.#event('note', text);
  }

  stall(): void {
    this.session = { ...this.session, state: 'stalled' };
    this.#event('timeout', 'No transfer completed for 5 s');
  }

  lose(): void {
    this.session = { ...this.session, state: 'lost' };
    this.#event('unplug', 'Unplugged');
  }

  returnDevice(): void {
    this.session = { ...this.session, state: 'running' };
    this.#event('gap', 'Plugged in again');
  }

  stop(): void {
    const { recording } = this.session;
    this.session = {
      ...this.session,
      state: 'stopped',
      stages: this.session.stages.map((stage) =>
        stage.status === 'active' ? { ...stage, status: 'done' } : stage,
      ),
      ...(recording === undefined ? {} : { recording: { ...recording, state: 'closed' } }),
    };
  }

  /** Rows so far, at most this much of the time before now. */
  history(table: TelemetryTable, seconds: number): Float64Array {
    const width = table === 'samples' ? sampleColumns.length : probeColumns.length;
    const rows = this.#history[table];
    let from = 0;
    while (from < rows.length && (rows[from] ?? 0) < this.#nowUs - seconds * 1e6) from += width;
    return Float64Array.from(rows.slice(from));
  }

  #nextStage(): void {
    const index = this.#stagesDone++;
    const fails = this.#options.fails && stageNames[index] === 'address';
    const stages = this.session.stages.map((stage, at) => {
      if (at === index) {
        const text = fails ? 'No DHCP server answered within 10 s' : (stageTexts[at] ?? '');
        return { ...stage, status: fails ? ('failed' as const) : ('done' as const), text };
      }
      return at === index + 1 && !fails ? { ...stage, status: 'active' as const } : stage;
    });
    // The last stage goes on as long as the session does.
    const isMeasuring = this.#stagesDone === stageNames.length - 1;
    this.session = {
      ...this.session,
      stages,
      state: fails ? 'failed' : isMeasuring ? 'running' : 'starting',
    };
    if (isMeasuring) this.#event('stage', 'Measuring');
  }

  #sample(timeUs: number, intervalUs: number, out: number[]): void {
    const { random, link } = this.#options;
    const { bql, load } = this.session.settings;
    const stalled = this.session.state === 'stalled';
    const drainedBytes = stalled ? 0 : (link.uplinkBitsPerSecond / 8) * (intervalUs / 1e6);
    const isFull =
      load.enabled && (load.rateBitsPerSecond === 0 || load.rateBitsPerSecond > link.uplinkBitsPerSecond);
    // Enough for some 5 ms of the link, in whole frames, searched in steps as DQL does.
    const enoughFrames = Math.max(3, Math.round((link.uplinkBitsPerSecond * 0.005) / 8 / frameBytes));
    if (this.#limitBytes === 0 || random.chance(0.03)) {
      this.#limitBytes = (enoughFrames + random.integer(-1, 2)) * frameBytes;
    }
    const limitBytes = Math.min(bql.limitMaxBytes, Math.max(bql.limitMinBytes, this.#limitBytes));
    const ceilingBytes = bql.enabled
      ? limitBytes + frameBytes * random.integer(-2, 1)
      : frameBytes * (link.queueFrames - random.integer(0, 1));
    const filledTo = isFull
      ? Math.max(frameBytes, ceilingBytes)
      : load.enabled
        ? frameBytes * random.integer(1, 3)
        : 0;
    if (!stalled) this.#inflightBytes = Math.max(filledTo, this.#inflightBytes - drainedBytes);
    const offeredBits = load.rateBitsPerSecond === 0 ? link.uplinkBitsPerSecond : load.rateBitsPerSecond;
    const upBits = stalled ? 0 : load.enabled ? Math.min(offeredBits, link.uplinkBitsPerSecond) : 3900;
    if (isFull) this.#dropped += random.integer(30, 60);
    const queueUs = ((this.#inflightBytes * 8) / link.uplinkBitsPerSecond) * 1e6;
    const backlogPackets = isFull ? 1000 - random.integer(0, 3) : 0;
    const row: Record<SampleColumn, number> = {
      timeUs,
      inflightBytes: this.#inflightBytes,
      inflightMaxBytes: this.#inflightBytes + (load.enabled ? frameBytes * random.integer(0, 2) : 98),
      limitBytes: bql.enabled ? limitBytes : Number.NaN,
      bqlEnabled: bql.enabled ? 1 : 0,
      txTransfers: Math.round(this.#inflightBytes / frameBytes),
      backlogPackets,
      backlogBytes: backlogPackets * frameBytes,
      qdiscFlows: Number.NaN,
      txBitsPerSecond: upBits * (0.99 + 0.02 * random.unit()),
      rxBitsPerSecond: stalled ? 0 : 3900 * (0.9 + 0.2 * random.unit()),
      txPacketsPerSecond: upBits / 8 / frameBytes,
      rxPacketsPerSecond: 5,
      driverQueueP50Us: queueUs,
      driverQueueP95Us: queueUs * 1.05,
      driverQueueMaxUs: queueUs * 1.1,
      qdiscWaitP50Us: isFull ? 1_200_000 : 10,
      qdiscWaitP95Us: isFull ? 1_220_000 : 15,
      qdiscWaitMaxUs: isFull ? 1_240_000 : 20,
      txDroppedPackets: 0,
      qdiscDroppedPackets: this.#dropped,
      qdiscMarkedPackets: 0,
      txErrors: 0,
      rxErrors: 0,
      driverXoff: isFull && !bql.enabled ? 1 : 0,
      stackXoff: isFull && bql.enabled ? 1 : 0,
      eventLoopLagUs: 200 + 800 * random.unit() ** 4,
      ...noFaults,
    };
    for (const column of sampleColumns) out.push(row[column]);
  }

  #probe(timeUs: number, out: number[]): void {
    const { random, link } = this.#options;
    this.#sequence++;
    const isLost = this.session.state === 'stalled' || random.chance(0.004);
    const driverQueueUs =
      ((this.#inflightBytes * 8) / link.uplinkBitsPerSecond) * 1e6 * (0.99 + 0.02 * random.unit());
    const frameUs = ((frameBytes * 8) / link.uplinkBitsPerSecond) * 1e6;
    const qdiscWaitUs = this.session.settings.load.enabled ? frameUs * random.unit() : 8;
    const restUs =
      link.baseRttUs * (0.96 + 0.1 * random.unit() + (random.chance(0.05) ? 0.3 * random.unit() : 0));
    const row: Record<ProbeColumn, number> = {
      timeUs,
      sequence: this.#sequence,
      rttUs: isLost ? Number.NaN : qdiscWaitUs + driverQueueUs + restUs,
      qdiscWaitUs,
      driverQueueUs,
      lateUs: 100 * random.unit(),
    };
    for (const column of probeColumns) out.push(row[column]);
  }

  #send(table: TelemetryTable, rows: readonly number[]): void {
    if (rows.length === 0) return;
    this.#history[table].push(...rows);
    this.#batches.emit({ table, values: Float64Array.from(rows), skippedRows: 0 });
  }

  /** A file grows in pages, not with every row. */
  #growRecording(): void {
    const { recording } = this.session;
    const sizeBytes = 4096 * (1 + Math.floor(this.#nowUs / 1e6));
    if (recording === undefined || recording.sizeBytes === sizeBytes) return;
    this.session = { ...this.session, recording: { ...recording, sizeBytes } };
  }

  #event(kind: SessionEvent['kind'], text: string): void {
    const event = { timeUs: this.#nowUs, kind, text };
    this.events.push(event);
    this.#events.emit(event);
  }
}

function onOff(on: boolean): string {
  return on ? 'on' : 'off';
}

function merge(settings: SessionSettings, change: LiveSettings): SessionSettings {
  return {
    ...settings,
    bql: { ...settings.bql, ...(change.bql as Partial<SessionSettings['bql']>) },
    qdisc: { ...settings.qdisc, ...(change.qdisc as Partial<SessionSettings['qdisc']>) },
    load: { ...settings.load, ...(change.load as Partial<SessionSettings['load']>) },
    ping: { ...settings.ping, ...(change.ping as Partial<SessionSettings['ping']>) },
  };
}

function factsOf({ device, link }: FakeSessionOptions): Session['facts'] {
  return [
    { group: 'queue', name: 'Transfers in flight', value: `at most ${link.queueFrames}` },
    { group: 'queue', name: 'Frame', value: '1,514 bytes at MTU 1,500' },
    { group: 'driver', name: 'Minidriver', value: device.minidriver ?? 'none' },
    { group: 'driver', name: 'Endpoints', value: 'bulk IN 0x81, bulk OUT 0x02, 1,024 bytes; interrupt 0x83' },
    { group: 'device', name: 'MAC address', value: '02:00:5e:10:00:01' },
    { group: 'network', name: 'Address', value: '10.64.0.2/24 by DHCP' },
    { group: 'network', name: 'Target', value: '10.64.0.1' },
  ];
}
