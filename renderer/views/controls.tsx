import { formatBitRate, formatBytes, formatCount, formatDuration } from '../../src/base/units.ts';
import {
  type BqlSettings,
  type LoadSettings,
  maxLimitBytes,
  type QdiscKind,
  qdiscKinds,
  type QdiscSettings,
  type SessionSettings,
} from '../../src/contract/settings.ts';
import { useApp } from '../app-context.ts';
import { settingsKey } from '../store/app-store.ts';
import { type DeviceEntry, isLive } from '../store/device-entry.ts';
import { NumberField } from '../ui/number-field.tsx';
import { SelectField } from '../ui/select-field.tsx';
import { Switch } from '../ui/switch.tsx';
import { Failure } from './problem-list.tsx';
import { StartOptions } from './start-options.tsx';

/** What can be changed while a session runs; without one, what the next will start with. */
export function Controls({ entry }: { readonly entry: DeviceEntry }) {
  const { store } = useApp();
  const { device, session } = entry;
  const settings: SessionSettings = isLive(session) ? session.settings : store.drafts.of(device.id).settings;
  const { bql, qdisc, load, ping } = settings;
  const isObserved = device.mode === 'observe';
  const bqlWords = whyNoBql(entry);
  return (
    <section class="controls" aria-label="Controls">
      <Failure error={store.failures.value.get(settingsKey(device.id))} />
      {isLive(session) ? null : <StartOptions device={device} />}
      {bqlWords === undefined ? <BqlControls entry={entry} bql={bql} /> : <p class="quiet">{bqlWords}</p>}
      {isObserved ? null : <QdiscControls entry={entry} qdisc={qdisc} />}
      {isObserved ? (
        <p class="quiet">
          No load is made here: what other programs send through {device.netdev ?? device.name} is what fills
          its queue.
        </p>
      ) : (
        <LoadControls entry={entry} load={load} />
      )}
      <div class="control-group">
        <Switch
          label="Ping"
          hint="An ICMP echo with TOS 0x10, which overtakes the load in the qdisc but not in the driver."
          on={ping.enabled}
          onToggle={(enabled) => void store.configure(entry, { ping: { enabled } })}
        />
        <NumberField
          label="Interval"
          unit="ms"
          hint="Time from one ping to the next."
          value={ping.intervalMs}
          min={10}
          max={60_000}
          whole
          onChange={(intervalMs) => void store.configure(entry, { ping: { intervalMs } })}
        />
      </div>
    </section>
  );
}

/** Why there is nothing of BQL to be set at the moment; undefined: there is. */
function whyNoBql({ device, session }: DeviceEntry): string | undefined {
  if (device.mode !== 'observe') return undefined;
  if (!isLive(session)) return 'BQL’s limits stay as they are; they can be changed while a session runs.';
  return session.problems.some(({ id }) => id === 'no-bql')
    ? 'This interface has no Byte Queue Limits that could be set.'
    : undefined;
}

function BqlControls({ entry, bql }: { readonly entry: DeviceEntry; readonly bql: BqlSettings }) {
  const { store } = useApp();
  const isObserved = entry.device.mode === 'observe';
  return (
    <div class="control-group">
      <Switch
        label="BQL"
        hint={
          isObserved
            ? 'Byte Queue Limits of the kernel. Off: limit_min is raised above all that the driver takes, and put back at the end; that needs root (b).'
            : 'Byte Queue Limits: holds back what the device cannot send at once, so that the queue in it stays short (b).'
        }
        on={bql.enabled}
        onToggle={(enabled) => void store.configure(entry, { bql: { enabled } })}
      />
      <NumberField
        label="limit_min"
        unit="bytes"
        hint="BQL never sets its limit lower than this."
        value={bql.limitMinBytes}
        min={0}
        max={maxLimitBytes}
        whole
        meaning={bql.limitMinBytes === 0 ? '' : formatBytes(bql.limitMinBytes)}
        onChange={(limitMinBytes) => void store.configure(entry, { bql: { limitMinBytes } })}
      />
      <NumberField
        label="limit_max"
        unit="bytes"
        hint="BQL never sets its limit higher than this. An empty field: as high as it wants."
        value={bql.limitMaxBytes}
        min={0}
        max={maxLimitBytes}
        whole
        empty={{ value: maxLimitBytes, word: 'none' }}
        meaning={bql.limitMaxBytes === maxLimitBytes ? '' : formatBytes(bql.limitMaxBytes)}
        onChange={(limitMaxBytes) => void store.configure(entry, { bql: { limitMaxBytes } })}
      />
      <NumberField
        label="hold_time"
        unit="ms"
        hint="How long BQL watches a slack queue before it lowers its limit."
        value={bql.holdTimeMs}
        min={0}
        max={60_000}
        whole
        onChange={(holdTimeMs) => void store.configure(entry, { bql: { holdTimeMs } })}
      />
    </div>
  );
}

