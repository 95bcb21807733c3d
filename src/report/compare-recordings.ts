import {
  type ComparisonWarning,
  findDifferences,
  judgeComparability,
  type RecordingDifference,
} from './recording-differences.ts';
import type { ReportExperiment } from './experiment.ts';
import type { ArmResult, Arms, ReportModel } from './report-model.ts';

/** What is held side by side, under names with their units; percentiles are of what was measured in an arm. */
const quantities = {
  rttP50Us: ({ rttUs }) => rttUs.p50,
  rttP95Us: ({ rttUs }) => rttUs.p95,
  rttP99Us: ({ rttUs }) => rttUs.p99,
  qdiscWaitP50Us: ({ probeQdiscWaitUs }) => probeQdiscWaitUs.p50,
  qdiscWaitP95Us: ({ probeQdiscWaitUs }) => probeQdiscWaitUs.p95,
  qdiscWaitP99Us: ({ probeQdiscWaitUs }) => probeQdiscWaitUs.p99,
  driverWaitP50Us: ({ probeDriverQueueUs }) => probeDriverQueueUs.p50,
  driverWaitP95Us: ({ probeDriverQueueUs }) => probeDriverQueueUs.p95,
  driverWaitP99Us: ({ probeDriverQueueUs }) => probeDriverQueueUs.p99,
  throughputBitsPerSecond: ({ throughputBitsPerSecond }) => throughputBitsPerSecond,
  receivedBitsPerSecond: ({ receivedBitsPerSecond }) => receivedBitsPerSecond,
  inflightP50Bytes: ({ inflightBytes }) => inflightBytes.p50,
  inflightP95Bytes: ({ inflightBytes }) => inflightBytes.p95,
  inflightP99Bytes: ({ inflightBytes }) => inflightBytes.p99,
  limitP50Bytes: ({ limitBytes }) => limitBytes.p50,
  limitP95Bytes: ({ limitBytes }) => limitBytes.p95,
  limitP99Bytes: ({ limitBytes }) => limitBytes.p99,
  lostPercent: ({ lost, probes }) => (probes === 0 ? Number.NaN : (100 * lost) / probes),
  errorsPerMinute: ({ errors }, minutes) => errors / minutes,
  droppedPacketsPerMinute: ({ droppedPackets }, minutes) => droppedPackets / minutes,
} as const satisfies Record<string, (statistics: ArmResult['statistics'], minutes: number) => number>;

export type ComparedQuantity = keyof typeof quantities;
export const comparedQuantities = Object.keys(quantities) as readonly ComparedQuantity[];

/** Each quantity; NaN where it was not measured. */
export type Quantities = Readonly<Record<ComparedQuantity, number>>;

/** What was measured of an arm in one recording. */
export interface ComparedArm {
  readonly phases: number;
  readonly countedUs: number;
  readonly probes: number;
  readonly quantities: Quantities;
}

const comparedArms = ['idle', 'off', 'on'] as const satisfies readonly (keyof Arms)[];

/** One arm in both recordings; undefined on the side that has not measured it. */
export interface ArmPair {
  readonly arm: (typeof comparedArms)[number];
  readonly a: ComparedArm | undefined;
  readonly b: ComparedArm | undefined;
  /** B less A, and B by A; NaN where one of them is not known, or A is 0. */
  readonly difference: Quantities;
  readonly ratio: Quantities;
}

/** Two recordings side by side. */
export interface RecordingComparison {
  readonly a: ReportModel;
  readonly b: ReportModel;
  /** Those that at least one of them has. */
  readonly arms: readonly ArmPair[];
  readonly differences: readonly RecordingDifference[];
  readonly warnings: readonly ComparisonWarning[];
  /** What may not be read out of it, in words. */
  readonly significance: string;
}

/**
 * Two recordings were never measured in turns, so whatever the link did in between is in the difference: there are no
 * intervals to be had.
 */
const noSignificance =
  'A and B were not measured in turns, so that a link which changed in between looks like a difference of theirs: none of ' +
  'them is called significant here. Repeat both several times in turns (A, B, A, B) and see whether it stays; settings of one ' +
  'device are best compared by a scenario, which takes them in turns and gives intervals.';

