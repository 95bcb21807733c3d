import { z } from 'zod';

/**
 * A scenario: what is to be done with a device, as data. Kept in JSON files; unknown properties are errors, since a
 * misspelt one would silently measure something else.
 */

const segmentSchema = z.strictObject({
  /** Off: only the driver's own queue length holds packets back, as before Linux 6.19. */
  bql: z.enum(['on', 'off']),
  seconds: z.number().positive().max(86_400),
});

export const scenarioSchema = z.strictObject({
  name: z.string().min(1),
  description: z.string().default(''),
  /** The virtual device that `simulate` runs it on. */
  device: z.string().optional(),
  seed: z.number().int().min(0).default(1),
  /** Without load, before the first segment; gives the idle round trip. */
  idleSeconds: z.number().min(0).max(3600).default(5),
  /** The start of each segment that is not counted: the queue of the one before drains, the limit settles. */
  settleSeconds: z.number().min(0).max(60).default(2),
  segments: z.array(segmentSchema).min(1).max(1000),
  load: z
    .strictObject({
      /** 0: as fast as the queue takes it. */
      rateBitsPerSecond: z.number().min(0).max(20e9).default(0),
      payloadBytes: z.number().int().min(0).max(1472).default(1472),
    })
    .default({ rateBitsPerSecond: 0, payloadBytes: 1472 }),
  ping: z
    .strictObject({
      intervalMs: z.number().int().min(10).max(60_000).default(1000),
      payloadBytes: z.number().int().min(0).max(1400).default(56),
      tos: z.number().int().min(0).max(255).default(0x10),
    })
    .default({ intervalMs: 1000, payloadBytes: 56, tos: 0x10 }),
});
export type Scenario = z.infer<typeof scenarioSchema>;

/**
 * Reads a scenario. The problem names the place and what was expected there.
 * @param text a JSON document
 */
export function parseScenario(
  text: string,
): { readonly ok: true; readonly scenario: Scenario } | { readonly ok: false; readonly problem: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : 'not a JSON document' };
  }
  const result = scenarioSchema.safeParse(value);
  if (result.success) return { ok: true, scenario: result.data };
  const [issue] = result.error.issues;
  const path = issue === undefined || issue.path.length === 0 ? 'the document' : issue.path.join('.');
  return { ok: false, problem: `${path}: ${issue?.message ?? 'not a scenario'}` };
}

/** Scenarios that come with Queuescope. */
export const builtInScenarios: readonly Scenario[] = [
  {
    name: 'cellular-10mbit',
    description:
      'USB 3 cellular modem with a 10 Mbit/s uplink under UDP load: the case the BQL patch was made for.',
    device: 'sim:modem-10mbit',
    seed: 1,
    idleSeconds: 6,
    settleSeconds: 2,
    segments: [
      { bql: 'off', seconds: 27 },
      { bql: 'on', seconds: 27 },
    ],
    load: { rateBitsPerSecond: 0, payloadBytes: 1472 },
    ping: { intervalMs: 1000, payloadBytes: 56, tos: 0x10 },
  },
  {
    name: 'adapter-100mbit',
    description: 'USB 3 Ethernet adapter on a 100 Mbit/s wire under UDP load.',
    device: 'sim:adapter-100mbit',
    seed: 1,
    idleSeconds: 4,
    settleSeconds: 2,
    segments: [
      { bql: 'off', seconds: 13 },
      { bql: 'on', seconds: 13 },
    ],
    load: { rateBitsPerSecond: 0, payloadBytes: 1472 },
    ping: { intervalMs: 100, payloadBytes: 56, tos: 0x10 },
  },
];
