import {
  defaultDownloadSettings,
  type DownloadSettings,
  type LiveSettings,
  type LoadSettings,
  type PingSettings,
  type SessionSettings,
} from '../contract/settings.ts';
import type { ExperimentPhase, SegmentLoad } from '../probes/experiment.ts';
import type { Scenario } from '../probes/scenario.ts';

/** pfifo_fast's first band. */
const priorityTos = 0x10;

const limitNames = ['limitMinBytes', 'limitMaxBytes', 'holdTimeMs'] as const;

/**
 * The settings of a segment, as a change to whatever is set at the moment: the one way from a plan to a session. What the
 * segment does not say is as it was at the start; a limit that need not be changed is not, which may take rights.
 * @param base the session's settings at the start
 * @param now its settings at the moment
 */
export function settingsOfSegment(
  phase: ExperimentPhase,
  base: SessionSettings,
  now: SessionSettings,
): LiveSettings {
  const { by } = phase;
  const { bql } = phase.settings;
  const limits = limitNames
    .map((name) => [name, bql[name] ?? base.bql[name]] as const)
    .filter(([name, value]) => value !== now.bql[name]);
  return {
    bql: { enabled: bql.enabled, ...Object.fromEntries(limits) },
    load: upload(phase, base.load, by),
    download: download(phase, base.download ?? defaultDownloadSettings, by),
  };
}

function upload(phase: ExperimentPhase, base: LoadSettings, by: SegmentLoad): Partial<LoadSettings> {
  const { load } = phase.settings;
  const enabled = by === 'udp' && (phase.direction === 'up' || phase.direction === 'both');
  if (load === undefined) return { ...base, enabled };
  const { rateBitsPerSecond, payloadBytes, socketPackets } = load;
  return { enabled, rateBitsPerSecond, payloadBytes, socketPackets };
}

function download(
  phase: ExperimentPhase,
  base: DownloadSettings,
  by: SegmentLoad,
): Partial<DownloadSettings> {
  const { load } = phase.settings;
  const enabled = by === 'udp' && (phase.direction === 'down' || phase.direction === 'both');
  if (load === undefined) return { ...base, enabled };
  return { enabled, rateBitsPerSecond: load.downRateBitsPerSecond, payloadBytes: load.payloadBytes };
}

/** The ping that a scenario's results are about: the first of its icmp probes. */
export function pingOfScenario({ probes }: Pick<Scenario, 'probes'>, base: PingSettings): PingSettings {
  const probe = probes.find(({ kind }) => kind === 'icmp');
  if (probe === undefined) return { ...base, enabled: true };
  const { intervalMs, payloadBytes, priority } = probe;
  return { ...base, enabled: true, intervalMs, payloadBytes, tos: priority ? priorityTos : 0 };
}
