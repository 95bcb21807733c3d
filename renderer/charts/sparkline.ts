import type { SessionData } from '../store/session-data.ts';
import { CanvasSurface } from './canvas-surface.ts';
import type { ChartColours } from './colours.ts';
import type { Drawable } from './frame-loop.ts';

const shownUs = 30_000_000;

/** The last 30 seconds of round trip in the size of a word. */
export class Sparkline implements Drawable {
  readonly #surface: CanvasSurface;
  readonly #data: () => SessionData | undefined;
  readonly #colours: () => ChartColours;
  #drawn = '';

  constructor(canvas: HTMLCanvasElement, data: () => SessionData | undefined, colours: () => ChartColours) {
    this.#surface = new CanvasSurface(canvas);
    this.#data = data;
    this.#colours = colours;
  }

  draw(): void {
    const parent = this.#surface.canvas.parentElement;
    const data = this.#data();
    if (parent === null || data === undefined) return;
    const colours = this.#colours();
    const key = `${data.revision} ${colours.roundTrip}`;
    const resized = this.#surface.resize(parent.clientWidth, parent.clientHeight, window.devicePixelRatio);
    if (!resized && key === this.#drawn) return;
    this.#drawn = key;
    const context = this.#surface.begin();
    if (context === undefined) return;
    const { probes } = data;
    const edgeUs = probes.lastUs;
    const from = probes.indexAtOrAfter(edgeUs - shownUs);
    const rtt = probes.column('rttUs');
    let max = 0;
    for (let i = from; i < probes.length; i++) max = Math.max(max, rtt[i] || 0);
    if (max === 0) return;
    const { width, height } = this.#surface;
    context.strokeStyle = colours.roundTrip;
    context.lineWidth = 1.25;
    context.beginPath();
    let drawing = false;
    for (let i = from; i < probes.length; i++) {
      const value = rtt[i] ?? Number.NaN;
      if (Number.isNaN(value)) {
        drawing = false;
        continue;
      }
      const x = width + (((probes.times[i] ?? 0) - edgeUs) / shownUs) * width;
      const y = height - 1.5 - (value / max) * (height - 3);
      if (drawing) context.lineTo(x, y);
      else context.moveTo(x, y);
      drawing = true;
    }
    context.stroke();
    // The zero line, so that the height of the line above it means something.
    context.fillStyle = colours.grid;
    context.fillRect(0, height - 1, width, 1);
  }
}
