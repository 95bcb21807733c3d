/**
 * fq_codel against the kernel's: every packet that comes to the kernel's fq_codel, behind a link of 10 Mbit/s, is recorded,
 * and every time that the link asks for one, with the times that the kernel's fq_codel read. Ours gets the same, and has to
 * drop, mark and send the same, packet by packet.
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
  readonly new_flow_count: number;
  readonly options: Readonly<Record<string, number | boolean>>;
}

function traceOf(name: string): { readonly trace: QdiscTrace; readonly tc: TcStatistics } {
  const scenario = guest.scenario(name);
  expect(scenario.number('overruns')).toBe(0);
  expect(scenario.number('missed')).toBe(0);
  const trace = parseQdiscTrace(scenario.text('trace.txt'));
  const tc = (scenario.json('qdisc.json') as TcStatistics[]).find(({ kind }) => kind === 'fq_codel');
  if (tc === undefined) throw new Error('tc knows of no fq_codel');
  return { trace, tc };
}

/** tc shows the kernel's units of 1,024 ns, rounded down to microseconds: the next one is in the same unit. */
function settingsOf({ options }: TcStatistics): FqCodelSettings {
  const number = (key: string): number => Number(options[key]);
  return {
    targetUs: number('target') + 1,
    intervalUs: number('interval') + 1,
    limitPackets: number('limit'),
    flows: number('flows'),
    quantumBytes: number('quantum'),
    ecn: options['ecn'] === true,
    memoryLimitBytes: number('memory_limit'),
    dropBatchPackets: number('drop_batch'),
  };
}

function total(figures: ReadonlyMap<string, FlowFigures>, of: 'drops' | 'marks'): number {
  return [...figures.values()].reduce((sum, flow) => sum + flow[of], 0);
}

/** Each flow's, of the kernel's and of ours; those of fewer packets (ARP, handshakes) are left out. */
const leastPackets = 50;
function kernelFigures(trace: QdiscTrace, least = leastPackets): ReadonlyMap<string, FlowFigures> {
  return figuresByFlow(
    trace,
    trace.packets.map(({ fate }) => fate),
    least,
  );
}

describe.each([
  [
    'udp',
    'senders that never slow down, one of which speaks ECN',
    { answers: 5000, drops: 500, marks: 500, batches: 0 },
  ],
  ['full', 'more than there is room for', { answers: 5000, drops: 1000, marks: 500, batches: 1000 }],
  ['options', 'other settings, without ECN', { answers: 5000, drops: 500, marks: 0, batches: 0 }],
  ['tcp', 'TCP with and without ECN', { answers: 5000, drops: 100, marks: 100, batches: 0 }],
])('%s: %s', (name, _words, least) => {
  test('the recording is whole: its drops and marks are those that tc counts', () => {
    const { trace, tc } = traceOf(name);
    const figures = kernelFigures(trace, 1);
    expect(total(figures, 'drops')).toBe(tc.drops);
    expect(total(figures, 'marks')).toBe(tc.ecn_mark);
    expect(tc.drops).toBeGreaterThanOrEqual(least.drops);
    expect(tc.ecn_mark).toBeGreaterThanOrEqual(least.marks);
    expect(tc.drop_overlimit).toBeGreaterThanOrEqual(least.batches);
  });

  test('every answer is the kernel’s, and so each flow’s drops, marks and waits', () => {
    const { trace, tc } = traceOf(name);
    const ours = replay(trace, settingsOf(tc));
    expect(ours.firstOther).toBeUndefined();
    expect(ours.answers).toBeGreaterThan(least.answers);
    expect(ours.stats).toMatchObject({
      drops: tc.drops,
      ecnMarks: tc.ecn_mark,
      dropsOverLimit: tc.drop_overlimit,
      newFlows: tc.new_flow_count,
    });
    const kernels = kernelFigures(trace);
    expect(kernels.size).toBeGreaterThanOrEqual(6);
    expect(figuresByFlow(trace, ours.fates, leastPackets)).toEqual(kernels);
  });
});

/** What may differ by chance: so many packets, or a twentieth. */
const slackPackets = 4;

test('it would show: another interval, target, quantum or limit drops and marks differently', () => {
  const { trace, tc } = traceOf('full');
  const settings = settingsOf(tc);
  const kernels = kernelFigures(trace);
  for (const changes of [
    { intervalUs: defaultFqCodelSettings.intervalUs * 0.7 },
    { targetUs: 80_000 },
    { quantumBytes: 15_140 },
    { limitPackets: 150 },
    { ecn: false },
    { dropBatchPackets: 8 },
  ]) {
    const ours = replay(trace, { ...settings, ...changes });
    const byFlow = figuresByFlow(trace, ours.fates, leastPackets);
    const differs = [...kernels].some(([flow, kernel]) =>
      (['drops', 'marks', 'waitP95Us'] as const).some(
        (key) =>
          Math.abs((byFlow.get(flow)?.[key] ?? 0) - kernel[key]) > Math.max(slackPackets, kernel[key] * 0.05),
      ),
    );
    expect(differs, JSON.stringify(changes)).toBe(true);
  }
});
