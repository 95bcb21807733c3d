import type { SessionEvent } from '../../src/contract/session.ts';
import type { CanvasSurface } from './canvas-surface.ts';
import type { ChartView } from './chart-model.ts';
import { eventColour } from './event-colour.ts';
import { leftGutter, rightGutter } from './line-chart.ts';

/** Height of the strip of marks; the labels of the time axis stand under it. */
const marksHeight = 20;
const font = '11px system-ui, sans-serif';

/** Draws what happened, and under it the labels of the time axis, on the time axis of the charts above. */
export function drawEventLane(surface: CanvasSurface, view: ChartView): void {
  const context = surface.begin();
  if (context === undefined) return;
  const { colours } = view;
  const left = leftGutter;
  const right = surface.width - rightGutter;
  const perSecond = (right - left) / (view.windowUs / 1e6);
  context.font = font;
  context.textBaseline = 'middle';

  context.fillStyle = colours.faintText;
  context.textAlign = 'right';
  context.fillText('Events', left - 6, marksHeight / 2);

  context.textAlign = 'left';
  const labelled: { x: number; event: SessionEvent }[] = [];
  for (const event of view.data.events.peek()) {
    const x = right + ((event.timeUs - view.edgeUs) / 1e6) * perSecond;
    if (x >= left - 0.5 && x <= right + 0.5) labelled.push({ x, event });
  }
  labelled.forEach(({ x, event }, index) => {
    context.fillStyle = eventColour(event, colours);
    diamond(context, x, marksHeight / 2);
    // As much of the text as fits before the next mark; a few letters would only be a riddle.
    const room = (labelled[index + 1]?.x ?? right) - x - 14;
    const text = fitting(context, event.text, room);
    context.fillStyle = colours.text;
    context.fillText(text, x + 8, marksHeight / 2 + 0.5);
  });

  context.strokeStyle = colours.axis;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(left, marksHeight + 0.5);
  context.lineTo(right, marksHeight + 0.5);
  context.stroke();
  context.fillStyle = colours.faintText;
  for (const tick of view.ticks) {
    const x = right + tick.x * perSecond;
    context.textAlign = x < left + 20 ? 'left' : 'center';
    context.fillText(tick.label, x, marksHeight + 11);
  }
}

/** The event whose mark is nearest to a time, if it is near enough to be meant. */
export function eventNear(view: ChartView, timeUs: number, plotWidth: number): SessionEvent | undefined {
  const reachUs = (view.windowUs / plotWidth) * 6;
  let best: SessionEvent | undefined;
  let nearestUs = reachUs;
  for (const event of view.data.events.peek()) {
    const distanceUs = Math.abs(event.timeUs - timeUs);
    if (distanceUs > nearestUs) continue;
    nearestUs = distanceUs;
    best = event;
  }
  return best;
}

function diamond(context: CanvasRenderingContext2D, x: number, y: number): void {
  context.beginPath();
  context.moveTo(x, y - 4.5);
  context.lineTo(x + 4.5, y);
  context.lineTo(x, y + 4.5);
  context.lineTo(x - 4.5, y);
  context.closePath();
  context.fill();
}

function fitting(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (room < 28) return '';
  if (context.measureText(text).width <= room) return text;
  let length = Math.floor(room / 6);
  while (length > 3 && context.measureText(`${text.slice(0, length)}…`).width > room) length--;
  return length <= 3 ? '' : `${text.slice(0, length)}…`;
}
