import { formatBytes, formatCount, formatDuration, formatShare } from '../base/units.ts';
import type { ReportModel } from './report-model.ts';

/** Something that whoever trusts the numbers should know. */
export interface ValidityNote {
  /** Stable, for programs. */
  readonly id: string;
  readonly severity: 'info' | 'warning';
  readonly text: string;
}

/** With fewer round trips than this, p99 is no more than the longest of them. */
const enoughForP99 = 100;
/** With fewer than this, p95 is no more than that either. */
const enoughForP95 = 20;
const longLagUs = 10_000;
/** What the measuring itself may add before it colours the result. */
const largestLagShare = 0.25;
const longLateUs = 10_000;
const rarelyHeldBack = 0.02;
/** Medians of repeated phases that differ by more than this share say that the link itself was changing. */
const largestSpreadShare = 0.3;

/** What limits the numbers of a report: how they came about, how many there are, and what is missing. */
export function judgeValidity(model: Omit<ReportModel, 'validity'>): ValidityNote[] {
  const notes: ValidityNote[] = [];
  const warn = (id: string, text: string): number => notes.push({ id, severity: 'warning', text });
  const inform = (id: string, text: string): number => notes.push({ id, severity: 'info', text });
  const { device, meta, whole, phases, arms } = model;

  if (device.mode === 'simulate') {
    inform(
      'simulated',
      'This is a virtual device: the numbers come from a model of bus, device and link, not from hardware.',
    );
  }
  if (device.mode === 'observe') {
    inform(
      'observed',
      'The kernel drove the device. The load was that of other programs, whatever it was, and what a ping spent in ' +
        'the qdisc and in the driver is not known.',
    );
  }
  if (whole.samples === 0) {
    warn('no-samples', 'Nothing was sampled: the session ended before it could measure.');
  } else if (whole.probes === 0) {
    warn('no-probes', 'No pings were sent, so there is nothing to say about the round trip.');
  } else if (whole.rttUs.n === 0) {
    warn('no-answers', `None of ${formatCount(whole.probes)} pings was answered.`);
  }

  if (isUsb2Fallback(model)) {
    warn(
      'usb2-fallback',
      'The device can do USB 3, but ran at high speed (480 Mbit/s): its queue was 60 frames long, not 300. ' +
        'Check cable, port and hub.',
    );
  }
  const few = phases.filter(({ statistics }) => statistics.rttUs.n > 0 && statistics.rttUs.n < enoughForP99);
  if (few.length > 0) {
    const fewest = Math.min(...few.map(({ statistics }) => statistics.rttUs.n));
    const percentiles = fewest < enoughForP95 ? 'p95 and p99 are' : 'p99 is';
    const where =
      phases.length === 1
        ? 'In all'
        : few.length === phases.length
          ? 'In every phase'
          : `In ${few.map(({ name }) => `“${name}”`).join(', ')}`;
    warn(
      'few-round-trips',
      `${where} there are fewer than ${enoughForP99} round trips (at the least ${formatCount(fewest)}): ` +
        `${percentiles} no more than the longest of them.`,
    );
  }
  noteOwnDelays(model, warn);
  if (whole.gaps > 0) {
    const times = whole.gaps === 1 ? 'once' : `${formatCount(whole.gaps)} times`;
    warn(
      'gaps',
      `Nothing was measured ${times}, for ${formatDuration(whole.gapUs)} in all. Gaps are left open in the charts.`,
    );
  }
  const dropped = meta.dropped.samples + meta.dropped.probes;
  if (dropped > 0) {
    warn('dropped-rows', `The disk did not keep up: ${formatCount(dropped)} rows were not recorded.`);
  }
  if (meta.state === 'recording') {
    inform('unfinished', 'The recording has no end yet: this is what was stored so far.');
  }
  if (meta.state === 'recovered') {
    warn('recovered', 'The program was killed while it recorded; up to a second at the end may be missing.');
  }
  if (meta.state === 'failed') {
    warn('failed', `The recording failed before its end: ${meta.reason ?? 'no reason is known'}.`);
  }

  for (const arm of [arms.off, arms.on]) {
    if (arm === undefined) continue;
    const { rttP50LowUs: low, rttP50HighUs: high } = arm;
    if (arm.phases > 1 && high - low > largestSpreadShare * low) {
      warn(
        `unsteady-${arm.bql}`,
        `The medians of the phases with BQL ${arm.bql} range from ${formatDuration(low)} to ${formatDuration(high)}: ` +
          'the link was not the same throughout.',
      );
    }
  }
  for (const arm of [arms.off, arms.on]) {
    if (arm === undefined) continue;
    const { driverXoffShare, stackXoffShare, inflightPeakBytes } = arm.statistics;
    if (driverXoffShare + stackXoffShare < rarelyHeldBack) {
      inform(
        `never-full-${arm.bql}`,
        `Under load with BQL ${arm.bql} the queue to the device was hardly ever full ` +
          `(at most ${formatBytes(inflightPeakBytes)} in flight): the load was below what the device takes, ` +
          'so there was no queue for BQL to shorten.',
      );
    }
  }
  if (whole.errors > 0) warn('errors', `${formatCount(whole.errors)} transfers failed.`);
  return notes;
}

function noteOwnDelays(model: Omit<ReportModel, 'validity'>, warn: (id: string, text: string) => void): void {
  const { eventLoopLagUs: lag, probeLateUs: late, rttUs } = model.whole;
  if (lag.p95 > longLagUs || lag.p95 > largestLagShare * rttUs.p50) {
    warn(
      'event-loop-lag',
      `This program was itself late by up to ${formatDuration(lag.p95)} in 95 % of the intervals (at most ` +
        `${formatDuration(lag.max)}): times are no more exact than that.`,
    );
  }
  if (late.p95 > longLateUs) {
    const share = formatShare(
      late.n === 0 ? 0 : countAbove(model.telemetry.probes.values.lateUs, longLateUs) / late.n,
    );
    warn(
      'late-probes',
      `${share} of the pings were sent more than ${formatDuration(longLateUs)} later than due.`,
    );
  }
}

function countAbove(values: Float64Array, bound: number): number {
  let count = 0;
  for (const value of values) if (value > bound) count++;
  return count;
}

/** The engine knows of it as a problem; else the version in the descriptor and the speed tell. */
function isUsb2Fallback({ device, facts, problems }: Omit<ReportModel, 'validity'>): boolean {
  if (problems.some(({ id }) => id === 'usb2-fallback')) return true;
  if (device.speed !== 'high' && device.speed !== 'full') return false;
  return facts.some(
    ({ name, value }) => /^(?:usb version|bcdusb)$/i.test(name) && /^(?:usb )?3/i.test(value),
  );
}
