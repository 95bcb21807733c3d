import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type NetdevDescription, NetdevFiles } from '../../src/observe/netdev-files.ts';
import { NetdevReader } from '../../src/observe/netdev-reader.ts';

/** Processor time, microseconds, of reading a network interface through files that stay open, and through others. */
export interface ObserveCosts {
  readonly netdev: string;
  /** One file. */
  readonly perFile: Comparison;
  /** A second of 20 samples with everything that is shown; what changes seldom is read less often. */
  readonly perSecond: Comparison;
}

export interface Comparison {
  readonly keptUs: number;
  /** readFileSync of each file, each time. */
  readonly afreshUs: number;
  /** fs.promises.readFile of each file, each time. */
  readonly afreshAsyncUs: number;
  /** Kept over afresh. */
  readonly ratio: number;
  readonly ratioAsync: number;
}

const samplesPerSecond = 20;
/** What the observer reads besides: bytes in flight between samples, for their peaks, and what changes seldom. */
const looksPerSecond = 100;
const statusesPerSecond = 2;
const counters = ['tx_bytes', 'rx_bytes', 'tx_packets', 'rx_packets', 'tx_dropped', 'tx_errors', 'rx_errors'];
const limits = [
  'inflight',
  'limit',
  'limit_min',
  'limit_max',
  'hold_time',
  'stall_thrs',
  'stall_cnt',
  'stall_max',
];
/** Long enough that the steps in which processor time is counted do not matter. */
const roundMs = 300;
const rounds = 5;

/** Measures on this machine's first interface with BQL; undefined if it has none. */
export async function measureObserve(): Promise<ObserveCosts | undefined> {
  const files = new NetdevFiles();
  const netdev = await findNetdev(files);
  if (netdev === undefined) return undefined;
  const folder = files.folder(netdev.name);
  const inflight = netdev.bqlQueues.map((queue) => join(files.limitsFolder(netdev.name, queue), 'inflight'));
  const all = [
    ...netdev.bqlQueues.flatMap((queue) =>
      limits.map((file) => join(files.limitsFolder(netdev.name, queue), file)),
    ),
    ...netdev.txQueues.map((queue) => join(folder, 'queues', queue, 'tx_timeout')),
    ...counters.map((counter) => join(folder, 'statistics', counter)),
    join(folder, 'mtu'),
  ];
  const reader = new NetdevReader(files, netdev);
  const perFile = await compare(() => void reader.readInflightBytes(), inflight, inflight.length);
  const perSecond = await compare(
    () => {
      for (let i = 0; i < samplesPerSecond; i++) reader.readSample();
      for (let i = 0; i < looksPerSecond; i++) reader.readInflightBytes();
      for (let i = 0; i < statusesPerSecond; i++) reader.readStatus();
    },
    Array.from({ length: samplesPerSecond }, () => all).flat(),
    1,
  );
  reader.close();
  return { netdev: netdev.name, perFile, perSecond };
}

async function compare(readKept: () => void, paths: readonly string[], divisor: number): Promise<Comparison> {
  const kept: number[] = [];
  const afresh: number[] = [];
  const afreshAsync: number[] = [];
  let sum = 0;
  // In turns, so that whatever else the machine does is shared.
  for (let round = 0; round < rounds; round++) {
    kept.push(await cpuUsOf(readKept));
    afresh.push(
      await cpuUsOf(() => {
        for (const path of paths) sum += Number(readFileSync(path, 'utf8'));
      }),
    );
    afreshAsync.push(
      await cpuUsOf(async () => {
        for (const path of paths) sum += Number(await readFile(path, 'utf8'));
      }),
    );
  }
  if (Number.isNaN(sum)) throw new Error('a file held no number');
  const keptUs = median(kept) / divisor;
  const afreshUs = median(afresh) / divisor;
  const afreshAsyncUs = median(afreshAsync) / divisor;
  return { keptUs, afreshUs, afreshAsyncUs, ratio: keptUs / afreshUs, ratioAsync: keptUs / afreshAsyncUs };
}

async function findNetdev(files: NetdevFiles): Promise<NetdevDescription | undefined> {
  for (const name of await files.names()) {
    const netdev = await files.describe(name);
    if (netdev !== undefined && netdev.bqlQueues.length > 0) return netdev;
  }
  return undefined;
}

/** Processor time of one call, user and system. */
async function cpuUsOf(action: () => void | Promise<void>): Promise<number> {
  const callsPerLook = 20;
  for (let i = 0; i < callsPerLook; i++) await action();
  const before = process.cpuUsage();
  const endMs = performance.now() + roundMs;
  let count = 0;
  while (performance.now() < endMs) {
    for (let i = 0; i < callsPerLook; i++) {
      const result = action();
      if (result !== undefined) await result;
    }
    count += callsPerLook;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
