import type { NetworkFunction } from '../usbnet/minidriver.ts';
import { usbClasses } from '../wire/cdc-class.ts';
import type { AltSetting, ConfigurationDescriptor, UsbInterface } from '../wire/usb-descriptor.ts';
import { chooseConfiguration } from './configuration-choice.ts';
import { type DescribedDevice, usbIdOf } from './described-device.ts';
import { type DeviceRule, findRule, type Quirk } from './device-rule.ts';
import { endpointCount, type FunctionLayout, type LayoutContext } from './function-layout.ts';
import { type NetworkDriver, networkDrivers } from './network-drivers.ts';

/** A network function of a device, and the driver that Linux has for it; nobody says that we have it too. */
export interface RecognizedFunction {
  /** Linux's name of the driver. */
  readonly linuxDriver: string;
  /** Whose protocol it is, under Linux's name: that driver can have it too. */
  readonly drivenLike: string;
  readonly networkFunction: NetworkFunction;
  readonly configurationValue: number;
  /** Whether its configuration is the active one or, if that is not known, the one that Linux sets. */
  readonly selected: boolean;
  readonly controlInterface: number;
  readonly dataInterface: number;
  readonly quirks: readonly Quirk[];
  /** Why this driver and these interfaces, in one sentence without a full stop. */
  readonly reason: string;
}

/**
 * The network functions of a device: first those of its active configuration, or of the one that Linux chooses if that
 * is not known, then those of its other ones; within a configuration in the order of the descriptors. Interfaces decide;
 * ids only make exceptions, and stand in for interfaces that say nothing (spec 3).
 */
export function recognizeFunctions(
  device: DescribedDevice,
  activeConfiguration?: number,
): readonly RecognizedFunction[] {
  const selected =
    device.configurations.find(({ value }) => value === activeConfiguration) ?? chooseConfiguration(device);
  const ordered = [...device.configurations].sort((a, b) => Number(b === selected) - Number(a === selected));
  return ordered.flatMap((configuration) =>
    recognizeConfiguration(device, configuration, configuration === selected),
  );
}

function recognizeConfiguration(
  device: DescribedDevice,
  configuration: ConfigurationDescriptor,
  selected: boolean,
): readonly RecognizedFunction[] {
  const id = usbIdOf(device);
  const recognized: RecognizedFunction[] = [];
  // A data interface belongs to the function whose control interface named it.
  const claimed = new Set<number>();
  for (const usbInterface of configuration.interfaces) {
    const [first] = usbInterface.altSettings;
    if (first === undefined || claimed.has(usbInterface.number)) continue;
    const found =
      findByTables({ device, configuration, usbInterface }, id, first) ??
      findByKernel({ device, configuration, usbInterface });
    if (found === undefined) continue;
    const { driver, rule, layout, moreQuirks, evidence } = found;
    claimed.add(layout.controlInterface).add(layout.dataInterface);
    recognized.push({
      linuxDriver: driver.name,
      drivenLike: driver.drivenLike ?? driver.name,
      networkFunction: rule.networkFunction ?? driver.networkFunction,
      configurationValue: configuration.value,
      selected,
      ...layout,
      quirks: [...new Set([...(rule.quirks ?? []), ...moreQuirks])],
      reason: evidence,
    });
  }
  return recognized;
}

/**
 * What could drive an interface as far as ids and class triples tell, where nothing more of a device is known: the names of
 * Linux's drivers in its order, or of those that they are driven like. @param id of the device, "0b95:1790"
 */
export function driversOfInterface(id: string, altSetting: AltSetting): readonly string[] {
  return networkDrivers
    .filter(({ rules }) => {
      const rule = findRule(rules, id, altSetting);
      return rule !== undefined && rule.leave !== true;
    })
    .map(({ name, drivenLike }) => drivenLike ?? name);
}

interface Found {
  readonly driver: NetworkDriver;
  readonly rule: DeviceRule;
  readonly layout: FunctionLayout;
  readonly moreQuirks: readonly Quirk[];
  readonly evidence: string;
}

function findByTables(context: LayoutContext, id: string, first: AltSetting): Found | undefined {
  for (const driver of networkDrivers) {
    const rule = findRule(driver.rules, id, first);
    if (rule === undefined || rule.leave === true || !fitsDevice(rule, context.device)) continue;
    if (driver.accepts?.(context, rule) === false) continue;
    const layout = driver.layout(context);
    if (layout === undefined) continue;
    return {
      driver,
      rule,
      layout,
      moreQuirks: driver.moreQuirks?.(context) ?? [],
      evidence: explain(driver, rule, layout, context.configuration.value, id, first),
    };
  }
  return undefined;
}

/** A device class that was not printed is 0 and may be any. */
function fitsDevice({ deviceClass }: DeviceRule, { descriptor, gaps }: DescribedDevice): boolean {
  const actual = descriptor.deviceClass;
  return deviceClass === undefined || deviceClass === actual || (gaps !== undefined && actual === 0);
}

/** What no table names may still have been in the hands of a network driver when the descriptors were printed. */
function findByKernel(context: LayoutContext): Found | undefined {
  const { device, usbInterface } = context;
  const name = kernelDriverOf(device, usbInterface);
  const driver = networkDrivers.find((candidate) => candidate.name === name);
  // A data interface bears the name of the driver that has its control interface.
  const isData = usbInterface.altSettings[0]?.interfaceClass === usbClasses.data;
  if (driver === undefined || isData || driver.accepts?.(context, {}) === false) return undefined;
  const layout = driver.layout(context);
  if (layout === undefined) return undefined;
  return {
    driver,
    rule: {},
    layout,
    moreQuirks: driver.moreQuirks?.(context) ?? [],
    evidence: explainKernel(context, driver, layout),
  };
}

export function kernelDriverOf({ gaps }: DescribedDevice, { altSettings }: UsbInterface): string | undefined {
  for (const altSetting of altSettings) {
    const driver = gaps?.kernelDrivers.get(altSetting);
    if (driver !== undefined) return driver;
  }
  return undefined;
}

function explainKernel(
  { device, configuration, usbInterface }: LayoutContext,
  { name }: NetworkDriver,
  { controlInterface }: FunctionLayout,
): string {
  const [first] = usbInterface.altSettings;
  const where = `interface ${controlInterface} in configuration ${configuration.value}`;
  const isDescribed = first !== undefined && endpointCount(device, first) !== undefined;
  return isDescribed
    ? `${where} is in no table here, but was bound to ${name} when this was printed`
    : `${where} was bound to ${name} when this was printed, which is all that is known of it`;
}

function explain(
  driver: NetworkDriver,
  rule: DeviceRule,
  { controlInterface, dataInterface }: FunctionLayout,
  configurationValue: number,
  id: string,
  first: AltSetting,
): string {
  const triple = [first.interfaceClass, first.interfaceSubclass, first.interfaceProtocol]
    .map((number) => number.toString(16).padStart(2, '0'))
    .join('/');
  const what = rule.chip === undefined ? driver.words : `${driver.words} (${rule.chip})`;
  const where =
    dataInterface === controlInterface
      ? `in configuration ${configurationValue}`
      : `with data interface ${dataInterface} in configuration ${configurationValue}`;
  const reason =
    rule.triple === undefined
      ? `interface ${controlInterface} of ${id} is ${what}, ${where}`
      : `interface ${controlInterface} is ${what} (${triple}) ${where}`;
  return rule.note === undefined ? reason : `${reason}; ${rule.note}`;
}
