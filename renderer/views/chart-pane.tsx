import type { ChartModel } from '../charts/chart-model.ts';
import { hint } from '../ui/hint.tsx';

/** The elements of one chart, filled in when they are on the page. */
export interface PaneRefs {
  frame: HTMLElement | null;
  canvas: HTMLCanvasElement | null;
  crosshair: HTMLElement | null;
  readonly values: (HTMLElement | null)[];
}

interface ChartPaneProps {
  readonly model: ChartModel;
  readonly refs: { readonly current: PaneRefs };
  /** Has a crosshair line of its own, instead of one through a whole stack. */
  readonly ownCrosshair?: boolean;
}

/** One chart: what its lines are and what they say at the crosshair, then the canvas. */
export function ChartPane({ model, refs, ownCrosshair }: ChartPaneProps) {
  return (
    <section class="chart-pane" aria-label={model.title}>
      <header class="chart-header">
        <h3 {...hint(model.hint)}>{model.title}</h3>
        <ul class="legend">
          {model.legend.map((entry, index) => (
            <li key={entry.name} class={entry.spare === true ? 'spare' : undefined} {...hint(entry.hint)}>
              <span
                class={`swatch shape-${entry.shape} swatch-${swatchName(entry.colour)}`}
                aria-hidden="true"
              />
              <span class="legend-name">{entry.name}</span>
              <span
                class="legend-value"
                ref={(element) => {
                  refs.current.values[index] = element;
                }}
              />
            </li>
          ))}
        </ul>
      </header>
      <div
        class="chart-frame"
        ref={(element) => {
          refs.current.frame = element;
        }}
      >
        <canvas
          role="img"
          aria-label={`${model.title} over time. ${model.hint}`}
          ref={(element) => {
            refs.current.canvas = element;
          }}
        />
        {ownCrosshair === true ? (
          <div
            class="crosshair"
            hidden
            ref={(element) => {
              refs.current.crosshair = element;
            }}
          />
        ) : null}
      </div>
    </section>
  );
}

/** "inflight", "round-trip": the name of a quantity as the style sheet has it. */
function swatchName(colour: string): string {
  return colour.replace(/Band$/, '').replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
