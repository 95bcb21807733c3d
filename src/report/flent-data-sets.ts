import type { TimeRange } from '../recording/recording-reader.ts';
import type { ReportLoad, ReportSegment } from './experiment.ts';
import type { ReportModel } from './report-model.ts';

/** One data file for Flent: all of a recording, or one arm of its experiment. */
export interface FlentDataSet {
  /** What stands between the report's name and its extension: empty for all of the recording, else `-BQL_off`. */
  readonly suffix: string;
  /** Of the arm; empty for all of the recording. */
  readonly arm: string;
  /** Flent's test of that name has the plots. */
  readonly test: FlentTest;
  /** What the names of the rates begin with, as that test has it. */
  readonly rates: 'TCP ' | 'UDP ' | '';
  /** Where in the recording it is, in the order of time. */
  readonly stretches: readonly TimeRange[];
}

export type FlentTest = 'ping' | 'tcp_upload' | 'tcp_download' | 'tcp_bidirectional' | 'udp_flood';

type Direction = ReportSegment['direction'];
type Protocol = 'tcp' | 'udp' | 'none';

const tcpTests = { up: 'tcp_upload', down: 'tcp_download', both: 'tcp_bidirectional' } as const;

/**
 * What of a recording becomes a data file of its own: first all of it, then each arm by direction with what its segments
 * count, since Flent compares files.
 */
export function flentDataSets(model: ReportModel): FlentDataSet[] {
  const segments = model.experiment?.segments ?? [];
  const parts = new Map<string, ReportSegment[]>();
  const severalDirections = new Set(segments.map(directionOf).filter((name) => name !== 'idle')).size > 1;
  for (const segment of segments.toSorted((a, b) => Number(isLoaded(a)) - Number(isLoaded(b)))) {
    const { arm } = segment;
    const name = isLoaded(segment) ? (severalDirections ? `${arm}, ${segment.direction}` : arm) : 'idle';
    const part = parts.get(name);
    if (part === undefined) parts.set(name, [segment]);
    else part.push(segment);
  }
  const suffixes = new Set<string>();
  return [
    {
      suffix: '',
      arm: '',
      ...testOf(model, directionsOf(segments), protocolOf(model, segments)),
      stretches: [model.range],
    },
    ...[...parts].map(([name, part]) => ({
      suffix: uniqueSuffix(name, suffixes),
      arm: name,
      ...testOf(model, directionsOf(part), protocolOf(model, part)),
      stretches: part.map(({ fromUs, toUs }) => ({ fromUs, toUs })),
    })),
  ];
}

function directionOf({ direction }: ReportSegment): Direction {
  return direction;
}

function isLoaded({ direction }: ReportSegment): boolean {
  return direction !== 'idle';
}

/** Of several, that of all together. */
function directionsOf(segments: readonly ReportSegment[]): Direction {
  const [first, ...others] = new Set(segments.filter(isLoaded).map(directionOf));
  return others.length > 0 ? 'both' : (first ?? 'idle');
}

/** UDP if there was any of it: Flent's tests for TCP must not be claimed for a load that does not back off. */
function protocolOf(
  { device, phases, settingsChanges }: ReportModel,
  segments: readonly ReportSegment[],
): Protocol {
  const loads = new Set<ReportLoad>(segments.filter(isLoaded).map(({ load }) => load));
  // What an observed device was loaded with is not known.
  if (device.mode === 'observe') return 'none';
  if (segments.length === 0) {
    const isOurs = phases.some(({ load }) => load);
    const downloads = settingsChanges.some(({ settings }) => settings.download?.enabled === true);
    return isOurs || downloads ? 'udp' : 'none';
  }
  if (loads.has('udp') || loads.has('iperf3-udp')) return 'udp';
  return loads.has('iperf3-tcp') ? 'tcp' : 'none';
}

/** The stock test whose plots say what was measured. Only `ping` knows a ping that is not ICMP. */
function testOf(
  { settings }: ReportModel,
  direction: Direction,
  protocol: Protocol,
): Pick<FlentDataSet, 'test' | 'rates'> {
  const rates = protocol === 'none' ? '' : protocol === 'tcp' ? 'TCP ' : 'UDP ';
  if (protocol === 'none' || settings.ping.protocol === 'udp') return { test: 'ping', rates };
  if (protocol === 'udp') return { test: 'udp_flood', rates };
  return { test: direction === 'idle' ? 'ping' : tcpTests[direction], rates };
}

/**
 * A name as a part of a file name. Flent's combined plots take files whose names differ only in a number that stands alone
 * for repetitions of each other; within underscores it does not.
 */
function uniqueSuffix(name: string, taken: Set<string>): string {
  const words = name.replaceAll(/[^A-Za-z0-9]+/g, '_').replaceAll(/^_|_$/g, '');
  const plain = /^\d*$/.test(words) ? `-arm_${words}` : `-${words}`;
  let suffix = plain;
  for (let number = 2; taken.has(suffix.toLowerCase()); number++) suffix = `${plain}_${number}`;
  taken.add(suffix.toLowerCase());
  return suffix;
}
