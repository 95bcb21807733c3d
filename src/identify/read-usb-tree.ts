import { parseHeading } from './lsusb-heading.ts';
import type { FieldName, PrintedDescriptor, PrintedText } from './printed-descriptor.ts';
import type { TextLine } from './text-line.ts';

/** "/:  Bus 02.Port 1: …": the devices below are on this bus. */
const busPattern = /^\/?:?\s*Bus (\d{1,3})\.Port \d+:/;
/** "|__ Port 1: Dev 2, If 0, Class=CDC Data, Driver=cdc_ether, 480M", wrapped or not. */
const nodePattern =
  /^(?:\\?[|_\s]*)Port (\d{1,3}): Dev (\d{1,3}), If (\d{1,3}), Class=([^,]{0,60}),\s*Driver=([^,]{0,60}),/;
const idPattern = /^ID ([\da-f]{4}):([\da-f]{4})(?:\s+(.*))?$/i;
const unfinishedPattern = /\bDev \d+, If \d+,(?!.*Driver=[^,]*,)/;

/** The names of interface classes as lsusb has them in a tree; others are none that a network driver would want. */
const classesByName: ReadonlyMap<string, number> = new Map([
  ['communications', 0x02],
  ['cdc data', 0x0a],
  ['mass storage', 0x08],
  ['human interface device', 0x03],
  ['hub', 0x09],
  ['audio', 0x01],
  ['video', 0x0e],
  ['wireless', 0xe0],
  ['wireless controller', 0xe0],
  ['miscellaneous device', 0xef],
  ['vendor specific class', 0xff],
]);
const hubClass = 0x09;

interface Node {
  readonly line: number;
  readonly interfaces: PrintedDescriptor[];
  ids: ReadonlyMap<FieldName, number>;
  product: string | undefined;
}

/**
 * Reads the tree of `lsusb -t`: no descriptors, but which driver had which interface. Ids are in it (`-tv`), or in the
 * list of devices that stands beside it.
 */
export function readUsbTree(lines: readonly TextLine[]): PrintedText {
  const listed = new Map<string, PrintedDescriptor>();
  for (const { number, text } of lines) {
    const heading = parseHeading(text);
    if (heading !== undefined) listed.set(`${heading.bus} ${heading.device}`, heading.toDescriptor(number));
  }

  const nodes = new Map<string, Node>();
  let bus = 0;
  let node: Node | undefined;
  for (const [i, { number: line, text }] of lines.entries()) {
    const [, busNumber] = busPattern.exec(text) ?? [];
    if (busNumber !== undefined) {
      bus = Number(busNumber);
      node = undefined;
      continue;
    }
    const [, vendor, product, name] = idPattern.exec(text) ?? [];
    if (node !== undefined && vendor !== undefined && product !== undefined) {
      node.ids = idsOf(Number.parseInt(vendor, 16), Number.parseInt(product, 16));
      node.product ??= name;
      continue;
    }
    const whole = unfinishedPattern.test(text) ? `${text} ${lines[i + 1]?.text ?? ''}` : text;
    const [, , device, number = '', className = '', driver = ''] = nodePattern.exec(whole) ?? [];
    if (device === undefined) continue;
    const key = `${bus} ${Number(device)}`;
    const heading = listed.get(key);
    node = nodes.get(key) ?? {
      line,
      interfaces: [],
      ids: heading?.fields ?? new Map(),
      product: heading?.product,
    };
    nodes.set(key, node);
    const interfaceClass = classesByName.get(className.trim().toLowerCase());
    if (interfaceClass === hubClass) continue;
    node.interfaces.push({
      kind: 'interface',
      line,
      fields: new Map<FieldName, number>([
        ['bInterfaceNumber', Number(number)],
        ['bAlternateSetting', 0],
        ...(interfaceClass === undefined ? [] : [['bInterfaceClass', interfaceClass] as const]),
      ]),
      kernelDriver: driver.trim().replace(/^[([].*/, ''),
    });
  }
  return {
    descriptors: [...nodes.values()]
      .filter(({ interfaces }) => interfaces.length > 0)
      .flatMap((found): PrintedDescriptor[] => [
        {
          kind: 'heading',
          line: found.line,
          fields: found.ids,
          ...(found.product === undefined ? {} : { product: found.product }),
        },
        { kind: 'configuration', line: found.line, fields: new Map() },
        ...found.interfaces,
      ]),
    warnings: [],
  };
}

function idsOf(vendorId: number, productId: number): ReadonlyMap<FieldName, number> {
  return new Map([
    ['idVendor', vendorId],
    ['idProduct', productId],
  ]);
}
