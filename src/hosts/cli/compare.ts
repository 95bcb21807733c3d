import { exitCodes } from '../../base/errors.ts';
import {
  formatBitRate,
  formatBytes,
  formatCount,
  formatDuration,
  formatThreeDigits,
  noValue,
} from '../../base/units.ts';
import { RecordingReader } from '../../recording/recording-reader.ts';
import {
  type ArmPair,
  type ComparedQuantity,
  comparedQuantities,
  compareRecordings,
  comparisonDocument,
  type RecordingComparison,
} from '../../report/compare-recordings.ts';
import { describeDevice } from '../../report/recording-differences.ts';
import { createReportModel, type ReportModel } from '../../report/report-model.ts';
import type { Command } from './command.ts';
import { table } from './output.ts';
import { wrapText } from './word-wrap.ts';

export interface CompareOptions {
  readonly a: string;
  readonly b: string;
  readonly json: boolean;
}

/** `queuescope compare A B`: two recordings side by side. */
export const compare: Command<CompareOptions> = async ({ output }, { a, b, json }) => {
  const comparison = compareRecordings(readModel(a), readModel(b));
  if (json) output.json(comparisonDocument(comparison));
  else for (const line of comparisonLines(comparison)) output.line(line);
  return exitCodes.ok;
};

function readModel(path: string): ReportModel {
  const reader = RecordingReader.open(path);
  try {
    return createReportModel(reader);
  } finally {
    reader.close();
  }
}

const columns = 100;

const quantityNames: Readonly<
  Record<ComparedQuantity, readonly [name: string, format: (value: number) => string]>
> = {
  rttP50Us: ['Round trip p50', formatDuration],
  rttP95Us: ['Round trip p95', formatDuration],
  rttP99Us: ['Round trip p99', formatDuration],
  qdiscWaitP50Us: ['Wait in the qdisc p50', formatDuration],
  qdiscWaitP95Us: ['Wait in the qdisc p95', formatDuration],
  qdiscWaitP99Us: ['Wait in the qdisc p99', formatDuration],
  driverWaitP50Us: ['Wait in the driver p50', formatDuration],
  driverWaitP95Us: ['Wait in the driver p95', formatDuration],
  driverWaitP99Us: ['Wait in the driver p99', formatDuration],
  throughputBitsPerSecond: ['Throughput', formatBitRate],
  receivedBitsPerSecond: ['Received', formatBitRate],
  inflightP50Bytes: ['In flight p50', formatBytes],
  inflightP95Bytes: ['In flight p95', formatBytes],
  inflightP99Bytes: ['In flight p99', formatBytes],
  limitP50Bytes: ['Limit p50', formatBytes],
  limitP95Bytes: ['Limit p95', formatBytes],
  limitP99Bytes: ['Limit p99', formatBytes],
  lostPercent: ['Pings lost, percent', formatThreeDigits],
  errorsPerMinute: ['Errors a minute', formatThreeDigits],
  droppedPacketsPerMinute: ['Dropped packets a minute', formatThreeDigits],
};

/** Of what is observed it is not known whether there was load. */
function armTitle(arm: ArmPair['arm'], observed: boolean): string {
  return arm === 'idle' ? 'IDLE' : `${observed ? 'LOADED OR NOT' : 'UNDER LOAD'}, BQL ${arm.toUpperCase()}`;
}

function isObserved({ device }: ReportModel): boolean {
  return device.mode === 'observe';
}

/** A comparison for people. */
export function comparisonLines(comparison: RecordingComparison): readonly string[] {
  const { a, b, arms, differences, warnings, significance } = comparison;
  return [
    ...recordingLines('A', a),
    ...recordingLines('B', b),
    ...arms.flatMap((pair) => ['', ...armTable(pair, [a, b].some(isObserved))]),
    ...verdictLines(a, b),
    ...section(
      'What differs beside the results',
      differences.map(({ name, a: inA, b: inB }) => `${name}: A ${inA ?? noValue}; B ${inB ?? noValue}`),
    ),
    ...section('What to keep in mind', [
      ...warnings.map(({ side, text }) => (side === undefined ? text : `${side.toUpperCase()}: ${text}`)),
      significance,
    ]),
    '    npx queuescope run DEVICE --scenario field-ab',
  ];
}

function recordingLines(side: string, model: ReportModel): readonly string[] {
  const { fileName, device, meta, range } = model;
  const driver = device.minidriver ?? device.kernelDriver ?? 'no driver';
  const seconds = formatCount((range.toUs - range.fromUs) / 1e6);
  return paragraph(
    `${side}  `,
    `${fileName}: ${describeDevice(model)}, ${driver}, ${device.speed}; ${seconds} s from ${meta.startedAt}`,
  );
}

function armTable({ arm, a, b, difference, ratio }: ArmPair, observed: boolean): readonly string[] {
  const rows = comparedQuantities
    .filter((quantity) => [a, b].some((side) => isKnown(side?.quantities[quantity])))
    .map((quantity) => {
      const [name, format] = quantityNames[quantity];
      const of = (side: ArmPair['a']): string => format(side?.quantities[quantity] ?? Number.NaN);
      return [name, of(a), of(b), signed(format(difference[quantity])), formatThreeDigits(ratio[quantity])];
    });
  const counted = (side: ArmPair['a']): string =>
    side === undefined
      ? noValue
      : `${formatCount(side.countedUs / 1e6)} s, ${formatCount(side.probes)} pings`;
  return table([
    [armTitle(arm, observed), 'A', 'B', 'B − A', 'B / A'],
    ['Measured', counted(a), counted(b), '', ''],
    ...rows,
  ])
    .split('\n')
    .map((line) => line.trimEnd());
}

/** With its sign, unless it is nothing. */
function signed(text: string): string {
  return /^[^−]*[1-9]/.test(text) ? `+${text}` : text;
}

function isKnown(value: number | undefined): boolean {
  return value !== undefined && !Number.isNaN(value);
}

/** What each came to within itself. */
function verdictLines(a: ReportModel, b: ReportModel): readonly string[] {
  const sides = [
    ['A', a],
    ['B', b],
  ] as const;
  const verdicts = sides.flatMap(([side, { experiment }]) => {
    // A single arm is no experiment, whatever carried it out.
    if (experiment === undefined || experiment.result.scores.length < 2) return [];
    const { scenario, source, result } = experiment;
    const what = source === 'scenario' ? scenario : 'BQL off against on';
    return [`${side}, ${what}: ${result.verdict.sentence}`];
  });
  return section('Verdicts, each within its own recording', verdicts);
}

function section(title: string, entries: readonly string[]): readonly string[] {
  return entries.length === 0 ? [] : ['', title, ...entries.flatMap((entry) => paragraph('  - ', entry))];
}

/** What comes from files may have line ends in it, which must not look like lines of ours. */
function paragraph(first: string, text: string): readonly string[] {
  return wrapText(text.replaceAll(/\s+/g, ' '), columns, { first, rest: ' '.repeat(first.length) });
}