/** Puts two recordings side by side. Nothing is computed that their reports do not have. */
export function compareRecordings(a: ReportModel, b: ReportModel): RecordingComparison {
  return {
    a,
    b,
    arms: comparedArms.flatMap((arm) => pairOf(arm, a.arms[arm], b.arms[arm]) ?? []),
    differences: findDifferences(a, b),
    warnings: judgeComparability(a, b),
    significance: noSignificance,
  };
}

function pairOf(
  arm: ArmPair['arm'],
  a: ArmResult | undefined,
  b: ArmResult | undefined,
): ArmPair | undefined {
  if (a === undefined && b === undefined) return undefined;
  const before = a === undefined ? undefined : armOf(a);
  const after = b === undefined ? undefined : armOf(b);
  const both = (of: (from: number, to: number) => number): Quantities =>
    quantitiesBy((quantity) =>
      of(before?.quantities[quantity] ?? Number.NaN, after?.quantities[quantity] ?? Number.NaN),
    );
  return {
    arm,
    a: before,
    b: after,
    difference: both((from, to) => to - from),
    ratio: both((from, to) => (from === 0 ? Number.NaN : to / from)),
  };
}

function armOf({ phases, countedUs, statistics }: ArmResult): ComparedArm {
  const minutes = countedUs / 60e6;
  return {
    phases,
    countedUs,
    probes: statistics.probes,
    quantities: quantitiesBy((quantity) => quantities[quantity](statistics, minutes)),
  };
}

function quantitiesBy(valueOf: (quantity: ComparedQuantity) => number): Quantities {
  return Object.fromEntries(
    comparedQuantities.map((quantity) => [quantity, valueOf(quantity)]),
  ) as Quantities;
}

/** Goes up with every change of the document that a program reading it could trip over; new keys are no such change. */
const comparisonJsonVersion = 1;

/** A comparison as plain data; what was not measured is NaN, which JSON has as null. */
export function comparisonDocument({
  a,
  b,
  arms,
  differences,
  warnings,
  significance,
}: RecordingComparison): object {
  const armOfBoth = (wanted: ArmPair['arm']): object | null => {
    const pair = arms.find(({ arm }) => arm === wanted);
    if (pair === undefined) return null;
    const { difference, ratio } = pair;
    return { a: armDocument(pair.a), b: armDocument(pair.b), difference, ratio };
  };
  return {
    format: 'queuescope-comparison',
    version: comparisonJsonVersion,
    a: recordingDocument(a),
    b: recordingDocument(b),
    arms: { idle: armOfBoth('idle'), bqlOff: armOfBoth('off'), bqlOn: armOfBoth('on') },
    differences: differences.map((found) => ({ ...found, a: found.a ?? null, b: found.b ?? null })),
    warnings,
    significance,
  };
}

function armDocument(arm: ComparedArm | undefined): object | null {
  return arm === undefined
    ? null
    : { phases: arm.phases, countedUs: arm.countedUs, probes: arm.probes, ...arm.quantities };
}

function recordingDocument(model: ReportModel): object {
  const { fileName, sessionId, meta, device, range, settings, experiment } = model;
  return {
    fileName,
    sessionId,
    state: meta.state,
    startedAt: meta.startedAt,
    durationUs: range.toUs - range.fromUs,
    appVersion: meta.appVersion,
    host: meta.host,
    device,
    settings,
    experiment: experimentDocument(experiment),
  };
}

/** What an experiment came to within its own recording. */
function experimentDocument(experiment: ReportExperiment | undefined): object | null {
  if (experiment === undefined) return null;
  const { source, scenario, state, result, criteria } = experiment;
  return {
    source,
    scenario,
    state,
    verdict: result.verdict,
    comparisons: result.comparisons.map(({ direction, first, second, pairs, metrics }) => ({
      direction,
      first: first.name,
      second: second.name,
      pairs,
      metrics,
    })),
    criteria,
  };
}
