import { type FaultColumn, faultColumns } from '../contract/telemetry.ts';
import type { Telemetry } from './telemetry.ts';

/** How often something went wrong, and when. */
export interface FaultTotal {
  readonly fault: FaultColumn;
  /** NaN: it was not counted. */
  readonly count: number;
  /** Ends of the sampling intervals in which it was counted first and last; NaN if it never was. */
  readonly firstUs: number;
  readonly lastUs: number;
}

/** The faults of a whole recording, each with its total; those that were not counted at all are left out. */
export function faultTotals({ samples: { values } }: Telemetry): readonly FaultTotal[] {
  return faultColumns.flatMap((fault) => {
    const column = values[fault];
    let highest = Number.NaN;
    let firstUs = Number.NaN;
    let lastUs = Number.NaN;
    for (const [row, count] of column.entries()) {
      if (Number.isNaN(count)) continue;
      if (count > (Number.isNaN(highest) ? 0 : highest)) {
        lastUs = values.timeUs[row] ?? Number.NaN;
        if (Number.isNaN(firstUs)) firstUs = lastUs;
      }
      highest = Number.isNaN(highest) ? count : Math.max(highest, count);
    }
    return Number.isNaN(highest) ? [] : [{ fault, count: highest, firstUs, lastUs }];
  });
}
