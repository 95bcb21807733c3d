import { cdcProtocols, cdcSubclasses, usbClasses } from '../wire/cdc-class.ts';
import type { ConfigurationDescriptor, DeviceDescriptor } from '../wire/usb-descriptor.ts';
import type { Match, Minidriver, MinidriverName, NetworkFunction } from '../usbnet/minidriver.ts';
import { cdcEther } from './cdc-ether.ts';
import { findCdcFunction } from './cdc-function.ts';
import { cdcNcm } from './cdc-ncm.ts';

/** All there is to decide on: a device's descriptors, every configuration of it. */
export interface DescribedDevice {
  readonly descriptor: DeviceDescriptor;
  readonly configurations: readonly ConfigurationDescriptor[];
}

const minidrivers: Readonly<Record<MinidriverName, Minidriver>> = {
  cdc_ether: cdcEther,
  cdc_ncm: cdcNcm,
};

export function minidriverOf(name: MinidriverName): Minidriver {
  return minidrivers[name];
}

/** Vendors whose ECM and NCM functions are modems to Linux (spec 3.1, 3.2). */
const wwanVendors: Readonly<Record<MinidriverName, ReadonlySet<number>>> = {
  cdc_ether: new Set([0x12d1, 0x19d2, 0x1bc7, 0x0bdb]),
  cdc_ncm: new Set([0x0bdb, 0x413c, 0x0930, 0x12d1]),
};

/** ECM interfaces that Linux leaves to another driver, by vendor and product id (spec 3.1). */
const ecmElsewhere: ReadonlyMap<string, string> = new Map([
  ['0bda:8152', 'r8152'],
  ['0bda:8153', 'r8152'],
  ['0bda:8155', 'r8152'],
  ['0bda:8156', 'r8152'],
  ['045e:07ab', 'r8152'],
  ['045e:07c6', 'r8152'],
  ['045e:0927', 'r8152'],
  ['04e8:a101', 'r8152'],
  ['0955:09ff', 'r8152'],
  ['2357:0601', 'r8152'],
  ['2eca:c101', 'aqc111'],
  ['0b95:2790', 'aqc111'],
  ['0b95:2791', 'aqc111'],
  ['1c04:0015', 'aqc111'],
  ['1004:61aa', 'lg-vl600'],
]);

/** "0bda:8153", as lsusb writes it. */
export function formatUsbId(vendorId: number, productId: number): string {
  const hex = (value: number): string => value.toString(16).padStart(4, '0');
  return `${hex(vendorId)}:${hex(productId)}`;
}

interface InterfaceRule {
  readonly driver: MinidriverName;
  readonly words: string;
  readonly triple: readonly [number, number, number];
}

/** In the order of preference: a device that offers both is driven as NCM, which moves more with fewer transfers. */
const rules: readonly InterfaceRule[] = [
  {
    driver: 'cdc_ncm',
    words: 'CDC-NCM (02/0d/00)',
    triple: [usbClasses.communications, cdcSubclasses.ncm, cdcProtocols.none],
  },
  {
    driver: 'cdc_ether',
    words: 'CDC-ECM (02/06/00)',
    triple: [usbClasses.communications, cdcSubclasses.ecm, cdcProtocols.none],
  },
];

/**
 * Which functions of a device can be driven, the best first. Descriptors decide; ids only make exceptions. The active
 * configuration, if it is known, wins among equals: changing it takes the device away from other programs.
 */
export function matchDevice(device: DescribedDevice, activeConfiguration?: number): readonly Match[] {
  const id = formatUsbId(device.descriptor.vendorId, device.descriptor.productId);
  const ordered = [...device.configurations].sort(
    (a, b) => Number(b.value === activeConfiguration) - Number(a.value === activeConfiguration),
  );
  const matches: Match[] = [];
  for (const rule of rules) {
    for (const configuration of ordered) {
      matches.push(...matchConfiguration(rule, configuration, device.descriptor.vendorId, id));
    }
  }
  return matches;
}

function* matchConfiguration(
  rule: InterfaceRule,
  configuration: ConfigurationDescriptor,
  vendorId: number,
  id: string,
): Generator<Match> {
  for (const { number, altSettings } of configuration.interfaces) {
    const [first] = altSettings;
    if (first === undefined) continue;
    const [interfaceClass, subclass, protocol] = rule.triple;
    if (
      first.interfaceClass !== interfaceClass ||
      first.interfaceSubclass !== subclass ||
      first.interfaceProtocol !== protocol
    ) {
      continue;
    }
    if (rule.driver === 'cdc_ether' && ecmElsewhere.has(id)) continue;
    const cdc = findCdcFunction(configuration, number);
    if (cdc === undefined) continue;
    const networkFunction: NetworkFunction = wwanVendors[rule.driver].has(vendorId) ? 'wwan' : 'ethernet';
    yield {
      driver: rule.driver,
      networkFunction,
      configurationValue: configuration.value,
      controlInterface: cdc.controlInterface,
      dataInterface: cdc.dataInterface,
      quirks: [],
      reason:
        `interface ${cdc.controlInterface} is ${rule.words} with data interface ${cdc.dataInterface}` +
        ` in configuration ${configuration.value}`,
    };
  }
}

/** Why no minidriver takes a device, in one sentence. */
export function explainNoMatch(device: DescribedDevice): string {
  const id = formatUsbId(device.descriptor.vendorId, device.descriptor.productId);
  const elsewhere = ecmElsewhere.get(id);
  if (elsewhere !== undefined) {
    return `Linux drives ${id} with ${elsewhere}, which is not a usbnet minidriver`;
  }
  return 'none of its interfaces is a network function that a minidriver here knows';
}
