import {
  Chart,
  type ChartConfiguration,
  LinearScale,
  LineController,
  LineElement,
  type Plugin,
  PointElement,
  type Tick,
} from 'chart.js';
import type { ChartColours, ColourName } from './colours.ts';
import { type ChartPoint, PointBuffer } from './point-buffer.ts';
import type { TimeTick } from './time-axis.ts';

/**
 * The only module that knows the chart library. It is used for what it does well, axes and lines, and everything it
 * would do on its own is off: parsing, animation, events, legend, tooltip, decimation, resizing.
 */

export interface LineSpec {
  readonly colour: ColourName;
  readonly width: number;
  readonly dash?: readonly number[];
  /** Belongs to the axis on the right. */
  readonly right?: boolean;
}

/** Where things are in a chart, in CSS pixels. */
export interface PlotGeometry {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  /** Pixels of a time in seconds from the right edge. */
  xOf(seconds: number): number;
  /** Pixels of a value on the left axis. */
  yOf(value: number): number;
}

export interface PlotPainter {
  /** Under the grid and the lines. */
  paintBelow?(context: CanvasRenderingContext2D, plot: PlotGeometry): void;
  /** Over the lines. */
  paintAbove?(context: CanvasRenderingContext2D, plot: PlotGeometry): void;
}

export interface ValueAxis {
  readonly max: number;
  readonly step: number;
  readonly label: (value: number, isTop: boolean) => string;
}

export interface ChartFrame {
  readonly windowSeconds: number;
  readonly ticks: readonly TimeTick[];
  readonly left: ValueAxis;
  readonly right?: ValueAxis;
}

/** Width of the space for labels left and right of every chart of a stack, so that their time axes are one. */
export const leftGutter = 58;
export const rightGutter = 56;
/** Space above the plot for the upper half of the topmost label. */
const topGutter = 7;
const bottomGutter = 5;
const timeLabelHeight = 18;

Chart.register(LineController, LineElement, PointElement, LinearScale);

type Line = Chart<'line', ChartPoint[]>;

export class LineChart {
  /** The points of each line; to be filled before `draw`. */
  readonly lines: readonly PointBuffer[];
  readonly #specs: readonly LineSpec[];
  readonly #chart: Line;
  #frame: ChartFrame = { windowSeconds: 1, ticks: [], left: { max: 1, step: 1, label: String } };
  #width = 0;
  #height = 0;
  #ratio = 0;
  /** Something other than the points has changed since the last drawing. */
  #isDirty = true;

  /** @param timeLabels whether the labels of the time axis stand under this chart */
  constructor(
    canvas: HTMLCanvasElement,
    specs: readonly LineSpec[],
    painter: PlotPainter,
    colours: ChartColours,
    timeLabels = false,
  ) {
    this.#specs = specs;
    this.lines = specs.map(() => new PointBuffer());
    this.#chart = new Chart(canvas, this.#configuration(painter, timeLabels));
    this.setColours(colours);
  }

