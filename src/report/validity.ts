import { percentileOfSorted } from '../base/percentile.ts';
import { formatBytes, formatCount, formatDuration } from '../base/units.ts';
import {
  judgeMeasurement,
  longLateUs,
  type MeasurementQuality,
  type ValidityNote,
} from '../statistics/validity.ts';
import type { ReportExperiment } from './experiment.ts';
import type { ReportModel } from './report-model.ts';

/** A report before it is judged. */
type Measured = Omit<ReportModel, 'validity' | 'experiment'>;

const rarelyHeldBack = 0.02;
/** Medians of repeated phases that differ by more than this share say that the link itself was changing. */
const largestSpreadShare = 0.3;

/** What a recording knows of the measuring itself. */
export function qualityOf(model: Measured): MeasurementQuality {
  const { eventLoopLagUs, rttUs, probes, lost } = model.whole;
  return {
    usb2Fallback: isUsb2Fallback(model),
    eventLoopLagUs,
    rttP50Us: rttUs.p50,
    probesSent: probes,
    probesLost: lost,
    probesLate: countAbove(model.telemetry.probes.values.lateUs, longLateUs),
    ...timerErrorOf(model.telemetry.probes.values.lateUs),
    stretches: model.phases.map(({ name, statistics }) => ({ name, roundTrips: statistics.rttUs.n })),
  };
}

/** What limits the numbers of a report: how they came about, how many there are, and what is missing. */
export function judgeValidity(
  model: Measured,
  quality: MeasurementQuality,
  experiment: ReportExperiment | undefined,
): ValidityNote[] {
  const notes: ValidityNote[] = [];
  const warn = (id: string, text: string): number => notes.push({ id, severity: 'warning', text });
  const inform = (id: string, text: string): number => notes.push({ id, severity: 'info', text });
  const { device, meta, whole, arms } = model;

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

  notes.push(...judgeMeasurement(quality));
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
  // What the experiment knows beside: the load that stayed below the limit, arm by arm.
  const told = new Set(notes.map(({ id }) => id));
  if (experiment?.source === 'scenario') {
    notes.push(...experiment.result.notes.filter(({ id }) => !told.has(id)));
  }
  return notes;
}

/** What a ping is late by is what its timer was: in 95 percent of the cases no more than this. */
function timerErrorOf(lateUs: Float64Array): Pick<MeasurementQuality, 'timerErrorUs'> {
  const known = lateUs.filter((value) => !Number.isNaN(value)).sort();
  return known.length === 0 ? {} : { timerErrorUs: percentileOfSorted(known, known.length, 0.95) };
}

function countAbove(values: Float64Array, bound: number): number {
  let count = 0;
  for (const value of values) if (value > bound) count++;
  return count;
}

/** The engine knows of it as a problem; else the version in the descriptor and the speed tell. */
function isUsb2Fallback({ device, facts, problems }: Measured): boolean {
  if (problems.some(({ id }) => id === 'usb2-fallback')) return true;
  if (device.speed !== 'high' && device.speed !== 'full') return false;
  return facts.some(
    ({ name, value }) => /^(?:usb version|bcdusb)$/i.test(name) && /^(?:usb )?3/i.test(value),
  );
}
