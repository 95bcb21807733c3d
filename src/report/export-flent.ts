import { gzipSync } from 'node:zlib';
import { AppError } from '../base/errors.ts';
import type { RecordingReader } from '../recording/recording-reader.ts';
import { type FlentDataSet, flentDataSets } from './flent-data-sets.ts';
import { type FlentSeries, flentSamples, flentSeries, queueNames, seriesSummary } from './flent-series.ts';
import type { ReportModel } from './report-model.ts';

/** A data file and what its name has that those of the others do not. */
export interface FlentFile {
  readonly suffix: string;
  readonly bytes: Uint8Array;
}

/** Of the file format; what Flent 1.0 and later read. */
const formatVersion = 3;

export const flentExtension = 'flent.gz';

/** Flent's own step, for recordings that do not tell theirs. */
const usualStepUs = 200_000;

/** A text longer than this is compressed in parts: gzip takes several after one another, and memory holds few of them. */
const partCharacters = 1_000_000;
const valuesAtOnce = 2000;

/**
 * A recording as data files for Flent (version 3 of its format): all of it and, if arms were compared, each of them.
 * All have the same steps, counted from the recording's start.
 * @param fileStem the name that the first of the files is going to have, without its extension
 * @throws AppError `bad-input` for a recording without pings, or of no length
 */
export function exportFlent(model: ReportModel, reader: RecordingReader, fileStem: string): FlentFile[] {
  const startedAtMs = Date.parse(model.meta.startedAt);
  checkContent(model, startedAtMs);
  const { sampleIntervalUs, probeIntervalUs } = model.telemetry;
  const stepMs = Math.round(Math.max(sampleIntervalUs || 0, probeIntervalUs || 0) / 1000);
  const time: FileTime = {
    startedAtMs,
    stepUs: stepMs * 1000 || usualStepUs,
    lengthUs: model.range.toUs,
  };
  const samples = flentSamples(reader);
  return flentDataSets(model).map((set) => {
    const series = flentSeries(model, samples, set);
    const metadata = metadataOf(model, set, series, time, `${fileStem}${set.suffix}.${flentExtension}`);
    return { suffix: set.suffix, bytes: compressed(documentText(metadata, series, time)) };
  });
}

/** Wall clock of the recording's time 0, and the steps that the values are given in. */
interface FileTime {
  readonly startedAtMs: number;
  readonly stepUs: number;
  readonly lengthUs: number;
}

function checkContent({ fileName, telemetry, range }: ReportModel, startedAtMs: number): void {
  const fail = (what: string): never => {
    throw new AppError('bad-input', `${fileName} ${what}, and Flent has no use for that`, {
      remedy: 'The other formats have what there is.',
    });
  };
  if (range.toUs <= range.fromUs) fail('has nothing that was measured');
  if (telemetry.probes.rowCount === 0) fail('has no pings');
  if (Number.isNaN(startedAtMs)) fail('does not say when it was made');
}

/** Flent's keys, with what is true here; what it does not know is under `QUEUESCOPE`. */
function metadataOf(
  model: ReportModel,
  set: FlentDataSet,
  series: readonly FlentSeries[],
  { startedAtMs, stepUs, lengthUs }: FileTime,
  fileName: string,
): Record<string, unknown> {
  const { device, meta, settings, masked } = model;
  const startedAt = new Date(startedAtMs).toISOString();
  const observed = device.mode === 'observe';
  const counted = set.stretches.reduce((sum, { fromUs, toUs }) => sum + toUs - fromUs, 0);
  const host = masked ? '' : (settings.ping.target ?? factOf(model, 'Target') ?? '');
  return {
    NAME: set.test,
    TITLE: set.arm === '' ? model.title : `${model.title}, ${set.arm}`,
    NOTE: noteOf(model, set),
    TIME: startedAt,
    T0: startedAt,
    LENGTH: counted / 1e6,
    TOTAL_LENGTH: lengthUs / 1e6,
    STEP_SIZE: stepUs / 1e6,
    HOST: host,
    HOSTS: host === '' ? [] : [host],
    LOCAL_HOST: masked ? '' : (/^[\d.]+/.exec(factOf(model, 'Address') ?? '')?.[0] ?? ''),
    IP_VERSION: 4,
    DATA_FILENAME: fileName,
    BATCH_NAME: null,
    BATCH_TIME: null,
    BATCH_TITLE: null,
    BATCH_UUID: null,
    KERNEL_NAME: kernelNames[meta.host.platform] ?? meta.host.platform,
    KERNEL_RELEASE: meta.host.kernel,
    // With these, Flent's tests have plots of queues: of what is above the driver, and of what is in it.
    TEST_PARAMETERS: {
      qdisc_stats_hosts: queueNames.join(','),
      qdisc_stats_interfaces: [observed ? 'system' : settings.qdisc.kind, device.minidriver ?? 'driver']
        .map((name) => name.replaceAll(/[^\w-]/g, '_'))
        .join(','),
    },
    SERIES_META: Object.fromEntries(
      series.filter(({ keysOnly }) => keysOnly !== true).map((one) => [one.name, seriesSummary(one)]),
    ),
    QUEUESCOPE: {
      version: meta.appVersion,
      recording: model.fileName,
      device: device.name,
      driver: device.minidriver ?? null,
      mode: device.mode,
      arm: set.arm === '' ? null : set.arm,
      stretches: set.stretches.map(({ fromUs, toUs }) => [fromUs / 1e6, toUs / 1e6]),
      identifiersMasked: masked,
    },
  };
}

const kernelNames: Readonly<Record<string, string>> = {
  linux: 'Linux',
  darwin: 'Darwin',
  win32: 'Windows_NT',
};

