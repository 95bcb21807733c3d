import type { ExperimentPhase } from './experiment.ts';
import type { Scenario } from './scenario.ts';

/** What is known of the link before a run, bits per second; undefined: nothing. */
export interface LinkRates {
  readonly upBitsPerSecond: number | undefined;
  readonly downBitsPerSecond: number | undefined;
}

/** What a run will send and receive, computed before it. */
export interface DataVolume {
  readonly upBytes: number;
  readonly downBytes: number;
  /** Seconds of load whose rate nobody knows beforehand: greedy, on a link of unknown rate. Not in the bytes. */
  readonly unknownSeconds: number;
}

/** IPv4 and ICMP or UDP headers of a probe, and the Ethernet header. */
const probeOverheadBytes = 14 + 20 + 8;

/** Reckons what a plan moves: load at its rate or the link's, whichever is less, and the probes. */
export function dataVolume(
  scenario: Pick<Scenario, 'probes'>,
  plan: readonly ExperimentPhase[],
  link: LinkRates,
): DataVolume {
  let upBytes = 0;
  let downBytes = 0;
  let unknownSeconds = 0;
  for (const { direction, durationUs, settings } of plan) {
    const seconds = durationUs / 1e6;
    const probes = probeBytes(scenario, seconds);
    upBytes += probes;
    downBytes += probes;
    if (direction === 'up' || direction === 'both') {
      const rate = knownRate(settings.load?.rateBitsPerSecond ?? 0, link.upBitsPerSecond);
      if (rate === undefined) unknownSeconds += seconds;
      else upBytes += (rate * seconds) / 8;
    }
    if (direction === 'down' || direction === 'both') {
      const rate = knownRate(settings.load?.downRateBitsPerSecond ?? 0, link.downBitsPerSecond);
      if (rate === undefined) unknownSeconds += seconds;
      else downBytes += (rate * seconds) / 8;
    }
  }
  return { upBytes: Math.ceil(upBytes), downBytes: Math.ceil(downBytes), unknownSeconds };
}

function knownRate(wanted: number, link: number | undefined): number | undefined {
  if (wanted === 0) return link;
  return link === undefined ? wanted : Math.min(wanted, link);
}

function probeBytes({ probes }: Pick<Scenario, 'probes'>, seconds: number): number {
  return probes.reduce(
    (sum, { intervalMs, payloadBytes }) =>
      sum + ((seconds * 1000) / intervalMs) * (payloadBytes + probeOverheadBytes),
    0,
  );
}
