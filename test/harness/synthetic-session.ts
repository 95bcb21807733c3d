import { noFaults } from './no-faults.ts';
import { Random } from '../../src/base/random.ts';
import type { Device } from '../../src/contract/device.ts';
import type { Session } from '../../src/contract/session.ts';
import { defaultSessionSettings, type SessionSettings } from '../../src/contract/settings.ts';
import {
  type ProbeColumn,
  probeColumns,
  probeIndex,
  type SampleColumn,
  sampleColumns,
  sampleIndex,
} from '../../src/contract/telemetry.ts';
import type { PhaseStart } from '../../src/engine/session-recorder.ts';
import type { RecordingEntry, RecordingHeader } from '../../src/recording/recording-batch.ts';
import { SessionStore } from '../../src/recording/session-store.ts';

/** One stretch of a synthetic session. */
export interface SyntheticPhase {
  readonly seconds: number;
  readonly bql: boolean;
  readonly load: boolean;
}

export interface SyntheticOptions {
  /** Defaults to 60 s: idle, then BQL off and on twice under load. */
  readonly phases?: readonly SyntheticPhase[];
  readonly seed?: number;
  readonly sampleRateHz?: number;
  readonly pingIntervalMs?: number;
  readonly startedAt?: string;
  readonly device?: Partial<Device>;
  /** Nothing was sampled and no probe answered between these times. */
  readonly gap?: { readonly fromUs: number; readonly toUs: number };
  /** Whether phases are recorded as such; without, they can only be told from the switches. */
  readonly recordPhases?: boolean;
  readonly session?: Partial<Session>;
  readonly entries?: readonly RecordingEntry[];
}

export interface SyntheticSession {
  readonly header: RecordingHeader;
  readonly durationUs: number;
  /** Rows as the contract has them. */
  readonly samples: Float64Array;
  readonly probes: Float64Array;
  /** In the order of their times. */
  readonly entries: readonly RecordingEntry[];
  readonly phases: readonly (PhaseStart & { readonly endUs: number })[];
}

const standardPhases: readonly SyntheticPhase[] = [
  { seconds: 6, bql: true, load: false },
  { seconds: 18, bql: false, load: true },
  { seconds: 18, bql: true, load: true },
  { seconds: 9, bql: false, load: true },
  { seconds: 9, bql: true, load: true },
];

const frameBytes = 1514;
const queueFrames = 300;
const linkBitsPerSecond = 10e6;
const baseRttUs = 31_000;
const secondUs = 1_000_000;

/**
 * Makes up what a USB 3 cellular modem with an uplink of 10 Mbit/s would give: with BQL off 300 frames wait in the
 * driver (454,200 bytes, 363 ms), with BQL on about as many as the link sends in 10 ms. Same options, same numbers.
 */
