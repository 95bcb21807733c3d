import type { DescriptorGaps } from '../minidrivers/described-device.ts';
import type {
  AltSetting,
  ConfigurationDescriptor,
  DeviceDescriptor,
  EndpointDescriptor,
  InterfaceAssociation,
} from '../wire/usb-descriptor.ts';
import type { FieldName, PrintedDescriptor, PrintedText, ReadWarning } from './printed-descriptor.ts';
import type { ReadDevice } from './read-device.ts';

interface EndpointDraft {
  readonly printed: PrintedDescriptor;
  readonly extra: Uint8Array[];
}

interface AltSettingDraft {
  readonly printed: PrintedDescriptor;
  readonly number: number;
  readonly alternateSetting: number;
  readonly endpoints: EndpointDraft[];
  readonly extra: Uint8Array[];
}

interface ConfigurationDraft {
  readonly printed: PrintedDescriptor | undefined;
  readonly line: number;
  readonly associations: PrintedDescriptor[];
  readonly altSettings: AltSettingDraft[];
  /** Interface and alternate setting numbers that have come. */
  readonly known: Set<string>;
  readonly extra: Uint8Array[];
}

interface DeviceDraft {
  readonly line: number;
  heading: PrintedDescriptor | undefined;
  printed: PrintedDescriptor | undefined;
  readonly configurations: ConfigurationDraft[];
  readonly warnings: ReadWarning[];
}

export interface AssemblyOptions {
  /**
   * The listing is one of `usb-devices`, which shows the active configuration alone and of each interface the
   * altsetting in use.
   */
  readonly mayShowOnlyWhatIsInUse: boolean;
}

/** Makes devices of printed descriptors, in their order, and tells what is missing. Never throws. */
export function assembleDevices(text: PrintedText, options: AssemblyOptions): readonly ReadDevice[] {
  const assembly = new DeviceAssembly();
  for (const printed of text.descriptors) assembly.add(printed);
  const drafts = assembly.devices;
  let at = 0;
  return drafts.map((draft, i) => {
    const nextLine = drafts[i + 1]?.line ?? Infinity;
    // What readers had to say belongs to the device in whose lines it was.
    const remarks: ReadWarning[] = [];
    for (let warning = text.warnings[at]; warning !== undefined; warning = text.warnings[++at]) {
      if (warning.line >= nextLine) break;
      remarks.push(warning);
    }
    return build(draft, remarks, options);
  });
}

/** A listing of more devices is none: that many do not fit on the buses of a machine. */
const mostDevices = 1000;

class DeviceAssembly {
  readonly devices: DeviceDraft[] = [];
  #device: DeviceDraft | undefined;
  /** Where functional descriptors go. */
  #extra: Uint8Array[] | undefined;
  #altSetting: AltSettingDraft | undefined;

  add(printed: PrintedDescriptor): void {
    if (this.devices.length >= mostDevices) return;
    switch (printed.kind) {
      case 'heading':
        this.#startDevice(printed.line).heading = printed;
        break;
      case 'device':
        this.#addDevice(printed);
        break;
      case 'configuration':
        this.#startConfiguration(this.#device ?? this.#startDevice(printed.line), printed, printed.line);
        break;
      case 'association':
        this.#configuration(printed.line).associations.push(printed);
        break;
      case 'interface':
        this.#addInterface(printed);
        break;
      case 'endpoint':
        this.#addEndpoint(printed);
        break;
      case 'functional':
        if (printed.bytes !== undefined) this.#extra?.push(printed.bytes);
        break;
      case 'other':
        break;
    }
  }

