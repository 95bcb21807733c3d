import { networkDrivers } from '../minidrivers/network-drivers.ts';
import type { FieldName, PrintedDescriptor, PrintedText } from './printed-descriptor.ts';
import type { TextLine } from './text-line.ts';

/** "usb 1-1.4: New USB device found, idVendor=12d1, idProduct=14dc". */
const foundPattern =
  /\busb (\d+-[\d.]+): New USB device found, idVendor=([\da-f]{4}), idProduct=([\da-f]{4})/i;
const stringPattern = /\busb (\d+-[\d.]+): (Product|Manufacturer): (.*)$/;
/** "cdc_ether 1-1.4:1.0 eth1: register …": driver, device, configuration, interface. */
const boundPattern = /(?:^|[\s\]:])([a-z][\w-]{2,20}) (\d+-[\d.]+):(\d{1,3})\.(\d{1,3})[\s:]/;
/** A driver that says so has given the interface up, or never had it. */
const failurePattern = /\b(?:unregister|probe .*failed|failed with error|bind\(\) failure)/;

const driverNames: ReadonlySet<string> = new Set(networkDrivers.map(({ name }) => name));

interface LoggedDevice {
  readonly line: number;
  readonly ids: ReadonlyMap<FieldName, number>;
  manufacturer?: string;
  product?: string;
  configuration?: PrintedDescriptor;
  readonly interfaces: Map<number, PrintedDescriptor>;
}

/** Reads the kernel's log: which devices came, and which network driver said that it has an interface of them. */
export function readKernelLog(lines: readonly TextLine[]): PrintedText {
  const devices: LoggedDevice[] = [];
  /** By the place on the bus, where one device may come after another. */
  const current = new Map<string, LoggedDevice>();
  for (const { number: line, text } of lines) {
    const [, foundAt, vendor = '', product = ''] = foundPattern.exec(text) ?? [];
    if (foundAt !== undefined) {
      const ids = new Map<FieldName, number>([
        ['idVendor', Number.parseInt(vendor, 16)],
        ['idProduct', Number.parseInt(product, 16)],
      ]);
      const device: LoggedDevice = { line, ids, interfaces: new Map() };
      current.set(foundAt, device);
      devices.push(device);
      continue;
    }
    const [, namedAt = '', what, words = ''] = stringPattern.exec(text) ?? [];
    const named = current.get(namedAt);
    if (named !== undefined && words.trim() !== '') {
      if (what === 'Product') named.product = words.trim();
      else named.manufacturer = words.trim();
      continue;
    }
    readBinding(text, line, current);
  }
  return { descriptors: distinct(devices).flatMap(descriptorsOf), warnings: [] };
}

function readBinding(text: string, line: number, current: Map<string, LoggedDevice>): void {
  const [, driver = '', boundAt = '', configuration = '', number = ''] = boundPattern.exec(text) ?? [];
  const bound = current.get(boundAt);
  if (bound === undefined || !driverNames.has(driver) || failurePattern.test(text)) return;
  const value = Number(configuration);
  if (bound.configuration?.fields.get('bConfigurationValue') !== value) {
    bound.configuration = { kind: 'configuration', line, fields: new Map([['bConfigurationValue', value]]) };
    bound.interfaces.clear();
  }
  bound.interfaces.set(Number(number), {
    kind: 'interface',
    line,
    fields: new Map([
      ['bInterfaceNumber', Number(number)],
      ['bAlternateSetting', 0],
    ]),
    kernelDriver: driver,
  });
}

/** A device that comes again and again is told once, as it was when most was known of it. */
function distinct(devices: readonly LoggedDevice[]): readonly LoggedDevice[] {
  const byIds = new Map<string, LoggedDevice>();
  for (const device of devices) {
    const key = [...device.ids.values()].join(' ');
    const before = byIds.get(key);
    if (before === undefined || before.interfaces.size <= device.interfaces.size) byIds.set(key, device);
  }
  return devices.filter((device) => [...byIds.values()].includes(device));
}

function descriptorsOf({
  line,
  ids,
  manufacturer,
  product,
  configuration,
  interfaces,
}: LoggedDevice): readonly PrintedDescriptor[] {
  return [
    {
      kind: 'heading',
      line,
      fields: ids,
      ...(product === undefined ? {} : { product }),
      ...(manufacturer === undefined ? {} : { manufacturer }),
    },
    ...(configuration === undefined ? [] : [configuration, ...interfaces.values()]),
  ];
}
