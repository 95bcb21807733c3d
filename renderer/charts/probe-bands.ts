import type { BqlPeriod } from '../store/bql-periods.ts';
import type { ColumnRing } from '../store/column-ring.ts';
import { Quantiles } from '../store/quantile.ts';
import type { ShownProbeColumn } from '../store/session-data.ts';
import type { PointBuffer } from './point-buffer.ts';

/** Median and 95th percentile of the round trip over equal stretches of time, for a line and a band. */
export class ProbeBands {
  readonly #quantiles = new Quantiles();

  /**
   * Fills both lines with one point a stretch that has answers; they always have the same points in time. Stretches
   * stand on multiples of their length, and none reaches over a switch of BQL. Values are milliseconds.
   */
  compute(
    probes: ColumnRing<ShownProbeColumn>,
    rows: { readonly from: number; readonly to: number },
    periods: readonly BqlPeriod[],
    edgeUs: number,
    stretchUs: number,
    median: PointBuffer,
    high: PointBuffer,
  ): void {
    median.clear();
    high.clear();
    const { times } = probes;
    const rtt = probes.column('rttUs');
    let from = rows.from;
    let period = 0;
    while (from < rows.to) {
      const startUs = times[from] ?? 0;
      while (period + 1 < periods.length && (periods[period + 1]?.fromUs ?? 0) < startUs) period++;
      const switchUs = periods[period + 1]?.fromUs ?? Number.POSITIVE_INFINITY;
      const wholeEndUs = (Math.floor(startUs / stretchUs) + 1) * stretchUs;
      const endUs = Math.min(wholeEndUs, switchUs);
      let to = from + 1;
      // A probe that is due with the last sample before a switch belongs before it.
      while (to < rows.to && (times[to] ?? 0) < wholeEndUs && (times[to] ?? 0) <= switchUs) to++;
      // The newest stretch is still filling, one before a switch is cut short: the line goes as far as its probes do.
      const isWhole = endUs === wholeEndUs && to < rows.to;
      const atUs = isWhole ? (startUs + endUs) / 2 : (times[to - 1] ?? 0);
      const x = (atUs - edgeUs) / 1e6;
      const nextUs = times[to] ?? 0;
      if (this.#quantiles.load(rtt, from, to) === 0) {
        median.gap(x);
        high.gap(x);
      } else {
        const medianMs = this.#quantiles.at(0.5) / 1000;
        const highMs = this.#quantiles.at(0.95) / 1000;
        if (isFirst(median)) {
          // A line that begins does so where its probes begin, level.
          median.push((startUs - edgeUs) / 1e6, medianMs);
          high.push((startUs - edgeUs) / 1e6, highMs);
        }
        median.push(x, medianMs);
        high.push(x, highMs);
        if (to < rows.to && (nextUs > switchUs || nextUs >= endUs + stretchUs)) {
          median.gap(x);
          high.gap(x);
        }
      }
      from = to;
    }
    median.finish();
    high.finish();
  }
}

function isFirst(line: PointBuffer): boolean {
  const last = line.at(line.length - 1);
  return last === undefined || Number.isNaN(last.y);
}

/** Length of a stretch: some forty to a view, but never so short that a percentile of it means nothing. */
export function stretchLengthUs(windowUs: number, probeEveryUs: number): number {
  return Math.max(1_000_000, windowUs / 40, probeEveryUs * 5);
}
