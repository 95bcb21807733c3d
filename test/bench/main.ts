/**
 * `npm run bench -- [PART...] [--quick] [--profile]`: what this costs and how fast it is, each figure beside what it is compared
 * with, measured in the same run. Parts: dql, paths, startup, observe (this machine), throughput, slow-link (the laboratory);
 * without any, all of them. Ends with 1 where a figure falls short of what is asked.
 */
import { measureDql } from './dql.bench.ts';
import { measureObserve } from './observe.bench.ts';
import { measurePaths } from './paths.bench.ts';
import { measureStartup } from './startup.bench.ts';
import { measureThroughput } from './throughput.bench.ts';
import { slowDevices } from '../lab/slow-devices.ts';
import { measureSlowLink } from '../lab/slow-link.ts';

const parts = ['dql', 'paths', 'startup', 'observe', 'throughput', 'slow-link'] as const;
type Part = (typeof parts)[number];

/** What is asked of the figures. */
const bars = {
  dqlOverC: 1.5,
  observeKeptOverAfresh: 0.1,
  throughputNcm: 0.8,
  throughputEcm: 0.6,
  loadedPingP99: 1.3,
} as const;

interface Options {
  readonly quick: boolean;
  readonly profile: boolean;
}

/** Prints lines, and keeps whether all is as asked. */
class Verdicts {
  #short = 0;

  line(words: string): void {
    console.log(words);
  }

  /** One figure: a ratio that must be at most, or at least, a bar. */
  ratio(words: string, ratio: number, bar: { readonly most: number } | { readonly least: number }): void {
    const good = 'most' in bar ? ratio <= bar.most : ratio >= bar.least;
    if (!good) this.#short++;
    const asked = 'most' in bar ? `at most ${bar.most}` : `at least ${bar.least}`;
    console.log(`${good ? 'ok   ' : 'SHORT'} ${ratio.toFixed(2).padStart(6)} (${asked})  ${words}`);
  }

  get short(): number {
    return this.#short;
  }
}

const megabits = (bitsPerSecond: number): string => `${(bitsPerSecond / 1e6).toFixed(1)} Mbit/s`;

function dql(verdicts: Verdicts): void {
  const costs = measureDql();
  if (costs === undefined) {
    verdicts.line('      no C compiler (cc): DQL is not compared');
    return;
  }
  for (const { batch, oursNs, cNs, ratio } of costs) {
    const words = `DQL over C, ${batch} completed at once: ${oursNs.toFixed(1)} over ${cNs.toFixed(1)} ns a packet`;
    verdicts.ratio(words, ratio, { most: bars.dqlOverC });
  }
}

function paths(verdicts: Verdicts): void {
  for (const { path, nsPerFrame, framesPerSecond } of measurePaths()) {
    const rate = (framesPerSecond / 1e6).toFixed(2);
    verdicts.line(
      `      qdisc to transport and back, ${path}: ${nsPerFrame.toFixed(0)} ns, ${rate} million frames/s`,
    );
  }
}

async function startup(verdicts: Verdicts): Promise<void> {
  const { nodeMs, sessionMs, firstSampleMs, ratio } = await measureStartup();
  verdicts.line(
    `      start to the first live sample: ${firstSampleMs.toFixed(0)} ms (${sessionMs.toFixed(0)} to the session), ` +
      `${ratio.toFixed(1)} times Node alone (${nodeMs.toFixed(0)} ms)`,
  );
}

async function observe(verdicts: Verdicts): Promise<void> {
  const costs = await measureObserve();
  if (costs === undefined) {
    verdicts.line('      no interface with BQL here: observing is not measured');
    return;
  }
  const { keptUs, afreshUs, ratio } = costs.perSecond;
  const words = `reading kept files over opening each, ${costs.netdev}: ${keptUs.toFixed(0)} over ${afreshUs.toFixed(0)} us a second`;
  verdicts.ratio(words, ratio, { most: bars.observeKeptOverAfresh });
}

async function throughput(verdicts: Verdicts, { quick, profile }: Options): Promise<void> {
  const results = await measureThroughput({ seconds: quick ? 3 : 6, rounds: quick ? 1 : 2, profile });
  for (const each of results) {
    const least = each.device.startsWith('NCM') ? bars.throughputNcm : bars.throughputEcm;
    const words =
      `${each.device}, ${each.stream}: ${megabits(each.oursBitsPerSecond)} over ${megabits(each.kernelBitsPerSecond)};` +
      ` CPU ${each.oursCpuMsPerMbit.toFixed(1)} over ${each.kernelCpuMsPerMbit.toFixed(1)} ms/Mbit`;
    verdicts.ratio(words, each.ratio, { least });
  }
}

async function slowLink(verdicts: Verdicts, { quick }: Options): Promise<void> {
  const { results, punctuality } = await measureSlowLink({
    name: 'bench-slow-link',
    devices: slowDevices(16_384),
    bql: ['on'],
    seconds: quick ? 8 : 20,
    rounds: quick ? 1 : 2,
  });
  for (const device of new Set(results.map((result) => result.device))) {
    const kernel = results.find((result) => result.device === device && result.stack === 'kernel');
    for (const stack of ['ours', 'native'] as const) {
      const ours = results.find((result) => result.device === device && result.stack === stack);
      if (kernel === undefined || ours === undefined) continue;
      const where = stack === 'ours' ? 'in the guest' : 'natively';
      const words =
        `loaded priority ping p99 on 10 Mbit/s, ${device}, BQL on, ours ${where}: ${ours.pingP99Ms.toFixed(1)} over ` +
        `${kernel.pingP99Ms.toFixed(1)} ms (p50 ${ours.pingP50Ms.toFixed(1)} over ${kernel.pingP50Ms.toFixed(1)});` +
        ` ${megabits(ours.bitsPerSecond)} over ${megabits(kernel.bitsPerSecond)}`;
      verdicts.ratio(words, ours.pingP99Ms / kernel.pingP99Ms, { most: bars.loadedPingP99 });
    }
  }
  const { lateP50Us, lateP95Us } = punctuality;
  verdicts.line(
    `      the simulated device was late by ${lateP50Us.toFixed(0)} us (median), ${lateP95Us.toFixed(0)} us (p95)`,
  );
}

const run: Readonly<Record<Part, (verdicts: Verdicts, options: Options) => void | Promise<void>>> = {
  dql,
  paths,
  startup,
  observe,
  throughput,
  'slow-link': slowLink,
};

export async function main(args: readonly string[]): Promise<number> {
  const named = args.filter((arg) => !arg.startsWith('--'));
  const unknown = named.filter((name) => !(parts as readonly string[]).includes(name));
  const flags = args.filter((arg) => arg.startsWith('--') && arg !== '--quick' && arg !== '--profile');
  if (unknown.length + flags.length > 0) {
    console.error(`Parts are ${parts.join(', ')}; flags are --quick and --profile.`);
    return 2;
  }
  const options = { quick: args.includes('--quick'), profile: args.includes('--profile') };
  const verdicts = new Verdicts();
  for (const part of parts) {
    if (named.length > 0 && !named.includes(part)) continue;
    try {
      await run[part](verdicts, options);
    } catch (error) {
      console.log(
        `SHORT ${part} could not be measured: ${error instanceof Error ? error.message : String(error)}`,
      );
      return 1;
    }
  }
  return verdicts.short > 0 ? 1 : 0;
}
