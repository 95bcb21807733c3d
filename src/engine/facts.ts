import { formatBytes, formatCount, formatDuration } from '../base/units.ts';
import type { Fact } from '../contract/session.ts';
import { defaultQdiscSettings, type QdiscSettings } from '../contract/settings.ts';
import type { Netif } from '../netif/netif.ts';
import { findEndpoint } from '../usbnet/endpoints.ts';
import type { DriverBinding } from '../usbnet/minidriver.ts';
import type { UsbDevice, UsbSpeed } from '../usbnet/transport.ts';

const speedWords: Readonly<Record<UsbSpeed, string>> = {
  low: 'low speed (1.5 Mbit/s)',
  full: 'full speed (12 Mbit/s)',
  high: 'high speed (480 Mbit/s)',
  super: 'SuperSpeed (5 Gbit/s)',
  'super-plus': 'SuperSpeed+ (10 Gbit/s)',
  unknown: 'unknown',
};

/** What a fixed queue costs is best understood at the rate of the links it hurts on. */
const exampleBitsPerSecond = 10e6;

/** The queue in words: how much the driver alone would let wait, and for how long. */
export function describeQueue(txQlen: number, transferBytes: number): string {
  const bytes = txQlen * transferBytes;
  const us = (bytes * 8 * 1e6) / exampleBitsPerSecond;
  return (
    `${formatCount(txQlen)} transfers of ${formatCount(transferBytes)} bytes = ${formatBytes(bytes)}` +
    ` = ${formatDuration(us)} at 10 Mbit/s`
  );
}

function hexByte(value: number): string {
  return `0x${value.toString(16).padStart(2, '0')}`;
}

/** A binary coded decimal: 0x0320 is "3.20". */
function formatBcd(bcd: number): string {
  return `${(bcd >> 8).toString(16)}.${(bcd & 0xff).toString(16).padStart(2, '0')}`;
}

function describeEndpoint(device: UsbDevice, address: number): string {
  const endpoint = findEndpoint(device, address);
  return `${hexByte(address)}, ${formatCount(endpoint?.maxPacketSize ?? 0)}-byte packets`;
}

/** A qdisc as `tc` would print it: fq_codel's options, where they are not Linux's own. */
export function describeQdisc(qdisc: QdiscSettings): string {
  if (qdisc.kind !== 'fq_codel') return qdisc.kind;
  const standard = defaultQdiscSettings;
  const words = ['fq_codel'];
  if (qdisc.targetUs !== standard.targetUs) words.push(`target ${formatDuration(qdisc.targetUs)}`);
  if (qdisc.intervalUs !== standard.intervalUs) words.push(`interval ${formatDuration(qdisc.intervalUs)}`);
  if (qdisc.limitPackets !== standard.limitPackets) words.push(`limit ${qdisc.limitPackets}`);
  if (qdisc.flows !== standard.flows) words.push(`flows ${qdisc.flows}`);
  if (qdisc.quantumBytes !== standard.quantumBytes) words.push(`quantum ${qdisc.quantumBytes}`);
  if (!qdisc.ecn) words.push('noecn');
  return words.join(' ');
}

/** What is known of a bound device. */
export function describeDriver(
  binding: DriverBinding,
  netif: Netif,
  device: UsbDevice,
  qdisc: QdiscSettings,
): readonly Fact[] {
  const { usbnet } = netif;
  const facts: Fact[] = [
    { group: 'device', name: 'USB version', value: formatBcd(device.descriptor.usbVersion) },
    { group: 'device', name: 'USB speed', value: speedWords[device.speed] },
    { group: 'driver', name: 'Minidriver', value: binding.name },
    {
      group: 'driver',
      name: 'Interfaces',
      value: `control ${binding.controlInterface}, data ${binding.dataInterface}`,
    },
    { group: 'driver', name: 'Bulk OUT', value: describeEndpoint(device, binding.bulkOut) },
    { group: 'driver', name: 'Bulk IN', value: describeEndpoint(device, binding.bulkIn) },
    {
      group: 'driver',
      name: 'Status endpoint',
      value: binding.statusEndpoint === undefined ? 'none' : describeEndpoint(device, binding.statusEndpoint),
    },
    { group: 'driver', name: 'MTU', value: `${formatCount(usbnet.mtuBytes)} bytes` },
  ];
  for (const [name, value] of Object.entries(binding.facts)) {
    facts.push({ group: 'driver', name, value });
  }
  facts.push(
    {
      group: 'queue',
      name: 'Without BQL',
      value: describeQueue(usbnet.txQlen, usbnet.hardMtuBytes),
    },
    { group: 'queue', name: 'Receive transfers', value: formatCount(usbnet.rxQlen) },
    { group: 'queue', name: 'Qdisc', value: describeQdisc(qdisc) },
  );
  return facts;
}
