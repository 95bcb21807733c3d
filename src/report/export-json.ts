import { type ProbeColumn, probeColumns, type SampleColumn, sampleColumns } from '../contract/telemetry.ts';
import type { Columns, RecordingReader } from '../recording/recording-reader.ts';
import type { ReportExperiment } from './experiment.ts';
import { createHeadline } from './headline.ts';
import type { ArmResult, PhaseResult, ReportModel } from './report-model.ts';
import type { StretchStatistics } from './statistics.ts';

/** Goes up with every change of the document that a program reading it could trip over; new keys are no such change. */
export const reportJsonVersion = 1;

/**
 * A report and all of its telemetry as one JSON document (docs/session-format.md has its shape). Names carry their
 * unit; what was not measured is null.
 */
export function exportJson(model: ReportModel, reader: RecordingReader): string {
  const { meta, range } = model;
  const document = {
    format: 'queuescope-report',
    version: reportJsonVersion,
    meta: {
      title: model.title,
      fileName: model.fileName,
      createdAt: model.createdAt ?? null,
      appVersion: meta.appVersion,
      schemaVersion: meta.schemaVersion,
      state: meta.state,
      reason: meta.reason ?? null,
      startedAt: meta.startedAt,
      endedAt: meta.endedAt ?? null,
      fromUs: range.fromUs,
      toUs: range.toUs,
      host: meta.host,
      dropped: meta.dropped,
      identifiersMasked: model.masked,
    },
    headline: createHeadline(model).main,
    sessionId: model.sessionId,
    device: model.device,
    stages: model.stages,
    facts: model.facts,
    settings: model.settings,
    settingsChanges: model.settingsChanges,
    phaseSource: model.phaseSource,
    phases: model.phases.map(phaseDocument),
    arms: {
      idle: armDocument(model.arms.idle),
      bqlOff: armDocument(model.arms.off),
      bqlOn: armDocument(model.arms.on),
    },
    experiment: experimentDocument(model.experiment),
    whole: statisticsDocument(model.whole),
    faults: model.faults,
    validity: model.validity,
    events: model.events,
    problems: model.problems,
    samples: tableDocument<SampleColumn>(sampleColumns, reader.columns('samples', sampleColumns)),
    probes: tableDocument<ProbeColumn>(probeColumns, reader.columns('probes', probeColumns)),
  };
  return `${JSON.stringify(document)}\n`;
}

function phaseDocument({ statistics, ...phase }: PhaseResult): Record<string, unknown> {
  return { ...phase, ...statisticsDocument(statistics) };
}

function armDocument(arm: ArmResult | undefined): Record<string, unknown> | null {
  if (arm === undefined) return null;
  const { statistics, ...rest } = arm;
  return { ...rest, ...statisticsDocument(statistics) };
}

/** Round trips of the segments are in the probes; of a segment it is enough to say how many there are. */
function experimentDocument(experiment: ReportExperiment | undefined): Record<string, unknown> | null {
  if (experiment === undefined) return null;
  const { segments, ...rest } = experiment;
  return {
    ...rest,
    segments: segments.map(({ rttUs, ...segment }) => ({ ...segment, roundTrips: rttUs.length })),
  };
}

/** JSON has no NaN: JSON.stringify writes null for it, which is what a missing value is to be. */
function statisticsDocument(statistics: StretchStatistics): Record<string, unknown> {
  return { ...statistics };
}

function tableDocument<C extends string>(
  names: readonly C[],
  { rowCount, values }: Columns<C>,
): Record<string, unknown> {
  const columns = Object.fromEntries(names.map((name) => [name, Array.from(values[name])]));
  return { rowCount, columns };
}
