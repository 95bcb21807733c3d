import { useEffect, useRef, useState } from 'preact/hooks';
import type { Session } from '../../src/contract/session.ts';
import { formatElapsed } from '../../src/base/units.ts';
import { useApp } from '../app-context.ts';
import { BytesChart } from '../charts/bytes-chart.ts';
import { ChartStack, type StackPane, type StackSource } from '../charts/chart-stack.ts';
import { LatencyChart } from '../charts/latency-chart.ts';
import { leftGutter, rightGutter } from '../charts/line-chart.ts';
import { ThroughputChart } from '../charts/throughput-chart.ts';
import type { AppStore } from '../store/app-store.ts';
import { isLive } from '../store/device-entry.ts';
import { ChartPane, type PaneRefs } from './chart-pane.tsx';

/** What the charts of a session show, as of now. */
export function stackSource(store: AppStore, sessionId: string): StackSource | undefined {
  const session = store.engine.sessions.peek().find((one) => one.id === sessionId);
  if (session === undefined) return undefined;
  const data = store.engine.dataOf(sessionId);
  return {
    data,
    edgeUs: store.viewEndUs(session),
    windowUs: store.viewLengthUs(session),
    frozen: store.view.isFrozen(sessionId) || !isLive(session),
    sampleRateHz: session.settings.sampleRateHz,
    probeEveryUs: session.settings.ping.intervalMs * 1000,
    sessionUs: Number.isNaN(data.samples.lastUs)
      ? 0
      : Math.max(data.samples.lastUs, store.viewEndUs(session)),
    startedAt: session.startedAt,
  };
}

/** Takes what the refs of panes have collected; undefined if a part is not on the page. */
export function stackPanes(
  models: readonly StackPane['model'][],
  refs: readonly { readonly current: PaneRefs }[],
): StackPane[] {
  const panes: StackPane[] = [];
  models.forEach((model, index) => {
    const current = refs[index]?.current;
    if (current === undefined || current.frame === null || current.canvas === null) return;
    panes.push({
      model,
      frame: current.frame,
      canvas: current.canvas,
      values: current.values.filter((value) => value !== null),
    });
  });
  return panes;
}

export function emptyPaneRefs(): PaneRefs {
  return { frame: null, canvas: null, crosshair: null, values: [] };
}