  get width(): number {
    return this.#width;
  }
  get height(): number {
    return this.#height;
  }
  /** Width between the gutters. */
  get plotWidth(): number {
    return Math.max(1, this.#width - leftGutter - rightGutter);
  }

  setColours(colours: ChartColours): void {
    this.#isDirty = true;
    this.#chart.data.datasets.forEach((dataset, index) => {
      const spec = this.#specs[index];
      if (spec !== undefined) dataset.borderColor = colours[spec.colour];
    });
    const { scales } = this.#chart.options;
    for (const scale of [scales?.['x'], scales?.['left'], scales?.['right']]) {
      if (scale === undefined) continue;
      if (scale.ticks !== undefined) scale.ticks.color = colours.faintText;
      if (scale.grid !== undefined) scale.grid.color = colours.grid;
      if (scale.border !== undefined) scale.border.color = colours.axis;
    }
  }

  /** Fits the canvas to its size on the page. @returns whether anything changed */
  resize(width: number, height: number, ratio: number): boolean {
    if (width === this.#width && height === this.#height && ratio === this.#ratio) return false;
    this.#width = width;
    this.#height = height;
    this.#ratio = ratio;
    this.#isDirty = true;
    this.#chart.options.devicePixelRatio = ratio;
    this.#chart.resize(width, height);
    return true;
  }

  draw(frame: ChartFrame): void {
    const before = this.#frame;
    this.#frame = frame;
    const isSameFrame =
      !this.#isDirty &&
      frame.windowSeconds === before.windowSeconds &&
      frame.ticks === before.ticks &&
      isSameAxis(frame.left, before.left) &&
      isSameAxis(frame.right, before.right);
    if (isSameFrame) {
      this.#redrawLines();
      return;
    }
    this.#isDirty = false;
    const scales = this.#chart.options.scales;
    const x = scales?.['x'];
    const left = scales?.['left'];
    const right = scales?.['right'];
    if (x !== undefined) x.min = -frame.windowSeconds;
    if (left !== undefined) left.max = frame.left.max;
    if (right !== undefined) right.max = frame.right?.max ?? 1;
    this.#chart.update('none');
  }

  /**
   * New points between the same axes, which is nearly every frame. A whole update would build the configuration, the axes
   * and the layout anew only to find them as they were, and costs more than the lines.
   */
  #redrawLines(): void {
    for (let i = 0; i < this.#specs.length; i++) {
      const { controller } = this.#chart.getDatasetMeta(i);
      controller.buildOrUpdateElements();
      controller.update('none');
    }
    this.#chart.draw();
  }

  destroy(): void {
    this.#chart.destroy();
  }

  #configuration(painter: PlotPainter, timeLabels: boolean): ChartConfiguration<'line', ChartPoint[]> {
    const usesRight = this.#specs.some((spec) => spec.right === true);
    const font = { family: 'system-ui, sans-serif', size: 11 };
    return {
      type: 'line',
      data: {
        datasets: this.#specs.map((spec, index) => ({
          data: this.lines[index]?.points ?? [],
          borderWidth: spec.width,
          borderJoinStyle: 'round' as const,
          ...(spec.dash === undefined ? {} : { borderDash: [...spec.dash] }),
          yAxisID: spec.right === true ? 'right' : 'left',
        })),
      },
      options: {
        responsive: false,
        maintainAspectRatio: false,
        animation: false,
        parsing: false,
        normalized: true,
        spanGaps: false,
        events: [],
        layout: { autoPadding: false, padding: { top: topGutter, right: usesRight ? 0 : rightGutter } },
        elements: { point: { radius: 0 }, line: { tension: 0, fill: false } },
        scales: {
          x: {
            type: 'linear',
            min: -1,
            max: 0,
            ticks: {
              display: timeLabels,
              font,
              padding: 3,
              maxRotation: 0,
              autoSkip: false,
              callback: (_value, index) => this.#frame.ticks[index]?.label ?? '',
            },
            border: { display: true },
            grid: { drawTicks: false },
            afterBuildTicks: (axis) => {
              axis.ticks = this.#frame.ticks.map((tick): Tick => ({ value: tick.x }));
            },
            afterFit: (axis) => {
              axis.height = timeLabels ? timeLabelHeight : bottomGutter;
              axis.paddingLeft = 0;
              axis.paddingRight = 0;
            },
          },
          left: {
            type: 'linear',
            position: 'left',
            min: 0,
            max: 1,
            border: { display: false },
            grid: { drawTicks: false },
            ticks: {
              font,
              padding: 6,
              maxRotation: 0,
              autoSkip: false,
              callback: (value) => labelOf(value, this.#frame.left),
            },
            afterBuildTicks: (axis) => {
              axis.ticks = valueTicks(this.#frame.left);
            },
            afterFit: (axis) => {
              axis.width = leftGutter;
            },
          },
          right: {
            type: 'linear',
            position: 'right',
            display: usesRight,
            min: 0,
            max: 1,
            border: { display: false },
            grid: { display: false },
            ticks: {
              font,
              padding: 6,
              maxRotation: 0,
              autoSkip: false,
              callback: (value) => labelOf(value, this.#frame.right),
            },
            afterBuildTicks: (axis) => {
              axis.ticks = this.#frame.right === undefined ? [] : valueTicks(this.#frame.right);
            },
            afterFit: (axis) => {
              axis.width = usesRight ? rightGutter : 0;
            },
          },
        },
      },
      plugins: [painterPlugin(painter)],
    };
  }
}

function isSameAxis(a: ValueAxis | undefined, b: ValueAxis | undefined): boolean {
  return a?.max === b?.max && a?.step === b?.step;
}

function valueTicks(axis: ValueAxis): Tick[] {
  const ticks: Tick[] = [];
  const count = Math.round(axis.max / axis.step);
  for (let i = 0; i <= count; i++) ticks.push({ value: i * axis.step });
  return ticks;
}

function labelOf(value: number | string, axis: ValueAxis | undefined): string {
  return axis === undefined ? '' : axis.label(Number(value), Number(value) >= axis.max);
}

function painterPlugin(painter: PlotPainter): Plugin<'line'> {
  return {
    id: 'painter',
    beforeDraw: (chart) => paint(chart, painter.paintBelow?.bind(painter)),
    afterDatasetsDraw: (chart) => paint(chart, painter.paintAbove?.bind(painter)),
  };
}

function paint(
  chart: Chart,
  painter: ((context: CanvasRenderingContext2D, plot: PlotGeometry) => void) | undefined,
): void {
  const { left, top, right, bottom } = chart.chartArea;
  const x = chart.scales['x'];
  const y = chart.scales['left'];
  if (painter === undefined || x === undefined || y === undefined || right <= left || bottom <= top) return;
  const xScale = (right - left) / (x.max - x.min);
  const yScale = (bottom - top) / (y.max - y.min);
  const context = chart.ctx;
  context.save();
  context.beginPath();
  context.rect(left, top, right - left, bottom - top);
  context.clip();
  painter(context, {
    left,
    top,
    right,
    bottom,
    xOf: (seconds) => right + seconds * xScale,
    yOf: (value) => bottom - value * yScale,
  });
  context.restore();
}
