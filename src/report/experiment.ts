import type { RecordingReader, TimeRange } from '../recording/recording-reader.ts';
import { analyseExperiment, type ExperimentResult } from '../statistics/experiment-result.ts';
import type { MeasuredSegment } from '../statistics/measured-segment.ts';
import { longLateUs, type MeasurementQuality } from '../statistics/validity.ts';
import type { Mask } from './mask.ts';
import type { PhaseResult } from './report-model.ts';
import { stretchStatistics } from './statistics.ts';
import { firstAfter, type Telemetry } from './telemetry.ts';

/** Who loaded a segment: Queuescope's own UDP, stock programs, or somebody whom the recording does not name. */
export type ReportLoad = (typeof loads)[number];
const loads = ['udp', 'iperf3-udp', 'iperf3-tcp', 'none'] as const;

/** A segment, with where in the recording its counted part is. */
export interface ReportSegment extends MeasuredSegment, TimeRange {
  readonly load: ReportLoad;
}

/** A comparison of arms that a recording holds. */
export interface ReportExperiment {
  /** A scenario that was carried out, or phases with BQL off and on that somebody switched between. */
  readonly source: 'scenario' | 'phases';
  /** Name and description of the scenario; empty without one. */
  readonly scenario: string;
  readonly description: string;
  /** How far it got: `done`, `stopped`, `failed`; what stands there if the program was killed. */
  readonly state: string;
  /** What is to be told of how it went. */
  readonly remarks: readonly string[];
  /** Its own criteria, and whether they were met. */
  readonly criteria: readonly { readonly text: string; readonly passed: boolean }[];
  readonly segments: readonly ReportSegment[];
  readonly result: ExperimentResult;
}

/** In this share of the time the queue must have been stopped, or the load did not fill it. */
const filledShare = 0.02;

/**
 * The experiment in a recording, judged from its telemetry, so that one that broke off, or was recorded by an older
 * program, is judged like any other. Undefined if nothing in it can be compared.
 */
export function findExperiment(
  reader: RecordingReader,
  telemetry: Telemetry,
  phases: readonly PhaseResult[],
  quality: MeasurementQuality,
  mask: Mask,
): ReportExperiment | undefined {
  const recorded = record(reader.metaValue('experiment'));
  return recorded === undefined
    ? fromPhases(telemetry, phases, quality)
    : fromScenario(reader, telemetry, recorded, quality, mask);
}

function fromScenario(
  reader: RecordingReader,
  telemetry: Telemetry,
  recorded: Readonly<Record<string, unknown>>,
  quality: MeasurementQuality,
  mask: Mask,
): ReportExperiment {
  const scenario = record(recorded['scenario']) ?? {};
  const segments: ReportSegment[] = [];
  for (let position = 1; ; position++) {
    const stored = record(reader.metaValue(`experiment.segment.${String(position).padStart(5, '0')}`));
    if (stored === undefined) break;
    const segment = segmentOf(telemetry, stored, mask);
    if (segment !== undefined) segments.push(segment);
  }
  const arms = list(scenario['arms'])
    .map((arm) => mask.text(text(record(arm)?.['name'])))
    .filter((name) => name !== '');
  const probe = list(scenario['probes'])
    .map((candidate) => record(candidate))
    // The first one that is Queuescope's own.
    .find((candidate) => candidate?.['kind'] !== 'irtt');
  const calibration = text(scenario['calibration']);
  return {
    source: 'scenario',
    scenario: mask.text(text(scenario['name'])),
    description: mask.text(text(scenario['description'])),
    state: text(recorded['state']),
    remarks: list(recorded['notes']).map((note) => mask.text(text(note))),
    criteria: list(record(recorded['verdict'])?.['criteria'])
      .map((criterion) => record(criterion) ?? {})
      .map((criterion) => ({
        text: mask.text(text(criterion['text'])),
        passed: criterion['passed'] === true,
      })),
    segments,
    result: analyseExperiment(segments, {
      ...(arms.length > 0 && { arms }),
      probe: probe?.['priority'] === true ? 'priority ping' : 'ping',
      ...(calibration !== '' && { calibration: mask.text(calibration) }),
      quality,
    }),
  };
}

/** Undefined for what says nothing of its arm. */
function segmentOf(
  telemetry: Telemetry,
  stored: Readonly<Record<string, unknown>>,
  mask: Mask,
): ReportSegment | undefined {
  const direction = directions.find((candidate) => candidate === stored['direction']);
  if (direction === undefined || stored['counts'] !== true) return undefined;
  const startUs = number(stored['startUs']);
  const endUs = number(stored['endUs']);
  const toUs = endUs - number(stored['tailUs']);
  const counted = { fromUs: Math.min(startUs + number(stored['settleUs']), toUs), toUs };
  return {
    arm: mask.text(text(stored['arm'])),
    pair: number(stored['pair']),
    direction,
    load: loads.find((candidate) => candidate === stored['load']) ?? 'none',
    ...counted,
    seconds: (endUs - startUs) / 1e6,
    ...measured(telemetry, counted),
    ...(direction === 'down' && { loadReachedLimit: true }),
  };
}

const directions = ['idle', 'up', 'down', 'both'] as const;

/** Phases under load with BQL off and on, the first with the first, the second with the second. */
function fromPhases(
  telemetry: Telemetry,
  phases: readonly PhaseResult[],
  quality: MeasurementQuality,
): ReportExperiment | undefined {
  const counts = { off: 0, on: 0 };
  const segments = phases.map((phase): ReportSegment => {
    const counted = { fromUs: phase.countedFromUs, toUs: phase.endUs };
    return {
      arm: phase.load ? `BQL ${phase.bql}` : 'idle',
      pair: phase.load ? ++counts[phase.bql] : 0,
      direction: phase.load ? 'up' : 'idle',
      load: phase.load ? 'udp' : 'none',
      ...counted,
      seconds: (phase.endUs - phase.startUs) / 1e6,
      ...measured(telemetry, counted),
    };
  });
  if (counts.off === 0 || counts.on === 0) return undefined;
  return {
    source: 'phases',
    scenario: '',
    description: '',
    state: 'done',
    remarks: [],
    criteria: [],
    segments,
    result: analyseExperiment(segments, { arms: ['BQL off', 'BQL on'], quality }),
  };
}

function measured(
  telemetry: Telemetry,
  counted: TimeRange,
): Omit<MeasuredSegment, 'arm' | 'pair' | 'direction' | 'seconds'> {
  const { timeUs, rttUs, lateUs } = telemetry.probes.values;
  const from = firstAfter(timeUs, counted.fromUs, true);
  const to = firstAfter(timeUs, counted.toUs, true);
  const { throughputBitsPerSecond, receivedBitsPerSecond, driverXoffShare, stackXoffShare } =
    stretchStatistics(telemetry, [counted]);
  const answered = rttUs.subarray(from, to).filter((value) => !Number.isNaN(value));
  return {
    rttUs: answered,
    probesSent: to - from,
    probesLost: to - from - answered.length,
    probesLate: lateUs.subarray(from, to).filter((value) => value > longLateUs).length,
    upBitsPerSecond: known(throughputBitsPerSecond),
    downBitsPerSecond: known(receivedBitsPerSecond),
    loadReachedLimit: driverXoffShare + stackXoffShare >= filledShare,
  };
}

function known(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}

// What is in a file may be anything.

function record(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : undefined;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function number(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
