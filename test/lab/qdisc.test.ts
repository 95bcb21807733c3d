/**
 * fq_codel against the kernel's: every packet that comes to the kernel's fq_codel, behind a link of 10 Mbit/s, is recorded
 * with its time, and every moment at which the link asks for one. Ours gets the same, and has to drop, mark and send the
 * same.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { defaultFqCodelSettings, type FqCodelSettings } from '../../src/netif/fq-codel.ts';
import { bootGuest, type GuestRun } from './guest.ts';
import { type FlowFigures, figuresByFlow, parseQdiscTrace, type QdiscTrace, replay } from './qdisc-trace.ts';

let guest: GuestRun;

beforeAll(async () => {
  guest = await bootGuest({
    name: 'qdisc',
    scriptFile: new URL('qdisc.guest.sh', import.meta.url),
    limitSeconds: 420,
  });
}, 600_000);

/** What `tc -s -j qdisc` says of the kernel's. */
interface TcStatistics {
  readonly kind: string;
  readonly drops: number;
  readonly drop_overlimit: number;
  readonly ecn_mark: number;
  readonly options: Readonly<Record<string, number | boolean>>;
}

function traceOf(name: string): { readonly trace: QdiscTrace; readonly tc: TcStatistics } {
  const scenario = guest.scenario(name);
  expect(scenario.number('overruns')).toBe(0);
  const trace = parseQdiscTrace(scenario.text('trace.txt'));
  const tc = (scenario.json('qdisc.json') as TcStatistics[]).find(({ kind }) => kind === 'fq_codel');
  if (tc === undefined) throw new Error('tc knows of no fq_codel');
  return { trace, tc };
}

/** The kernel rounds times down to its units of 1,024 ns. */
function settingsOf({ options }: TcStatistics): FqCodelSettings {
  const number = (key: string): number => Number(options[key]);
  return {
    targetUs: Math.ceil(number('target')),
    intervalUs: Math.ceil(number('interval')),
    limitPackets: number('limit'),
    flows: number('flows'),
    quantumBytes: number('quantum'),
    ecn: options['ecn'] === true,
    memoryLimitBytes: number('memory_limit'),
    dropBatchPackets: number('drop_batch'),
  };
}

/** Within a share of the kernel's count; so many packets may make no difference in any case. */
const slackPackets = 3;
function expectClose(ours: number, kernels: number, share: number, slack: number): void {
  expect(Math.abs(ours - kernels)).toBeLessThanOrEqual(Math.max(slack, kernels * share));
}

function total(figures: ReadonlyMap<string, FlowFigures>, of: 'drops' | 'marks'): number {
  return [...figures.values()].reduce((sum, flow) => sum + flow[of], 0);
}

describe.each([
  ['udp', 'senders that never slow down, one of which speaks ECN', { drops: 500, marks: 500, batches: 0 }],
  ['tcp', 'TCP with and without ECN', { drops: 20, marks: 20, batches: 0 }],
  ['full', 'more than there is room for', { drops: 1000, marks: 500, batches: 1000 }],
  ['options', 'other settings, without ECN', { drops: 500, marks: 0, batches: 64 }],
])('%s: %s', (name, _words, least) => {
  test('the recording is whole: its drops and marks are those that tc counts', () => {
    const { trace, tc } = traceOf(name);
    const figures = figuresByFlow(
      trace,
      trace.packets.map(({ fate }) => fate),
      1,
    );
    expect(total(figures, 'drops')).toBe(tc.drops);
    expect(total(figures, 'marks')).toBe(tc.ecn_mark);
    expect(tc.drops).toBeGreaterThanOrEqual(least.drops);
    expect(tc.ecn_mark).toBeGreaterThanOrEqual(least.marks);
    expect(tc.drop_overlimit).toBeGreaterThanOrEqual(least.batches);
  });

  test('drops, marks and each flow’s wait are the kernel’s', () => {
    const { trace, tc } = traceOf(name);
    const ours = replay(trace, settingsOf(tc));
    // A time that is recorded is a few microseconds off: now and then a drop falls on the next packet.
    expect(ours.sameAnswers / ours.answers).toBeGreaterThan(0.97);
    expectClose(ours.stats.drops, tc.drops, 0.02, slackPackets);
    expectClose(ours.stats.ecnMarks, tc.ecn_mark, 0.02, slackPackets);
    expectClose(ours.stats.dropsOverLimit, tc.drop_overlimit, 0.02, slackPackets);
    const kernels = figuresByFlow(
      trace,
      trace.packets.map(({ fate }) => fate),
      50,
    );
    const byFlow = figuresByFlow(trace, ours.fates, 50);
    expect(kernels.size).toBeGreaterThanOrEqual(6);
    for (const [flow, kernel] of kernels) {
      const figures = byFlow.get(flow);
      if (figures === undefined) throw new Error(`no flow ${flow}`);
      expectClose(figures.drops, kernel.drops, 0.05, slackPackets);
      expectClose(figures.marks, kernel.marks, 0.05, slackPackets);
      expectClose(figures.waitP95Us, kernel.waitP95Us, 0.05, 0);
    }
  });
});

test('it would show: another interval, target, quantum or limit drops and marks differently', () => {
  const { trace, tc } = traceOf('full');
  const settings = settingsOf(tc);
  const kernels = figuresByFlow(
    trace,
    trace.packets.map(({ fate }) => fate),
    50,
  );
  for (const changes of [
    { intervalUs: defaultFqCodelSettings.intervalUs * 0.7 },
    { targetUs: 80_000 },
    { quantumBytes: 15_140 },
    { limitPackets: 150 },
    { ecn: false },
    { dropBatchPackets: 8 },
  ]) {
    const ours = replay(trace, { ...settings, ...changes });
    const byFlow = figuresByFlow(trace, ours.fates, 50);
    const differs = [...kernels].some(([flow, kernel]) => {
      const figures = byFlow.get(flow);
      return (['drops', 'marks', 'waitP95Us'] as const).some(
        (key) => Math.abs((figures?.[key] ?? 0) - kernel[key]) > Math.max(slackPackets, kernel[key] * 0.05),
      );
    });
    expect(differs, JSON.stringify(changes)).toBe(true);
  }
});