const qdiscChoices = qdiscKinds.map((kind) => ({ value: kind, label: kind }));
const qdiscHints: Readonly<Record<QdiscKind, string>> = {
  pfifo_fast: 'Three bands by priority, each first in, first out: Linux’s own choice where no other is set.',
  fq_codel:
    'A queue for each flow, in turns, each kept short by dropping or marking: the default of most distributions.',
  pfifo: 'One queue, first in, first out: no packet overtakes another.',
};

function QdiscControls({ entry, qdisc }: { readonly entry: DeviceEntry; readonly qdisc: QdiscSettings }) {
  const { store } = useApp();
  const configure = (changes: Partial<QdiscSettings>): void =>
    void store.configure(entry, { qdisc: changes });
  return (
    <div class="control-group">
      <SelectField
        label="Qdisc"
        hint={`The queueing discipline above the driver. ${qdiscHints[qdisc.kind]} What waits is dropped when it is changed.`}
        choices={qdiscChoices}
        value={qdisc.kind}
        onChoose={(kind) => configure({ kind })}
      />
      {qdisc.kind === 'fq_codel' ? (
        <>
          <Switch
            label="ECN"
            hint="Packets of senders that speak ECN are marked in place of being dropped."
            on={qdisc.ecn}
            onToggle={(ecn) => configure({ ecn })}
          />
          <NumberField
            label="target"
            unit="ms"
            hint="The wait that each flow’s queue may always have."
            value={qdisc.targetUs / 1000}
            min={0}
            max={10_000}
            onChange={(targetMs) => configure({ targetUs: Math.round(targetMs * 1000) })}
          />
          <NumberField
            label="interval"
            unit="ms"
            hint="For so long a queue must have been above the target before anything is dropped: the slowest usual round trip."
            value={qdisc.intervalUs / 1000}
            min={0.001}
            max={60_000}
            onChange={(intervalMs) => configure({ intervalUs: Math.round(intervalMs * 1000) })}
          />
        </>
      ) : null}
    </div>
  );
}

function LoadControls({ entry, load }: { readonly entry: DeviceEntry; readonly load: LoadSettings }) {
  const { store } = useApp();
  return (
    <div class="control-group">
      <Switch
        label="Load"
        hint="A stream of UDP packets to the target that fills the queue (l)."
        on={load.enabled}
        onToggle={(enabled) => void store.configure(entry, { load: { enabled } })}
      />
      <NumberField
        label="Rate"
        unit="Mbit/s"
        hint="Target rate of the load. 0: as fast as the queue takes it."
        value={load.rateBitsPerSecond / 1e6}
        min={0}
        max={20_000}
        meaning={
          load.rateBitsPerSecond === 0
            ? 'As fast as the queue takes it.'
            : formatBitRate(load.rateBitsPerSecond)
        }
        onChange={(megabits) => void store.configure(entry, { load: { rateBitsPerSecond: megabits * 1e6 } })}
      />
      <NumberField
        label="Payload"
        unit="bytes"
        hint="UDP payload of each packet of the load; 1,472 makes full Ethernet frames of 1,514 bytes."
        value={load.payloadBytes}
        min={0}
        max={1472}
        whole
        onChange={(payloadBytes) => void store.configure(entry, { load: { payloadBytes } })}
      />
    </div>
  );
}

/** What is in flight right now, in words that can be checked by hand. */
export function QueueArithmetic({ entry }: { readonly entry: DeviceEntry }) {
  const { store } = useApp();
  const { session } = entry;
  if (session?.state !== 'running') return null;
  const readings = store.readingsOf(session).value;
  if (readings === undefined || !(readings.lastTxTransfers > 0)) return null;
  const { lastTxTransfers: transfers, lastInflightBytes: bytes, now } = readings;
  const rate = now.txBitsPerSecond;
  const each = bytes / transfers;
  const waitUs = ((bytes * 8) / rate) * 1e6;
  const waits = rate > 0 ? ` = ${formatDuration(waitUs)} at ${formatBitRate(rate)}` : '';
  return (
    <section class="arithmetic" aria-label="Queue arithmetic">
      <h3>In words</h3>
      <p>
        {formatCount(transfers)} {transfers === 1 ? 'transfer' : 'transfers'} of {formatCount(each)} bytes ={' '}
        {formatBytes(bytes)}
        {waits}.
      </p>
      <p class="quiet">
        {waits === ''
          ? ''
          : 'So long does a packet wait that is handed to the driver now, whatever its priority. '}
        {now.bqlEnabled
          ? 'BQL holds back the rest above the driver.'
          : 'Only the driver’s own queue length holds back.'}
      </p>
    </section>
  );
}
