import { formatThreeDigits } from '../../src/base/units.ts';

/** Labels of a value axis. The unit is chosen for the whole axis and stands with the topmost number. */
export type AxisLabel = (value: number, isTop: boolean) => string;

export function bytesLabel(max: number): AxisLabel {
  return scaledLabel(max, ['B', 'KB', 'MB', 'GB']);
}

export function bitRateLabel(max: number): AxisLabel {
  return scaledLabel(max, ['b/s', 'kb/s', 'Mb/s', 'Gb/s']);
}

/** Values are milliseconds. */
export function millisecondsLabel(max: number): AxisLabel {
  return max >= 2000 ? label(1000, 's') : label(1, 'ms');
}

function scaledLabel(max: number, units: readonly string[]): AxisLabel {
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(max) / 3 + 1e-9)));
  return label(1000 ** step, units[step] ?? '');
}

function label(divisor: number, unit: string): AxisLabel {
  return (value, isTop) => {
    const text = plain(value / divisor);
    return isTop ? `${text} ${unit}` : text;
  };
}

/** As few digits as an axis of round numbers needs: "0", "2.5", "250". */
function plain(value: number): string {
  return Number.isInteger(value) ? String(value) : formatThreeDigits(value).replace(/\.?0+$/, '');
}
