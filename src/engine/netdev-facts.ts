import { formatBytes, formatCount } from '../base/units.ts';
import type { UsbSpeedName } from '../contract/device.ts';
import type { Problem } from '../contract/problem.ts';
import type { Fact } from '../contract/session.ts';
import { formatUsbId } from '../minidrivers/described-device.ts';
import type { DriverInformation } from '../observe/driver-information.ts';
import type { NetdevDescription } from '../observe/netdev-files.ts';
import type { NetdevStatus } from '../observe/netdev-reader.ts';

/**
 * What BQL is to an interface: `absent`, the kernel keeps none for it; `unknown`, there is a limit of 0 and nothing was
 * sent yet; `unused`, packets went out and its limit is still 0, so the driver does not take part; `used`.
 */
export type BqlUse = 'absent' | 'unknown' | 'unused' | 'used';

const usbSpeeds: Readonly<Record<string, UsbSpeedName>> = {
  '1.5': 'low',
  '12': 'full',
  '480': 'high',
  '5000': 'super',
  '10000': 'super-plus',
  '20000': 'super-plus',
};

export function usbSpeedOf({ usb }: NetdevDescription): UsbSpeedName {
  return usbSpeeds[usb?.speedMbit ?? ''] ?? 'unknown';
}

/** "with BQL on 4 of 4 transmit queues": what can be said without having seen a packet. */
export function describeQueues({ txQueues, bqlQueues }: NetdevDescription): string {
  const queues =
    txQueues.length === 1 ? '1 transmit queue' : `${formatCount(txQueues.length)} transmit queues`;
  if (bqlQueues.length === 0) return `${queues}, without BQL`;
  if (txQueues.length === 1) return `${queues}, with BQL`;
  const which = bqlQueues.length === txQueues.length ? 'all' : formatCount(bqlQueues.length);
  return `${queues}, with BQL on ${which}; bytes and limits are sums over them`;
}

/** What stays as it is for as long as the interface is there. */
export function describeNetdev(netdev: NetdevDescription, kernelRelease: string): readonly Fact[] {
  const { name, index, usb, bus, busAddress, driver, driverVersion } = netdev;
  const facts: Fact[] = [
    { group: 'device', name: 'Netdev', value: `${name}, number ${index}` },
    { group: 'driver', name: 'Kernel driver', value: driver ?? 'none (there is no device behind it)' },
    { group: 'driver', name: 'Kernel', value: kernelRelease },
    { group: 'queue', name: 'Transmit queues', value: describeQueues(netdev) },
    {
      group: 'queue',
      name: 'Qdisc length',
      value: `at most ${formatCount(netdev.queueLengthPackets)} packets`,
    },
    { group: 'network', name: 'Load', value: 'not made here: what other programs send is seen' },
  ];
  if (driverVersion !== undefined) {
    facts.push({ group: 'driver', name: 'Driver version', value: driverVersion });
  }
  if (netdev.macAddress !== undefined) {
    facts.push({ group: 'network', name: 'MAC address', value: netdev.macAddress });
  }
  if (usb !== undefined) {
    const product = usb.product === undefined ? '' : `${usb.product}, `;
    facts.push({
      group: 'device',
      name: 'USB device',
      value: `${product}${formatUsbId(usb.vendorId, usb.productId)} on usb:${usb.name}`,
    });
    if (usb.speedMbit !== undefined) {
      facts.push({
        group: 'device',
        name: 'USB speed',
        value: `${formatCount(Number(usb.speedMbit))} Mbit/s`,
      });
    }
  } else if (bus !== undefined) {
    facts.push({ group: 'device', name: 'Device', value: `${bus} ${busAddress ?? ''}`.trim() });
  }
  return facts;
}

/** What the driver says of itself. */
export function describeDriverInformation(information: DriverInformation): readonly Fact[] {
  const facts: Fact[] = [];
  if (information.driver !== undefined) {
    facts.push({ group: 'driver', name: 'Kernel driver', value: information.driver });
  }
  if (information.version !== undefined) {
    facts.push({ group: 'driver', name: 'Driver version', value: information.version });
  }
  if (information.firmwareVersion !== undefined) {
    facts.push({ group: 'driver', name: 'Firmware', value: information.firmwareVersion });
  }
  return facts;
}

const bqlWords: Readonly<Record<BqlUse, string>> = {
  absent: 'none: the kernel keeps no limits for this interface',
  unknown: 'not known until packets are sent',
  unused: 'none: the driver does not take part',
  used: 'kept by the driver',
};

/** What may change while it is observed. */
export function describeStatus(
  status: NetdevStatus,
  use: BqlUse,
  unlimitedBytes: number | undefined,
): readonly Fact[] {
  const facts: Fact[] = [{ group: 'queue', name: 'BQL', value: bqlWords[use] }];
  if (!Number.isNaN(status.mtuBytes)) {
    facts.push({ group: 'driver', name: 'MTU', value: `${formatCount(status.mtuBytes)} bytes` });
  }
  if (use === 'used' && unlimitedBytes !== undefined) {
    facts.push({
      group: 'queue',
      name: 'BQL off',
      value: `means a limit_min of ${formatBytes(unlimitedBytes)}, just above what the driver takes`,
    });
  }
  if (!Number.isNaN(status.stallThresholdMs)) {
    facts.push({
      group: 'queue',
      name: 'Stalls',
      value:
        status.stallThresholdMs === 0
          ? 'not looked for (stall_thrs is 0)'
          : `${formatCount(status.stallCount)} of more than ${formatCount(status.stallThresholdMs)} ms, ` +
            `the longest ${formatCount(status.stallMaxTicks)} ticks of the kernel`,
    });
  }
  if (!Number.isNaN(status.txTimeouts)) {
    facts.push({ group: 'queue', name: 'Transmit timeouts', value: formatCount(status.txTimeouts) });
  }
  return facts;
}

/** Linux has BQL in usbnet since this version. */
const usbnetSince = [6, 19] as const;

/** @param kernelRelease such as "6.19.0" */
export function hasUsbnetBql(kernelRelease: string): boolean {
  const [major = 0, minor = 0] = kernelRelease.split('.').map(Number);
  return major > usbnetSince[0] || (major === usbnetSince[0] && minor >= usbnetSince[1]);
}

/** What an interface without BQL lacks, and what is shown all the same; undefined if it has it. */
export function bqlProblem(
  netdev: NetdevDescription,
  use: BqlUse,
  kernelRelease: string,
): Problem | undefined {
  if (use === 'used' || use === 'unknown') return undefined;
  const reason =
    use === 'absent'
      ? `The kernel keeps no Byte Queue Limits for ${netdev.name}.`
      : `The driver of ${netdev.name} does not take part in Byte Queue Limits.`;
  return {
    id: 'no-bql',
    severity: 'info',
    message: `${reason} Rates, qdisc and round trips are shown; bytes in flight and limit are not known.`,
    ...(netdev.bus === 'usb' && !hasUsbnetBql(kernelRelease)
      ? { remedy: `Drivers built on usbnet have it since Linux 6.19; this is ${kernelRelease}.` }
      : {}),
  };
}
