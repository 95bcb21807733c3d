import { type Scale } from './chart-scale.ts';
import { type Markup, markup } from './markup.ts';

/** Measures that all charts of a report share, so that they stand over one another. Units of the drawing. */
export const frame = { width: 960, left: 54, right: 906 } as const;

/** One bucket of data for each unit between the sides. */
export const framePixels = frame.right - frame.left;

/** How a quantity is drawn, for its legend. */
export type LegendSample = 'area' | 'line' | 'step' | 'dots' | 'band' | 'cross';

export interface LegendEntry {
  readonly name: string;
  readonly sample: LegendSample;
  /** The quantity's name in the style: `line-inflight`, `fill-inflight`. */
  readonly quantity: string;
}

/** Title, unit and legend above a chart. */
export function chartHead(title: string, unit: string, legend: readonly LegendEntry[]): Markup {
  return markup`<div class="chart-head"><span><b>${title}</b> <span class="unit">${unit}</span></span><span class="legend">${legend.map(
    ({ name, sample, quantity }) =>
      markup`<span><svg viewBox="0 0 22 12" width="22" height="12" aria-hidden="true">${legendDrawing(sample, quantity)}</svg>${name}</span>`,
  )}</span></div>`;
}

function legendDrawing(sample: LegendSample, quantity: string): Markup {
  switch (sample) {
    case 'area':
      return markup`<rect class="fill-${quantity}" x="1" y="2" width="20" height="9"/><path class="line-${quantity}" d="M1 2H21"/>`;
    case 'band':
      return markup`<rect class="fill-${quantity}" x="1" y="2" width="20" height="9"/>`;
    case 'dots':
      return markup`<path class="dots-${quantity}" d="M4 6h0M11 6h0M18 6h0"/>`;
    case 'step':
      return markup`<path class="line-${quantity}" d="M1 9H11V3H21"/>`;
    case 'cross':
      return markup`<path class="line-${quantity}" d="M8 3l6 6m0 -6l-6 6"/>`;
    case 'line':
      return markup`<path class="line-${quantity}" d="M1 6H21"/>`;
  }
}

/** Marks and labels of a value axis: on the left with lines across the plot, or on the right with labels alone. */
export function valueAxis(scale: Scale, side: 'left' | 'right'): Markup {
  const { left, right } = frame;
  const lines = scale.ticks.map(({ value }) => `M${left} ${tenth(scale.at(value))}H${right}`).join('');
  const at = side === 'left' ? left - 6 : right + 6;
  const anchor = side === 'left' ? 'end' : 'start';
  return markup`${side === 'left' ? markup`<path class="grid" d="${lines}"/>` : undefined}${scale.ticks.map(
    ({ value, label }) =>
      markup`<text class="tick" x="${at}" y="${tenth(scale.at(value) + 3.5)}" text-anchor="${anchor}">${label}</text>`,
  )}`;
}

/** Drawings are exact to a tenth of a unit; more would only be longer. */
export function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}
