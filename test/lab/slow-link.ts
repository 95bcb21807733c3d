/**
 * Phases of two stacks on a slow simulated device in one guest (compare.guest.sh), then of ours on this machine itself, and what
 * was measured in them.
 */
import { percentileOfSorted } from '../../src/base/percentile.ts';
import type { SimPersonality } from '../../src/sim/personality.ts';
import { bootGuest, type Scenario } from './guest.ts';
import { runCli } from '../harness/run-cli.ts';
import { type Line, readRun, readRunText, type RunOutput } from './run-output.ts';
import { serving } from './slow-devices.ts';

/** `native`: our stack again, but not in the guest: on this machine, over its own USB/IP client. */
export const stacks = ['kernel', 'ours', 'native'] as const;
export type Stack = (typeof stacks)[number];
/** Those that take turns in the guest. */
const guestStacks = ['kernel', 'ours'] as const;
export type Bql = 'off' | 'on';

export interface SlowLinkOptions {
  /** Names the guest's exchange folder. */
  readonly name: string;
  readonly devices: readonly SimPersonality[];
  readonly bql: readonly Bql[];
  /** Of one phase, without the time in which the queue fills. */
  readonly seconds: number;
  /** Each phase so often, in turns. */
  readonly rounds: number;
}

/** All rounds of one device, stack and setting. */
export interface SlowLinkResult {
  readonly device: string;
  readonly stack: Stack;
  readonly bql: Bql;
  readonly pings: number;
  readonly lost: number;
  readonly pingP50Ms: number;
  readonly pingP99Ms: number;
  readonly bitsPerSecond: number;
  /** Of each round. */
  readonly roundsBitsPerSecond: readonly number[];
  readonly inflightP50Bytes: number;
  readonly inflightMaxBytes: number;
  /** BQL's limit, bytes; NaN while it is off. */
  readonly limitP50Bytes: number;
  readonly limitMinBytes: number;
  readonly limitMaxBytes: number;
}

/** How late the simulated devices were, of all connections. */
export interface Punctuality {
  readonly lateP50Us: number;
  readonly lateP95Us: number;
  readonly lateMaxUs: number;
}

interface Phase {
  readonly device: SimPersonality;
  readonly stack: (typeof guestStacks)[number];
  readonly bql: Bql;
  readonly round: number;
  readonly name: string;
}

/** What our stack printed on this machine, in one round. */
interface NativeRun {
  readonly device: SimPersonality;
  readonly bql: Bql;
  readonly output: RunOutput;
}

interface Measured {
  readonly rttMs: readonly number[];
  readonly lost: number;
  readonly bits: number;
  readonly seconds: number;
  readonly inflightBytes: readonly number[];
  /** The most in flight, between two looks too where that is known. */
  readonly inflightMaxBytes: number;
  readonly limitBytes: readonly number[];
}

/** Just over what usbnet lets wait at SuperSpeed, 300 transfers of 1,514 bytes or as much in NTBs: a `limit_min` above it is BQL switched off. */
const aboveTheQueueBytes = 456_000;
const microseconds = 1e6;
const pingIntervalMs = 50;
/** Until its code has been compiled. */
const nativeWarmUpSeconds = 5;

export async function measureSlowLink(options: SlowLinkOptions): Promise<{
  readonly results: readonly SlowLinkResult[];
  readonly punctuality: Punctuality;
  /** The guest's version. */
  readonly kernel: string;
}> {
  const { devices, seconds } = options;
  const phases = phasesOf(options);
  const row = ({ name, device, stack, bql }: Phase): string => {
    const busId = `1-${devices.indexOf(device) + 1}`;
    return `${[name, busId, device.product, stack, bql, seconds, aboveTheQueueBytes].join('\t')}\n`;
  };
  const { result, events } = await serving(devices, async (port) => {
    const guest = await bootGuest({
      name: options.name,
      program: true,
      network: true,
      scriptFile: new URL('compare.guest.sh', import.meta.url),
      files: { port: String(port), 'cases.tsv': phases.map(row).join('') },
      limitSeconds: 60 + phases.length * (seconds + 60),
    });
    return { guest, native: await runNatively(options, port) };
  });
  const { guest, native } = result;
  const results: SlowLinkResult[] = [];
  for (const device of devices) {
    for (const bql of options.bql) {
      for (const stack of guestStacks) {
        const measured = phases
          .filter((phase) => phase.device === device && phase.stack === stack && phase.bql === bql)
          .map((phase) => readPhase(phase, guest.scenario(phase.name)));
        results.push(together(device.name, stack, bql, measured));
      }
      const measured = native
        .filter((run) => run.device === device && run.bql === bql)
        .map(({ output }) => readOurOutput(output, seconds, `${device.name}, natively`));
      results.push(together(device.name, 'native', bql, measured));
    }
  }
  const ends = events.flatMap((event) => (event.type === 'detached' ? [event] : []));
  return {
    results,
    kernel: guest.scenario(phases[0]?.name ?? '').fact('kernel'),
    punctuality: {
      lateP50Us: Math.max(...ends.map(({ lateP50Us }) => lateP50Us)),
      lateP95Us: Math.max(...ends.map(({ lateP95Us }) => lateP95Us)),
      lateMaxUs: Math.max(...ends.map(({ lateMaxUs }) => lateMaxUs)),
    },
  };
}