export function syntheticSession(options: SyntheticOptions = {}): SyntheticSession {
  const { sampleRateHz = 20, pingIntervalMs = 200, gap } = options;
  const random = new Random(options.seed ?? 1);
  const phases = layOut(options.phases ?? standardPhases);
  const durationUs = phases.at(-1)?.endUs ?? 0;
  const link = new Link(random);
  const intervalUs = secondUs / sampleRateHz;
  const samples: number[] = [];
  const probes: number[] = [];
  let nextProbeUs = 0;
  let sequence = 0;
  let dropped = 0;

  for (let index = 1; index * intervalUs <= durationUs; index++) {
    const timeUs = index * intervalUs;
    const phase = phases.find(({ endUs }) => timeUs <= endUs) ?? phases.at(-1);
    const bql = phase?.bqlEnabled === true;
    const load = phase?.loadEnabled === true;
    link.advance(bql, load, intervalUs, phase?.startUs ?? 0, timeUs);
    const missing = gap !== undefined && timeUs > gap.fromUs && timeUs <= gap.toUs;
    if (load) dropped += random.integer(40, 60);
    if (!missing) {
      samples.push(
        ...row<SampleColumn>(sampleColumns, sampleIndex, {
          timeUs,
          inflightBytes: link.inflightBytes,
          inflightMaxBytes: link.inflightBytes + (load ? frameBytes : 0),
          limitBytes: bql ? link.limitBytes : Number.NaN,
          bqlEnabled: bql ? 1 : 0,
          txTransfers: Math.round(link.inflightBytes / frameBytes),
          backlogPackets: load ? 1000 : 0,
          backlogBytes: load ? 1000 * frameBytes : 0,
          qdiscFlows: Number.NaN,
          txBitsPerSecond: load
            ? linkBitsPerSecond * (0.985 + 0.03 * random.unit())
            : 4300 * (0.9 + 0.2 * random.unit()),
          rxBitsPerSecond: 4200 * (0.9 + 0.2 * random.unit()),
          txPacketsPerSecond: load ? 825 : 5,
          rxPacketsPerSecond: 5,
          driverQueueP50Us: link.driverQueueUs,
          driverQueueP95Us: link.driverQueueUs * 1.03,
          driverQueueMaxUs: link.driverQueueUs * 1.05,
          qdiscWaitP50Us: load ? 1_200_000 : 10,
          qdiscWaitP95Us: load ? 1_230_000 : 15,
          qdiscWaitMaxUs: load ? 1_250_000 : 20,
          txDroppedPackets: 0,
          qdiscDroppedPackets: dropped,
          qdiscMarkedPackets: 0,
          txErrors: 0,
          rxErrors: 0,
          driverXoff: load && !bql ? 1 : 0,
          stackXoff: load && bql ? 1 : 0,
          eventLoopLagUs: 300 + 900 * random.unit() ** 4 + (random.chance(0.01) ? 4000 : 0),
          ...noFaults,
        }),
      );
    }
    for (; nextProbeUs < timeUs; nextProbeUs += pingIntervalMs * 1000) {
      sequence++;
      const lost = missing || random.chance(0.004);
      const qdiscWaitUs = load ? frameBytes * 8 * random.unit() * 0.1 : 8 + 4 * random.unit();
      const driverQueueUs = link.driverQueueUs * (0.985 + 0.03 * random.unit());
      const restUs = baseRttUs + 2500 * random.unit() + (random.chance(0.03) ? 14_000 * random.unit() : 0);
      probes.push(
        ...row<ProbeColumn>(probeColumns, probeIndex, {
          timeUs: nextProbeUs,
          sequence,
          rttUs: lost ? Number.NaN : qdiscWaitUs + driverQueueUs + restUs,
          qdiscWaitUs: missing ? Number.NaN : qdiscWaitUs,
          driverQueueUs: missing ? Number.NaN : driverQueueUs,
          lateUs: 80 + 600 * random.unit() ** 3,
        }),
      );
    }
  }
  return {
    header: { appVersion: '0.1.0', host: syntheticHost, session: sessionOf(options) },
    durationUs,
    samples: Float64Array.from(samples),
    probes: Float64Array.from(probes),
    entries: [...entriesOf(phases, options), ...(options.entries ?? [])],
    phases,
  };
}

/** Records a synthetic session into a new file. */
export function recordSyntheticSession(path: string, options: SyntheticOptions = {}): SyntheticSession {
  const made = syntheticSession(options);
  const store = SessionStore.create(path, made.header);
  store.writeBatch({ samples: made.samples, probes: made.probes, entries: made.entries });
  store.close({ state: 'closed', dropped: { samples: 0, probes: 0, entries: 0 } });
  return made;
}

const syntheticHost = {
  platform: 'linux',
  architecture: 'x64',
  kernel: '6.19.2',
  cpu: 'Synthetic CPU',
  cpuCount: 8,
  node: '20.20.2',
} as const;

/** Bytes in flight and BQL's limit, moving roughly as the real ones do. */
class Link {
  inflightBytes = 0;
  limitBytes = 0;
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  get driverQueueUs(): number {
    return 900 + (this.inflightBytes * 8 * secondUs) / linkBitsPerSecond;
  }

  advance(bql: boolean, load: boolean, intervalUs: number, phaseStartUs: number, timeUs: number): void {
    if (bql) this.#moveLimit(load, timeUs - phaseStartUs);
    const target = !load ? 0 : bql ? this.limitBytes + frameBytes : queueFrames * frameBytes;
    const drained = Math.max(0, this.inflightBytes - (linkBitsPerSecond / 8) * (intervalUs / secondUs));
    this.inflightBytes = Math.max(target, drained);
    if (load && this.#random.chance(0.2)) this.inflightBytes = Math.max(0, this.inflightBytes - frameBytes);
  }

  /** Grows in the first second under load, then gives back a frame now and then, and takes one when it starved. */
  #moveLimit(load: boolean, sinceUs: number): void {
    if (!load) {
      this.limitBytes = 2 * frameBytes;
    } else if (sinceUs < 0.4 * secondUs) {
      this.limitBytes = Math.min(14 * frameBytes, this.limitBytes + 2 * frameBytes);
    } else if (this.#random.chance(0.05)) {
      this.limitBytes = Math.max(7 * frameBytes, this.limitBytes - frameBytes);
    } else if (this.#random.chance(0.03)) {
      this.limitBytes += frameBytes;
    }
  }
}