  #startDevice(line: number): DeviceDraft {
    const device: DeviceDraft = {
      line,
      heading: undefined,
      printed: undefined,
      configurations: [],
      warnings: [],
    };
    this.devices.push(device);
    this.#device = device;
    this.#extra = undefined;
    this.#altSetting = undefined;
    return device;
  }

  /** A device descriptor belongs to the heading before it, if that has none yet. */
  #addDevice(printed: PrintedDescriptor): void {
    const current = this.#device;
    const fits =
      current !== undefined && current.printed === undefined && current.configurations.length === 0;
    (fits ? current : this.#startDevice(printed.line)).printed = printed;
  }

  #startConfiguration(
    device: DeviceDraft,
    printed: PrintedDescriptor | undefined,
    line: number,
  ): ConfigurationDraft {
    const configuration: ConfigurationDraft = {
      printed,
      line,
      associations: [],
      altSettings: [],
      known: new Set(),
      extra: [],
    };
    device.configurations.push(configuration);
    this.#extra = configuration.extra;
    this.#altSetting = undefined;
    return configuration;
  }

  #configuration(line: number): ConfigurationDraft {
    const device = this.#device ?? this.#startDevice(line);
    return device.configurations.at(-1) ?? this.#startConfiguration(device, undefined, line);
  }

  #addInterface(printed: PrintedDescriptor): void {
    const configuration = this.#configuration(printed.line);
    const warnings: ReadWarning[] = this.#device?.warnings ?? [];
    const before = configuration.altSettings.at(-1);
    const alternateSetting = printed.fields.get('bAlternateSetting') ?? 0;
    const number =
      printed.fields.get('bInterfaceNumber') ?? assumedNumber(printed, alternateSetting, before, warnings);
    const key = `${number} ${alternateSetting}`;
    const isKnown = configuration.known.has(key);
    configuration.known.add(key);
    const altSetting: AltSettingDraft = { printed, number, alternateSetting, endpoints: [], extra: [] };
    if (isKnown) {
      warnings.push({
        line: printed.line,
        message: `interface ${number} with altsetting ${alternateSetting} came before; this one is left out`,
      });
    } else configuration.altSettings.push(altSetting);
    this.#altSetting = altSetting;
    this.#extra = altSetting.extra;
  }

  #addEndpoint(printed: PrintedDescriptor): void {
    const address = printed.fields.get('bEndpointAddress');
    if (address === undefined || this.#altSetting === undefined) {
      const why = address === undefined ? 'has no address' : 'belongs to no interface';
      this.#device?.warnings.push({ line: printed.line, message: `an endpoint ${why}; it is left out` });
      this.#extra = undefined;
      return;
    }
    const endpoint: EndpointDraft = { printed, extra: [] };
    this.#altSetting.endpoints.push(endpoint);
    this.#extra = endpoint.extra;
  }
}

function assumedNumber(
  printed: PrintedDescriptor,
  alternateSetting: number,
  before: AltSettingDraft | undefined,
  warnings: ReadWarning[],
): number {
  const isFurther = before !== undefined && alternateSetting > before.alternateSetting;
  const number = before === undefined ? 0 : before.number + (isFurther ? 0 : 1);
  warnings.push({ line: printed.line, message: `an interface has no number; it is taken to be ${number}` });
  return number;
}

// ---- building ----

