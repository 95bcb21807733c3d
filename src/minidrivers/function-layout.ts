import { findAltSetting } from '../usbnet/endpoints.ts';
import { usbClasses } from '../wire/cdc-class.ts';
import { type CdcFunctional, parseCdcFunctional } from '../wire/cdc-functional.ts';
import type { AltSetting, ConfigurationDescriptor, UsbInterface } from '../wire/usb-descriptor.ts';
import { findCdcFunction } from './cdc-function.ts';
import type { DescribedDevice } from './described-device.ts';

/** Where a function's two halves are; the same number twice if one interface is both. */
export interface FunctionLayout {
  readonly controlInterface: number;
  readonly dataInterface: number;
}

export interface LayoutContext {
  readonly device: DescribedDevice;
  readonly configuration: ConfigurationDescriptor;
  /** The interface that a driver's table names. */
  readonly usbInterface: UsbInterface;
}

/** Finds the interfaces of a function; undefined: the driver would give up at this interface. */
export type FindLayout = (context: LayoutContext) => FunctionLayout | undefined;

/**
 * A control and a data interface, as CDC has it. Where the listing of interfaces is cut off, the data interface is
 * taken to be what the union says, or the next one.
 */
export const cdcLayout: FindLayout = ({ device, configuration, usbInterface }) => {
  const { number } = usbInterface;
  const found = findCdcFunction(configuration, number);
  if (found !== undefined) return { controlInterface: number, dataInterface: found.dataInterface };
  if (device.gaps === undefined || !device.gaps.unlistedInterfaces.has(configuration)) return undefined;
  const dataInterface = unionSlave(configuration, number) ?? number + 1;
  const isListed = configuration.interfaces.some((candidate) => candidate.number === dataInterface);
  return isListed ? undefined : { controlInterface: number, dataInterface };
};

/** As {@link cdcLayout}, but the union may also say that the control interface is its own data interface. */
export const ncmLayout: FindLayout = (context) => {
  const { number } = context.usbInterface;
  return unionSlave(context.configuration, number) === number ? singleLayout(context) : cdcLayout(context);
};

/** One interface that is all of the function. */
export const singleLayout: FindLayout = ({ device, usbInterface }) => {
  const { number } = usbInterface;
  return mayHaveBulkEndpoints(device, usbInterface)
    ? { controlInterface: number, dataInterface: number }
    : undefined;
};

/**
 * One interface or two, as modems have it. The union tells. Where there is none, an interface with bulk endpoints is all
 * of the function, and one without is followed by its data interface: one of data class, or Huawei's, whose protocol
 * is the number before that of the control interface.
 */
export const modemLayout: FindLayout = ({ device, configuration, usbInterface }) => {
  const { number } = usbInterface;
  const union = functionalOf(configuration, number)?.union;
  // A union about another interface is none of this function's.
  const slave = union?.controlInterface === number ? union.dataInterfaces[0] : undefined;
  const isListed = (wanted: number): boolean =>
    configuration.interfaces.some((candidate) => candidate.number === wanted);
  if (slave !== undefined && slave !== number && isListed(slave)) {
    return { controlInterface: number, dataInterface: slave };
  }
  if (mayHaveBulkEndpoints(device, usbInterface)) return { controlInterface: number, dataInterface: number };
  const next = configuration.interfaces.find((candidate) => candidate.number === number + 1);
  if (next !== undefined && isDataOf(next, usbInterface)) {
    return { controlInterface: number, dataInterface: next.number };
  }
  // The altsetting with the bulk endpoints may not have been in use.
  return device.gaps?.onlyCurrentAltSettings === true
    ? { controlInterface: number, dataInterface: number }
    : undefined;
};

function isDataOf(candidate: UsbInterface, control: UsbInterface): boolean {
  const data = candidate.altSettings[0];
  const first = control.altSettings[0];
  if (data === undefined || first === undefined) return false;
  return (
    data.interfaceClass === usbClasses.data ||
    (data.interfaceClass === first.interfaceClass &&
      data.interfaceSubclass === first.interfaceSubclass &&
      data.interfaceProtocol === first.interfaceProtocol - 1)
  );
}

function unionSlave(configuration: ConfigurationDescriptor, number: number): number | undefined {
  return functionalOf(configuration, number)?.union?.dataInterfaces[0];
}

/** The functional descriptors of a control interface, from the three places where devices put them (spec 3.0). */
export function functionalOf(
  configuration: ConfigurationDescriptor,
  number: number,
): CdcFunctional | undefined {
  const control = findAltSetting(configuration, number, 0);
  if (control === undefined) return undefined;
  return parseCdcFunctional(
    control.extra,
    ...control.endpoints.map((endpoint) => endpoint.extra),
    configuration.extra,
  );
}

/** Whether an altsetting has bulk endpoints both ways, or might have them if all were listed. */
function mayHaveBulkEndpoints(device: DescribedDevice, { altSettings }: UsbInterface): boolean {
  return altSettings.some((altSetting) => {
    const { endpoints } = altSetting;
    const isBulk = (direction: 'in' | 'out'): boolean =>
      endpoints.some((endpoint) => endpoint.type === 'bulk' && endpoint.direction === direction);
    if (isBulk('in') && isBulk('out')) return true;
    if (device.gaps === undefined) return false;
    const count = endpointCount(device, altSetting);
    return count === undefined || (count > endpoints.length && count > 1);
  });
}

/** `bNumEndpoints`; undefined: it was not printed. */
export function endpointCount({ gaps }: DescribedDevice, altSetting: AltSetting): number | undefined {
  return gaps === undefined ? altSetting.endpoints.length : gaps.endpointCounts.get(altSetting);
}
