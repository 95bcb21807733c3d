import type { FoldingOverview } from '../store/folding-overview.ts';
import type { CanvasSurface } from './canvas-surface.ts';
import type { ChartView } from './chart-model.ts';
import { eventColour, isMarked } from './event-colour.ts';
import { leftGutter, rightGutter } from './line-chart.ts';
import { hatch } from './painters.ts';

/** The whole session in one strip: round trip and bytes in flight, when BQL was off, what happened, what is shown. */
export function drawMinimap(surface: CanvasSurface, view: ChartView, lengthUs: number): void {
  const context = surface.begin();
  if (context === undefined) return;
  const { colours, data } = view;
  const left = leftGutter;
  const right = surface.width - rightGutter;
  const top = 1;
  const bottom = surface.height - 1;
  const perUs = (right - left) / Math.max(1, lengthUs);

  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  context.fillStyle = colours.faintText;
  context.fillText('Session', left - 6, (top + bottom) / 2);

  for (const period of data.periods.all) {
    if (period.enabled) continue;
    const from = left + period.fromUs * perUs;
    hatch(context, from, top, Math.min(right, left + period.toUs * perUs), bottom, colours.hatch);
  }
  const box = { left, right, top: top + 3, bottom, perUs };
  fillOverview(context, data.inflightOverview, box, colours.inflightFill);
  strokeOverview(context, data.rttOverview, box, colours.roundTrip);
  for (const event of data.events.peek()) {
    if (!isMarked(event)) continue;
    context.fillStyle = eventColour(event, colours);
    context.fillRect(left + event.timeUs * perUs - 0.5, bottom - 6, 1.5, 6);
  }

  const from = Math.max(left, left + (view.edgeUs - view.windowUs) * perUs);
  const to = Math.min(right, left + view.edgeUs * perUs);
  context.strokeStyle = colours.axis;
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
  context.strokeStyle = colours.accent;
  context.lineWidth = 1.5;
  context.strokeRect(from + 0.75, top + 0.75, Math.max(4, to - from - 1.5), bottom - top - 1.5);
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly perUs: number;
}

function fillOverview(
  context: CanvasRenderingContext2D,
  overview: FoldingOverview,
  box: Box,
  colour: string,
): void {
  const scale = (box.bottom - box.top) / largest(overview);
  context.fillStyle = colour;
  for (let cell = 0; cell < overview.used; cell++) {
    const value = overview.maxAt(cell);
    if (Number.isNaN(value)) continue;
    const x = box.left + cell * overview.cellUs * box.perUs;
    const width = Math.min(overview.cellUs * box.perUs + 0.5, box.right - x);
    if (width > 0) context.fillRect(x, box.bottom - value * scale, width, value * scale);
  }
}

function strokeOverview(
  context: CanvasRenderingContext2D,
  overview: FoldingOverview,
  box: Box,
  colour: string,
): void {
  const scale = (box.bottom - box.top) / largest(overview);
  context.strokeStyle = colour;
  context.lineWidth = 1.25;
  context.beginPath();
  let drawing = false;
  let silentUs = 0;
  for (let cell = 0; cell < overview.used; cell++) {
    const value = overview.maxAt(cell);
    if (Number.isNaN(value)) {
      // Probes come more rarely than cells at first; only a longer silence is a gap.
      silentUs += overview.cellUs;
      if (silentUs > 3_000_000) drawing = false;
      continue;
    }
    silentUs = 0;
    const x = Math.min(box.right, box.left + (cell + 0.5) * overview.cellUs * box.perUs);
    if (drawing) context.lineTo(x, box.bottom - value * scale);
    else context.moveTo(x, box.bottom - value * scale);
    drawing = true;
  }
  context.stroke();
}

function largest(overview: FoldingOverview): number {
  let max = 0;
  for (let cell = 0; cell < overview.used; cell++) {
    const value = overview.maxAt(cell);
    if (value > max) max = value;
  }
  return max === 0 ? 1 : max;
}
