import { z } from 'zod';
import { deviceSchema } from './device.ts';
import { experimentSchema } from './experiment.ts';
import { sessionEventSchema, sessionSchema } from './session.ts';

/**
 * What a client can listen to. A state topic sends the newest whole state, first at once and then after changes; a
 * client that is slow misses states in between, never the last. `events` sends every event, those so far first.
 */
export const topics = {
  devices: { params: z.object({}), value: z.array(deviceSchema), kind: 'state' },
  /** All sessions that there are, ended ones of this run included. */
  sessions: { params: z.object({}), value: z.array(sessionSchema), kind: 'state' },
  /** The experiment that a session was started for; also once it is over. */
  experiment: { params: z.object({ sessionId: z.string() }), value: experimentSchema, kind: 'state' },
  events: { params: z.object({ sessionId: z.string() }), value: sessionEventSchema, kind: 'events' },
} as const;

export type Topics = typeof topics;
export type TopicName = keyof Topics;
export type TopicParams<T extends TopicName> = z.infer<Topics[T]['params']>;
export type TopicValue<T extends TopicName> = z.infer<Topics[T]['value']>;

/**
 * Telemetry is a topic of its own kind: binary batches (telemetry.ts) instead of JSON, history first, and held back
 * until the client has acknowledged enough of what it got.
 */
export const telemetryParamsSchema = z.object({
  sessionId: z.string(),
  table: z.enum(['samples', 'probes']),
  /** Send at most this much of what was measured before; seconds. */
  historySeconds: z.number().min(0).max(86_400),
});
export type TelemetryParams = z.infer<typeof telemetryParamsSchema>;
