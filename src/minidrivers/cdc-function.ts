import { type CdcFunctional, parseCdcFunctional } from '../wire/cdc-functional.ts';
import type { ConfigurationDescriptor } from '../wire/usb-descriptor.ts';
import { usbClasses } from '../wire/cdc-class.ts';
import { findAltSetting } from '../usbnet/endpoints.ts';

/** A CDC function: what its functional descriptors say, and which interfaces belong to it. */
export interface CdcFunction {
  readonly functional: CdcFunctional;
  readonly controlInterface: number;
  readonly dataInterface: number;
}

/**
 * Collects the function around a control interface (spec 3.0). Functional descriptors are looked for in the control
 * interface, behind its endpoints and in the configuration, since devices put them in all three places. The data
 * interface is the union's; where the union has the two swapped they are swapped back; where there is no union it is the
 * other interface of a two-interface association, or the next one.
 */
export function findCdcFunction(
  configuration: ConfigurationDescriptor,
  interfaceNumber: number,
): CdcFunction | undefined {
  const control = findAltSetting(configuration, interfaceNumber, 0);
  if (control === undefined) return undefined;
  const extras = [control.extra, ...control.endpoints.map((endpoint) => endpoint.extra), configuration.extra];
  const functional = parseCdcFunctional(...extras);
  const isData = (candidate: number | undefined): candidate is number =>
    candidate !== undefined &&
    findAltSetting(configuration, candidate, 0)?.interfaceClass === usbClasses.data;

  const { union } = functional;
  if (union !== undefined) {
    const [slave] = union.dataInterfaces;
    if (isData(slave)) return { functional, controlInterface: interfaceNumber, dataInterface: slave };
    if (isData(union.controlInterface)) {
      return { functional, controlInterface: interfaceNumber, dataInterface: union.controlInterface };
    }
  }
  const association = configuration.associations.find(
    (candidate) => candidate.firstInterface === interfaceNumber && candidate.interfaceCount === 2,
  );
  const next = (association?.firstInterface ?? interfaceNumber) + 1;
  return isData(next) ? { functional, controlInterface: interfaceNumber, dataInterface: next } : undefined;
}
