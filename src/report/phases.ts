import type { RecordingReader, TimeRange } from '../recording/recording-reader.ts';
import type { Telemetry } from './telemetry.ts';

/** Where the phases of a report come from: from the recording, from its changes of settings, or there is only one. */
export type PhaseSource = 'recorded' | 'settings' | 'whole';

/** A stretch of time under one set of conditions. */
export interface ReportPhase {
  readonly name: string;
  readonly bql: 'on' | 'off';
  readonly load: boolean;
  /** 0: as fast as the queue takes it. Absent without load. */
  readonly loadRateBitsPerSecond?: number;
  readonly startUs: number;
  readonly endUs: number;
  /** From here on it counts: what comes before still shows the conditions of the phase before. */
  readonly countedFromUs: number;
}

export interface ReportPhases {
  readonly source: PhaseSource;
  readonly phases: readonly ReportPhase[];
}

/**
 * How long a phase settles if the recording does not say: the fixed queue of usbnet takes up to 0.4 s to drain at
 * 10 Mbit/s, and the first second of BQL is spent on finding a limit. Never more than a fifth of the phase.
 */
const defaultSettleUs = 1_000_000;
const largestSettleShare = 0.2;

/** Phases are too short to speak of below this; they are passed over. */
const shortestUs = 200_000;

/**
 * The phases of a recording: those that were recorded as such or, if there are none, the stretches between switches of
 * BQL or load. Only what lies within the telemetry counts.
 */
export function findPhases(reader: RecordingReader, telemetry: Telemetry, range: TimeRange): ReportPhases {
  const recorded = reader.phases();
  if (recorded.length > 0) {
    const phases = recorded.map((phase, index) => {
      const endUs = Math.min(phase.endUs ?? range.toUs, range.toUs);
      const startUs = Math.max(phase.startUs, range.fromUs);
      return {
        name: phase.name,
        bql: phase.bqlEnabled ? ('on' as const) : ('off' as const),
        load: phase.loadEnabled,
        ...(phase.loadRateBitsPerSecond !== undefined && {
          loadRateBitsPerSecond: phase.loadRateBitsPerSecond,
        }),
        startUs,
        endUs,
        countedFromUs: countedFrom(startUs, endUs, phase.settleUs, index > 0),
      };
    });
    return { source: 'recorded', phases: phases.filter(isLongEnough) };
  }
  const phases = fromSwitches(switches(reader, telemetry, range), range);
  return { source: phases.length > 1 ? 'settings' : 'whole', phases };
}

interface Conditions {
  readonly bqlEnabled: boolean;
  readonly loadEnabled: boolean;
  readonly loadRateBitsPerSecond: number;
}

interface Switch extends Conditions {
  readonly timeUs: number;
}

/** When BQL or load changed. Samples tell of BQL as well, for recordings whose changes of settings are incomplete. */
function switches(reader: RecordingReader, telemetry: Telemetry, range: TimeRange): Switch[] {
  const changes = reader.settingsChanges().map(({ timeUs, settings }) => ({
    timeUs,
    bqlEnabled: settings.bql.enabled,
    loadEnabled: settings.load.enabled,
    loadRateBitsPerSecond: settings.load.rateBitsPerSecond,
  }));
  const known = changes.filter((change, index) => index === 0 || !sameConditions(change, changes[index - 1]));
  if (known.length > 1) return known;
  const { timeUs, bqlEnabled } = telemetry.samples.values;
  const { loadEnabled, loadRateBitsPerSecond } = known[0] ?? { loadEnabled: true, loadRateBitsPerSecond: 0 };
  const found: Switch[] = [];
  for (const [index, enabled] of bqlEnabled.entries()) {
    if (Number.isNaN(enabled) || (index > 0 && found.at(-1)?.bqlEnabled === (enabled === 1))) continue;
    // A sample speaks of the interval before it.
    const atUs = found.length === 0 ? range.fromUs : (timeUs[index - 1] ?? range.fromUs);
    found.push({ timeUs: atUs, bqlEnabled: enabled === 1, loadEnabled, loadRateBitsPerSecond });
  }
  return found.length > 0 ? found : known;
}

function sameConditions(a: Conditions, b: Conditions | undefined): boolean {
  return (
    b !== undefined &&
    a.bqlEnabled === b.bqlEnabled &&
    a.loadEnabled === b.loadEnabled &&
    (!a.loadEnabled || a.loadRateBitsPerSecond === b.loadRateBitsPerSecond)
  );
}

function fromSwitches(found: readonly Switch[], range: TimeRange): ReportPhase[] {
  const counts = new Map<string, number>();
  return found
    .map((at, index) => {
      const startUs = Math.max(at.timeUs, range.fromUs);
      const endUs = Math.min(found[index + 1]?.timeUs ?? range.toUs, range.toUs);
      return {
        name: '',
        bql: at.bqlEnabled ? ('on' as const) : ('off' as const),
        load: at.loadEnabled,
        ...(at.loadEnabled && { loadRateBitsPerSecond: at.loadRateBitsPerSecond }),
        startUs,
        endUs,
        countedFromUs: countedFrom(startUs, endUs, undefined, index > 0),
      };
    })
    .filter(isLongEnough)
    .map((phase) => {
      const name = `BQL ${phase.bql}${phase.load ? '' : ', idle'}`;
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      return { ...phase, name: `${name} ${count}` };
    });
}

function countedFrom(startUs: number, endUs: number, settleUs: number | undefined, follows: boolean): number {
  const lengthUs = Math.max(0, endUs - startUs);
  if (settleUs !== undefined) return startUs + Math.min(settleUs, lengthUs);
  return follows ? startUs + Math.min(defaultSettleUs, largestSettleShare * lengthUs) : startUs;
}

function isLongEnough({ startUs, endUs }: { readonly startUs: number; readonly endUs: number }): boolean {
  return endUs - startUs >= shortestUs;
}

/** The phases that share their conditions, as stretches to be counted together. */
export function countedStretches(phases: readonly ReportPhase[]): TimeRange[] {
  return phases.map(({ countedFromUs, endUs }) => ({ fromUs: countedFromUs, toUs: endUs }));
}
