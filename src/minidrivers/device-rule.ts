import type { NetworkFunction } from '../usbnet/minidriver.ts';
import type { AltSetting } from '../wire/usb-descriptor.ts';

/** What has to be done differently for a device. The names are those that `identify` shows. */
export type Quirk =
  /** NCM: the NDP comes after the datagrams, and there is one only (spec 3.2, NDP_TO_END). */
  | 'ndp-to-end'
  /** NCM: 32-bit transfer blocks where the device has them (spec 3.2, PREFER_NTB32). */
  | 'prefer-ntb32'
  /** The data altsetting must not be switched back and forth to reset the function (AVOID_ALTSETTING_TOGGLE). */
  | 'avoid-altsetting-toggle'
  /** Transfers that end on a packet boundary need a zero-length packet (FLAG_SEND_ZLP). */
  | 'send-zlp'
  /** Addresses are not resolved over the link (IFF_NOARP). */
  | 'no-arp'
  /** The modem's control channel answers only once DTR is set (spec 3.5). */
  | 'set-dtr'
  /** RNDIS: the interrupt endpoint is read before each answer is fetched (spec 3.4). */
  | 'poll-status'
  /** The device writes a wrong destination address into received frames (spec 3.1, ZTE). */
  | 'fix-destination-mac'
  /** The link is taken to be up: the status endpoint does not tell. */
  | 'no-link-interrupt'
  /** The carrier follows the interrupt endpoint although other devices of this driver tell nothing there. */
  | 'link-interrupt'
  /** The NCM control interface is switched to its MBIM altsetting first (spec 3.3). */
  | 'ncm-mbim-combined';

/** A line of a driver's table in Linux (`struct usb_device_id`): which interfaces of which devices it is about. */
export interface DeviceRule {
  /** "0b95:1790", or "0b95" for everything of that vendor; absent: any device. */
  readonly ids?: readonly string[];
  /** Class, subclass and protocol of the interface, as many of them as matter. */
  readonly triple?: readonly number[];
  /** Of the interface, by the id of the device; stands for {@link ids}. */
  readonly interfaceNumbers?: Readonly<Record<string, readonly number[]>>;
  /** Of the device as a whole. */
  readonly deviceClass?: number;
  /** The driver names these only to keep away from them (an entry without driver info). */
  readonly leave?: boolean;
  /** What Linux calls the chip or the variant, where that says more than the driver's name. */
  readonly chip?: string;
  /** If it is not the driver's usual one. */
  readonly networkFunction?: NetworkFunction;
  readonly quirks?: readonly Quirk[];
  /** What else is to be said about these devices, a clause. */
  readonly note?: string;
}

/**
 * The first rule of the table that fits (`usb_match_id`).
 * @param id of the device, "0b95:1790"
 */
export function findRule(
  rules: readonly DeviceRule[],
  id: string,
  altSetting: AltSetting,
): DeviceRule | undefined {
  return rules.find((rule) => fits(rule, id, altSetting));
}

function fits(rule: DeviceRule, id: string, altSetting: AltSetting): boolean {
  const { ids, triple, interfaceNumbers } = rule;
  if (ids !== undefined && !ids.includes(id) && !ids.includes(id.slice(0, 4))) return false;
  if (triple !== undefined) {
    const { interfaceClass, interfaceSubclass, interfaceProtocol } = altSetting;
    const actual = [interfaceClass, interfaceSubclass, interfaceProtocol];
    if (!triple.every((number, i) => number === actual[i])) return false;
  }
  return interfaceNumbers === undefined || (interfaceNumbers[id] ?? []).includes(altSetting.interfaceNumber);
}
