import { z } from 'zod';

/**
 * A scenario: what is to be done with a device, as data. Kept in JSON files; unknown properties are errors, since a
 * misspelt one would silently measure something else. `docs/scenario.schema.json` is made from this schema.
 */

/** Of the format of the files; goes up with every change that an older Queuescope would misread. */
export const scenarioVersion = 1;

const largestLimitBytes = 1_879_048_192;
const largestRate = 20e9;
const longestSegmentSeconds = 86_400;

/** Which way a segment is loaded. */
export const directions = ['idle', 'up', 'down', 'both'] as const;
export type Direction = (typeof directions)[number];

/** Our own generator, or the stock `iperf3` program over a TAP interface. */
export const generators = ['udp', 'iperf3-udp', 'iperf3-tcp'] as const;
export type Generator = (typeof generators)[number];

const rateSchema = z.number().min(0).max(largestRate);

const bqlSchema = z.strictObject({
  enabled: z
    .boolean()
    .describe('Off: only the length of the driver’s own queue holds packets back, as before Linux 6.19.'),
  limitMinBytes: z.number().int().min(0).max(largestLimitBytes).optional(),
  limitMaxBytes: z.number().int().min(0).max(largestLimitBytes).optional(),
  holdTimeMs: z.number().int().min(0).max(60_000).optional(),
});

const qdiscSchema = z
  .strictObject({
    kind: z.enum(['pfifo_fast', 'fq_codel', 'pfifo']),
    targetUs: z.number().int().min(0).max(10_000_000).optional(),
    intervalUs: z.number().int().min(1).max(60_000_000).optional(),
    limitPackets: z.number().int().min(1).max(10_240).optional(),
    flows: z.number().int().min(1).max(65_536).optional(),
    quantumBytes: z.number().int().min(1).max(1_048_576).optional(),
    ecn: z.boolean().optional(),
  })
  .describe(
    'The queueing discipline above the driver; all but kind are fq_codel’s. What is left out is as in Linux.',
  );

const armSchema = z.strictObject({
  name: z.string().min(1).max(60).describe('As it is called in results: "BQL off".'),
  bql: bqlSchema,
  qdisc: qdiscSchema.optional(),
});
export type ScenarioArm = z.infer<typeof armSchema>;

const loadSchema = z.strictObject({
  generator: z
    .enum(generators)
    .default('udp')
    .describe(
      'udp: our own datagrams, up to port 9 of the target. iperf3-udp, iperf3-tcp: the stock iperf3 over a TAP interface (Linux), against an iperf3 server at the target.',
    ),
  rateBitsPerSecond: rateSchema.default(0).describe('Upwards, all streams together. 0: as fast as it goes.'),
  downRateBitsPerSecond: rateSchema
    .default(0)
    .describe('Downwards, all streams together. 0: as fast as it goes.'),
  payloadBytes: z.number().int().min(16).max(1472).default(1472).describe('Of each UDP datagram.'),
  streams: z.number().int().min(1).max(64).default(1).describe('Of iperf3, each way.'),
  socketPackets: z
    .number()
    .int()
    .min(0)
    .max(4096)
    .default(0)
    .describe(
      'Of our own generator: at most so many of its datagrams are unsent at any time, as the socket buffers of real programs have it. 0: only the qdisc bounds it.',
    ),
  port: z.number().int().min(1).max(65_535).default(5201).describe('Of the iperf3 server.'),
  withoutTap: z
    .enum(['skip', 'udp'])
    .default('skip')
    .describe(
      'Where iperf3 cannot be run (no TAP interface, in simulation): leave the segment out, or load it with our own datagrams. The result says which.',
    ),
});
export type ScenarioLoad = z.infer<typeof loadSchema>;

const phaseSchema = z.strictObject({
  direction: z.enum(directions),
  seconds: z.number().positive().max(longestSegmentSeconds),
  settleSeconds: z
    .number()
    .min(0)
    .max(600)
    .optional()
    .describe('Instead of the scenario’s; never more than half of the segment.'),
  load: loadSchema.optional().describe('Instead of the scenario’s.'),
});

const probeSchema = z.strictObject({
  kind: z
    .enum(['icmp', 'udp-echo', 'irtt'])
    .default('icmp')
    .describe(
      'icmp: our own echo requests. udp-echo: our own datagrams to the echo service (UDP port 7) of the target. irtt: the stock irtt client over a TAP interface (Linux), against an irtt server: one-way delay and loss, each way.',
    ),
  intervalMs: z.number().int().min(10).max(60_000).default(1000),
  payloadBytes: z.number().int().min(0).max(1400).default(56),
  priority: z
    .boolean()
    .default(true)
    .describe('True: TOS 0x10, pfifo_fast’s first band. False: best effort, among the load.'),
  target: z.ipv4().optional().describe('Instead of the session’s target.'),
});

/** Whether Queuescope sends it itself, through its own qdisc, and so knows where it waits. */
export function isOwnProbe({ kind }: { readonly kind: string }): boolean {
  return kind === 'icmp' || kind === 'udp-echo';
}

/** What pass criteria speak of; the unit is in the name. */
export const metrics = [
  'rttP50Us',
  'rttP95Us',
  'rttP99Us',
  'lostPercent',
  'upBitsPerSecond',
  'downBitsPerSecond',
] as const;
export type Metric = (typeof metrics)[number];

