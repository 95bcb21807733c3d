import { useApp } from '../app-context.ts';
import { deviceKey } from '../store/app-store.ts';
import type { DeviceEntry } from '../store/device-entry.ts';
import { hint } from '../ui/hint.tsx';

/** A device without a session: what will happen, how it gets its address, and the button. */
export function StartPanel({ entry }: { readonly entry: DeviceEntry }) {
  const { store } = useApp();
  const { device } = entry;
  const isObserved = device.mode === 'observe';
  const isBusy = store.pending.value.has(deviceKey(device.id));

  if (device.state !== 'available') {
    return (
      <div class="start-panel">
        <h2>
          {device.state === 'unsupported'
            ? 'This device cannot be driven'
            : 'This device cannot be opened now'}
        </h2>
        <p>
          {device.state === 'unsupported' && device.reason !== undefined
            ? device.reason
            : 'What is wrong, and what to do about it, stands above. The device is looked at again by itself.'}
        </p>
      </div>
    );
  }
  return (
    <div class="start-panel">
      <h2>Ready to measure</h2>
      <p>{device.description ?? whatHappens(entry)}</p>
      <p class="quiet">
        {isObserved
          ? 'A prioritised ping of the system measures the round trip; what other programs send fills the queue.'
          : 'A prioritised ping measures the round trip while a UDP load fills the queue. Switch BQL off and on at the side to see what the queue costs.'}
      </p>
      <button
        type="button"
        class="button primary large"
        disabled={isBusy}
        onClick={() => void store.start(device.id)}
        {...hint(
          isObserved
            ? 'Reads what the kernel shows of the interface; nothing is changed (s).'
            : 'Takes the device, waits for its link and address, then measures (s).',
        )}
      >
        {isBusy ? 'Starting …' : 'Start'}
      </button>
    </div>
  );
}

function whatHappens({ device }: DeviceEntry): string {
  return device.mode === 'observe'
    ? 'The kernel keeps the device; its BQL files and counters are read while it works.'
    : 'Queuescope takes the device over from the kernel, drives it itself, and gives it back at the end.';
}
