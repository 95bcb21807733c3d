import { formatElapsed } from '../base/units.ts';

/** A mark on an axis. */
export interface Tick {
  readonly value: number;
  readonly label: string;
}

/** From values to where they are drawn, on one axis. */
export interface Scale {
  /** Position of a value; what lies beyond the axis is put at its end. */
  at(value: number): number;
  readonly ticks: readonly Tick[];
  readonly logarithmic: boolean;
  readonly max: number;
}

/** The smallest of 1, 2, 5, 10, 20, 50 … times a power of ten that is at least `value`; 1 for nothing. */
export function stepAtLeast(value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  // 2 * 10^k may come out a hair below a value that is meant to be equal to it.
  const factor = [1, 2, 5].find((candidate) => candidate * power >= value * (1 - 1e-9)) ?? 10;
  return factor * power;
}

export interface ValueAxis {
  /** Where zero is drawn and where the largest value is. */
  readonly from: number;
  readonly to: number;
  /** What one unit of the labels is, in the unit of the values: 1000 for KB from bytes. */
  readonly unit: number;
}

/** An axis from zero to a round value that is at least `largest`, with about `count` marks. */
export function linearScale(largest: number, axis: ValueAxis, count: number): Scale {
  const inUnits = Math.max(largest / axis.unit, 1e-9);
  const step = stepAtLeast(inUnits / count);
  const max = Math.max(step, Math.ceil(inUnits / step - 1e-9) * step);
  const ticks: Tick[] = [];
  for (let i = 0; i * step <= max * (1 + 1e-9); i++) {
    ticks.push({ value: i * step * axis.unit, label: tickLabel(i * step, step) });
  }
  const factor = (axis.to - axis.from) / (max * axis.unit);
  return {
    at: (value) => axis.from + clamp(value, 0, max * axis.unit) * factor,
    ticks,
    logarithmic: false,
    max: max * axis.unit,
  };
}

/** A logarithmic axis over whole thirds of decades (1, 2, 5) that covers `smallest` to `largest`, both above zero. */
export function logarithmicScale(smallest: number, largest: number, axis: ValueAxis): Scale {
  const high = stepAtLeast(largest / axis.unit);
  let low = stepAtLeast(smallest / axis.unit);
  if (low * axis.unit > smallest) low = stepBelow(low);
  const ticks: Tick[] = [];
  const decades = Math.log10(high / low);
  for (let power = Math.floor(Math.log10(low) + 1e-9); 10 ** power <= high * (1 + 1e-9); power++) {
    // Over many decades the marks between would touch one another.
    for (const factor of decades > 3 ? [1] : [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9)) continue;
      ticks.push({ value: value * axis.unit, label: tickLabel(value, value) });
    }
  }
  const factor = (axis.to - axis.from) / decades;
  return {
    at: (value) => axis.from + Math.log10(clamp(value / axis.unit, low, high) / low) * factor,
    ticks,
    logarithmic: true,
    max: high * axis.unit,
  };
}

/** With as many decimals as the step between marks needs: "0", "0.5", "1.0"; grouped by thousands. */
function tickLabel(value: number, step: number): string {
  if (value === 0) return '0';
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return value.toFixed(decimals).replaceAll(/\B(?=(?:\d{3})+$)/g, decimals === 0 ? ',' : '');
}

function stepBelow(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step) + 1e-9);
  const factor = Math.round(step / power);
  return factor === 1 ? power / 2 : factor === 2 ? power : 2 * power;
}

const timeStepsUs = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400,
].map((seconds) => seconds * 1e6);

/** The axis of time, with marks at round times, about `count` of them. */
export function timeScale(fromUs: number, toUs: number, left: number, right: number, count: number): Scale {
  const lengthUs = Math.max(toUs - fromUs, 1);
  const stepUs = timeStepsUs.find((step) => lengthUs / step <= count) ?? lengthUs;
  const ticks: Tick[] = [];
  for (let i = Math.ceil(fromUs / stepUs - 1e-9); i * stepUs <= toUs + 1; i++) {
    ticks.push({ value: i * stepUs, label: formatElapsed(i * stepUs, stepUs < 1e6) });
  }
  const factor = (right - left) / lengthUs;
  return {
    at: (timeUs) => left + (clamp(timeUs, fromUs, toUs) - fromUs) * factor,
    ticks,
    logarithmic: false,
    max: toUs,
  };
}

function clamp(value: number, low: number, high: number): number {
  return value < low ? low : value > high ? high : value;
}
