import type { AppStore } from '../store/app-store.ts';
import { isLive } from '../store/device-entry.ts';
import { windowChoices } from '../store/view-state.ts';

export interface Shortcut {
  readonly keys: string;
  readonly words: string;
}

/** As the help sheet lists them. */
export const shortcuts: readonly Shortcut[] = [
  { keys: 'b', words: 'BQL on or off' },
  { keys: 'l', words: 'Load on or off' },
  { keys: 's', words: 'Start or stop the session' },
  { keys: 'space', words: 'Pause the view, or let it follow' },
  { keys: '1 – 5', words: 'Time window: 10 s, 30 s, 1 min, 5 min, all' },
  { keys: 'n', words: 'Write a note' },
  { keys: '[', words: 'Device list' },
  { keys: ']', words: 'Controls' },
  { keys: 't', words: 'Light or dark' },
  { keys: '?', words: 'This sheet' },
  { keys: '← →', words: 'In the charts: move the crosshair. In the session strip: look at another time' },
  { keys: 'Esc', words: 'Take the crosshair away, close what is open' },
];

/** Does what a key stands for. @returns whether it stands for anything */
export function handleShortcut(store: AppStore, key: string, openHelp: () => void): boolean {
  const entry = store.section.peek() === 'live' ? store.selected.peek() : undefined;
  const session = entry?.session;
  const settings = isLive(session)
    ? session.settings
    : entry === undefined
      ? undefined
      : store.drafts.of(entry.device.id).settings;
  const { preferences } = store;
  switch (key) {
    case 'b':
      if (entry === undefined || settings === undefined) return false;
      void store.configure(entry, { bql: { enabled: !settings.bql.enabled } });
      return true;
    case 'l':
      if (entry === undefined || settings === undefined) return false;
      void store.configure(entry, { load: { enabled: !settings.load.enabled } });
      return true;
    case 's':
      if (entry === undefined) return false;
      if (isLive(session)) void store.stop(session);
      else if (entry.device.state === 'available') void store.start(entry.device.id);
      return true;
    case ' ': {
      const sessions =
        store.section.peek() === 'compare'
          ? store.liveEntries.peek().flatMap((one) => (one.session === undefined ? [] : [one.session]))
          : session === undefined
            ? []
            : [session];
      if (sessions.length === 0) return false;
      store.togglePause(sessions);
      return true;
    }
    case 'n': {
      const field = document.getElementById('note');
      field?.focus();
      return field !== null;
    }
    case '[':
      preferences.listOpen.value = !preferences.listOpen.value;
      return true;
    case ']':
      preferences.drawerOpen.value = !preferences.drawerOpen.value;
      return true;
    case 't': {
      const isDark =
        preferences.theme.value === 'dark' ||
        (preferences.theme.value === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
      preferences.theme.value = isDark ? 'light' : 'dark';
      return true;
    }
    case '?':
      openHelp();
      return true;
    default: {
      const choice = windowChoices[Number(key) - 1];
      if (choice === undefined) return false;
      store.view.windowSeconds.value = choice.seconds;
      return true;
    }
  }
}
