import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Dql } from '../../src/bql/dql.ts';

/** Nanoseconds a packet, queued and completed. */
export interface DqlCost {
  /** Packets that complete at once. */
  readonly batch: number;
  readonly oursNs: number;
  readonly cNs: number;
  /** Ours over C's. */
  readonly ratio: number;
}

const packets = 100_000;
const rounds = 400;

/**
 * DQL beside the same algorithm in C (dql.c), compiled here with -O2, on the same packets; both must arrive at the same limits.
 * Undefined where there is no C compiler.
 */
export function measureDql(): readonly DqlCost[] | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'queuescope-bench-'));
  try {
    const program = join(folder, 'dql');
    try {
      const source = fileURLToPath(new URL('dql.c', import.meta.url));
      execFileSync('cc', ['-O2', '-Wall', '-Werror', '-o', program, source]);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    return [1, 8].map((batch) => {
      // In turns, so that what else the machine does meets both.
      const c = [runC(program, batch)];
      const ours = runOurs(batch);
      c.push(runC(program, batch));
      if (c.some(({ sum }) => sum !== ours.sum)) throw new Error('the two do not arrive at the same limits');
      const cNs = Math.min(...c.map(({ ns }) => ns));
      return { batch, oursNs: ours.ns, cNs, ratio: ours.ns / cNs };
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Run {
  readonly ns: number;
  readonly sum: number;
}

function runC(program: string, batch: number): Run {
  const [ns = Number.NaN, sum = Number.NaN] = execFileSync(program, [String(packets), String(batch)], {
    encoding: 'utf8',
  })
    .split(' ')
    .map(Number);
  return { ns, sum };
}

function runOurs(batch: number): Run {
  const dql = new Dql({ holdTicks: 1000 });
  let best = Number.POSITIVE_INFINITY;
  let sum = 0;
  for (let round = 0; round < rounds; round++) {
    const begin = process.hrtime.bigint();
    sum = feed(dql, batch);
    best = Math.min(best, Number(process.hrtime.bigint() - begin) / packets);
  }
  return { ns: best, sum };
}

/** What `main` of dql.c does. */
function feed(dql: Dql, batch: number): number {
  let sum = 0;
  let turn = 0;
  for (let i = 0; i < packets; i += batch) {
    let bytes = 0;
    const now = (i >> 4) + 1;
    for (let k = 0; k < batch; k++) {
      const size = 64 + ((i + k) & 1023);
      dql.queued(size, now);
      bytes += size;
    }
    const { inflight } = dql;
    dql.completed((turn++ & 7) === 0 ? inflight - (bytes >> 1) : inflight, now);
    sum = (sum + dql.limit + dql.avail) | 0;
  }
  return sum >>> 0;
}
