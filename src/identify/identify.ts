import { adviseOn } from '../minidrivers/advice.ts';
import { type Recognition, recognize } from '../minidrivers/registry.ts';
import { kernelDriverOf } from '../minidrivers/recognition.ts';
import type { NetworkFunction } from '../usbnet/minidriver.ts';
import type { ReadWarning } from './printed-descriptor.ts';
import type { ReadDevice } from './read-device.ts';
import { readDescriptors } from './read-descriptors.ts';

/** A network function of a device: what drives it here, what drives it in Linux, and why. */
export interface IdentifiedFunction {
  readonly function: NetworkFunction;
  /** The minidriver; null: there is none here. */
  readonly driver: string | null;
  readonly linuxDriver: string;
  /** `bConfigurationValue`. */
  readonly configuration: number;
  /** Whether that is the active configuration or, if the input does not tell, the one that Linux chooses. */
  readonly selected: boolean;
  /** In rising order. */
  readonly interfaces: readonly number[];
  readonly controlInterface: number;
  readonly dataInterface: number;
  readonly quirks: readonly string[];
  readonly reason: string;
}

export interface IdentifiedDevice {
  /** Absent: the input does not tell. */
  readonly vendorId?: number;
  readonly productId?: number;
  readonly manufacturer?: string;
  readonly name?: string;
  /** Whether the input has all that its descriptors promise. */
  readonly complete: boolean;
  readonly warnings: readonly string[];
  /** Linux's own choice first. */
  readonly functions: readonly IdentifiedFunction[];
  /** What can be done with it, in words. */
  readonly advice: string;
}

export type IdentifyResult =
  | { readonly ok: true; readonly devices: readonly IdentifiedDevice[] }
  | {
      readonly ok: false;
      /** With the line or byte that stopped it. */
      readonly problem: string;
      readonly position: number;
    };

/**
 * Says what the devices are whose descriptors are in an input (see `readDescriptors` for its forms), and which
 * minidriver would drive which of their interfaces. Never throws.
 * @param text of the same bytes
 */
export function identify(bytes: Uint8Array, text: string): IdentifyResult {
  const result = readDescriptors(bytes, text);
  const unit = result.positions === 'lines' ? 'line' : 'byte';
  if (!result.ok) {
    return { ok: false, problem: `${unit} ${result.position}: ${result.problem}`, position: result.position };
  }
  return { ok: true, devices: result.devices.map((device) => identifyDevice(device, unit)) };
}

/** Of one device; a text with more is not understood anyway. */
const mostWarnings = 100;

function identifyDevice(device: ReadDevice, unit: string): IdentifiedDevice {
  const { described, activeConfiguration, hasIds, manufacturer, product, complete } = device;
  const recognitions = recognize(described, activeConfiguration);
  const warnings = [...device.warnings, ...disagreements(device, recognitions)];
  return {
    ...(hasIds ? { vendorId: described.descriptor.vendorId, productId: described.descriptor.productId } : {}),
    ...(manufacturer === undefined ? {} : { manufacturer }),
    ...(product === undefined ? {} : { name: product }),
    complete,
    warnings: warnings.slice(0, mostWarnings).map(({ line, message }) => `${unit} ${line}: ${message}`),
    functions: recognitions.map((recognition) => ({
      function: recognition.networkFunction,
      driver: recognition.driver,
      linuxDriver: recognition.linuxDriver,
      configuration: recognition.configurationValue,
      selected: recognition.selected,
      interfaces: [...new Set([recognition.controlInterface, recognition.dataInterface])].sort(
        (a, b) => a - b,
      ),
      controlInterface: recognition.controlInterface,
      dataInterface: recognition.dataInterface,
      quirks: recognition.quirks,
      reason: recognition.reason,
    })),
    advice: adviseOn(described, recognitions),
  };
}

/** Where the listing shows another driver than the one that is expected: an older kernel, or somebody's choice. */
function disagreements(
  { described, position }: ReadDevice,
  recognitions: readonly Recognition[],
): readonly ReadWarning[] {
  return recognitions.flatMap(({ configurationValue, controlInterface, linuxDriver }) => {
    const usbInterface = described.configurations
      .find(({ value }) => value === configurationValue)
      ?.interfaces.find(({ number }) => number === controlInterface);
    const actual = usbInterface === undefined ? undefined : kernelDriverOf(described, usbInterface);
    if (actual === undefined || actual === linuxDriver) return [];
    return [
      {
        line: position,
        message: `interface ${controlInterface} was bound to ${actual} when this was printed, not to ${linuxDriver}`,
      },
    ];
  });
}
