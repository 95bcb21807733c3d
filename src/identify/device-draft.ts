import type { PrintedDescriptor, ReadWarning } from './printed-descriptor.ts';

export interface EndpointDraft {
  readonly printed: PrintedDescriptor;
  readonly extra: Uint8Array[];
}

export interface AltSettingDraft {
  readonly printed: PrintedDescriptor;
  readonly number: number;
  readonly alternateSetting: number;
  readonly endpoints: EndpointDraft[];
  readonly extra: Uint8Array[];
}

export interface ConfigurationDraft {
  readonly printed: PrintedDescriptor | undefined;
  readonly line: number;
  readonly associations: PrintedDescriptor[];
  readonly altSettings: AltSettingDraft[];
  /** Interface and alternate setting numbers that have come. */
  readonly known: Set<string>;
  readonly extra: Uint8Array[];
}

/** The printed descriptors of one device, as the tree that they form. */
export interface DeviceDraft {
  readonly line: number;
  heading: PrintedDescriptor | undefined;
  printed: PrintedDescriptor | undefined;
  readonly configurations: ConfigurationDraft[];
  readonly warnings: ReadWarning[];
}
