import { formatElapsed } from '../../src/base/units.ts';
import type { SessionData } from '../store/session-data.ts';
import { CanvasSurface } from './canvas-surface.ts';
import type { ChartModel, ChartView } from './chart-model.ts';
import type { ChartColours } from './colours.ts';
import { drawEventLane, eventNear } from './event-lane.ts';
import type { Drawable, FrameLoop } from './frame-loop.ts';
import { leftGutter, LineChart, rightGutter } from './line-chart.ts';
import { drawMinimap } from './minimap.ts';
import { type TimeTick, timeTicks } from './time-axis.ts';

/** What a stack shows; asked for anew with each frame. */
export interface StackSource {
  readonly data: SessionData;
  readonly edgeUs: number;
  readonly windowUs: number;
  /** The right edge is not now: the time axis says when it was. */
  readonly frozen: boolean;
  readonly sampleRateHz: number;
  readonly probeEveryUs: number;
  /** Length of the whole session up to now. */
  readonly sessionUs: number;
  /** ISO 8601 time of session time 0. */
  readonly startedAt: string;
}

/** The elements of the page that one chart of the stack draws into. */
export interface StackPane {
  readonly model: ChartModel;
  /** The canvas fills it. */
  readonly frame: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  /** One a legend entry; its text is the value. */
  readonly values: readonly HTMLElement[];
}

export interface StackElements {
  readonly panes: readonly StackPane[];
  /** Events and the labels of the time axis; without it, each chart has labels of its own. */
  readonly lane?: HTMLCanvasElement;
  readonly minimap?: HTMLCanvasElement;
  /** Lines that are moved along x; each stands at the left border of what it runs through. */
  readonly crosshairs: readonly HTMLElement[];
  readonly crosshairLabel?: HTMLElement;
}

/** Where the crosshair is, 0 (left) … 1 (right), shared by all stacks that show the same axis. */
export class Crosshair {
  readonly #onMove: () => void;
  #at: number | undefined;

  constructor(onMove: () => void) {
    this.#onMove = onMove;
  }

  get at(): number | undefined {
    return this.#at;
  }

  moveTo(at: number | undefined): void {
    const clamped = at === undefined ? undefined : Math.min(1, Math.max(0, at));
    if (clamped === this.#at) return;
    this.#at = clamped;
    this.#onMove();
  }
}

/** How often figures next to a chart change; faster cannot be read. */
const readoutEveryMs = 200;

/**
 * Charts on one time axis with one crosshair, and the strips under them. Draws only what is visible and only when
 * something changed.
 */
export class ChartStack implements Drawable {
  readonly #elements: StackElements;
  readonly #source: () => StackSource | undefined;
  readonly #crosshair: Crosshair;
  readonly #charts: readonly LineChart[];
  readonly #lane: CanvasSurface | undefined;
  readonly #minimap: CanvasSurface | undefined;
  readonly #resizes: ResizeObserver;
  readonly #sightings: IntersectionObserver;
  readonly #hidden = new Set<Element>();
  readonly #sharedMax: ((index: number) => number) | undefined;
  #colours: ChartColours;
  #drawnKey = '';
  #mapKey = '';
  #jumpKey = '';
  #ticks: readonly TimeTick[] = [];
  #ticksKey = '';
  #readoutDueMs = 0;
  /** Where the crosshair was when the figures were last renewed. */
  #readAt: number | undefined;
  #view: ChartView | undefined;
  #startedAtMs = 0;

