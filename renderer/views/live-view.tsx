import { formatBytes } from '../../src/base/units.ts';
import type { Session } from '../../src/contract/session.ts';
import { useApp } from '../app-context.ts';
import { deviceKey } from '../store/app-store.ts';
import { type DeviceEntry, isLive, problemsOf, statusOf } from '../store/device-entry.ts';
import { hint } from '../ui/hint.tsx';
import { StatusDot } from '../ui/status-dot.tsx';
import { Badges } from './badges.tsx';
import { ChartStackView } from './chart-stack-view.tsx';
import { NoteField } from './note-field.tsx';
import { Failure, ProblemList } from './problem-list.tsx';
import { aboutWindow, ReadingsView } from './readings-view.tsx';
import { StageStrip } from './stage-strip.tsx';
import { StartPanel } from './start-panel.tsx';
import { StateNotice } from './state-notice.tsx';
import { WindowControls } from './window-controls.tsx';

/** One device, live: what it is, how far it has come, what it measures. */
export function LiveView({ entry }: { readonly entry: DeviceEntry }) {
  const { store } = useApp();
  const { device, session } = entry;
  const failure = store.failures.value.get(deviceKey(device.id));
  return (
    <div class="live-view">
      <header class="live-header">
        <h1>{device.name}</h1>
        <StatusDot status={statusOf(entry)} />
        <Badges device={device} />
        <span class="space" />
        {session === undefined ? null : <RecordingChip session={session} />}
        {isLive(session) ? <StopButton session={session} /> : null}
      </header>
      <ProblemList problems={problemsOf(entry)} />
      <Failure error={failure} />
      {session === undefined ? (
        <StartPanel entry={entry} />
      ) : (
        <>
          <StageStrip session={session} />
          <StateNotice entry={entry} session={session} />
          <ReadingsView session={session} />
          <div class="toolbar">
            <WindowControls sessions={[session]} />
            {store.view.isFrozen(session.id) ? <FrozenWord session={session} /> : null}
            <AboutReadings session={session} />
            <span class="space" />
            {isLive(session) ? <NoteField session={session} /> : null}
          </div>
          <ChartStackView key={session.id} session={session} />
        </>
      )}
    </div>
  );
}

/** What stretch of time the large figures are about. */
function AboutReadings({ session }: { readonly session: Session }) {
  const { store } = useApp();
  const readings = store.readingsOf(session).value;
  return readings === undefined ? null : (
    <span class="about-readings quiet">Readings of {aboutWindow(readings)}</span>
  );
}

function FrozenWord({ session }: { readonly session: Session }) {
  return (
    <span class="frozen-word" role="status">
      {isLive(session) ? 'View paused, measuring goes on' : 'View moved'}
    </span>
  );
}

function RecordingChip({ session }: { readonly session: Session }) {
  const { recording } = session;
  if (recording === undefined) {
    return isLive(session) ? <span class="recording-chip quiet">Not recorded</span> : null;
  }
  if (recording.state === 'failed') {
    return <span class="recording-chip recording-failed">Recording failed</span>;
  }
  const isRunning = recording.state === 'recording';
  return (
    <span
      class={isRunning ? 'recording-chip recording-running' : 'recording-chip'}
      {...hint(`Recorded into ${recording.fileName}.`)}
    >
      {isRunning ? 'Recording' : 'Recorded'} {formatBytes(recording.sizeBytes)}
    </span>
  );
}

function StopButton({ session }: { readonly session: Session }) {
  const { store } = useApp();
  const isBusy = store.pending.value.has(deviceKey(session.device.id));
  return (
    <button
      type="button"
      class="button"
      disabled={isBusy || session.state === 'stopping'}
      onClick={() => void store.stop(session)}
      {...hint('End the session and give the device back (s).')}
    >
      Stop
    </button>
  );
}