function layOut(phases: readonly SyntheticPhase[]): (PhaseStart & { endUs: number })[] {
  let startUs = 0;
  return phases.map(({ seconds, bql, load }, index) => {
    const phase = {
      name: `${index + 1}: ${load ? `BQL ${bql ? 'on' : 'off'}, upload` : 'idle'}`,
      bqlEnabled: bql,
      loadEnabled: load,
      loadRateBitsPerSecond: 0,
      startUs,
      endUs: startUs + seconds * secondUs,
    };
    startUs = phase.endUs;
    return phase;
  });
}

function row<C extends string>(
  columns: readonly C[],
  index: Readonly<Record<C, number>>,
  values: Readonly<Record<C, number>>,
): number[] {
  const made = columns.map(() => Number.NaN);
  for (const column of columns) made[index[column]] = values[column];
  return made;
}

function settingsOf(phase: { bqlEnabled: boolean; loadEnabled: boolean } | undefined): SessionSettings {
  const settings = defaultSessionSettings;
  return {
    ...settings,
    bql: { ...settings.bql, enabled: phase?.bqlEnabled ?? true },
    load: { ...settings.load, enabled: phase?.loadEnabled ?? true },
  };
}

function entriesOf(
  phases: readonly (PhaseStart & { endUs: number })[],
  options: SyntheticOptions,
): RecordingEntry[] {
  const entries: RecordingEntry[] = [
    {
      type: 'event',
      event: {
        timeUs: 0,
        kind: 'stage',
        text: 'cdc_ncm on interfaces 0 and 1; 10.9.0.2/24 by DHCP in 12 ms',
      },
    },
  ];
  for (const [index, phase] of phases.entries()) {
    if (options.recordPhases !== false) entries.push({ type: 'phase-start', phase });
    entries.push({ type: 'settings', timeUs: phase.startUs, settings: settingsOf(phase) });
    const before = phases[index - 1];
    if (before !== undefined && before.bqlEnabled !== phase.bqlEnabled) {
      const kind = phase.bqlEnabled ? 'bql-on' : 'bql-off';
      entries.push({
        type: 'event',
        event: { timeUs: phase.startUs, kind, text: `BQL switched ${phase.bqlEnabled ? 'on' : 'off'}` },
      });
    }
  }
  if (options.gap !== undefined) {
    const { fromUs, toUs } = options.gap;
    entries.push({
      type: 'event',
      event: { timeUs: fromUs, kind: 'unplug', text: 'The device was unplugged' },
    });
    const text = `The device is back after ${((toUs - fromUs) / secondUs).toFixed(1)} s`;
    entries.push({ type: 'event', event: { timeUs: toUs, kind: 'gap', text } });
  }
  return entries;
}

function sessionOf(options: SyntheticOptions): Session {
  const first = (options.phases ?? standardPhases)[0];
  return {
    id: 'session-1',
    device: {
      id: 'usb:2-1.4',
      mode: 'drive',
      vendorId: 0x2c7c,
      productId: 0x0801,
      name: 'RM520N-GL',
      manufacturer: 'Quectel',
      speed: 'super',
      function: 'wwan',
      minidriver: 'cdc_ncm',
      reason: 'CDC NCM control and data interface (class 02, subclass 0d)',
      state: 'running',
      problems: [],
      ...options.device,
    },
    state: 'running',
    startedAt: options.startedAt ?? '2025-11-06T14:30:05.000+01:00',
    stages: [
      { name: 'open', status: 'done', text: 'cdc_ncm let go of' },
      { name: 'bind', status: 'done', text: 'cdc_ncm on interfaces 0 and 1' },
      { name: 'carrier', status: 'done', text: 'up after 41 ms' },
      { name: 'address', status: 'done', text: '10.9.0.2/24 by DHCP in 12 ms' },
      { name: 'target', status: 'done', text: '10.9.0.1 answers in 31.4 ms' },
      { name: 'measure', status: 'active' },
    ],
    settings: settingsOf(first && { bqlEnabled: first.bql, loadEnabled: first.load }),
    facts: [
      { group: 'device', name: 'Serial number', value: '7C2B9A41F0' },
      { group: 'device', name: 'USB version', value: '3.20' },
      { group: 'device', name: 'Device version', value: '5.04' },
      { group: 'device', name: 'MAC address', value: '02:1e:10:1f:ac:0d' },
      { group: 'driver', name: 'Bulk OUT endpoint', value: '0x02, 1,024 bytes, burst 4' },
      { group: 'driver', name: 'NTB size', value: '16,384 bytes in, 16,384 bytes out' },
      {
        group: 'queue',
        name: 'TX queue',
        value: '300 transfers of 1,514 bytes = 454 KB = 363 ms at 10 Mbit/s',
      },
      { group: 'network', name: 'Address', value: '10.9.0.2/24, gateway 10.9.0.1' },
    ],
    problems: [],
    ...options.session,
  };
}
