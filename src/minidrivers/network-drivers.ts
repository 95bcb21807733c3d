import type { NetworkFunction } from '../usbnet/minidriver.ts';
import { cdcProtocols, cdcSubclasses, usbClasses } from '../wire/cdc-class.ts';
import type { AltSetting, UsbInterface } from '../wire/usb-descriptor.ts';
import { usbIdOf } from './described-device.ts';
import type { DeviceRule, Quirk } from './device-rule.ts';
import {
  cdcLayout,
  endpointCount,
  type FindLayout,
  functionalOf,
  type LayoutContext,
  modemLayout,
  ncmLayout,
  singleLayout,
} from './function-layout.ts';
import { asixRules } from './rules/asix-rules.ts';
import { ax88179Rules } from './rules/ax88179-rules.ts';
import { cdcEtherRules } from './rules/cdc-ether-rules.ts';
import { cdcMbimRules, ncmMbimRules } from './rules/cdc-mbim-rules.ts';
import { cdcNcmRules, huaweiCdcNcmRules } from './rules/cdc-ncm-rules.ts';
import * as other from './rules/other-driver-rules.ts';
import { qmiWwanRules } from './rules/qmi-wwan-rules.ts';
import { rndisHostRules } from './rules/rndis-host-rules.ts';

/** A network driver of Linux: what it takes, and what it is to people. */
export interface NetworkDriver {
  /** Linux's name of it. */
  readonly name: string;
  /** What it drives, for sentences like "interface 0 is …". */
  readonly words: string;
  readonly networkFunction: NetworkFunction;
  readonly rules: readonly DeviceRule[];
  readonly layout: FindLayout;
  /** A driver that can have the function just as well. */
  readonly drivenLike?: string;
  /** Looks at what no table says; false: the driver's probe turns the interface away. */
  readonly accepts?: (context: LayoutContext, rule: DeviceRule) => boolean;
  /** Quirks that follow from descriptors. */
  readonly moreQuirks?: (context: LayoutContext) => readonly Quirk[];
}

/** Interface classes that no id makes a network interface of: audio, HID, storage, hub, video. */
const foreignClasses: ReadonlySet<number> = new Set([0x01, 0x03, 0x08, 0x09, 0x0e]);

function firstSetting({ altSettings }: UsbInterface): AltSetting | undefined {
  return altSettings[0];
}

function isTriple(altSetting: AltSetting, triple: readonly number[]): boolean {
  const { interfaceClass, interfaceSubclass, interfaceProtocol } = altSetting;
  return [interfaceClass, interfaceSubclass, interfaceProtocol].every((number, i) => number === triple[i]);
}

const mbimTriple = [usbClasses.communications, cdcSubclasses.mbim, cdcProtocols.none];
const ncmTriple = [usbClasses.communications, cdcSubclasses.ncm, cdcProtocols.none];

/** `cdc_ncm_comm_intf_is_mbim` for the second altsetting: Linux prefers MBIM where there are both (spec 3.3). */
function hasMbimAltSetting({ altSettings }: UsbInterface): boolean {
  return altSettings.some(
    (altSetting) => altSetting.alternateSetting === 1 && isTriple(altSetting, mbimTriple),
  );
}

/**
 * qmi_wwan's probe (spec 3.5): an interface number counts on vendor-specific interfaces only (on 02/xx/ff too here: an
 * early Huawei stick has its QMI there, and Linux took it until that check came); an interface with two endpoints is the
 * diagnostic port; a Quectel EC20 has its QMI elsewhere than the Gobi whose id it bears.
 */
function acceptsQmi({ device, configuration, usbInterface }: LayoutContext, rule: DeviceRule): boolean {
  const first = firstSetting(usbInterface);
  if (first === undefined) return false;
  const isVendors =
    first.interfaceClass === usbClasses.vendorSpecific ||
    (first.interfaceClass === usbClasses.communications && first.interfaceProtocol === cdcProtocols.vendor);
  if (rule.interfaceNumbers !== undefined && !isVendors) return false;
  const isEc20 = usbIdOf(device) === ec20Id && configuration.interfaces.length === ec20Interfaces;
  if (isEc20 && usbInterface.number === 0) return false;
  return endpointCount(device, first) !== 2;
}
const ec20Id = '05c6:9215';
const ec20Interfaces = 5;