function factOf({ facts }: ReportModel, wanted: string): string | undefined {
  return facts.find(({ group, name }) => group === 'network' && name === wanted)?.value;
}

function noteOf({ device, meta }: ReportModel, { rates, arm }: FlentDataSet): string {
  const load =
    device.mode === 'observe'
      ? 'The load was that of other programs.'
      : rates === ''
        ? 'There was no load of Queuescope’s making.'
        : `The load was ${rates.trim()}.`;
  const part =
    arm === '' ? '' : ' Only what its segments count is here, at the times that they had in the recording.';
  return (
    `Recorded by Queuescope ${meta.appVersion}, not by Flent. ${load}${part} ` +
    'Rates are those of all frames at the device, not of payload; a ping’s time is when it was due.'
  );
}

/** The document in pieces. */
function* documentText(
  metadata: Readonly<Record<string, unknown>>,
  series: readonly FlentSeries[],
  time: FileTime,
): Generator<string> {
  const { stepUs, lengthUs } = time;
  const steps = Math.ceil(lengthUs / stepUs) + 1;
  yield `{"version":${formatVersion},"metadata":${JSON.stringify(metadata)},"x_values":[`;
  yield* joined(steps, (step) => JSON.stringify((step * stepUs) / 1e6));
  yield '],"results":{';
  const named = series.filter(({ keysOnly }) => keysOnly !== true);
  for (const [index, one] of named.entries()) {
    const means = meansOfSteps(one, stepUs, steps);
    yield `${index > 0 ? ',' : ''}${JSON.stringify(one.name)}:[`;
    // JSON has no NaN: JSON.stringify writes null for it.
    yield* joined(steps, (step) => JSON.stringify(means[step]));
    yield ']';
  }
  yield '},"raw_values":{';
  for (const [index, one] of series.entries()) {
    yield `${index > 0 ? ',' : ''}${JSON.stringify(one.name)}:[`;
    yield* rawValues(one, time);
    yield ']';
  }
  yield '}}\n';
}

function* joined(count: number, text: (index: number) => string): Generator<string> {
  for (let from = 0; from < count; from += valuesAtOnce) {
    const piece = from > 0 ? [''] : [];
    for (let index = from; index < Math.min(count, from + valuesAtOnce); index++) piece.push(text(index));
    yield piece.join(',');
  }
}

/** The mean of what was measured after the step before, up to and with each step; NaN where nothing was. */
function meansOfSteps(series: FlentSeries, stepUs: number, steps: number): Float64Array {
  const sums = new Float64Array(steps);
  const counts = new Float64Array(steps);
  for (const { from, to } of series.rows) {
    for (let row = from; row < to; row++) {
      const value = series.value(row);
      const step = Math.ceil((series.timeUs[row] ?? Number.NaN) / stepUs);
      if (Number.isNaN(value) || !(step >= 0 && step < steps)) continue;
      sums[step] = (sums[step] ?? 0) + value;
      counts[step] = (counts[step] ?? 0) + 1;
    }
  }
  return sums.map((sum, step) => sum / (counts[step] ?? 0));
}

/** Each value at its own time, seconds since 1970; a point without a value breaks the line where rows are missing. */
function* rawValues(series: FlentSeries, time: FileTime): Generator<string> {
  const keys = Object.entries(series.more).map(([name, read]): RawKey => [JSON.stringify(name), read]);
  let piece = '';
  let separator = '';
  let beforeUs = Number.NaN;
  for (const { from, to } of series.rows) {
    for (let row = from; row < to; row++) {
      const atUs = series.timeUs[row] ?? Number.NaN;
      if (atUs - beforeUs > series.gapUs) {
        piece += separator + breakPoint(series, unixSeconds((atUs + beforeUs) / 2, time));
        separator = ',';
      }
      beforeUs = atUs;
      const value = series.value(row);
      if (series.sparse === true && Number.isNaN(value)) continue;
      piece += separator + rawValue(series, keys, value, row, unixSeconds(atUs, time));
      separator = ',';
      if (piece.length < partCharacters / 10) continue;
      yield piece;
      piece = '';
    }
  }
  yield piece;
}

/** Put together by hand: an hour of telemetry has half a million of them. */
function rawValue(
  { keysOnly }: FlentSeries,
  keys: readonly RawKey[],
  value: number,
  row: number,
  seconds: number,
): string {
  let text = `{"t":${seconds}`;
  if (keysOnly !== true) text += `,"val":${Number.isNaN(value) ? 'null' : value}`;
  for (const [name, read] of keys) {
    const field = read(row);
    if (typeof field === 'boolean' || !Number.isNaN(field)) text += `,${name}:${field}`;
  }
  return `${text}}`;
}

/** A key as JSON has it, and what it is read with. */
type RawKey = readonly [name: string, read: (row: number) => number | boolean];

/** Flent adds up the counters of queues, also those of points without a value: these must not have any. */
function breakPoint({ keysOnly }: FlentSeries, seconds: number): string {
  return JSON.stringify(
    keysOnly === true ? { t: seconds, backlog_bytes: null, delay: null } : { t: seconds, val: null },
  );
}

function unixSeconds(timeUs: number, { startedAtMs }: FileTime): number {
  return Math.round(startedAtMs * 1000 + timeUs) / 1e6;
}

function compressed(pieces: Iterable<string>): Uint8Array {
  const parts: Uint8Array[] = [];
  let text = '';
  for (const piece of pieces) {
    text += piece;
    if (text.length < partCharacters) continue;
    parts.push(gzipSync(text));
    text = '';
  }
  parts.push(gzipSync(text));
  return Buffer.concat(parts);
}
