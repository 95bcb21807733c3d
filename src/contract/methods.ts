import { z } from 'zod';
import { deviceSchema } from './device.ts';
import { scenarioSummarySchema } from './experiment.ts';
import { sessionSchema } from './session.ts';
import { addressSettingsSchema, liveSettingsSchema } from './settings.ts';

/** What a client can ask of the engine: name → parameters and result, both checked on both sides. */
export const methods = {
  'engine.info': {
    params: z.object({}),
    result: z.object({
      version: z.string(),
      contractVersion: z.number(),
      platform: z.string(),
      host: z.enum(['electron', 'web', 'cli']),
    }),
  },
  'devices.list': { params: z.object({}), result: z.array(deviceSchema) },
  'session.start': {
    params: z.object({
      deviceId: z.string(),
      address: addressSettingsSchema.optional(),
      target: z.string().optional(),
      settings: liveSettingsSchema.optional(),
      sampleRateHz: z.number().min(1).max(100).optional(),
      record: z.boolean(),
    }),
    result: sessionSchema,
  },
  'session.configure': {
    params: z.object({ sessionId: z.string(), settings: liveSettingsSchema }),
    result: sessionSchema,
  },
  'session.note': {
    params: z.object({ sessionId: z.string(), text: z.string().min(1).max(500) }),
    result: z.null(),
  },
  'session.stop': { params: z.object({ sessionId: z.string() }), result: sessionSchema },
  'scenarios.list': { params: z.object({}), result: z.array(scenarioSummarySchema) },
  /**
   * Starts a session and takes it through a scenario; the session ends with it, and gives the device back. How it goes is
   * the topic `experiment`.
   */
  'experiment.start': {
    params: z.object({
      deviceId: z.string(),
      /** The name of one that comes with the engine; or one's own, as the text of its JSON document. */
      scenario: z.string().min(1).max(200_000),
      address: addressSettingsSchema.optional(),
      target: z.string().optional(),
      maxDataBytes: z.number().int().min(1).optional(),
      record: z.boolean(),
    }),
    result: sessionSchema,
  },
  /** Ends it before its time; what was measured is kept. */
  'experiment.stop': { params: z.object({ sessionId: z.string() }), result: z.null() },
  'recordings.list': {
    params: z.object({}),
    result: z.array(
      z.object({
        id: z.string(),
        fileName: z.string(),
        deviceName: z.string(),
        startedAt: z.string(),
        durationUs: z.number(),
        sizeBytes: z.number(),
        recording: z.boolean(),
      }),
    ),
  },
  'report.create': {
    params: z.object({ recordingId: z.string(), format: z.enum(['html', 'csv', 'json', 'flent', 'pdf']) }),
    /** The report first; a format may need more files beside it. */
    result: z
      .array(
        z.object({
          fileName: z.string(),
          mediaType: z.string(),
          text: z.string(),
          /** How the file is in `text`; absent: as it is. */
          encoding: z.literal('base64').optional(),
        }),
      )
      .min(1),
  },
} as const;

export type Methods = typeof methods;
export type MethodName = keyof Methods;
export type MethodParams<M extends MethodName> = z.infer<Methods[M]['params']>;
export type MethodResult<M extends MethodName> = z.infer<Methods[M]['result']>;
