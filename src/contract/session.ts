import { z } from 'zod';
import { deviceSchema } from './device.ts';
import { problemSchema } from './problem.ts';
import { sessionSettingsSchema } from './settings.ts';

/** The way from a device to a measurement, in order. */
export const stageNames = ['open', 'bind', 'carrier', 'address', 'target', 'measure'] as const;
export const stageNameSchema = z.enum(stageNames);
export type StageName = z.infer<typeof stageNameSchema>;

export const stageSchema = z.object({
  name: stageNameSchema,
  status: z.enum(['pending', 'active', 'done', 'failed']),
  /** What is known: "cdc_ncm on interfaces 0 and 1", "10.9.0.2/24 by DHCP in 12 ms". */
  text: z.string().optional(),
});
export type Stage = z.infer<typeof stageSchema>;

/**
 * - `starting`: not all stages done; `running`; `stalled`: bytes in flight, nothing completes
 * - `lost`: the device is gone; what was recorded is kept
 * - `stopping`, `stopped`, `failed`: the end
 */
export const sessionStateSchema = z.enum([
  'starting',
  'running',
  'stalled',
  'lost',
  'stopping',
  'stopped',
  'failed',
]);
export type SessionState = z.infer<typeof sessionStateSchema>;

/** A fact about the device or the stack, for people: shown in the drawer and in the report. */
export const factSchema = z.object({
  group: z.enum(['device', 'driver', 'queue', 'network']),
  name: z.string(),
  value: z.string(),
});
export type Fact = z.infer<typeof factSchema>;

export const recordingSchema = z.object({
  id: z.string(),
  /** File name without folder. */
  fileName: z.string(),
  state: z.enum(['recording', 'closed', 'failed']),
  sizeBytes: z.number(),
});
export type RecordingStatus = z.infer<typeof recordingSchema>;

/** All of a session but its telemetry; sent whole whenever something in it changes. */
export const sessionSchema = z.object({
  id: z.string(),
  device: deviceSchema,
  state: sessionStateSchema,
  /** Wall clock at time 0 of the telemetry, ISO 8601 with zone. */
  startedAt: z.string(),
  stages: z.array(stageSchema),
  settings: sessionSettingsSchema,
  facts: z.array(factSchema),
  problems: z.array(problemSchema),
  recording: recordingSchema.optional(),
  /** Name of the scenario that it is taken through: the topic `experiment` has how that goes. */
  experiment: z.string().optional(),
});
export type Session = z.infer<typeof sessionSchema>;

/** Something that happened at a time; drawn under the charts, kept in the recording. */
export const sessionEventSchema = z.object({
  timeUs: z.number(),
  kind: z.enum([
    'stage',
    'settings',
    'bql-on',
    'bql-off',
    'phase',
    'carrier',
    'halt',
    /** A line of the recovery's step log. */
    'recovery',
    'timeout',
    'error',
    'unplug',
    'gap',
    'note',
  ]),
  text: z.string(),
});
export type SessionEvent = z.infer<typeof sessionEventSchema>;
