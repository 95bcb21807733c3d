import { z } from 'zod';

/** The largest limit that BQL knows (DQL_MAX_LIMIT). */
export const maxLimitBytes = 1_879_048_192;

/** BQL, under sysfs' names: byte_queue_limits/limit_min, limit_max, hold_time. */
export const bqlSettingsSchema = z.object({
  enabled: z.boolean(),
  limitMinBytes: z.number().int().min(0).max(maxLimitBytes),
  limitMaxBytes: z.number().int().min(0).max(maxLimitBytes),
  holdTimeMs: z.number().int().min(0).max(60_000),
});
export type BqlSettings = z.infer<typeof bqlSettingsSchema>;

/** The queueing disciplines that an interface of ours can have, by Linux's names. */
export const qdiscKinds = ['pfifo_fast', 'fq_codel', 'pfifo'] as const;
export const qdiscKindSchema = z.enum(qdiscKinds);
export type QdiscKind = z.infer<typeof qdiscKindSchema>;

/** The queueing discipline above the driver. All but `kind` are fq_codel's, under the names that tc has for them. */
export const qdiscSettingsSchema = z.object({
  kind: qdiscKindSchema,
  targetUs: z.number().int().min(0).max(10_000_000),
  intervalUs: z.number().int().min(1).max(60_000_000),
  limitPackets: z.number().int().min(1).max(10_240),
  flows: z.number().int().min(1).max(65_536),
  quantumBytes: z.number().int().min(1).max(1_048_576),
  /** Packets of senders that speak ECN are marked in place of being dropped. */
  ecn: z.boolean(),
});
export type QdiscSettings = z.infer<typeof qdiscSettingsSchema>;

/** Linux's, for an MTU of 1,500. */
export const defaultQdiscSettings: QdiscSettings = {
  kind: 'pfifo_fast',
  targetUs: 5000,
  intervalUs: 100_000,
  limitPackets: 10_240,
  flows: 1024,
  quantumBytes: 1514,
  ecn: true,
};

/** The UDP load generator. */
export const loadSettingsSchema = z.object({
  enabled: z.boolean(),
  /** Target rate of IP packets on the link, bits per second; 0: as fast as the queue takes them. */
  rateBitsPerSecond: z.number().min(0).max(20e9),
  /** UDP payload of each packet, bytes. */
  payloadBytes: z.number().int().min(0).max(1472),
  /** UDP port at the target; 9 is "discard". */
  targetPort: z.number().int().min(1).max(65_535),
  /**
   * At most so many of its packets are below the socket (qdisc and driver) at any time, as the socket buffers of real
   * programs have it; 0 or absent: only the qdisc bounds it.
   */
  socketPackets: z.number().int().min(0).max(4096).optional(),
});
export type LoadSettings = z.infer<typeof loadSettingsSchema>;

/** UDP load downwards: the target is asked for it again and again, and stops when it no longer is. */
export const downloadSettingsSchema = z.object({
  enabled: z.boolean(),
  /** Of IP packets on the link, bits per second; 0: as fast as the target can. */
  rateBitsPerSecond: z.number().min(0).max(20e9),
  payloadBytes: z.number().int().min(16).max(1472),
});
export type DownloadSettings = z.infer<typeof downloadSettingsSchema>;

/** The prioritised ping. */
export const pingSettingsSchema = z.object({
  enabled: z.boolean(),
  intervalMs: z.number().int().min(10).max(60_000),
  /** TOS byte; 0x10 goes to pfifo_fast's first band. */
  tos: z.number().int().min(0).max(255),
  /** Payload of ICMP or UDP, bytes. */
  payloadBytes: z.number().int().min(0).max(1400),
  /** An answer that takes longer is counted as lost. */
  timeoutMs: z.number().int().min(100).max(60_000),
  /** IPv4 address; absent: the session's target. */
  target: z.string().optional(),
  /** `udp`: datagrams to the echo service, port 7. Absent: icmp. Fixed for a session. */
  protocol: z.enum(['icmp', 'udp']).optional(),
});
export type PingSettings = z.infer<typeof pingSettingsSchema>;

