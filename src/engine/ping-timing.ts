import type { PingSettings } from '../contract/settings.ts';
import type { PingSettings as PingTiming } from '../probes/ping.ts';

/** A ping's settings as those who send it take them, in microseconds. */
export function pingTiming(ping: PingSettings): PingTiming {
  return {
    enabled: ping.enabled,
    intervalUs: ping.intervalMs * 1000,
    tos: ping.tos,
    payloadBytes: ping.payloadBytes,
    timeoutUs: ping.timeoutMs * 1000,
    protocol: ping.protocol,
  };
}
