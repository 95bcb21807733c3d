import { usbClasses } from '../wire/cdc-class.ts';
import type { AltSetting } from '../wire/usb-descriptor.ts';
import { type DescribedDevice, usbIdOf } from './described-device.ts';
import { endpointCount } from './function-layout.ts';
import { isDrivable, type Recognition } from './registry.ts';

const storageClass = 0x08;
const hubClass = 0x09;

/** Makers of modems, and of routers on a stick: their devices have faces without a network function. */
const modemVendors: ReadonlySet<string> = new Set([
  '03f0',
  '0408',
  '0421',
  '0489',
  '04e8',
  '05c6',
  '0af0',
  '0bdb',
  '0e8d',
  '1004',
  '106c',
  '114f',
  '1199',
  '1286',
  '12d1',
  '1410',
  '1435',
  '1508',
  '1546',
  '16d8',
  '1782',
  '19d2',
  '19f5',
  '1bbb',
  '1bc7',
  '1c9e',
  '1e0e',
  '1e2d',
  '2001',
  '2020',
  '211f',
  '22de',
  '2357',
  '2c7c',
  '2cb7',
  '2dee',
  '305a',
  '33f8',
  '413c',
  '8087',
]);

/** What else can be done with a function whose driver is not here. */
const observe = 'Leave it to the kernel and watch it with "npx queuescope observe <network interface>".';

const composition =
  'Most modems can be told by an AT command to be ECM, NCM or RNDIS instead' +
  ' (Quectel: AT+QCFG="usbnet"; Telit: AT#USBCFG; SIMCom: AT+CUSBPIDSWITCH; Fibocom: AT+GTUSBMODE).';

const driverAdvice: Readonly<Record<string, readonly string[]>> = {
  qmi_wwan: [observe, composition],
  cdc_mbim: [observe, composition],
  sierra_net: [observe, 'Some firmware of these modems can be switched to QMI or MBIM with AT!UDUSBCOMP.'],
  ipheth: [
    observe,
    'Later iPhones and iPads have another configuration with CDC-NCM, which usbmuxd chooses when it is told to.',
  ],
  r8152: [observe, 'Most of these chips have a second configuration with CDC-ECM or CDC-NCM.'],
};

/**
 * What can be done with a device, in a few sentences.
 * @param recognitions of this device, from `recognize`
 */
export function adviseOn(device: DescribedDevice, recognitions: readonly Recognition[]): string {
  const [first] = recognitions;
  if (first === undefined) return adviseWithoutFunction(device);
  const drivable = recognitions.find(isDrivable);
  if (drivable === undefined) {
    const sentences = driverAdvice[first.linuxDriver] ?? [observe];
    return [`Queuescope has no driver for what ${first.linuxDriver} drives.`, ...sentences].join(' ');
  }
  if (drivable.selected) return `Queuescope drives it with ${drivable.driver}.`;
  const sentences = [
    `Queuescope can drive it with ${drivable.driver} in configuration ${drivable.configurationValue},` +
      ' and switches to that configuration when it takes the device.',
  ];
  if (first.selected) sentences.push(`Until it is given back, Linux's ${first.linuxDriver} is without it.`);
  return sentences.join(' ');
}

function adviseWithoutFunction(device: DescribedDevice): string {
  const id = usbIdOf(device);
  const settings = device.configurations.flatMap(({ interfaces }) =>
    interfaces.flatMap(({ altSettings }) => altSettings.slice(0, 1)),
  );
  if (settings.length === 0) {
    return 'No interface is listed. "lsusb -v", run as root, lists all there is.';
  }
  if (device.descriptor.deviceClass === hubClass) return 'It is a hub.';
  const classes = new Set(settings.map(({ interfaceClass }) => interfaceClass));
  if (classes.has(storageClass) && classes.size === 1) {
    return (
      'It is a disk only. Modems and some adapters look like that until they are switched:' +
      ' usb_modeswitch does it for those that it knows.'
    );
  }
  const qmi = settings.find((altSetting) => looksLikeQmi(device, altSetting));
  if (qmi !== undefined) {
    return (
      `Interface ${qmi.interfaceNumber} looks like QMI, but qmi_wwan's table does not name ${id}.` +
      ` Linux can be told: echo ${id.replace(':', ' ')} > /sys/bus/usb/drivers/qmi_wwan/new_id`
    );
  }
  if (classes.has(usbClasses.vendorSpecific) && modemVendors.has(id.slice(0, 4))) {
    return `It may be a modem with serial ports only. ${composition}`;
  }
  return 'It is no network device, as far as its interfaces tell.';
}

const qualcommRmnetProtocol = 0x50;
const qmiEndpoints = 3;

/** Qualcomm's own numbers, or those of its diagnostic port with one endpoint more. */
function looksLikeQmi(device: DescribedDevice, altSetting: AltSetting): boolean {
  const { interfaceClass, interfaceSubclass, interfaceProtocol } = altSetting;
  return (
    modemVendors.has(usbIdOf(device).slice(0, 4)) &&
    interfaceClass === usbClasses.vendorSpecific &&
    interfaceSubclass === 0xff &&
    (interfaceProtocol === qualcommRmnetProtocol || interfaceProtocol === 0xff) &&
    endpointCount(device, altSetting) === qmiEndpoints
  );
}
