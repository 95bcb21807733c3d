import { useApp } from '../app-context.ts';
import type { Section } from '../store/app-store.ts';
import { hint } from '../ui/hint.tsx';
import { Icon, type IconName } from '../ui/icon.tsx';

const places: readonly { section: Section; icon: IconName; label: string; hint: string }[] = [
  {
    section: 'live',
    icon: 'devices',
    label: 'Devices',
    hint: 'one device, live. Again: opens and closes the list.',
  },
  {
    section: 'experiment',
    icon: 'experiment',
    label: 'Experiment',
    hint: 'what the queue costs, with a verdict.',
  },
  {
    section: 'compare',
    icon: 'compare',
    label: 'Compare',
    hint: 'several devices at once, on the same axes.',
  },
  {
    section: 'recordings',
    icon: 'recordings',
    label: 'Recordings',
    hint: 'what was recorded, and its reports.',
  },
  { section: 'settings', icon: 'settings', label: 'Settings', hint: 'theme, touch, shortcuts, version.' },
];

export function Rail({ onHelp }: { readonly onHelp: () => void }) {
  const { store } = useApp();
  return (
    <nav class="rail" aria-label="Main">
      {places.map(({ section, icon, label, hint: text }) => (
        <button
          type="button"
          key={section}
          class="rail-button"
          aria-current={store.section.value === section ? 'page' : undefined}
          onClick={() => {
            // A second click on the place one is in opens what it has at its side.
            if (section === 'live' && store.section.value === 'live') {
              store.preferences.listOpen.value = !store.preferences.listOpen.value;
            }
            store.section.value = section;
          }}
          {...hint(`${label}: ${text}`)}
        >
          <Icon name={icon} size={22} />
          <span class="visually-hidden">{label}</span>
        </button>
      ))}
      <span class="rail-space" />
      <button type="button" class="rail-button" onClick={onHelp} {...hint('Help: keyboard shortcuts (?).')}>
        <Icon name="help" size={22} />
        <span class="visually-hidden">Help</span>
      </button>
    </nav>
  );
}
