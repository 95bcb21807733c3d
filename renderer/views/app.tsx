import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { HintBubble } from '../ui/hint.tsx';
import { IconButton } from '../ui/icon-button.tsx';
import { CompareView } from './compare-view.tsx';
import { ExperimentView } from './experiment-view.tsx';
import { DeviceList } from './device-list.tsx';
import { Drawer } from './drawer.tsx';
import { EngineBanner } from './engine-banner.tsx';
import { HelpSheet } from './help-sheet.tsx';
import { LiveView } from './live-view.tsx';
import { Rail } from './rail.tsx';
import { RecordingsView } from './recordings-view.tsx';
import { SettingsView } from './settings-view.tsx';
import { handleShortcut } from './shortcuts.ts';
import { Welcome } from './welcome.tsx';

/** The frame: rail, device list, the place one is at, controls. */
export function App() {
  const { store } = useApp();
  const [helpOpen, setHelpOpen] = useState(false);

  useEffect(() => {
    const handleKey = (event: KeyboardEvent): void => {
      if (!store.preferences.shortcuts.peek() || event.defaultPrevented || isTyping(event)) return;
      if (handleShortcut(store, event.key, () => setHelpOpen(true))) event.preventDefault();
    };
    document.addEventListener('keydown', handleKey);
    return () => document.removeEventListener('keydown', handleKey);
  }, [store]);

  const section = store.section.value;
  const entry = store.selected.value;
  const { listOpen, drawerOpen } = store.preferences;
  const showsList = section === 'live' && listOpen.value;
  const showsDrawer = section === 'live' && drawerOpen.value && entry !== undefined;
  return (
    <>
      <div class={store.link.value.phase === 'gone' ? 'frame stale' : 'frame'}>
        <Rail onHelp={() => setHelpOpen(true)} />
        {showsList ? <DeviceList /> : null}
        <main class="main">
          <EngineBanner />
          <Place />
          {section === 'live' && entry !== undefined && !drawerOpen.value ? (
            <span class="drawer-opener">
              <IconButton
                icon="left"
                label="Open the controls"
                onClick={() => {
                  drawerOpen.value = true;
                }}
              />
            </span>
          ) : null}
        </main>
        {showsDrawer ? <Drawer entry={entry} /> : null}
      </div>
      <HelpSheet open={helpOpen} onClose={() => setHelpOpen(false)} />
      <HintBubble />
    </>
  );
}

function Place() {
  const { store } = useApp();
  const entry = store.selected.value;
  switch (store.section.value) {
    case 'live':
      return entry === undefined ? <Welcome /> : <LiveView key={entry.device.id} entry={entry} />;
    case 'experiment':
      return <ExperimentView />;
    case 'compare':
      return <CompareView />;
    case 'recordings':
      return <RecordingsView />;
    case 'settings':
      return <SettingsView />;
  }
}

/** Keys that belong to what is focused: text that is typed, a button that space presses. */
function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  const { target } = event;
  if (!(target instanceof HTMLElement)) return false;
  if (target.closest('dialog') !== null || target.isContentEditable) return true;
  if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) return true;
  if (target instanceof HTMLSelectElement) return true;
  return event.key === ' ' && target.closest('button, a, pre') !== null;
}
