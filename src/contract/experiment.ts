import { z } from 'zod';

/** A scenario that comes with the engine, as it is offered. */
export const scenarioSummarySchema = z.object({
  name: z.string(),
  description: z.string(),
  /** What of its simulated device was fitted to what; shown wherever its results are. */
  calibration: z.string().optional(),
  /** The virtual device that it is made for, if any. */
  device: z.string().optional(),
  /** How long it takes once the device is measured. */
  seconds: z.number(),
  segments: z.number().int(),
  arms: z.array(z.string()),
  directions: z.array(z.enum(['idle', 'up', 'down', 'both'])),
  /** What it cannot do without a TAP interface, in words; absent: nothing. */
  withoutTap: z.string().optional(),
  /** The most that it sends and receives together, if it says. */
  maxDataBytes: z.number().optional(),
});
export type ScenarioSummary = z.infer<typeof scenarioSummarySchema>;

/**
 * - `preparing`: the device is not measured yet; `running`; `ending`: the last probes are waited for
 * - `done`: to the end of the plan; `stopped`: before it, on request or at its cap of data; `failed`
 */
const experimentStateSchema = z.enum(['preparing', 'running', 'ending', 'done', 'stopped', 'failed']);

/** What one arm showed under load of one direction, all its segments taken together. */
export const armResultSchema = z.object({
  arm: z.string(),
  direction: z.enum(['idle', 'up', 'down', 'both']),
  segments: z.number().int(),
  probes: z.number().int(),
  lost: z.number().int(),
  /** The distribution of the round trip: its percentiles 0 to 100, each one value; empty without round trips. */
  rttPercentilesUs: z.array(z.number()),
  upBitsPerSecond: z.number().nullable(),
  downBitsPerSecond: z.number().nullable(),
});
export type ArmResult = z.infer<typeof armResultSchema>;

/** What one arm is worth on scales that others use too, with the thresholds and the method. */
export const armScoreSchema = z.object({
  arm: z.string(),
  /** Bufferbloat, A+ to F; null: something for it was not measured. */
  grade: z.string().nullable(),
  gradeMethod: z.string(),
  meanIncreaseUs: z.number().nullable(),
  roundTripsPerMinute: z.number().nullable(),
  rating: z.string().nullable(),
  confidence: z.string().nullable(),
  roundTripsPerMinuteMethod: z.string(),
});

/** What an experiment came to. */
export const experimentVerdictSchema = z.object({
  /** With `not enough data` the sentence says what would be enough. */
  kind: z.enum(['improved', 'worsened', 'no difference', 'not enough data']),
  /** One sentence with numbers. */
  sentence: z.string(),
  /** What limits the numbers, one sentence each. */
  warnings: z.array(z.string()),
  calibration: z.string().optional(),
  /** The scenario's own criteria. */
  criteria: z.array(z.object({ text: z.string(), passed: z.boolean() })),
  scores: z.array(armScoreSchema),
  /** Idle first, then the arms in the scenario's order. */
  arms: z.array(armResultSchema),
});
export type ExperimentVerdict = z.infer<typeof experimentVerdictSchema>;

/** An experiment as it goes; sent whole whenever something in it changes, and once a second while it runs. */
export const experimentSchema = z.object({
  sessionId: z.string(),
  deviceId: z.string(),
  scenario: z.string(),
  state: experimentStateSchema,
  /** The number of the segment that runs, from 1; 0 before the first. */
  segment: z.number().int(),
  segments: z.number().int(),
  segmentName: z.string(),
  secondsLeft: z.number(),
  seconds: z.number(),
  /** Sent and received so far. */
  dataBytes: z.number(),
  maxDataBytes: z.number().optional(),
  /** What is to be told of it so far: parts that cannot be run here, a server that vanished. */
  notes: z.array(z.string()),
  /** Once it is over. */
  verdict: experimentVerdictSchema.optional(),
});
export type ExperimentStatus = z.infer<typeof experimentSchema>;
