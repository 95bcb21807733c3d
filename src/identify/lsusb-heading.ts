import type { PrintedDescriptor } from './printed-descriptor.ts';

/** "Bus 001 Device 003: ID 1bc7:1203 Telit …", in whatever language the words are. */
const headingPattern =
  /^(?:\S+\s+)?(\d{3})\s+\S+\s+(\d{3})\s*:\s*\S+\s+([0-9a-f]{4}):([0-9a-f]{4})(?:\s+(.*))?$/i;

export interface Heading {
  readonly bus: number;
  /** The number of the device on its bus. */
  readonly device: number;
  readonly toDescriptor: (line: number) => PrintedDescriptor;
}

/** The line with which `lsusb` names a device; undefined: it is none. */
export function parseHeading(text: string): Heading | undefined {
  const [, bus, device, vendor = '', product = '', name = ''] = headingPattern.exec(text) ?? [];
  if (bus === undefined || device === undefined) return undefined;
  return {
    bus: Number(bus),
    device: Number(device),
    toDescriptor: (line) => ({
      kind: 'heading',
      line,
      fields: new Map([
        ['idVendor', Number.parseInt(vendor, 16)],
        ['idProduct', Number.parseInt(product, 16)],
      ]),
      ...(name === '' ? {} : { product: name }),
    }),
  };
}
