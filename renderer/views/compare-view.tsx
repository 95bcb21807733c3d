import { useEffect, useRef, useState } from 'preact/hooks';
import { formatBitRate, formatBytes, formatDuration, formatShare } from '../../src/base/units.ts';
import type { Session } from '../../src/contract/session.ts';
import { useApp } from '../app-context.ts';
import { BytesChart } from '../charts/bytes-chart.ts';
import { ChartStack } from '../charts/chart-stack.ts';
import { LatencyChart } from '../charts/latency-chart.ts';
import { deviceKey } from '../store/app-store.ts';
import { type DeviceEntry, isLive, statusOf } from '../store/device-entry.ts';
import { StatusDot } from '../ui/status-dot.tsx';
import { Switch } from '../ui/switch.tsx';
import { ChartPane } from './chart-pane.tsx';
import { emptyPaneRefs, stackPanes, stackSource } from './chart-stack-view.tsx';
import { Failure } from './problem-list.tsx';
import { WindowControls } from './window-controls.tsx';

/** The value axes of several stacks of charts, held to the same lengths. */
class SharedAxes {
  readonly #stacks = new Set<ChartStack>();

  add(stack: ChartStack): () => void {
    this.#stacks.add(stack);
    return () => {
      this.#stacks.delete(stack);
    };
  }

  /** The largest value on the n-th chart of any stack. */
  largest(index: number): number {
    let max = Number.NaN;
    for (const stack of this.#stacks) {
      const value = stack.largest(index);
      if (!(max >= value) && !Number.isNaN(value)) max = value;
    }
    return max;
  }
}

/** All sessions that run, on the same axes, and what else could be started. */
export function CompareView() {
  const { store } = useApp();
  const [axes] = useState(() => new SharedAxes());
  const entries = store.liveEntries.value;
  const sessions = entries.flatMap((entry) => (entry.session === undefined ? [] : [entry.session]));
  const startable = store.engine.entries.value.filter(
    (entry) => entry.device.state === 'available' && !isLive(entry.session),
  );
  const allOn = sessions.every((session) => session.settings.bql.enabled);
  return (
    <div class="compare">
      <header class="live-header">
        <h1>Compare</h1>
        <span class="quiet">
          {sessions.length === 0
            ? 'No session runs. Start two or more: they stand one below the other, on the same axes.'
            : 'Same time axis, same value axes.'}
        </span>
        <span class="space" />
        {sessions.length === 0 ? null : (
          <>
            <Switch
              label="BQL on all"
              hint="Switches BQL of every session that runs."
              on={allOn}
              onToggle={(enabled) => {
                for (const entry of entries) void store.configure(entry, { bql: { enabled } });
              }}
            />
            <WindowControls sessions={sessions} />
          </>
        )}
      </header>
      {startable.length === 0 ? null : (
        <div class="toolbar start-more">
          <span>Start:</span>
          {startable.map((entry) => (
            <StartButton key={entry.device.id} entry={entry} />
          ))}
        </div>
      )}
      {startable.map((entry) => (
        <Failure key={entry.device.id} error={store.failures.value.get(deviceKey(entry.device.id))} />
      ))}
      <div class="compare-rows">
        {entries.map((entry) =>
          entry.session === undefined ? null : (
            <CompareRow key={entry.session.id} entry={entry} session={entry.session} axes={axes} />
          ),
        )}
      </div>
    </div>
  );
}

function StartButton({ entry }: { readonly entry: DeviceEntry }) {
  const { store } = useApp();
  return (
    <button
      type="button"
      class="button small"
      disabled={store.pending.value.has(deviceKey(entry.device.id))}
      onClick={() => void store.start(entry.device.id)}
    >
      {entry.device.name}
    </button>
  );
}

interface CompareRowProps {
  readonly entry: DeviceEntry;
  readonly session: Session;
  readonly axes: SharedAxes;
}

function CompareRow({ entry, session, axes }: CompareRowProps) {
  const { store, loop, crosshair, colours } = useApp();
  const [models] = useState(() => [new LatencyChart(), new BytesChart()] as const);
  const latency = useRef(emptyPaneRefs());
  const bytes = useRef(emptyPaneRefs());
  const stack = useRef<ChartStack | undefined>(undefined);
  const sessionId = session.id;

  useEffect(() => {
    const ownCrosshairs = [latency.current.crosshair, bytes.current.crosshair].filter(
      (line) => line !== null,
    );
    const built = new ChartStack(
      { panes: stackPanes(models, [latency, bytes]), crosshairs: ownCrosshairs },
      () => stackSource(store, sessionId),
      crosshair,
      colours.peek(),
      loop,
      (index) => axes.largest(index),
    );
    stack.current = built;
    const leaveAxes = axes.add(built);
    const removeFromLoop = loop.add(built);
    const stopColours = colours.subscribe((newest) => {
      built.setColours(newest);
      loop.requestNow();
    });
    return () => {
      stopColours();
      removeFromLoop();
      leaveAxes();
      built.destroy();
      stack.current = undefined;
    };
  }, [sessionId, models, axes, store, loop, crosshair, colours]);

  return (
    <section class="compare-row" aria-label={entry.device.name}>
      <header class="compare-header">
        <button type="button" class="link" onClick={() => store.select(entry.device.id)}>
          {entry.device.name}
        </button>
        <StatusDot status={statusOf(entry)} />
        <Switch
          label="BQL"
          hint="Byte Queue Limits of this session."
          on={session.settings.bql.enabled}
          onToggle={(enabled) => void store.configure(entry, { bql: { enabled } })}
        />
        <CompactReadings session={session} />
        <span class="space" />
        <button type="button" class="button small" onClick={() => void store.stop(session)}>
          Stop
        </button>
      </header>
      <div
        class="compare-charts"
        onPointerMove={(event) => crosshair.moveTo(stack.current?.fractionAt(event.clientX, event.clientY))}
        onPointerLeave={() => crosshair.moveTo(undefined)}
      >
        <ChartPane model={models[0]} refs={latency} ownCrosshair />
        <ChartPane model={models[1]} refs={bytes} ownCrosshair />
      </div>
    </section>
  );
}

function CompactReadings({ session }: { readonly session: Session }) {
  const { store } = useApp();
  const now = store.readingsOf(session).value?.now;
  if (now === undefined) return null;
  const loss = now.probeCount === 0 ? Number.NaN : now.lostProbes / now.probeCount;
  return (
    <span class="compact-readings">
      <span>
        round trip <b>{formatDuration(now.rttP50Us)}</b> p50, <b>{formatDuration(now.rttP95Us)}</b> p95
      </span>
      <span>
        in flight <b>{formatBytes(now.inflightP50Bytes)}</b>
      </span>
      <span>
        up <b>{formatBitRate(now.txBitsPerSecond)}</b>
      </span>
      <span>
        loss <b>{formatShare(loss)}</b>
      </span>
    </span>
  );
}