/** Three charts on one time axis with one crosshair, the events under them, and the whole session at the bottom. */
export function ChartStackView({ session }: { readonly session: Session }) {
  const { store, loop, crosshair, colours } = useApp();
  const [models] = useState(() => [new BytesChart(), new LatencyChart(), new ThroughputChart()] as const);
  const bytes = useRef(emptyPaneRefs());
  const latency = useRef(emptyPaneRefs());
  const throughput = useRef(emptyPaneRefs());
  const lane = useRef<HTMLCanvasElement>(null);
  const minimap = useRef<HTMLCanvasElement>(null);
  const line = useRef<HTMLDivElement>(null);
  const label = useRef<HTMLSpanElement>(null);
  const stack = useRef<ChartStack | undefined>(undefined);
  const sessionId = session.id;

  useEffect(() => {
    if (
      lane.current === null ||
      minimap.current === null ||
      line.current === null ||
      label.current === null
    ) {
      return undefined;
    }
    const built = new ChartStack(
      {
        panes: stackPanes(models, [bytes, latency, throughput]),
        lane: lane.current,
        minimap: minimap.current,
        crosshairs: [line.current],
        crosshairLabel: label.current,
      },
      () => stackSource(store, sessionId),
      crosshair,
      colours.peek(),
      loop,
    );
    stack.current = built;
    const removeFromLoop = loop.add(built);
    const stopColours = colours.subscribe((newest) => {
      built.setColours(newest);
      loop.requestNow();
    });
    return () => {
      stopColours();
      removeFromLoop();
      built.destroy();
      stack.current = undefined;
      crosshair.moveTo(undefined);
    };
  }, [sessionId, models, store, loop, crosshair, colours]);

  const pointTo = (event: PointerEvent): void => {
    crosshair.moveTo(stack.current?.fractionAt(event.clientX, event.clientY));
  };
  const handleKey = (event: KeyboardEvent): void => {
    const step = event.shiftKey ? 0.1 : 0.01;
    if (event.key === 'ArrowLeft') crosshair.moveTo((crosshair.at ?? 1) - step);
    else if (event.key === 'ArrowRight') crosshair.moveTo((crosshair.at ?? 1) + step);
    else if (event.key === 'Home') crosshair.moveTo(0);
    else if (event.key === 'End') crosshair.moveTo(1);
    else if (event.key === 'Escape') crosshair.moveTo(undefined);
    else return;
    event.preventDefault();
  };

  return (
    <div class="stack-and-map">
      <div
        class="chart-stack"
        role="group"
        tabIndex={0}
        aria-label="Charts on one time axis. Left and right move the crosshair, Escape takes it away."
        onPointerMove={pointTo}
        onPointerLeave={() => crosshair.moveTo(undefined)}
        onKeyDown={handleKey}
      >
        <ChartPane model={models[0]} refs={bytes} />
        <ChartPane model={models[1]} refs={latency} />
        <ChartPane model={models[2]} refs={throughput} />
        <div class="event-lane">
          <canvas ref={lane} aria-hidden="true" />
        </div>
        <div class="crosshair" ref={line} hidden>
          <span class="crosshair-label" ref={label} role="status" />
        </div>
      </div>
      <Minimap session={session} canvas={minimap} />
    </div>
  );
}

interface MinimapProps {
  readonly session: Session;
  readonly canvas: { current: HTMLCanvasElement | null };
}

/** The whole session; a click or the arrow keys show another part of it, End follows the newest again. */
function Minimap({ session, canvas }: MinimapProps) {
  const { store } = useApp();
  const frozenUs = store.view.frozenEnds.value.get(session.id);

  const showAround = (clientX: number): void => {
    const source = stackSource(store, session.id);
    const bounds = canvas.current?.getBoundingClientRect();
    if (source === undefined || bounds === undefined) return;
    const fraction = (clientX - bounds.left - leftGutter) / (bounds.width - leftGutter - rightGutter);
    showEndingAt(fraction * source.sessionUs + source.windowUs / 2);
  };
  const showEndingAt = (endUs: number): void => {
    const source = stackSource(store, session.id);
    if (source === undefined) return;
    const earliestUs = Math.min(source.sessionUs, source.data.samples.firstUs + source.windowUs);
    store.view.freeze([[session.id, Math.min(source.sessionUs, Math.max(earliestUs, endUs))]]);
  };
  const handleKey = (event: KeyboardEvent): void => {
    const stepUs = store.viewLengthUs(session) / 4;
    if (event.key === 'ArrowLeft') showEndingAt(store.viewEndUs(session) - stepUs);
    else if (event.key === 'ArrowRight') showEndingAt(store.viewEndUs(session) + stepUs);
    else if (event.key === 'Home') showEndingAt(0);
    else if (event.key === 'End') store.view.follow(session.id);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      class="minimap"
      role="slider"
      tabIndex={0}
      aria-label="Shown part of the session"
      aria-valuetext={frozenUs === undefined ? 'the newest' : `up to ${formatElapsed(frozenUs)}`}
      aria-valuenow={Math.round((frozenUs ?? 0) / 1e6)}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        showAround(event.clientX);
      }}
      onPointerMove={(event) => {
        if (event.buttons === 1) showAround(event.clientX);
      }}
      onDblClick={() => store.view.follow(session.id)}
      onKeyDown={handleKey}
      data-hint="The whole session. Click or drag to look at another part; double-click follows the newest again."
    >
      <canvas ref={canvas} aria-hidden="true" />
    </div>
  );
}