  /** @param sharedMax the least that the value axis of the n-th chart must reach */
  constructor(
    elements: StackElements,
    source: () => StackSource | undefined,
    crosshair: Crosshair,
    colours: ChartColours,
    loop: FrameLoop,
    sharedMax?: (index: number) => number,
  ) {
    this.#elements = elements;
    this.#source = source;
    this.#crosshair = crosshair;
    this.#colours = colours;
    this.#sharedMax = sharedMax;
    this.#charts = elements.panes.map(
      ({ canvas, model }) => new LineChart(canvas, model.lines, model, colours, elements.lane === undefined),
    );
    this.#lane = elements.lane === undefined ? undefined : new CanvasSurface(elements.lane);
    this.#minimap = elements.minimap === undefined ? undefined : new CanvasSurface(elements.minimap);
    this.#resizes = new ResizeObserver(() => loop.requestNow());
    this.#sightings = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) this.#hidden.delete(entry.target);
        else this.#hidden.add(entry.target);
      }
      this.#drawnKey = '';
      loop.request();
    });
    for (const { frame } of elements.panes) {
      this.#resizes.observe(frame);
      this.#sightings.observe(frame);
    }
  }

  /** The largest value on the left axis of the n-th chart, in the frame drawn last. */
  largest(index: number): number {
    return this.#elements.panes[index]?.model.largest ?? Number.NaN;
  }

  setColours(colours: ChartColours): void {
    this.#colours = colours;
    for (const chart of this.#charts) chart.setColours(colours);
    this.#drawnKey = '';
  }

  /** Turns a place on the page into one on the time axis, 0 … 1; undefined outside of the charts. */
  fractionAt(clientX: number, clientY: number): number | undefined {
    let fraction: number | undefined;
    for (const { frame } of this.#elements.panes) {
      const bounds = frame.getBoundingClientRect();
      const at = (clientX - bounds.left - leftGutter) / (bounds.width - leftGutter - rightGutter);
      if (at < -0.02 || at > 1.02) continue;
      fraction = at;
      if (clientY >= bounds.top && clientY <= bounds.bottom) break;
    }
    return fraction;
  }

  draw(nowMs: number): void {
    const source = this.#source();
    if (source === undefined) return;
    const resized = this.#resize();
    const key = this.#keyOf(source);
    const changed = resized || key !== this.#drawnKey;
    if (changed) {
      this.#drawnKey = key;
      this.#startedAtMs = Date.parse(source.startedAt);
      this.#view = this.#viewOf(source, nowMs);
      this.#drawCharts(this.#view);
      if (this.#lane !== undefined) drawEventLane(this.#lane, this.#view);
    }
    // The whole session goes on growing while a part of it is looked at.
    const mapKey = `${key} ${source.data.revision}`;
    if (this.#minimap !== undefined && this.#view !== undefined && (resized || mapKey !== this.#mapKey)) {
      this.#mapKey = mapKey;
      drawMinimap(this.#minimap, this.#view, source.sessionUs);
    }
    this.#placeCrosshair(nowMs, changed);
  }

  destroy(): void {
    this.#resizes.disconnect();
    this.#sightings.disconnect();
    for (const chart of this.#charts) chart.destroy();
  }

  /** What a drawing of the charts depends on: as long as it is the same, so are they. */
  #keyOf({ data, edgeUs, windowUs, frozen }: StackSource): string {
    // Of a frozen view only what comes late can change anything: the fate of a probe, a note.
    const content = frozen
      ? `${data.samples.indexAtOrAfter(edgeUs)} ${data.probes.indexAtOrAfter(edgeUs)} ${data.events.peek().length}`
      : data.revision;
    const shared =
      this.#sharedMax === undefined ? '' : this.#charts.map((_, index) => this.#sharedMax?.(index)).join();
    return `${content} ${edgeUs} ${windowUs} ${frozen} ${shared}`;
  }

  #viewOf({ data, edgeUs, windowUs, frozen, ...source }: StackSource, nowMs: number): ChartView {
    const jumpKey = `${source.startedAt} ${windowUs} ${frozen ? edgeUs : ''}`;
    const jumped = jumpKey !== this.#jumpKey;
    this.#jumpKey = jumpKey;
    return {
      data,
      edgeUs,
      windowUs,
      sampleGapUs: Math.max(250_000, 3.5e6 / source.sampleRateHz),
      probeEveryUs: source.probeEveryUs,
      ticks: this.#ticksOf(windowUs / 1e6, this.#charts[0]?.plotWidth ?? 1, frozen ? edgeUs : undefined),
      colours: this.#colours,
      nowMs,
      jumped,
    };
  }

  /** The same array as long as the axis is the same, so that charts can tell. */
  #ticksOf(windowSeconds: number, plotWidth: number, frozenEdgeUs: number | undefined): readonly TimeTick[] {
    const key = `${windowSeconds} ${plotWidth} ${frozenEdgeUs}`;
    if (key !== this.#ticksKey) {
      this.#ticksKey = key;
      this.#ticks = timeTicks(windowSeconds, plotWidth, frozenEdgeUs);
    }
    return this.#ticks;
  }

  #drawCharts(view: ChartView): void {
    this.#elements.panes.forEach(({ model, frame }, index) => {
      const chart = this.#charts[index];
      if (chart === undefined || this.#hidden.has(frame) || chart.height === 0) return;
      model.draw(chart, view, this.#sharedMax?.(index));
    });
  }

  /** Sizes are read together before anything is written, so the page is laid out once. */
  #resize(): boolean {
    const ratio = window.devicePixelRatio;
    const frames = this.#elements.panes.map(({ frame }) => [frame.clientWidth, frame.clientHeight] as const);
    const strips = [this.#lane, this.#minimap].map((strip) => {
      const parent = strip?.canvas.parentElement;
      return [parent?.clientWidth ?? 0, parent?.clientHeight ?? 0] as const;
    });
    let changed = false;
    this.#charts.forEach((chart, index) => {
      const [width, height] = frames[index] ?? [0, 0];
      if (width > 0 && height > 0 && chart.resize(width, height, ratio)) changed = true;
    });
    [this.#lane, this.#minimap].forEach((strip, index) => {
      const [width, height] = strips[index] ?? [0, 0];
      if (strip?.resize(width, height, ratio) === true) changed = true;
    });
    return changed;
  }

  #placeCrosshair(nowMs: number, changed: boolean): void {
    const view = this.#view;
    const { crosshairs, crosshairLabel } = this.#elements;
    const { at } = this.#crosshair;
    const chart = this.#charts[0];
    if (view === undefined || chart === undefined) return;
    for (const line of crosshairs) {
      line.hidden = at === undefined;
      if (at === undefined) continue;
      line.style.transform = `translateX(${Math.round(leftGutter + at * chart.plotWidth)}px)`;
      line.classList.toggle('flip', at > 0.7);
    }
    const timeUs = at === undefined ? view.edgeUs : view.edgeUs - (1 - at) * view.windowUs;
    const moved = at !== this.#readAt;
    if (!moved && (!changed || nowMs < this.#readoutDueMs)) return;
    this.#readAt = at;
    this.#readoutDueMs = nowMs + readoutEveryMs;
    for (const { model, values } of this.#elements.panes) {
      const texts = model.readout(view.data, timeUs);
      values.forEach((element, index) => setText(element, texts[index] ?? ''));
    }
    if (crosshairLabel !== undefined && at !== undefined) {
      const event = eventNear(view, timeUs, chart.plotWidth);
      const clock = new Date(this.#startedAtMs + timeUs / 1000).toLocaleTimeString([], { hour12: false });
      setText(
        crosshairLabel,
        `${formatElapsed(timeUs, true)} · ${clock}${event === undefined ? '' : ` · ${event.text}`}`,
      );
    }
  }
}

function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