/** One more ping beside the one that the telemetry is about; it runs while that one does. */
const morePingSchema = pingSettingsSchema.omit({ enabled: true });
export type MorePing = z.infer<typeof morePingSchema>;

/** How the interface gets its address. */
export const addressSettingsSchema = z.discriminatedUnion('mode', [
  z.object({ mode: z.literal('dhcp') }),
  z.object({
    mode: z.literal('static'),
    /** `10.9.0.2/24` */
    cidr: z.string(),
    gateway: z.string().optional(),
  }),
]);
export type AddressSettings = z.infer<typeof addressSettingsSchema>;

/** Everything that can be set for a session; what can be changed while it runs is in {@link liveSettingsSchema}. */
export const sessionSettingsSchema = z.object({
  bql: bqlSettingsSchema,
  /** Older recordings do not have it: there was only one. */
  qdisc: qdiscSettingsSchema.default(defaultQdiscSettings),
  load: loadSettingsSchema,
  /** Absent: none. */
  download: downloadSettingsSchema.optional(),
  ping: pingSettingsSchema,
  morePings: z.array(morePingSchema).max(8).optional(),
  address: addressSettingsSchema,
  /** IPv4 address that ping and load go to; without one: the gateway. */
  target: z.string().optional(),
  sampleRateHz: z.number().min(1).max(100),
  /** The USB configuration to drive the device in; without one: where it is best driven. */
  configuration: z.number().int().min(1).max(255).optional(),
  /** Linux: a TAP interface of the host's that shares the device's interface. */
  tap: z.string().min(1).max(15).optional(),
  /** Linux, virtual devices: a TAP interface of the host's that stands at the far end of the device's link. */
  farTap: z.string().min(1).max(15).optional(),
  /** The network namespace that it is moved to. */
  farNamespace: z.string().min(1).max(255).optional(),
});
export type SessionSettings = z.infer<typeof sessionSettingsSchema>;

export const liveSettingsSchema = z.object({
  bql: bqlSettingsSchema.partial().optional(),
  /** A change makes a new qdisc; what waits in the old one is dropped. */
  qdisc: qdiscSettingsSchema.partial().optional(),
  load: loadSettingsSchema.partial().optional(),
  download: downloadSettingsSchema.partial().optional(),
  ping: pingSettingsSchema.partial().optional(),
});
export type LiveSettings = z.infer<typeof liveSettingsSchema>;

export const defaultDownloadSettings: DownloadSettings = {
  enabled: false,
  rateBitsPerSecond: 0,
  payloadBytes: 1472,
};

export const defaultSessionSettings: SessionSettings = {
  bql: { enabled: true, limitMinBytes: 0, limitMaxBytes: maxLimitBytes, holdTimeMs: 1000 },
  qdisc: defaultQdiscSettings,
  load: { enabled: true, rateBitsPerSecond: 0, payloadBytes: 1472, targetPort: 9 },
  ping: { enabled: true, intervalMs: 200, tos: 0x10, payloadBytes: 56, timeoutMs: 5000 },
  address: { mode: 'dhcp' },
  sampleRateHz: 20,
};

/** Settings after a change; what is given as undefined is not changed. */
export function changedSettings(settings: SessionSettings, changes: LiveSettings): SessionSettings {
  const { bql, qdisc, load, download, ping } = changes;
  return {
    ...settings,
    bql: { ...settings.bql, ...definedOnly(bql) },
    qdisc: { ...settings.qdisc, ...definedOnly(qdisc) },
    load: { ...settings.load, ...definedOnly(load) },
    ping: { ...settings.ping, ...definedOnly(ping) },
    ...(download === undefined
      ? {}
      : {
          download: { ...defaultDownloadSettings, ...settings.download, ...definedOnly(download) },
        }),
  };
}

function definedOnly<T extends object>(
  changes: T | undefined,
): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  if (changes === undefined) return {};
  const entries = Object.entries(changes).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof T]?: Exclude<T[Key], undefined> };
}