function build(draft: DeviceDraft, remarks: readonly ReadWarning[], options: AssemblyOptions): ReadDevice {
  const missing: ReadWarning[] = [];
  const { printed, heading } = draft;
  const of = (name: FieldName): number | undefined =>
    printed?.fields.get(name) ??
    (name === 'idVendor' || name === 'idProduct' ? heading?.fields.get(name) : undefined);
  noteMissing(draft, of, missing);

  const endpointCounts = new Map<AltSetting, number>();
  const kernelDrivers = new Map<AltSetting, string>();
  const unlistedInterfaces = new Set<ConfigurationDescriptor>();
  const [firstConfiguration] = draft.configurations;
  // Such a listing has no marks, and no more than one configuration.
  const marked = draft.configurations.filter((configuration) => configuration.printed?.inUse === true);
  const onlyInUse =
    options.mayShowOnlyWhatIsInUse && marked.length === 0 && draft.configurations.length === 1;

  const values = new Map<ConfigurationDraft, number>();
  const configurations = draft.configurations.map((configuration, i) => {
    const value = configuration.printed?.fields.get('bConfigurationValue') ?? i + 1;
    values.set(configuration, value);
    const gaps = { endpointCounts, kernelDrivers, missing };
    const built = buildConfiguration(configuration, value, gaps);
    const promised = configuration.printed?.fields.get('bNumInterfaces');
    if (promised !== undefined && promised > built.interfaces.length) {
      unlistedInterfaces.add(built);
      missing.push({
        line: configuration.line,
        message: `configuration ${value} promises ${promised} interfaces, ${built.interfaces.length} are listed`,
      });
    } else if (promised === undefined) {
      unlistedInterfaces.add(built);
      missing.push({
        line: configuration.line,
        message: `configuration ${value} does not say how many interfaces it has`,
      });
    }
    return built;
  });

  const descriptor: DeviceDescriptor = {
    usbVersion: of('bcdUSB') ?? 0,
    deviceClass: of('bDeviceClass') ?? 0,
    deviceSubclass: of('bDeviceSubClass') ?? 0,
    deviceProtocol: of('bDeviceProtocol') ?? 0,
    maxPacketSize0: of('bMaxPacketSize0') ?? 0,
    vendorId: of('idVendor') ?? 0,
    productId: of('idProduct') ?? 0,
    deviceVersion: of('bcdDevice') ?? 0,
    manufacturerIndex: of('iManufacturer') ?? 0,
    productIndex: of('iProduct') ?? 0,
    serialIndex: of('iSerial') ?? 0,
    configurationCount: of('bNumConfigurations') ?? configurations.length,
  };
  const gaps: DescriptorGaps = {
    endpointCounts,
    unlistedInterfaces,
    kernelDrivers,
    onlyCurrentAltSettings: onlyInUse,
  };
  const active = marked[0] ?? (onlyInUse ? firstConfiguration : undefined);
  return {
    described: { descriptor, configurations, gaps },
    position: draft.line,
    manufacturer: printed?.manufacturer,
    product: printed?.product ?? heading?.product,
    activeConfiguration: active === undefined ? undefined : values.get(active),
    hasIds: of('idVendor') !== undefined && of('idProduct') !== undefined,
    complete: missing.length === 0 && remarks.length === 0,
    warnings: [...remarks, ...draft.warnings, ...missing].sort((a, b) => a.line - b.line),
  };
}

function noteMissing(
  draft: DeviceDraft,
  of: (name: FieldName) => number | undefined,
  missing: ReadWarning[],
): void {
  const { line, configurations } = draft;
  if (of('idVendor') === undefined || of('idProduct') === undefined) {
    missing.push({ line, message: 'the ids of the device are not there' });
  }
  if (of('bcdUSB') === undefined || of('bDeviceClass') === undefined) {
    missing.push({ line, message: 'the device descriptor is not there, or not all of it' });
  }
  const promised = of('bNumConfigurations');
  if (promised !== undefined && promised > configurations.length) {
    missing.push({
      line,
      message: `the device promises ${promised} configurations, ${configurations.length} are listed`,
    });
  } else if (configurations.length === 0) missing.push({ line, message: 'no configuration is listed' });
  for (const { printed, line: at } of configurations) {
    if (printed?.fields.has('bConfigurationValue') === true) continue;
    missing.push({ line: at, message: 'a configuration has no number' });
  }
}

interface GapNotes {
  readonly endpointCounts: Map<AltSetting, number>;
  readonly kernelDrivers: Map<AltSetting, string>;
  readonly missing: ReadWarning[];
}

function buildConfiguration(
  draft: ConfigurationDraft,
  value: number,
  notes: GapNotes,
): ConfigurationDescriptor {
  const byNumber = new Map<number, AltSetting[]>();
  for (const altSettingDraft of draft.altSettings) {
    const altSetting = buildAltSetting(altSettingDraft, notes);
    const altSettings = byNumber.get(altSetting.interfaceNumber) ?? [];
    altSettings.push(altSetting);
    byNumber.set(altSetting.interfaceNumber, altSettings);
  }
  for (const [number, altSettings] of byNumber) {
    const [first] = altSettings;
    if (first === undefined || altSettings.some(({ alternateSetting }) => alternateSetting === 0)) continue;
    const line = draft.altSettings.find((candidate) => candidate.number === number)?.printed.line;
    notes.missing.push({
      line: line ?? draft.line,
      message: `altsetting 0 of interface ${number} is not listed; it is taken to have no endpoints`,
    });
    altSettings.unshift({ ...first, alternateSetting: 0, endpoints: [], extra: first.extra });
  }
  const { printed } = draft;
  return {
    value,
    nameIndex: printed?.fields.get('iConfiguration') ?? 0,
    attributes: printed?.fields.get('bmAttributes') ?? 0,
    maxPowerMa: printed?.fields.get('MaxPower') ?? 0,
    interfaces: Array.from(byNumber, ([number, altSettings]) => ({ number, altSettings })),
    associations: draft.associations.map(buildAssociation),
    extra: joined(draft.extra),
  };
}

