import type { LimitsJournal } from '../observe/limits-journal.ts';
import type { StartProgram } from '../observe/line-program.ts';
import type { NetdevFiles } from '../observe/netdev-files.ts';

/** What of the system an observed netdev needs; tests bring their own. */
export interface ObserveSystem {
  readonly files: NetdevFiles;
  readonly journal: LimitsJournal;
  readonly startProgram: StartProgram;
  /** Such as "6.19.0". */
  readonly kernelRelease: string;
  /** The IPv4 addresses of an interface, as "10.9.0.2/24". */
  readonly addressesOf: (netdev: string) => readonly string[];
  readonly wallClockUs: () => number;
}
