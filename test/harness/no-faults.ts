import { type FaultColumn, faultColumns } from '../../src/contract/telemetry.ts';

/** Part of a row of `samples` of a device with which nothing is wrong. */
export const noFaults = Object.fromEntries(faultColumns.map((column) => [column, 0])) as Record<
  FaultColumn,
  number
>;
