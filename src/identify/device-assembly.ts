import { type BuildOptions, buildDevice } from './device-building.ts';
import type { AltSettingDraft, ConfigurationDraft, DeviceDraft, EndpointDraft } from './device-draft.ts';
import type { PrintedDescriptor, PrintedText, ReadWarning } from './printed-descriptor.ts';
import type { ReadDevice } from './read-device.ts';

/** Makes devices of printed descriptors, in their order, and tells what is missing. Never throws. */
export function assembleDevices(text: PrintedText, options: BuildOptions): readonly ReadDevice[] {
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
    return buildDevice(draft, remarks, options);
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
