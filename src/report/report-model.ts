import type { Device } from '../contract/device.ts';
import type { Fact, Session, SessionEvent, Stage } from '../contract/session.ts';
import type { SessionSettings } from '../contract/settings.ts';
import type {
  RecordedProblem,
  RecordingMeta,
  RecordingReader,
  SettingsChange,
  TimeRange,
} from '../recording/recording-reader.ts';
import { findExperiment, type ReportExperiment } from './experiment.ts';
import { type FaultTotal, faultTotals } from './faults.ts';
import { createMask, type Mask, noMask } from './mask.ts';
import { countedStretches, findPhases, type PhaseSource, type ReportPhase } from './phases.ts';
import { type StretchStatistics, stretchStatistics } from './statistics.ts';
import { loadTelemetry, type Telemetry } from './telemetry.ts';
import { judgeValidity, qualityOf } from './validity.ts';
import type { ValidityNote } from '../statistics/validity.ts';

/** What can be asked of a report. */
export interface ReportOptions {
  /** Leave serial numbers, MAC addresses and the like readable. */
  readonly showIdentifiers?: boolean;
  /** Instead of the device's name. */
  readonly title?: string;
  /** When the report is made, ISO 8601; absent: it does not say. */
  readonly createdAt?: string;
}

/** A phase with what was measured in its counted part. */
export interface PhaseResult extends ReportPhase {
  readonly statistics: StretchStatistics;
}

/** All phases of the same kind taken together. */
export interface ArmResult {
  readonly bql: 'on' | 'off' | 'both';
  readonly load: boolean;
  readonly phases: number;
  /** The counted time of all of them. */
  readonly countedUs: number;
  /** The lowest and the highest median round trip of its phases: how well they repeat. NaN without round trips. */
  readonly rttP50LowUs: number;
  readonly rttP50HighUs: number;
  readonly statistics: StretchStatistics;
}

/** The comparison that a recording allows; each arm is there if it was measured. */
export interface Arms {
  readonly idle: ArmResult | undefined;
  readonly off: ArmResult | undefined;
  readonly on: ArmResult | undefined;
}

/** A report as data: what every format says, each in its own way. Texts are masked unless asked otherwise. */
export interface ReportModel {
  readonly title: string;
  readonly fileName: string;
  readonly createdAt: string | undefined;
  readonly masked: boolean;
  readonly meta: RecordingMeta;
  readonly sessionId: string;
  readonly device: Device;
  readonly stages: readonly Stage[];
  readonly facts: readonly Fact[];
  /** At the start; what was changed later is in `settingsChanges`. */
  readonly settings: SessionSettings;
  readonly settingsChanges: readonly SettingsChange[];
  /** The first to the last that was measured. */
  readonly range: TimeRange;
  readonly phaseSource: PhaseSource;
  readonly phases: readonly PhaseResult[];
  readonly arms: Arms;
  /** Undefined if nothing was compared. */
  readonly experiment: ReportExperiment | undefined;
  readonly whole: StretchStatistics;
  /** What was counted of it, also if it is none. */
  readonly faults: readonly FaultTotal[];
  readonly events: readonly SessionEvent[];
  readonly problems: readonly RecordedProblem[];
  readonly validity: readonly ValidityNote[];
  readonly telemetry: Telemetry;
}

/** @throws AppError `file-failed` if the recording cannot be read */
export function createReportModel(reader: RecordingReader, options: ReportOptions = {}): ReportModel {
  const meta = reader.meta();
  const facts = reader.facts();
  const mask = options.showIdentifiers === true ? noMask : createMask(facts);
  const session = maskSession(reader.session('end'), mask);
  const telemetry = loadTelemetry(reader);
  const range = measuredRange(reader, telemetry);
  const { source, phases } = findPhases(reader, telemetry, range);
  const results = phases.map((phase) => ({
    ...phase,
    name: mask.text(phase.name),
    statistics: stretchStatistics(telemetry, countedStretches([phase])),
  }));
  const model = {
    title: options.title ?? session.device.name,
    fileName: reader.path.split(/[\\/]/).at(-1) ?? '',
    createdAt: options.createdAt,
    masked: options.showIdentifiers !== true,
    meta,
    sessionId: session.id,
    device: session.device,
    stages: session.stages,
    facts: facts.map((fact) => mask.fact(fact)),
    settings: reader.session('start').settings,
    settingsChanges: reader.settingsChanges(),
    range,
    phaseSource: source,
    phases: results,
    arms: {
      idle: pool(telemetry, results, (phase) => !phase.load),
      off: pool(telemetry, results, (phase) => phase.load && phase.bql === 'off'),
      on: pool(telemetry, results, (phase) => phase.load && phase.bql === 'on'),
    },
    whole: stretchStatistics(telemetry, [range]),
    faults: faultTotals(telemetry),
    events: reader.events().map((event) => ({ ...event, text: mask.text(event.text) })),
    problems: reader.problems().map((problem) => ({
      ...problem,
      message: mask.text(problem.message),
      ...(problem.remedy !== undefined && { remedy: mask.text(problem.remedy) }),
    })),
    telemetry,
  };
  const quality = qualityOf(model);
  const experiment = findExperiment(reader, telemetry, results, quality, mask);
  return { ...model, experiment, validity: judgeValidity(model, quality, experiment) };
}

/** From the start of the first interval to the last row. */
function measuredRange(reader: RecordingReader, telemetry: Telemetry): TimeRange {
  const { fromUs, toUs } = reader.timeRange() ?? { fromUs: 0, toUs: 0 };
  const firstSampleUs = telemetry.samples.values.timeUs[0] ?? Number.NaN;
  const intervalUs = telemetry.sampleIntervalUs;
  const startsUs = Number.isNaN(firstSampleUs + intervalUs) ? fromUs : firstSampleUs - intervalUs;
  return { fromUs: Math.max(0, Math.min(fromUs, startsUs)), toUs };
}

function pool(
  telemetry: Telemetry,
  all: readonly PhaseResult[],
  belongs: (phase: PhaseResult) => boolean,
): ArmResult | undefined {
  const phases = all.filter(belongs);
  const [first] = phases;
  if (first === undefined) return undefined;
  const stretches = countedStretches(phases);
  const medians = phases.map((phase) => phase.statistics.rttUs.p50).filter((p50) => !Number.isNaN(p50));
  return {
    bql: phases.every((phase) => phase.bql === first.bql) ? first.bql : 'both',
    load: first.load,
    phases: phases.length,
    countedUs: stretches.reduce((sum, { fromUs, toUs }) => sum + toUs - fromUs, 0),
    rttP50LowUs: medians.length === 0 ? Number.NaN : Math.min(...medians),
    rttP50HighUs: medians.length === 0 ? Number.NaN : Math.max(...medians),
    statistics: stretchStatistics(telemetry, stretches),
  };
}

function maskSession(session: Session, mask: Mask): Session {
  const { device } = session;
  return {
    ...session,
    device: {
      ...device,
      name: mask.text(device.name),
      ...(device.manufacturer !== undefined && { manufacturer: mask.text(device.manufacturer) }),
      ...(device.reason !== undefined && { reason: mask.text(device.reason) }),
      ...(device.description !== undefined && { description: mask.text(device.description) }),
      problems: [],
    },
    stages: session.stages.map((stage) => ({
      ...stage,
      ...(stage.text !== undefined && { text: mask.text(stage.text) }),
    })),
    problems: [],
  };
}
