import type { FieldName, PrintedKind } from './printed-descriptor.ts';

const namesByKind: Readonly<Partial<Record<PrintedKind, readonly FieldName[]>>> = {
  device: [
    'bcdUSB',
    'bDeviceClass',
    'bDeviceSubClass',
    'bDeviceProtocol',
    'bMaxPacketSize0',
    'idVendor',
    'idProduct',
    'bcdDevice',
    'iManufacturer',
    'iProduct',
    'iSerial',
    'bNumConfigurations',
  ],
  configuration: [
    'wTotalLength',
    'bNumInterfaces',
    'bConfigurationValue',
    'iConfiguration',
    'bmAttributes',
    'MaxPower',
  ],
  association: [
    'bFirstInterface',
    'bInterfaceCount',
    'bFunctionClass',
    'bFunctionSubClass',
    'bFunctionProtocol',
    'iFunction',
  ],
  interface: [
    'bInterfaceNumber',
    'bAlternateSetting',
    'bNumEndpoints',
    'bInterfaceClass',
    'bInterfaceSubClass',
    'bInterfaceProtocol',
    'iInterface',
  ],
  endpoint: ['bEndpointAddress', 'bmAttributes', 'wMaxPacketSize', 'bInterval', 'bMaxBurst'],
};

/** The fields of a kind of descriptor, behind length and type, in the order in which they are sent and printed. */
export function fieldsInOrder(kind: PrintedKind): readonly FieldName[] {
  return namesByKind[kind] ?? [];
}

/** Names that occur in descriptors of several kinds: they belong to the one that is being read. */
const sharedNames: ReadonlySet<FieldName> = new Set(['bmAttributes', 'wTotalLength']);

interface KnownField {
  readonly name: FieldName;
  /** Undefined: it says nothing of the kind. */
  readonly kind: PrintedKind | undefined;
}

const fields: ReadonlyMap<string, KnownField> = new Map(
  Object.entries(namesByKind).flatMap(([kind, names]) =>
    names.map((name): [string, KnownField] => [
      name.toLowerCase(),
      { name, kind: sharedNames.has(name) ? undefined : (kind as PrintedKind) },
    ]),
  ),
);

/** @param name in lower case */
export function findField(name: string): KnownField | undefined {
  return fields.get(synonyms.get(name) ?? name);
}

const synonyms: ReadonlyMap<string, string> = new Map([
  ['bmaxpower', 'maxpower'],
  ['iserialnumber', 'iserial'],
]);

export const bcdFields: ReadonlySet<FieldName> = new Set(['bcdUSB', 'bcdDevice']);

const kindsByType: ReadonlyMap<number, PrintedKind> = new Map([
  [1, 'device'],
  [2, 'configuration'],
  [4, 'interface'],
  [5, 'endpoint'],
  [11, 'association'],
]);

export function kindOfType(descriptorType: number): PrintedKind {
  return kindsByType.get(descriptorType) ?? 'other';
}

/** `bLength` of the descriptors that {@link kindOfType} knows, by `bDescriptorType`. */
export const standardLengths: ReadonlyMap<number, number> = new Map([
  [1, 18],
  [2, 9],
  [4, 9],
  [5, 7],
  [11, 8],
]);

/** Title lines; the type that follows as a number counts for more. */
const titles: readonly (readonly [RegExp, PrintedKind])[] = [
  [/^Device Descriptor\b/i, 'device'],
  [/^Configuration Descriptor\b/i, 'configuration'],
  [/^Interface Association\b/i, 'association'],
  [/^Interface Descriptor\b/i, 'interface'],
  [/^Endpoint Descriptor\b/i, 'endpoint'],
  [/^(?:Device Qualifier|Binary Object Store|Other Speed|HID Device|Hub |.*Device Capability)/i, 'other'],
];

/** "Configuration 2:", "Interface 0:", as people write who shorten a listing. */
const numberedTitle = /^(Configuration|Interface)\s+#?(\d{1,3})\s*:?$/i;

export interface NumberedTitle {
  readonly kind: PrintedKind;
  readonly name: FieldName;
  readonly value: number;
}

export function numberedTitleOf(line: string): NumberedTitle | undefined {
  const [, word = '', digits = ''] = numberedTitle.exec(line) ?? [];
  if (digits === '') return undefined;
  const value = Number(digits);
  return word.toLowerCase() === 'interface'
    ? { kind: 'interface', name: 'bInterfaceNumber', value }
    : { kind: 'configuration', name: 'bConfigurationValue', value };
}

export function kindOfTitle(line: string): PrintedKind | undefined {
  return titles.find(([pattern]) => pattern.test(line))?.[1];
}