function buildAltSetting(draft: AltSettingDraft, notes: GapNotes): AltSetting {
  const { printed, number, alternateSetting } = draft;
  const { fields, line, kernelDriver } = printed;
  const altSetting: AltSetting = {
    interfaceNumber: number,
    alternateSetting,
    interfaceClass: fields.get('bInterfaceClass') ?? unknownClass,
    interfaceSubclass: fields.get('bInterfaceSubClass') ?? 0,
    interfaceProtocol: fields.get('bInterfaceProtocol') ?? 0,
    nameIndex: fields.get('iInterface') ?? 0,
    endpoints: draft.endpoints.map(buildEndpoint),
    extra: joined(draft.extra),
  };
  const unknown = (['bInterfaceClass', 'bInterfaceSubClass', 'bInterfaceProtocol'] as const).filter(
    (name) => !fields.has(name),
  );
  if (unknown.length > 0) {
    notes.missing.push({ line, message: `interface ${number} has no ${unknown.join(' and no ')}` });
  }
  const promised = fields.get('bNumEndpoints');
  if (promised === undefined) {
    notes.missing.push({ line, message: `interface ${number} does not say how many endpoints it has` });
  } else {
    notes.endpointCounts.set(altSetting, promised);
    if (promised > altSetting.endpoints.length) {
      notes.missing.push({
        line,
        message: `interface ${number} promises ${promised} endpoints, ${altSetting.endpoints.length} are listed`,
      });
    }
  }
  if (kernelDriver !== undefined && kernelDriver !== '') notes.kernelDrivers.set(altSetting, kernelDriver);
  return altSetting;
}

/** Of an interface whose class was not printed: reserved, so that no driver wants it. */
const unknownClass = 0x00;

const transferTypes = ['control', 'isochronous', 'bulk', 'interrupt'] as const;

function buildEndpoint({ printed: { fields }, extra }: EndpointDraft): EndpointDescriptor {
  const address = fields.get('bEndpointAddress') ?? 0;
  const attributes = fields.get('bmAttributes') ?? 0;
  const packetSize = fields.get('wMaxPacketSize') ?? 0;
  const additionalTransactions = (packetSize >>> 11) & 0x03;
  const usageBits = attributes & 0xfc;
  const maxBurst = fields.get('bMaxBurst');
  return {
    address,
    direction: (address & 0x80) === 0 ? 'out' : 'in',
    type: transferTypes[attributes & 0x03] ?? 'control',
    maxPacketSize: packetSize & 0x07ff,
    ...(additionalTransactions === 0 ? {} : { additionalTransactions }),
    ...(usageBits === 0 ? {} : { usageBits }),
    interval: fields.get('bInterval') ?? 0,
    ...(maxBurst === undefined ? {} : { companion: { maxBurst, attributes: 0, bytesPerInterval: 0 } }),
    extra: joined(extra),
  };
}

function buildAssociation({ fields }: PrintedDescriptor): InterfaceAssociation {
  return {
    firstInterface: fields.get('bFirstInterface') ?? 0,
    interfaceCount: fields.get('bInterfaceCount') ?? 0,
    functionClass: fields.get('bFunctionClass') ?? 0,
    functionSubclass: fields.get('bFunctionSubClass') ?? 0,
    functionProtocol: fields.get('bFunctionProtocol') ?? 0,
    nameIndex: fields.get('iFunction') ?? 0,
  };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}
