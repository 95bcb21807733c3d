import { cdcProtocols, cdcSubclasses, usbClasses } from '../wire/cdc-class.ts';
import type { AltSetting, ConfigurationDescriptor } from '../wire/usb-descriptor.ts';
import { type DescribedDevice, usbIdOf } from './described-device.ts';
import { aqc111Rules, r8152Rules } from './rules/other-driver-rules.ts';

/** Devices whose driver looks for the vendor's configuration before anything else may choose. */
const vendorConfigurationIds: readonly string[] = [...r8152Rules, ...aqc111Rules].flatMap(
  ({ ids }) => ids ?? [],
);

/**
 * The configuration that Linux sets when the device is plugged in (`usb_choose_configuration`), from the first
 * interface of each:
 * 1. r8152 (Linux 6.3 and later) and aqc111 have the first configuration that begins with a vendor-specific interface.
 * 2. Audio: the first configuration, but the first of audio class 3 if there is one.
 * 3. RNDIS and ActiveSync in the first of several configurations are taken only if rule 4 finds none.
 * 4. The first configuration that begins with anything but a vendor-specific interface, unless the device as a whole
 *    is vendor-specific.
 * 5. The first one.
 *
 * What the port's power would rule out cannot be seen here. Other programs (usbmuxd, usb_modeswitch) may change the
 * choice later.
 * @returns undefined if there is no configuration
 */
export function chooseConfiguration(device: DescribedDevice): ConfigurationDescriptor | undefined {
  const { configurations } = device;
  if (vendorConfigurationIds.includes(usbIdOf(device))) {
    const vendor = configurations.find(
      (configuration) => firstSetting(configuration)?.interfaceClass === usbClasses.vendorSpecific,
    );
    if (vendor !== undefined) return vendor;
  }

  let best: ConfigurationDescriptor | undefined;
  for (const [i, configuration] of configurations.entries()) {
    const first = firstSetting(configuration);
    if (first !== undefined && isAudio(first)) {
      if (first.interfaceProtocol === audioVersion3) return configuration;
      if (i === 0) best = configuration;
      continue;
    }
    if (i === 0 && configurations.length > 1 && first !== undefined && isRndis(first)) best = configuration;
    else if (
      device.descriptor.deviceClass !== usbClasses.vendorSpecific &&
      first !== undefined &&
      first.interfaceClass !== usbClasses.vendorSpecific
    ) {
      return configuration;
    } else best ??= configuration;
  }
  return best;
}

const audioClass = 0x01;
const audioVersion3 = 0x30;

function firstSetting({ interfaces }: ConfigurationDescriptor): AltSetting | undefined {
  return interfaces[0]?.altSettings[0];
}

function isAudio({ interfaceClass }: AltSetting): boolean {
  return interfaceClass === audioClass;
}

function isRndis({ interfaceClass, interfaceSubclass, interfaceProtocol }: AltSetting): boolean {
  return (
    (interfaceClass === usbClasses.communications &&
      interfaceSubclass === cdcSubclasses.acm &&
      interfaceProtocol === cdcProtocols.vendor) ||
    (interfaceClass === usbClasses.miscellaneous && interfaceSubclass === 1 && interfaceProtocol === 1)
  );
}
