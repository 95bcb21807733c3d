import { formatBitRate, formatBytes, formatCount, formatDuration } from '../base/units.ts';
import type { Mode } from '../contract/device.ts';
import { maxLimitBytes, type QdiscSettings, type SessionSettings } from '../contract/settings.ts';

function qdiscWords({ kind, ...options }: QdiscSettings): string {
  if (kind !== 'fq_codel') return kind;
  const { targetUs, intervalUs, limitPackets, flows, quantumBytes, ecn } = options;
  return (
    `fq_codel, target ${formatDuration(targetUs)}, interval ${formatDuration(intervalUs)}, ` +
    `limit ${formatCount(limitPackets)} packets, ${formatCount(flows)} flows, ` +
    `quantum ${formatCount(quantumBytes)} bytes, ECN ${ecn ? 'on' : 'off'}`
  );
}

/** A session's settings as a report has them: each a name, and what it is set to in words. */
export function settingRows(
  { bql, qdisc, load, ping, address, target, sampleRateHz }: SessionSettings,
  mode: Mode,
): (readonly [string, string])[] {
  const isObserved = mode === 'observe';
  const limitMax = bql.limitMaxBytes === maxLimitBytes ? 'none' : formatBytes(bql.limitMaxBytes);
  const rate =
    load.rateBitsPerSecond === 0 ? 'as fast as the queue takes it' : formatBitRate(load.rateBitsPerSecond);
  return [
    ['BQL', bql.enabled ? 'on' : 'off'],
    ['BQL limits', `lowest ${formatBytes(bql.limitMinBytes)}, highest ${limitMax}`],
    ['BQL hold time', formatDuration(bql.holdTimeMs * 1000)],
    ['Qdisc', isObserved ? 'the system’s' : qdiscWords(qdisc)],
    [
      'Load',
      isObserved
        ? 'that of other programs'
        : load.enabled
          ? `${rate}, UDP of ${formatCount(load.payloadBytes)} bytes to port ${load.targetPort}`
          : 'off',
    ],
    [
      'Ping',
      ping.enabled
        ? `every ${formatDuration(ping.intervalMs * 1000)}, ${formatCount(ping.payloadBytes)} bytes, TOS 0x${ping.tos.toString(16).padStart(2, '0')}; lost after ${formatDuration(ping.timeoutMs * 1000)}`
        : 'off',
    ],
    [
      'Address',
      isObserved
        ? 'as the system has set it'
        : address.mode === 'dhcp'
          ? 'by DHCP'
          : `static, ${address.cidr}`,
    ],
    ['Target', target ?? 'the gateway'],
    ['Samples', `${formatCount(sampleRateHz)} a second`],
  ];
}