/** Our stack on this machine, once the guest is gone. */
async function runNatively(
  { devices, bql: settings, rounds, seconds }: SlowLinkOptions,
  port: number,
): Promise<readonly NativeRun[]> {
  const runs: NativeRun[] = [];
  for (const [index, device] of devices.entries()) {
    for (let round = 1; round <= rounds; round++) {
      for (const bql of settings) {
        const id = `usbip://127.0.0.1:${port}/1-${index + 1}`;
        const length = ['--duration', String(seconds + nativeWarmUpSeconds)];
        // One at a time: they would disturb each other.
        // oxlint-disable-next-line no-await-in-loop
        const { exitCode, stdout, stderr } = await runCli([
          'run',
          id,
          '--bql',
          bql,
          ...length,
          '--ping-interval',
          String(pingIntervalMs),
          '--json',
        ]);
        if (exitCode !== 0) throw new Error(`run ${id} ended with ${String(exitCode)}: ${stderr}`);
        runs.push({ device, bql, output: readRunText(stdout) });
      }
    }
  }
  return runs;
}

/** In turns, so that what else the machine does meets all alike. */
function phasesOf({ devices, bql: settings, rounds }: SlowLinkOptions): readonly Phase[] {
  const phases: Phase[] = [];
  for (const device of devices) {
    for (let round = 1; round <= rounds; round++) {
      for (const bql of settings) {
        for (const stack of guestStacks) {
          phases.push({ device, stack, bql, round, name: `${device.name}-${stack}-${bql}-${round}` });
        }
      }
    }
  }
  return phases;
}

function readPhase(phase: Phase, scenario: Scenario): Measured {
  return phase.stack === 'kernel' ? readKernelPhase(scenario) : readOurPhase(scenario);
}

function readKernelPhase(scenario: Scenario): Measured {
  const rttMs = Array.from(scenario.text('ping.txt').matchAll(/time=([\d.]+) ms/g), ([, time]) =>
    Number(time),
  );
  const sent = Number(/(\d+) packets transmitted/.exec(scenario.text('ping.txt'))?.[1] ?? Number.NaN);
  const queue = scenario
    .text('queue.txt')
    .trim()
    .split('\n')
    .map((line) => line.split(' ').map(Number));
  const inflightBytes = queue.map(([inflight = Number.NaN]) => inflight);
  return {
    rttMs,
    // What was on its way at the end is not lost.
    lost: Math.max(0, sent - rttMs.length - Math.ceil((rttMs.at(-1) ?? 0) / pingIntervalMs)),
    bits: 8 * scenario.number('bytes'),
    seconds: scenario.number('seconds_measured'),
    inflightBytes,
    inflightMaxBytes: Math.max(...inflightBytes),
    limitBytes: queue.map(([, limit = Number.NaN]) => limit),
  };
}

function readOurPhase(scenario: Scenario): Measured {
  return readOurOutput(readRun(scenario, 'run.jsonl'), scenario.number('seconds_asked'), scenario.name);
}

function readOurOutput({ samples, probes, result }: RunOutput, seconds: number, name: string): Measured {
  const [segment] = (result?.['segments'] ?? []) as readonly { fromUs: number; toUs: number }[];
  if (segment === undefined) throw new Error(`${name}: the run measured nothing`);
  // While the load lasts, without the time in which the queue fills.
  const end = segment.toUs;
  const begin = end - seconds * microseconds;
  const isMeasured = ({ timeUs }: Line): boolean => Number(timeUs) > begin && Number(timeUs) <= end;
  const measured = samples.filter(isMeasured);
  const column = (columnName: string): number[] =>
    measured.map((sample) => sample[columnName]).filter((value) => typeof value === 'number');
  let bits = 0;
  let beforeUs = begin;
  for (const sample of measured) {
    const timeUs = Number(sample['timeUs']);
    bits += (Number(sample['txBitsPerSecond']) * (timeUs - beforeUs)) / microseconds;
    beforeUs = timeUs;
  }
  const own = probes.filter(isMeasured);
  const rttMs = own.flatMap(({ rttUs }) => (typeof rttUs === 'number' ? [rttUs / 1000] : []));
  return {
    rttMs,
    lost: own.length - rttMs.length,
    bits,
    seconds: (beforeUs - begin) / microseconds,
    inflightBytes: column('inflightBytes'),
    inflightMaxBytes: Math.max(...column('inflightMaxBytes')),
    limitBytes: column('limitBytes'),
  };
}

function together(device: string, stack: Stack, bql: Bql, measured: readonly Measured[]): SlowLinkResult {
  const sorted = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b);
  const rtt = sorted(measured.flatMap(({ rttMs }) => rttMs));
  const inflight = sorted(measured.flatMap(({ inflightBytes }) => inflightBytes));
  const limit = bql === 'on' ? sorted(measured.flatMap(({ limitBytes }) => limitBytes)) : [];
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  return {
    device,
    stack,
    bql,
    pings: rtt.length,
    lost: sum(measured.map(({ lost }) => lost)),
    pingP50Ms: percentileOfSorted(rtt, rtt.length, 0.5),
    pingP99Ms: percentileOfSorted(rtt, rtt.length, 0.99),
    bitsPerSecond: sum(measured.map(({ bits }) => bits)) / sum(measured.map(({ seconds }) => seconds)),
    roundsBitsPerSecond: measured.map(({ bits, seconds }) => bits / seconds),
    inflightP50Bytes: percentileOfSorted(inflight, inflight.length, 0.5),
    inflightMaxBytes: Math.max(...measured.map(({ inflightMaxBytes }) => inflightMaxBytes)),
    limitP50Bytes: percentileOfSorted(limit, limit.length, 0.5),
    limitMinBytes: limit[0] ?? Number.NaN,
    limitMaxBytes: limit.at(-1) ?? Number.NaN,
  };
}