/**
 * A modem of somebody's own kind has the same numbers as RNDIS of class 2, but tells what it can do as a modem. RNDIS of
 * the other classes may say anything there (spec 3.4).
 */
function acceptsRndis({ configuration, usbInterface }: LayoutContext): boolean {
  return (
    firstSetting(usbInterface)?.interfaceClass !== usbClasses.communications ||
    (functionalOf(configuration, usbInterface.number)?.acm?.capabilities ?? 0) === 0
  );
}

/** MDLM stands for several protocols; its GUID tells which (spec 3.1). cdc_ether has this one alone. */
function acceptsCdcEther({ configuration, usbInterface }: LayoutContext): boolean {
  const guid = functionalOf(configuration, usbInterface.number)?.mdlm?.guid;
  return guid === undefined || guid.every((byte, i) => byte === mobileBroadbandGuid[i]);
}
const mobileBroadbandGuid = [
  0xa3, 0x17, 0xa8, 0x8b, 0x04, 0x5e, 0x4f, 0x01, 0xa6, 0x07, 0xc0, 0xff, 0xcb, 0x7e, 0x39, 0x2a,
];

const remoteWakeupBit = 0x20;
const dtrFromUsbVersion = 0x0201;

/** Newer chips want DTR although no table names them (spec 3.5). */
function qmiQuirks({ device, configuration }: LayoutContext): readonly Quirk[] {
  const wantsDtr =
    device.descriptor.usbVersion >= dtrFromUsbVersion && (configuration.attributes & remoteWakeupBit) !== 0;
  return wantsDtr ? ['set-dtr'] : [];
}

function ofChips(
  name: string,
  words: string,
  rules: readonly DeviceRule[],
  networkFunction: NetworkFunction = 'ethernet',
): NetworkDriver {
  return {
    name,
    words,
    networkFunction,
    rules,
    layout: singleLayout,
    accepts: ({ usbInterface }) => !foreignClasses.has(firstSetting(usbInterface)?.interfaceClass ?? 0),
  };
}

/** ipheth claims altsetting 1 of its interface. */
const iphethAltSetting = 1;

/**
 * The network drivers of Linux 7.3, in the order in which they are asked. Where the tables of two name the same
 * interface, one of them has an entry to leave it to the other; where they don't, the more special one is asked first.
 */
