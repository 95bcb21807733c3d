import {
  defaultDownloadSettings,
  type DownloadSettings,
  type LiveSettings,
  type LoadSettings,
  type MorePing,
  type PingSettings,
  type QdiscSettings,
  type SessionSettings,
} from '../contract/settings.ts';
import type { ExperimentPhase, SegmentLoad } from '../probes/experiment.ts';
import { isOwnProbe, type Scenario } from '../probes/scenario.ts';

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
    ...qdiscOf(phase, base.qdisc, now.qdisc),
    load: upload(phase, base.load, by),
    download: download(phase, base.download ?? defaultDownloadSettings, by),
  };
}

/** A change makes a new qdisc and drops what waits in the old one, so only what differs is one. */
function qdiscOf(
  phase: ExperimentPhase,
  base: QdiscSettings,
  now: QdiscSettings,
): Pick<LiveSettings, 'qdisc'> {
  const { qdisc } = phase.settings;
  const wanted = changedQdisc(base, qdisc);
  return JSON.stringify(wanted) === JSON.stringify(now) ? {} : { qdisc: wanted };
}

function changedQdisc(base: QdiscSettings, qdisc: ExperimentPhase['settings']['qdisc']): QdiscSettings {
  if (qdisc === undefined) return base;
  return {
    kind: qdisc.kind,
    targetUs: qdisc.targetUs ?? base.targetUs,
    intervalUs: qdisc.intervalUs ?? base.intervalUs,
    limitPackets: qdisc.limitPackets ?? base.limitPackets,
    flows: qdisc.flows ?? base.flows,
    quantumBytes: qdisc.quantumBytes ?? base.quantumBytes,
    ecn: qdisc.ecn ?? base.ecn,
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

/** The further ones of its own probes. */
export function morePingsOfScenario({ probes }: Pick<Scenario, 'probes'>, base: PingSettings): MorePing[] {
  const { timeoutMs } = base;
  return probes
    .filter(isOwnProbe)
    .slice(1)
    .map(({ kind, intervalMs, payloadBytes, priority, target }) => ({
      intervalMs,
      payloadBytes,
      tos: priority ? priorityTos : 0,
      timeoutMs,
      ...protocolOf(kind),
      ...(target === undefined ? {} : { target }),
    }));
}

/** The ping that a scenario's results are about: the first of its own probes. */
export function pingOfScenario({ probes }: Pick<Scenario, 'probes'>, base: PingSettings): PingSettings {
  const probe = probes.find(isOwnProbe);
  if (probe === undefined) return { ...base, enabled: true };
  const { kind, intervalMs, payloadBytes, priority, target } = probe;
  const tos = priority ? priorityTos : 0;
  return {
    ...base,
    enabled: true,
    intervalMs,
    payloadBytes,
    tos,
    ...protocolOf(kind),
    ...(target === undefined ? {} : { target }),
  };
}

function protocolOf(kind: string): Pick<PingSettings, 'protocol'> {
  return kind === 'udp-echo' ? { protocol: 'udp' } : {};
}
