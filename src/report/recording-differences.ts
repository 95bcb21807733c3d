import { modeWords, speedWords } from './device-words.ts';
import type { ReportModel } from './report-model.ts';
import { settingRows } from './setting-words.ts';

/** Something that two recordings do not have in common; undefined on the side that does not have it. */
export interface RecordingDifference {
  /** `settings`, or the group of a fact. */
  readonly group: 'setup' | 'settings' | 'device' | 'driver' | 'queue';
  readonly name: string;
  readonly a: string | undefined;
  readonly b: string | undefined;
}

/** What limits the comparison of two recordings. */
export interface ComparisonWarning {
  /** Stable, for programs. */
  readonly id: string;
  /** Which of the two it is about; undefined: their difference. */
  readonly side?: 'a' | 'b';
  readonly text: string;
}

type Row = readonly [name: string, value: string | undefined];

/** What is told of a setup, and what its difference does to the comparison. */
interface SetupTrait {
  readonly id: string;
  readonly name: string;
  readonly of: (model: ReportModel) => string | undefined;
  /** A sentence on what a difference of it means. */
  readonly meaning: string;
}

const setupTraits: readonly SetupTrait[] = [
  {
    id: 'different-mode',
    name: 'Way to the device',
    of: ({ device }) => modeWords[device.mode],
    meaning: 'They went different ways to the device, and do not measure the same path.',
  },
  {
    id: 'different-device',
    name: 'Device',
    of: describeDevice,
    meaning: 'The devices differ: a difference may be theirs, or that of the links behind them.',
  },
  {
    id: 'different-driver',
    name: 'Driver',
    of: ({ device }) => device.minidriver ?? device.kernelDriver,
    meaning: 'The drivers differ, and with them framing and queue.',
  },
  {
    id: 'different-speed',
    name: 'USB speed',
    of: ({ device }) => speedWords[device.speed],
    meaning: 'The speeds of USB differ, and with them the length of the queue without BQL.',
  },
  {
    id: 'different-scenario',
    name: 'Scenario',
    of: describeScenario,
    meaning: 'The scenarios differ: load, order and length of what was measured are not the same.',
  },
  {
    id: 'different-host',
    name: 'Host',
    of: ({ meta: { host } }) => `${host.platform} ${host.kernel}, ${host.cpu}`,
    meaning: 'The hosts differ: kernel, processor and USB controller have a part in every round trip.',
  },
  {
    id: 'different-version',
    name: 'Queuescope',
    of: ({ meta }) => meta.appVersion,
    meaning: 'They were made by different versions of Queuescope.',
  },
];

/** Settings whose differences show in the arms, or in nothing that is compared. */
const settledElsewhere: ReadonlySet<string> = new Set(['BQL', 'Samples']);
/** Facts that a trait or a setting has told already, or that are about the measurement rather than the setup. */
const passingFacts: ReadonlySet<string> = new Set([
  'USB speed',
  'Minidriver',
  'Kernel driver',
  'Kernel',
  'Qdisc',
  'BQL',
  'Stalls',
  'Transmit timeouts',
]);
const factGroups = ['device', 'driver', 'queue'] as const;

/** Maker, name and ids. */
export function describeDevice({ device }: ReportModel): string {
  const { name, manufacturer, vendorId, productId } = device;
  const hex = (id: number): string => id.toString(16).padStart(4, '0');
  const ids =
    vendorId === undefined || productId === undefined ? '' : ` (${hex(vendorId)}:${hex(productId)})`;
  const maker = manufacturer === undefined || name.startsWith(manufacturer) ? '' : `${manufacturer} `;
  return `${maker}${name}${ids}`;
}

/** A scenario's name and arms; undefined where none was run. */
function describeScenario({ experiment }: ReportModel): string | undefined {
  if (experiment?.source !== 'scenario') return undefined;
  const { scenario, result, segments } = experiment;
  const directions = new Set(segments.map(({ direction }) => direction).filter((one) => one !== 'idle'));
  return `${scenario}: ${result.scores.map(({ arm }) => arm).join(', ')} (${[...directions].join(', ')})`;
}

/** All that two recordings differ in, apart from what was measured. */
export function findDifferences(a: ReportModel, b: ReportModel): readonly RecordingDifference[] {
  return [
    ...differing(
      'setup',
      setupTraits.map(({ name, of }) => [name, of(a)]),
      setupTraits.map(({ name, of }) => [name, of(b)]),
    ),
    ...differing('settings', settingsOf(a), settingsOf(b)),
    ...factGroups.flatMap((group) => differing(group, factsOf(a, group), factsOf(b, group))),
  ];
}

/** What makes two recordings hard to compare, the weightiest first. */
export function judgeComparability(a: ReportModel, b: ReportModel): readonly ComparisonWarning[] {
  const warnings: ComparisonWarning[] = [];
  if (a.sessionId === b.sessionId && a.meta.startedAt === b.meta.startedAt) {
    warnings.push({ id: 'same-session', text: 'Both are recordings of one and the same session.' });
  }
  for (const { id, of, meaning } of setupTraits) if (of(a) !== of(b)) warnings.push({ id, text: meaning });
  const settings = differing('settings', settingsOf(a), settingsOf(b)).map(({ name }) => name);
  if (settings.length > 0) {
    warnings.push({
      id: 'different-settings',
      text: `Settings differ (${settings.join(', ')}): what they change is not told apart from what else changed.`,
    });
  }
  if ([a, b].some(({ device }) => device.mode === 'observe')) {
    warnings.push({
      id: 'load-of-others',
      text: 'What was observed had the load of other programs, of which nothing is known.',
    });
  }
  const hasCommonArm = (['idle', 'off', 'on'] as const).some(
    (arm) => a.arms[arm] !== undefined && b.arms[arm] !== undefined,
  );
  if (!hasCommonArm) {
    warnings.push({
      id: 'no-common-arm',
      text: 'Nothing was measured under the same conditions in both (idle, BQL off, BQL on).',
    });
  }
  for (const [side, { validity }] of [
    ['a', a],
    ['b', b],
  ] as const) {
    const limits = validity.filter(({ severity }) => severity === 'warning');
    warnings.push(...limits.map(({ id, text }) => ({ id, side, text })));
  }
  return warnings;
}

/** Everything that each was set to in turn: an experiment changes them, and need not begin as it goes on. */
function settingsOf({ settings, settingsChanges, device }: ReportModel): readonly Row[] {
  const values = new Map<string, Set<string>>();
  for (const each of [settings, ...settingsChanges.map((change) => change.settings)]) {
    for (const [name, value] of settingRows(each, device.mode)) {
      values.set(name, (values.get(name) ?? new Set()).add(value));
    }
  }
  const load = values.get('Load');
  // Without load is an arm of its own.
  if (load !== undefined && load.size > 1) load.delete('off');
  return [...values]
    .filter(([name]) => !settledElsewhere.has(name))
    .map(([name, each]) => [name, [...each].toSorted().join('; also ')]);
}

function factsOf({ facts }: ReportModel, group: (typeof factGroups)[number]): readonly Row[] {
  return facts
    .filter((fact) => fact.group === group && !passingFacts.has(fact.name))
    .map(({ name, value }) => [name, value]);
}

function differing(
  group: RecordingDifference['group'],
  a: readonly Row[],
  b: readonly Row[],
): readonly RecordingDifference[] {
  const inA = new Map(a);
  const inB = new Map(b);
  return [...new Set([...inA.keys(), ...inB.keys()])]
    .filter((name) => inA.get(name) !== inB.get(name))
    .map((name) => ({ group, name, a: inA.get(name), b: inB.get(name) }));
}
