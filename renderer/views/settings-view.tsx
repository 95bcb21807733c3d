import { useEffect, useState } from 'preact/hooks';
import type { MethodResult } from '../../src/contract/methods.ts';
import { useApp } from '../app-context.ts';
import { Segmented } from '../ui/segmented.tsx';
import { Switch } from '../ui/switch.tsx';

/** How this window looks and behaves, and what it is. */
export function SettingsView() {
  const { store } = useApp();
  const { preferences } = store;
  const link = store.link.value;
  const [info, setInfo] = useState<MethodResult<'engine.info'>>();
  useEffect(() => {
    if (link.phase !== 'open') return;
    link.api.call('engine.info', {}).then(setInfo, () => setInfo(undefined));
  }, [link]);
  return (
    <div class="page">
      <h1>Settings</h1>
      <section class="settings-group">
        <h2>Window</h2>
        <div class="field">
          <span class="field-label">Theme</span>
          <Segmented
            label="Theme"
            choices={[
              { value: 'system', label: 'System', hint: 'As the system is set.' },
              { value: 'light', label: 'Light', hint: 'Dark on white, for sunlight.' },
              { value: 'dark', label: 'Dark', hint: 'Light on black.' },
            ]}
            value={preferences.theme.value}
            onChoose={(theme) => {
              preferences.theme.value = theme;
            }}
          />
        </div>
        <Switch
          label="Touch mode"
          hint="Larger buttons, for fingers and gloves."
          on={preferences.touch.value}
          onToggle={(on) => {
            preferences.touch.value = on;
          }}
        />
        <Switch
          label="Shortcuts of a single key"
          hint="Off: only the keys that every page has."
          on={preferences.shortcuts.value}
          onToggle={(on) => {
            preferences.shortcuts.value = on;
          }}
        />
      </section>
      <section class="settings-group">
        <h2>About</h2>
        <p>
          {info === undefined
            ? 'Queuescope; the engine has not said its version.'
            : `Queuescope ${info.version} on ${info.platform}, contract version ${info.contractVersion}.`}
        </p>
      </section>
    </div>
  );
}
