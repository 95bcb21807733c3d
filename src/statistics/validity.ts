import { formatCount, formatDuration, formatShare } from '../base/units.ts';

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
/** A probe that left this much after it was due was late. */
export const longLateUs = 10_000;
const largestLateShare = 0.05;
/** Timers are not exact; beyond this the probes' spacing is not what it was meant to be. */
const longTimerErrorUs = 2000;
/** From here on there is not much left for the link. */
const saturatedShare = 0.9;
/** Lost probes have no round trip: beyond this share the percentiles are those of the luckier ones. */
const largestLostShare = 0.01;

/** A stretch of the measurement and how many answered probes it has. */
export interface MeasuredStretch {
  readonly name: string;
  readonly roundTrips: number;
}

/** What is known of the measuring itself; what is absent was not looked at, and is not judged. */
export interface MeasurementQuality {
  /** The busiest that the processors, or the one that measured, were (0 … 1). */
  readonly cpuBusyShare?: number;
  /** How late this program's own event loop was. */
  readonly eventLoopLagUs?: { readonly p95: number; readonly max: number };
  /** The median round trip, which a lag is held against. */
  readonly rttP50Us?: number;
  /** How far timers were off, p95. */
  readonly timerErrorUs?: number;
  readonly probesSent?: number;
  readonly probesLost?: number;
  /** Probes that left more than `longLateUs` after they were due. */
  readonly probesLate?: number;
  /** The device can do USB 3 and ran at USB 2's speed. */
  readonly usb2Fallback?: boolean;
  /** Those that are to have percentiles of their own. */
  readonly stretches?: readonly MeasuredStretch[];
  /** What the load never filled the queue in: names of arms, and in how many of their segments. */
  readonly belowLimit?: readonly { readonly arm: string; readonly segments: number; readonly of: number }[];
}

/** What limits the numbers, as far as the measuring itself is to blame. */
export function judgeMeasurement(quality: MeasurementQuality): ValidityNote[] {
  const notes: ValidityNote[] = [];
  const warn = (id: string, text: string): number => notes.push({ id, severity: 'warning', text });
  if (quality.usb2Fallback === true) {
    warn(
      'usb2-fallback',
      'The device can do USB 3, but ran at high speed (480 Mbit/s): its queue was 60 frames long, not 300. ' +
        'Check cable, port and hub.',
    );
  }
  noteFewRoundTrips(quality.stretches ?? [], warn);
  noteOwnDelays(quality, warn);
  noteLostProbes(quality, warn);
  for (const { arm, segments, of } of quality.belowLimit ?? []) {
    if (segments === 0) continue;
    const where =
      segments === of ? 'never' : `in ${formatCount(segments)} of ${formatCount(of)} segments not`;
    warn(
      'load-below-limit',
      `With ${arm} the load ${where} filled the queue to the device: without a queue there is nothing to shorten.`,
    );
  }
  return notes;
}

function noteFewRoundTrips(
  stretches: readonly MeasuredStretch[],
  warn: (id: string, text: string) => void,
): void {
  const few = stretches.filter(({ roundTrips }) => roundTrips > 0 && roundTrips < enoughForP99);
  if (few.length === 0) return;
  const fewest = Math.min(...few.map(({ roundTrips }) => roundTrips));
  const percentiles = fewest < enoughForP95 ? 'p95 and p99 are' : 'p99 is';
  const where =
    stretches.length === 1
      ? 'In all'
      : few.length === stretches.length
        ? 'In every phase'
        : `In ${few.map(({ name }) => `“${name}”`).join(', ')}`;
  warn(
    'few-round-trips',
    `${where} there are fewer than ${enoughForP99} round trips (at the least ${formatCount(fewest)}): ` +
      `${percentiles} no more than the longest of them.`,
  );
}

function noteOwnDelays(quality: MeasurementQuality, warn: (id: string, text: string) => void): void {
  const { cpuBusyShare, eventLoopLagUs: lag, rttP50Us, timerErrorUs, probesSent, probesLate } = quality;
  if (cpuBusyShare !== undefined && cpuBusyShare > saturatedShare) {
    warn(
      'cpu-saturated',
      `The processor was busy for ${formatShare(cpuBusyShare)} of the time: what was measured may be its limit rather ` +
        'than that of the link.',
    );
  }
  if (lag !== undefined && (lag.p95 > longLagUs || lag.p95 > largestLagShare * (rttP50Us ?? Number.NaN))) {
    warn(
      'event-loop-lag',
      `This program was itself late by up to ${formatDuration(lag.p95)} in 95 % of the intervals (at most ` +
        `${formatDuration(lag.max)}): times are no more exact than that.`,
    );
  }
  if (timerErrorUs !== undefined && timerErrorUs > longTimerErrorUs) {
    warn('timer-error', `Timers were off by up to ${formatDuration(timerErrorUs)} in 95 % of the cases.`);
  }
  if (probesSent !== undefined && probesLate !== undefined && probesLate > largestLateShare * probesSent) {
    warn(
      'late-probes',
      `${formatShare(probesLate / probesSent)} of the pings were sent more than ${formatDuration(longLateUs)} later than due.`,
    );
  }
}

function noteLostProbes(
  { probesSent, probesLost }: MeasurementQuality,
  warn: (id: string, text: string) => void,
): void {
  if (probesSent === undefined || probesLost === undefined || probesSent === 0) return;
  if (probesLost <= largestLostShare * probesSent) return;
  warn(
    'lost-probes',
    `${formatShare(probesLost / probesSent)} of the probes were not answered: the round trips are those of the others.`,
  );
}
