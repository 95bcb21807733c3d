import type { Session } from '../../src/contract/session.ts';
import { formatBytes } from '../../src/base/units.ts';
import { useApp } from '../app-context.ts';
import { type DeviceEntry, stageWords } from '../store/device-entry.ts';

interface NoticeProps {
  readonly tone: 'quiet' | 'warning' | 'error';
  readonly words: string;
  readonly cause: string;
  readonly action: string;
  readonly onAction: () => void;
}

/** Every state that is not simply "running": what it is, why, and the one thing to do about it. */
export function StateNotice({ entry, session }: { readonly entry: DeviceEntry; readonly session: Session }) {
  const { store } = useApp();
  const stop = (): void => void store.stop(session);
  const start = (): void => void store.start(entry.device.id);

  switch (session.state) {
    case 'running':
    case 'stopping':
      return null;
    case 'starting': {
      const stage = session.stages.find((one) => one.status === 'active');
      return (
        <Notice
          tone="quiet"
          words={stage === undefined ? 'Connecting' : `Connecting, at the stage ${stageWords[stage.name]}`}
          cause={stage?.text ?? 'The stages above show how far it has come.'}
          action="Cancel"
          onAction={stop}
        />
      );
    }
    case 'stalled':
      return (
        <Notice
          tone="error"
          words="Stalled"
          cause={
            problemOf(session, 'not-recovered', 'recovering', 'stalled') ??
            'Bytes are in flight and none of them completes: the device or its link does not take them.'
          }
          action="Stop"
          onAction={stop}
        />
      );
    case 'lost':
      return (
        <Notice
          tone="error"
          words="Lost"
          cause={`${problemOf(session, 'gone') ?? 'The device is gone: unplugged, reset or without power.'} What was measured is kept; the gap ends when it returns.`}
          action="Stop waiting"
          onAction={stop}
        />
      );
    case 'failed': {
      const stage = session.stages.find((one) => one.status === 'failed');
      return (
        <Notice
          tone="error"
          words={stage === undefined ? 'Failed' : `Failed at the stage ${stageWords[stage.name]}`}
          cause={stage?.text ?? 'The session ended before it was stopped.'}
          action="Start again"
          onAction={start}
        />
      );
    }
    case 'stopped': {
      const { recording } = session;
      const isHere = entry.device.state === 'available';
      return (
        <Notice
          tone="quiet"
          words="Recorded only"
          cause={
            recording === undefined
              ? 'This session has ended and was not recorded: what is shown lasts as long as this window.'
              : `This session has ended. It is in ${recording.fileName}, ${formatBytes(recording.sizeBytes)}.`
          }
          action={isHere ? 'Start a new session' : 'Show recordings'}
          onAction={
            isHere
              ? start
              : () => {
                  store.section.value = 'recordings';
                }
          }
        />
      );
    }
  }
}

/** The first of these problems that the session has, in its own words. */
function problemOf(session: Session, ...ids: readonly string[]): string | undefined {
  for (const id of ids) {
    const problem = session.problems.find((one) => one.id === id);
    if (problem !== undefined) return problem.message;
  }
  return undefined;
}

function Notice({ tone, words, cause, action, onAction }: NoticeProps) {
  return (
    <div class={`notice notice-${tone}`} role="status">
      <p>
        <strong>{words}.</strong> {cause}
      </p>
      <button type="button" class="button small" onClick={onAction}>
        {action}
      </button>
    </div>
  );
}
