import type { Device } from '../../src/contract/device.ts';
import type { Problem } from '../../src/contract/problem.ts';
import type { Session, StageName } from '../../src/contract/session.ts';

/** A line of the device list: a device, and the session that has it or had it last. */
export interface DeviceEntry {
  readonly device: Device;
  readonly session: Session | undefined;
}

export type Tone = 'idle' | 'busy' | 'good' | 'warning' | 'error';

export interface Status {
  readonly word: string;
  readonly tone: Tone;
}

export const stageWords: Readonly<Record<StageName, string>> = {
  open: 'Open',
  bind: 'Bind',
  carrier: 'Carrier',
  address: 'Address',
  target: 'Target',
  measure: 'Measure',
};

/** A session that still holds its device. */
export function isLive(session: Session | undefined): session is Session {
  return session !== undefined && session.state !== 'stopped' && session.state !== 'failed';
}

/** Samples ought to be coming in. */
export function isSending(session: Session | undefined): boolean {
  return (
    session !== undefined &&
    (session.state === 'running' || session.state === 'stalled' || session.state === 'lost')
  );
}

/** Devices first in the engine's order, then those that are gone but were measured in this run. */
export function deviceEntries(
  devices: readonly Device[],
  sessions: readonly Session[],
): readonly DeviceEntry[] {
  const newest = new Map<string, Session>();
  for (const session of sessions) {
    const before = newest.get(session.device.id);
    if (before === undefined || session.startedAt >= before.startedAt) newest.set(session.device.id, session);
  }
  const entries: DeviceEntry[] = devices.map((device) => ({
    device,
    session: sessions.find((session) => session.id === device.sessionId) ?? newest.get(device.id),
  }));
  const listed = new Set(devices.map((device) => device.id));
  for (const session of newest.values()) {
    if (!listed.has(session.device.id)) entries.push({ device: session.device, session });
  }
  return entries;
}

export function statusOf(entry: DeviceEntry): Status {
  const { device, session } = entry;
  switch (session?.state) {
    case 'starting': {
      const stage = session.stages.find((one) => one.status === 'active');
      const word = stage === undefined ? 'Connecting' : `Connecting: ${stageWords[stage.name].toLowerCase()}`;
      return { word, tone: 'busy' };
    }
    case 'running':
      return { word: 'Running', tone: 'good' };
    case 'stalled':
      return { word: 'Stalled', tone: 'error' };
    case 'lost':
      return { word: 'Lost', tone: 'error' };
    case 'stopping':
      return { word: 'Stopping', tone: 'busy' };
    case 'failed':
      return { word: 'Failed', tone: 'error' };
    case 'stopped':
    case undefined:
      break;
  }
  switch (device.state) {
    case 'available':
      return session === undefined
        ? { word: 'Ready', tone: 'idle' }
        : { word: 'Ready, recorded', tone: 'idle' };
    case 'unsupported':
      return { word: 'No driver', tone: 'idle' };
    case 'inaccessible':
      return { word: 'No access', tone: 'warning' };
    case 'running':
      return { word: 'Running', tone: 'good' };
    case 'lost':
      return { word: session === undefined ? 'Lost' : 'Recorded only', tone: 'idle' };
  }
}

/** What is wrong with a device and with its session, each fault once, the worst first. */
export function problemsOf(entry: DeviceEntry): readonly Problem[] {
  const byId = new Map<string, Problem>();
  for (const problem of entry.device.problems) byId.set(problem.id, problem);
  for (const problem of entry.session?.problems ?? []) byId.set(problem.id, problem);
  return [...byId.values()].sort((a, b) => severityOrder[a.severity] - severityOrder[b.severity]);
}

const severityOrder: Readonly<Record<Problem['severity'], number>> = { error: 0, warning: 1, info: 2 };
