import type { DescriptorGaps } from '../minidrivers/described-device.ts';
import type {
  AltSetting,
  ConfigurationDescriptor,
  DeviceDescriptor,
  EndpointDescriptor,
  InterfaceAssociation,
} from '../wire/usb-descriptor.ts';
import type { AltSettingDraft, ConfigurationDraft, DeviceDraft, EndpointDraft } from './device-draft.ts';
import type { FieldName, PrintedDescriptor, ReadWarning } from './printed-descriptor.ts';
import type { ReadDevice } from './read-device.ts';

export interface BuildOptions {
  /**
   * The listing is one of `usb-devices`, which shows the active configuration alone and of each interface the
   * altsetting in use.
   */
  readonly mayShowOnlyWhatIsInUse: boolean;
}

/**
 * Makes a device of its printed descriptors, and notes what they promise and do not have.
 * @param remarks what readers had to say about its lines
 */
export function buildDevice(
  draft: DeviceDraft,
  remarks: readonly ReadWarning[],
  options: BuildOptions,
): ReadDevice {
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
