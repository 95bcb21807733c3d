/**
 * Numbers as people read them: three significant digits, SI units for bits, bytes in KB and MB of 1,000 (as the patch
 * that this project is about counts them), latency in milliseconds with two decimals under 10. English grouping,
 * always, so that a report reads the same on every machine.
 */

/** A number and its unit, apart, for places that set them in different sizes. The unit may be empty. */
export interface Quantity {
  readonly value: string;
  readonly unit: string;
}

/** What stands where a number does not exist. */
export const noValue = '–';

const minus = '−';

/** "1,514": whole, grouped by thousands. */
export function formatCount(count: number): string {
  if (!Number.isFinite(count)) return noValue;
  const rounded = Math.round(count);
  const digits = String(Math.abs(rounded)).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
  return rounded < 0 ? minus + digits : digits;
}

/**
 * Three significant digits without an exponent: "0.123", "1.23", "12.3", "123"; from 1,000 on whole and grouped.
 * Zero is "0", and so is what is too small for three decimals.
 */
export function formatThreeDigits(value: number): string {
  if (!Number.isFinite(value)) return noValue;
  const magnitude = Math.abs(value);
  if (magnitude < 0.0005) return '0';
  // The borders are where rounding already gives one digit more in front of the point.
  const decimals = magnitude < 0.9995 ? 3 : magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
  if (decimals === 0) return formatCount(value);
  const digits = magnitude.toFixed(decimals);
  return value < 0 ? minus + digits : digits;
}

/** A count of bytes: "812 B", "1.51 KB", "454 KB", "1.88 GB". */
export function bytesQuantity(bytes: number): Quantity {
  return scaled(bytes, byteUnits);
}

/** A rate on a link: "812 bit/s", "9.98 Mbit/s". */
export function bitRateQuantity(bitsPerSecond: number): Quantity {
  return scaled(bitsPerSecond, bitRateUnits);
}

/**
 * A duration from microseconds: "0.60 ms", "2.31 ms", "12.3 ms", "363 ms"; from one second on "1.24 s".
 * Always milliseconds below that, so that two latencies side by side compare at a glance.
 */
export function durationQuantity(us: number): Quantity {
  if (!Number.isFinite(us)) return { value: noValue, unit: '' };
  const ms = us / 1000;
  const magnitude = Math.abs(ms);
  if (magnitude >= 999.5) return { value: formatThreeDigits(ms / 1000), unit: 's' };
  if (magnitude >= 9.995) return { value: formatThreeDigits(ms), unit: 'ms' };
  const digits = magnitude.toFixed(2);
  return { value: ms < 0 && digits !== '0.00' ? minus + digits : digits, unit: 'ms' };
}

/** A share from a fraction (0 … 1): "0 %", "0.120 %", "12.0 %", "100 %". */
export function shareQuantity(fraction: number): Quantity {
  return { value: formatThreeDigits(fraction * 100), unit: Number.isFinite(fraction) ? '%' : '' };
}

export function formatBytes(bytes: number): string {
  return formatQuantity(bytesQuantity(bytes));
}

export function formatBitRate(bitsPerSecond: number): string {
  return formatQuantity(bitRateQuantity(bitsPerSecond));
}

export function formatDuration(us: number): string {
  return formatQuantity(durationQuantity(us));
}

export function formatShare(fraction: number): string {
  return formatQuantity(shareQuantity(fraction));
}

export function formatQuantity(quantity: Quantity): string {
  return quantity.unit === '' ? quantity.value : `${quantity.value} ${quantity.unit}`;
}

/** A time on a session's scale, from microseconds: "0:07", "12:34", "1:02:03"; with tenths if asked for: "0:07.4". */
export function formatElapsed(us: number, withTenths = false): string {
  if (!Number.isFinite(us)) return noValue;
  const tenths = withTenths ? Math.floor(Math.abs(us) / 100_000) : Math.floor(Math.abs(us) / 1_000_000) * 10;
  const seconds = Math.floor(tenths / 10);
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  const rest = String(seconds % 60).padStart(2, '0') + (withTenths ? `.${tenths % 10}` : '');
  const text = hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`;
  return us < 0 && tenths > 0 ? minus + text : text;
}

const byteUnits = ['B', 'KB', 'MB', 'GB', 'TB'] as const;
const bitRateUnits = ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s'] as const;

function scaled(amount: number, units: readonly string[]): Quantity {
  if (!Number.isFinite(amount)) return { value: noValue, unit: '' };
  let value = amount;
  let step = 0;
  // 999.5 would be written as 1,000: that is one of the next unit.
  while (Math.abs(value) >= 999.5 && step < units.length - 1) {
    value /= 1000;
    step++;
  }
  const unit = units[step] ?? '';
  return { value: step === 0 ? formatCount(value) : formatThreeDigits(value), unit };
}
