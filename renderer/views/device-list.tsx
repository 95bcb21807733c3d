import { useApp } from '../app-context.ts';
import type { DeviceEntry } from '../store/device-entry.ts';
import { isLive, problemsOf, statusOf } from '../store/device-entry.ts';
import { IconButton } from '../ui/icon-button.tsx';
import { StatusDot } from '../ui/status-dot.tsx';
import { Badges } from './badges.tsx';
import { SparklineView } from './sparkline-view.tsx';

/** All devices: those that can be driven first, then the kernel's interfaces, then the built-in ones. */
export function DeviceList() {
  const { store } = useApp();
  const entries = store.engine.entries.value;
  const real = entries.filter(({ device }) => device.mode === 'drive' || device.mode === 'remote');
  const observed = entries.filter((entry) => entry.device.mode === 'observe');
  const virtual = entries.filter((entry) => entry.device.mode === 'simulate');
  return (
    <section class="device-list" aria-label="Devices" onKeyDown={moveFocus}>
      <header class="panel-header">
        <h2>Devices</h2>
        <IconButton
          icon="left"
          label="Close the device list"
          onClick={() => {
            store.preferences.listOpen.value = false;
          }}
        />
      </header>
      <div class="panel-body">
        <h3>On this machine</h3>
        {real.length === 0 ? (
          <p class="quiet">
            {store.engine.ready.value ? 'No USB network device is plugged in.' : 'Looking …'}
          </p>
        ) : (
          <DeviceGroup entries={real} />
        )}
        {observed.length === 0 ? null : (
          <>
            <h3>Kept by the kernel</h3>
            <DeviceGroup entries={observed} />
          </>
        )}
        {virtual.length === 0 ? null : (
          <>
            <h3>Virtual</h3>
            <DeviceGroup entries={virtual} />
          </>
        )}
      </div>
    </section>
  );
}

function DeviceGroup({ entries }: { readonly entries: readonly DeviceEntry[] }) {
  return (
    <ul>
      {entries.map((entry) => (
        <li key={entry.device.id}>
          <DeviceCard entry={entry} />
        </li>
      ))}
    </ul>
  );
}

function DeviceCard({ entry }: { readonly entry: DeviceEntry }) {
  const { store } = useApp();
  const { device, session } = entry;
  const isSelected = store.selectedId.value === device.id && store.section.value === 'live';
  const problems = problemsOf(entry);
  const worst = problems[0]?.severity;
  return (
    <button
      type="button"
      class="device-card"
      aria-current={isSelected ? 'true' : undefined}
      onClick={() => store.select(device.id)}
    >
      <span class="device-name">{device.name}</span>
      <span class="device-status">
        <StatusDot status={statusOf(entry)} />
        {worst === undefined ? null : (
          <span class={`problem-count problem-count-${worst}`}>
            {problems.length === 1 ? '1 problem' : `${problems.length} problems`}
          </span>
        )}
      </span>
      {device.description === undefined ? null : <span class="device-description">{device.description}</span>}
      <Badges device={device} />
      {isLive(session) ? <SparklineView sessionId={session.id} /> : null}
    </button>
  );
}

/** Arrow keys go from one device to the next, as in any list. */
function moveFocus(event: KeyboardEvent): void {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
  if (!(event.currentTarget instanceof HTMLElement)) return;
  const cards = [...event.currentTarget.querySelectorAll<HTMLElement>('.device-card')];
  const at = cards.findIndex((card) => card === document.activeElement);
  if (at < 0) return;
  event.preventDefault();
  cards[at + (event.key === 'ArrowDown' ? 1 : -1)]?.focus();
}
