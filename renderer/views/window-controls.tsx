import type { Session } from '../../src/contract/session.ts';
import { useApp } from '../app-context.ts';
import { isLive } from '../store/device-entry.ts';
import { windowChoices } from '../store/view-state.ts';
import { IconButton } from '../ui/icon-button.tsx';
import { Segmented } from '../ui/segmented.tsx';

/** Which part of time the charts show. */
export function WindowControls({ sessions }: { readonly sessions: readonly Session[] }) {
  const { store } = useApp();
  const isPaused = sessions.some((session) => store.view.isFrozen(session.id));
  return (
    <>
      <Segmented
        label="Time window"
        choices={windowChoices.map((choice, index) => ({
          value: choice.seconds,
          label: choice.label,
          hint: `Show ${choice.words} (${index + 1}).`,
        }))}
        value={store.view.windowSeconds.value}
        onChoose={(seconds) => {
          store.view.windowSeconds.value = seconds;
        }}
      />
      {isPaused || sessions.some(isLive) ? (
        <IconButton
          icon={isPaused ? 'play' : 'pause'}
          label={isPaused ? 'Follow' : 'Pause'}
          hint={
            isPaused
              ? 'Follow the newest sample again (space).'
              : 'Freeze the view (space). Measuring and recording go on.'
          }
          pressed={isPaused}
          onClick={() => store.togglePause(sessions)}
        />
      ) : null}
    </>
  );
}