export const networkDrivers: readonly NetworkDriver[] = [
  {
    name: 'qmi_wwan',
    words: 'QMI',
    networkFunction: 'wwan',
    rules: qmiWwanRules,
    layout: modemLayout,
    accepts: acceptsQmi,
    moreQuirks: qmiQuirks,
  },
  {
    name: 'sierra_net',
    words: "Sierra's Direct IP",
    networkFunction: 'wwan',
    rules: other.sierraNetRules,
    layout: singleLayout,
  },
  {
    name: 'huawei_cdc_ncm',
    words: "Huawei's NCM",
    networkFunction: 'wwan',
    rules: huaweiCdcNcmRules,
    layout: modemLayout,
  },
  {
    name: 'cdc_mbim',
    words: 'CDC-MBIM',
    networkFunction: 'wwan',
    rules: cdcMbimRules,
    layout: cdcLayout,
  },
  {
    name: 'cdc_mbim',
    words: 'CDC-NCM that can be CDC-MBIM',
    networkFunction: 'wwan',
    rules: ncmMbimRules,
    layout: cdcLayout,
    accepts: ({ usbInterface }) => hasMbimAltSetting(usbInterface),
  },
  {
    name: 'cdc_ncm',
    words: 'CDC-NCM',
    networkFunction: 'ethernet',
    rules: cdcNcmRules,
    layout: ncmLayout,
    // Apple's interfaces are named by number, and bear other functions in other configurations.
    accepts: ({ usbInterface }, { interfaceNumbers }) => {
      const first = firstSetting(usbInterface);
      return interfaceNumbers === undefined || (first !== undefined && isTriple(first, ncmTriple));
    },
  },
  {
    name: 'cdc_ether',
    words: 'CDC-ECM',
    networkFunction: 'ethernet',
    rules: cdcEtherRules,
    layout: cdcLayout,
    accepts: acceptsCdcEther,
  },
  {
    name: 'rndis_host',
    words: 'RNDIS',
    networkFunction: 'ethernet',
    rules: rndisHostRules,
    layout: cdcLayout,
    accepts: acceptsRndis,
  },
  {
    name: 'cdc_eem',
    words: 'CDC-EEM',
    networkFunction: 'ethernet',
    rules: [{ triple: [usbClasses.communications, cdcSubclasses.eem, cdcProtocols.eem] }],
    layout: singleLayout,
  },
  ofChips('ax88179_178a', 'an ASIX gigabit chip', ax88179Rules),
  ofChips('asix', 'an ASIX chip', asixRules),
  ofChips('r8152', 'a Realtek RTL8152 to RTL8157', other.r8152Rules),
  ofChips('aqc111', 'an Aquantia AQC111', other.aqc111Rules),
  {
    name: 'aqc111',
    words: "CDC-ECM of Aquantia's AQC111",
    networkFunction: 'ethernet',
    rules: other.aqc111EcmRules,
    layout: cdcLayout,
    drivenLike: 'cdc_ether',
  },
  {
    name: 'ipheth',
    words: "the tethering of Apple's phones and tablets",
    networkFunction: 'ethernet',
    rules: other.iphethRules,
    layout: ({ usbInterface: { number } }) => ({ controlInterface: number, dataInterface: number }),
    accepts: ({ device, usbInterface: { altSettings } }) =>
      device.gaps !== undefined ||
      altSettings.some((altSetting) => altSetting.alternateSetting === iphethAltSetting),
  },
  {
    name: 'zaurus',
    words: "the Ethernet of Sharp's PDAs",
    networkFunction: 'ethernet',
    rules: other.zaurusRules,
    layout: cdcLayout,
  },
  {
    name: 'lg-vl600',
    words: "LG's VL600",
    networkFunction: 'wwan',
    rules: other.lgVl600Rules,
    layout: cdcLayout,
  },
  {
    name: 'cdc-phonet',
    words: "Nokia's Phonet",
    networkFunction: 'wwan',
    rules: other.cdcPhonetRules,
    layout: modemLayout,
  },
  ofChips('kalmia', "Samsung's GT-B3730", other.kalmiaRules, 'wwan'),
  {
    ...ofChips('hso', "a modem of Option's", other.hsoRules, 'wwan'),
    // Its other interfaces are serial ports, which only the device itself can tell apart for certain.
    accepts: ({ configuration, usbInterface }) => usbInterface === configuration.interfaces[0],
  },
  ofChips('lan78xx', 'a Microchip LAN7800, LAN7801 or LAN7850', other.lan78xxRules),
  ofChips('smsc95xx', 'a Microchip (SMSC) LAN95xx', other.smsc95xxRules),
  ofChips('smsc75xx', 'a Microchip (SMSC) LAN75xx', other.smsc75xxRules),
  ofChips('sr9700', 'a CoreChip SR9700', other.sr9700Rules),
  ofChips('sr9800', 'a CoreChip SR9800', other.sr9800Rules),
  ofChips('mcs7830', 'a MosChip MCS7830', other.mcs7830Rules),
  ofChips('dm9601', 'a Davicom DM96xx', other.dm9601Rules),
  ofChips('ch9200', 'a QinHeng CH9200', other.ch9200Rules),
  ofChips('rtl8150', 'a Realtek RTL8150', other.rtl8150Rules),
  ofChips('pegasus', 'an ADMtek Pegasus', other.pegasusRules),
  ofChips('kaweth', 'a KLSI KL5USB101', other.kawethRules),
  ofChips('catc', 'a CATC EL1210A', other.catcRules),
  ofChips('cx82310_eth', 'a Conexant CX82310', other.cx82310EthRules),
  ofChips('int51x1', 'an Intellon INT51x1', other.int51x1Rules),
  ofChips('net1080', 'a NetChip 1080 cable', other.net1080Rules),
  ofChips('plusb', 'a Prolific cable', other.plusbRules),
  ofChips('gl620a', 'a Genesys GL620A cable', other.gl620aRules),
  ofChips('cdc_subset', 'a simple point-to-point link', other.cdcSubsetRules),
];