const criterionSchema = z
  .strictObject({
    metric: z.enum(metrics),
    arm: z.string().min(1),
    direction: z.enum(directions).optional().describe('Absent: all directions of the arm together.'),
    minusIdle: z
      .boolean()
      .default(false)
      .describe('The difference to the idle segments, instead of the value itself.'),
    percentOf: z
      .string()
      .min(1)
      .optional()
      .describe('The value in percent of that of this arm, instead of the value itself.'),
    min: z.number().optional(),
    max: z.number().optional(),
  })
  .refine(({ min, max }) => min !== undefined || max !== undefined, 'it needs a min, a max or both');
export type Criterion = z.infer<typeof criterionSchema>;

const modelSchema = z
  .strictObject({
    fifoBytes: z
      .number()
      .int()
      .min(0)
      .max(1 << 24)
      .optional()
      .describe('Memory of the device between USB and link, which BQL cannot see.'),
    hysteresisBytes: z
      .number()
      .int()
      .min(0)
      .max(1 << 20)
      .optional()
      .describe('What must drain before a full device takes more.'),
    upBitsPerSecond: rateSchema.optional(),
    downBitsPerSecond: rateSchema.optional(),
    delayUs: z.number().min(0).max(10_000_000).optional().describe('Propagation, each way.'),
  })
  .describe('What is different about the virtual device in `simulate`; a live run takes it as it is.');
export type ScenarioModel = z.infer<typeof modelSchema>;

const uncalibratedSchema = z
  .strictObject({
    description: z.string().min(1).describe('What the model is without the fit.'),
    model: modelSchema.prefault({}),
    load: loadSchema.optional(),
  })
  .describe('The same without the fitted figures; `simulate` runs it too and shows it beside the result.');

export const scenarioSchema = z
  .strictObject({
    $schema: z.string().optional(),
    version: z.literal(scenarioVersion),
    name: z
      .string()
      .min(1)
      .max(60)
      .regex(/^[A-Za-z0-9][A-Za-z0-9._ -]*$/, 'it may have letters, digits, dots, hyphens and spaces only'),
    description: z.string().default(''),
    calibration: z
      .string()
      .min(1)
      .optional()
      .describe('What of it was fitted to what; shown wherever its results are.'),
    device: z.string().optional().describe('The virtual device that `simulate` runs it on: sim:<name>.'),
    model: modelSchema.prefault({}),
    uncalibrated: uncalibratedSchema.optional(),
    seed: z.number().int().min(0).max(0xffff_ffff).default(1).describe('Of all that is left to chance.'),
    idleBeforeSeconds: z.number().min(0).max(3600).default(5).describe('Without load, before everything.'),
    idleAfterSeconds: z.number().min(0).max(3600).default(0).describe('Without load, after everything.'),
    settleSeconds: z
      .number()
      .min(0)
      .max(60)
      .default(2)
      .describe(
        'The start of each segment that is not counted: the queue of the one before drains, the limit settles.',
      ),
    arms: z
      .array(armSchema)
      .min(1)
      .max(8)
      .describe(
        'What is compared: settings that take turns. The first one is what the others are held against.',
      ),
    phases: z.array(phaseSchema).min(1).max(20).describe('Each is run with each arm, in turns.'),
    repeats: z.number().int().min(1).max(10_000).default(1),
    order: z
      .enum(['abab', 'abba', 'random'])
      .default('abab')
      .describe('Of the arms in a repeat: always the same, back and forth, or drawn anew each time (seed).'),
    load: loadSchema.prefault({}),
    probes: z
      .array(probeSchema)
      .min(1)
      .max(8)
      .default([{ kind: 'icmp', intervalMs: 1000, payloadBytes: 56, priority: true }])
      .describe('The first probe of our own (icmp, udp-echo) is the one that results are about.'),
    maxDataBytes: z
      .number()
      .int()
      .min(1)
      .optional()
      .describe('Sent and received together; what would go beyond ends the run.'),
    pass: z.array(criterionSchema).max(50).default([]).describe('If one is not met the exit code is 6.'),
  })
  .superRefine((scenario, context) => {
    const names = scenario.arms.map(({ name }) => name);
    const refuse = (path: (string | number)[], message: string): void =>
      context.addIssue({ code: 'custom', path, message });
    names.forEach((name, index) => {
      if (names.indexOf(name) !== index) refuse(['arms', index, 'name'], `there is another arm "${name}"`);
    });
    scenario.arms.forEach(({ bql }, index) => {
      if ((bql.limitMinBytes ?? 0) > (bql.limitMaxBytes ?? largestLimitBytes)) {
        refuse(['arms', index, 'bql', 'limitMinBytes'], 'it is larger than limitMaxBytes');
      }
    });
    scenario.pass.forEach(({ arm, percentOf }, index) => {
      if (!names.includes(arm)) refuse(['pass', index, 'arm'], `there is no arm "${arm}"`);
      if (percentOf !== undefined && !names.includes(percentOf)) {
        refuse(['pass', index, 'percentOf'], `there is no arm "${percentOf}"`);
      }
    });
    if (!scenario.probes.some(isOwnProbe)) {
      refuse(['probes'], 'one of them must be of the kind icmp or udp-echo');
    }
  });

export type Scenario = z.infer<typeof scenarioSchema>;
/** A scenario as it is written: what has a usual value may be left out. */
export type ScenarioText = z.input<typeof scenarioSchema>;
