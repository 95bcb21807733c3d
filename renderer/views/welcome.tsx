import { useApp } from '../app-context.ts';
import { deviceKey } from '../store/app-store.ts';
import type { DeviceEntry } from '../store/device-entry.ts';
import { Failure } from './problem-list.tsx';

/** Nothing is chosen yet: what was looked for, what to plug in, and one button that shows it all without a device. */
export function Welcome() {
  const { store } = useApp();
  const entries = store.engine.entries.value;
  if (!store.engine.ready.value) {
    return (
      <div class="welcome">
        <p class="quiet">Looking for devices …</p>
      </div>
    );
  }
  const real = entries.filter(({ device }) => device.mode === 'drive' || device.mode === 'remote');
  const modem = virtualModem(entries);
  const isBusy = modem !== undefined && store.pending.value.has(deviceKey(modem.device.id));
  const tryModem = async (deviceId: string): Promise<void> => {
    store.select(deviceId);
    await store.start(deviceId);
  };
  return (
    <div class="welcome">
      <h1>{real.length === 0 ? 'No USB network device found' : 'Choose a device'}</h1>
      {real.length === 0 ? (
        <p>
          Queuescope looked for USB Ethernet adapters, cellular modems, and phones with USB tethering switched
          on. Plug one in: it appears in the list by itself.
        </p>
      ) : (
        <p>
          {real.length === 1 ? 'One device is' : `${real.length} devices are`} in the list. Choose one to see
          what it is, then start it.
        </p>
      )}
      {modem === undefined ? null : (
        <>
          <p>
            Without a device at hand, the virtual modem shows what a queue costs: bytes in flight, BQL’s limit
            and the round trip of a ping, under load.
          </p>
          <button
            type="button"
            class={real.length === 0 ? 'button primary large' : 'button large'}
            disabled={isBusy}
            onClick={() => void tryModem(modem.device.id)}
          >
            Try the virtual modem
          </button>
          <Failure error={store.failures.value.get(deviceKey(modem.device.id))} />
        </>
      )}
    </div>
  );
}

function virtualModem(entries: readonly DeviceEntry[]): DeviceEntry | undefined {
  const virtual = entries.filter(
    (entry) => entry.device.mode === 'simulate' && entry.device.state === 'available',
  );
  return virtual.find((entry) => entry.device.function === 'wwan') ?? virtual[0];
}
