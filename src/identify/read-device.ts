import type { DescribedDevice } from '../minidrivers/described-device.ts';
import type { ReadWarning } from './printed-descriptor.ts';

/** A device as far as it could be read. */
export interface ReadDevice {
  /** Fields that were not printed are 0. */
  readonly described: DescribedDevice;
  /** The line (of text) or byte (of a dump) at which it begins. */
  readonly position: number;
  readonly manufacturer: string | undefined;
  readonly product: string | undefined;
  /** Marked as active in the listing, or the only one that such a listing shows; undefined: it does not tell. */
  readonly activeConfiguration: number | undefined;
  /** Whether ids were there. */
  readonly hasIds: boolean;
  /** Nothing that the descriptors promise is missing. */
  readonly complete: boolean;
  readonly warnings: readonly ReadWarning[];
}
