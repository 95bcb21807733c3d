import type { Match, Minidriver, MinidriverName, NetworkFunction } from '../usbnet/minidriver.ts';
import { cdcEem } from './cdc-eem.ts';
import { asix } from './asix.ts';
import { ax88179 } from './ax88179.ts';
import { cdcEther } from './cdc-ether.ts';
import { cdcNcm } from './cdc-ncm.ts';
import { huaweiNcm } from './huawei-ncm.ts';
import { rndisHost } from './rndis-host.ts';
import { type DescribedDevice, usbIdOf } from './described-device.ts';
import type { Quirk } from './device-rule.ts';
import { driversOfInterface, recognizeFunctions } from './recognition.ts';

const minidrivers: Readonly<Record<MinidriverName, Minidriver>> = {
  cdc_ether: cdcEther,
  cdc_ncm: cdcNcm,
  huawei_cdc_ncm: huaweiNcm,
  cdc_eem: cdcEem,
  rndis_host: rndisHost,
  ax88179_178a: ax88179,
  asix,
};

export function minidriverOf(name: MinidriverName): Minidriver {
  return minidrivers[name];
}

function isMinidriver(name: string): name is MinidriverName {
  return Object.hasOwn(minidrivers, name);
}

/**
 * What a network function of a device is. Where `driver` is a minidriver, it is a {@link Match} and can be driven;
 * where it is null, Linux has a driver for it that is not here.
 */
export interface Recognition {
  readonly driver: MinidriverName | null;
  /** Linux's name of its driver. */
  readonly linuxDriver: string;
  readonly networkFunction: NetworkFunction;
  readonly configurationValue: number;
  /** Whether its configuration is the active one or, if that is not known, the one that Linux sets. */
  readonly selected: boolean;
  readonly controlInterface: number;
  readonly dataInterface: number;
  readonly quirks: readonly Quirk[];
  readonly reason: string;
}

/** A {@link Recognition} that can be driven. */
export type DrivableRecognition = Recognition & { readonly driver: MinidriverName };

export function isDrivable(recognition: Recognition): recognition is DrivableRecognition {
  return recognition.driver !== null;
}

/** The network functions of a device in Linux's order, driven here or not; see {@link recognizeFunctions}. */
export function recognize(device: DescribedDevice, activeConfiguration?: number): readonly Recognition[] {
  return recognizeFunctions(device, activeConfiguration).map(({ drivenLike, ...found }) => ({
    ...found,
    driver: isMinidriver(drivenLike) ? drivenLike : null,
  }));
}

/**
 * The minidriver that a device will have, as far as ids and class triples tell: for devices whose descriptors are not at
 * hand yet. What it really has is seen when it is opened.
 */
export function guessMinidriver(device: DescribedDevice): MinidriverName | undefined {
  const id = usbIdOf(device);
  for (const { interfaces } of device.configurations) {
    for (const { altSettings } of interfaces) {
      const [first] = altSettings;
      const names = first === undefined ? [] : driversOfInterface(id, first);
      const minidriver = names.find(isMinidriver);
      if (minidriver !== undefined) return minidriver;
    }
  }
  return undefined;
}

/**
 * How good a function is for measuring, the best first: chips with drivers of their own and what moves several frames
 * in a transfer; one frame a transfer; RNDIS with its conversation over the control endpoint.
 */
const preference: readonly (readonly string[])[] = [
  ['ax88179_178a', 'asix', 'cdc_ncm', 'huawei_cdc_ncm', 'cdc_mbim', 'qmi_wwan'],
  ['cdc_ether'],
  ['cdc_eem'],
  ['rndis_host'],
];

function rankOf({ driver }: DrivableRecognition): number {
  return preference.findIndex((names) => names.includes(driver));
}

/**
 * Which functions of a device can be driven, the best first. Descriptors decide; ids only make exceptions. The active
 * configuration, if it is known, wins among equals: changing it takes the device away from other programs.
 */
export function matchDevice(device: DescribedDevice, activeConfiguration?: number): readonly Match[] {
  return recognize(device, activeConfiguration)
    .filter(isDrivable)
    .sort((a, b) => rankOf(a) - rankOf(b))
    .map(
      ({
        driver,
        networkFunction,
        configurationValue,
        controlInterface,
        dataInterface,
        quirks,
        reason,
      }): Match => ({
        driver,
        networkFunction,
        configurationValue,
        controlInterface,
        dataInterface,
        quirks,
        reason,
      }),
    );
}

/** Why no minidriver takes a device, in one sentence. */
export function explainNoMatch(device: DescribedDevice, activeConfiguration?: number): string {
  const [recognition] = recognize(device, activeConfiguration);
  if (recognition === undefined) {
    return 'none of its interfaces is a network function that a minidriver here knows';
  }
  return `${recognition.reason}; Linux drives it with ${recognition.linuxDriver}, which is not here`;
}
