import { formatBitRate, formatBytes, formatDuration, formatShare } from '../base/units.ts';
import type { ArmResult, ReportModel } from './report-model.ts';

/** Medians that differ by less than this share are called the same. */
const sameShare = 0.05;

/** The result in one sentence, and what else matters in a few more. Plain text. */
export interface Headline {
  readonly main: string;
  readonly more: readonly string[];
}

export function createHeadline(model: ReportModel): Headline {
  const { experiment } = model;
  const measured = measuredHeadline(model);
  // A scenario was run to have its question answered.
  return experiment?.source === 'scenario'
    ? { main: experiment.result.verdict.sentence, more: measured.more }
    : measured;
}

function measuredHeadline(model: ReportModel): Headline {
  const { off, on, idle } = model.arms;
  if (hasRoundTrips(off) && hasRoundTrips(on)) return comparison(off, on, idle);
  const only = [off, on, idle].find(hasRoundTrips);
  if (only !== undefined) return single(only, idle, model.device.mode === 'observe');
  const { whole } = model;
  if (whole.samples === 0) return { main: 'Nothing was measured.', more: [] };
  return {
    main: `${formatBitRate(whole.throughputBitsPerSecond)} up and ${formatBitRate(whole.receivedBitsPerSecond)} down on average, without a round trip measured.`,
    more: [],
  };
}

function comparison(off: ArmResult, on: ArmResult, idle: ArmResult | undefined): Headline {
  const before = off.statistics.rttUs;
  const after = on.statistics.rttUs;
  const change = (after.p50 - before.p50) / before.p50;
  const throughput = throughputWords(off, on);
  const main =
    Math.abs(change) < sameShare
      ? `BQL made no difference to the round trip under load: ${formatDuration(before.p50)} without it and ` +
        `${formatDuration(after.p50)} with it (p50), ${throughput}.`
      : `BQL ${change < 0 ? 'cut' : 'raised'} the round trip under load from ${formatDuration(before.p50)} to ` +
        `${formatDuration(after.p50)} (p50), ${throughput}.`;
  const more = [
    `95 of 100 pings came back within ${formatDuration(after.p95)} with BQL, and within ${formatDuration(before.p95)} without it.`,
    `At the median ${formatBytes(off.statistics.inflightBytes.p50)} were in flight to the device without BQL, ` +
      `and ${formatBytes(on.statistics.inflightBytes.p50)} with it.`,
  ];
  if (hasRoundTrips(idle)) more.push(aboveIdle(idle, off, on));
  more.push(lossWords(off, on));
  return { main, more };
}

function throughputWords(off: ArmResult, on: ArmResult): string {
  const before = off.statistics.throughputBitsPerSecond;
  const after = on.statistics.throughputBitsPerSecond;
  if (Number.isNaN(before + after)) return 'throughput unknown';
  const share = (after - before) / before;
  if (Math.abs(share) < 0.01) return `at the same throughput of ${formatBitRate(after)}`;
  return `while the throughput went from ${formatBitRate(before)} to ${formatBitRate(after)} (${signedShare(share)})`;
}

function signedShare(share: number): string {
  return share > 0 ? `+${formatShare(share)}` : formatShare(share);
}

function aboveIdle(idle: ArmResult, off: ArmResult, on: ArmResult): string {
  const base = idle.statistics.rttUs.p50;
  return (
    `Idle, the round trip was ${formatDuration(base)}: the load added ` +
    `${formatDuration(Math.max(0, off.statistics.rttUs.p50 - base))} without BQL and ` +
    `${formatDuration(Math.max(0, on.statistics.rttUs.p50 - base))} with it.`
  );
}

function lossWords(off: ArmResult, on: ArmResult): string {
  if (off.statistics.lost + on.statistics.lost === 0) return 'No ping was lost under load.';
  return `Of the pings, ${lossShare(off)} were lost without BQL and ${lossShare(on)} with it.`;
}

function lossShare({ statistics }: ArmResult): string {
  return formatShare(statistics.lost / statistics.probes);
}

function single(arm: ArmResult, idle: ArmResult | undefined, isObserved: boolean): Headline {
  const { rttUs, throughputBitsPerSecond, receivedBitsPerSecond, inflightBytes } = arm.statistics;
  const load = isObserved ? 'Under the load there was' : arm.load ? 'Under load' : 'Without load';
  const conditions = `${load}${arm.bql === 'both' ? '' : `, with BQL ${arm.bql}`}`;
  const more = [
    `${formatBitRate(throughputBitsPerSecond)} up and ${formatBitRate(receivedBitsPerSecond)} down on average; ` +
      `at the median ${formatBytes(inflightBytes.p50)} were in flight to the device.`,
    `${lossShare(arm)} of the pings were lost.`,
  ];
  if (arm !== idle && hasRoundTrips(idle)) {
    more.unshift(`Idle, the round trip was ${formatDuration(idle.statistics.rttUs.p50)} (p50).`);
  }
  return {
    main:
      `${conditions}, the round trip was ${formatDuration(rttUs.p50)} (p50); ` +
      `95 of 100 pings came back within ${formatDuration(rttUs.p95)}.`,
    more,
  };
}

function hasRoundTrips(arm: ArmResult | undefined): arm is ArmResult {
  return arm !== undefined && arm.statistics.rttUs.n > 0;
}
