/**
 * fq_codel against the kernel's: every packet that comes to the kernel's fq_codel, behind a link of 10 Mbit/s, is recorded
 * with its time, and every moment at which the link asks for one. Ours gets the same, and has to drop, mark and send the
 * same.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { defaultFqCodelSettings, type FqCodelSettings } from '../../src/netif/fq-codel.ts';
import { bootGuest, type GuestRun } from './guest.ts';
import {
  destinationPort,
  type FlowFigures,
  figuresByFlow,
  parseQdiscTrace,
  type QdiscTrace,
  replay,
} from './qdisc-trace.ts';

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

/** Ours go to ports from here on; iperf3's, to lower ones. */
const firstUdpPort = 7001;

function traceOf(name: string): { readonly trace: QdiscTrace; readonly tc: TcStatistics } {
  const scenario = guest.scenario(name);
  expect(scenario.number('overruns')).toBe(0);
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

/** How far ours may be from the kernel's: a share, but a few packets in any case. */
const slackPackets = 4;
function expectClose(ours: number, kernels: number, share: number, what: string): void {
  const isClose = Math.abs(ours - kernels) <= Math.max(slackPackets, kernels * share);
  expect(isClose, `${what}: ${ours}, the kernel's ${kernels}`).toBe(true);
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
  ['udp', 'senders that never slow down, one of which speaks ECN', { drops: 500, marks: 500, batches: 0 }],
  ['full', 'more than there is room for', { drops: 1000, marks: 500, batches: 1000 }],
  ['options', 'other settings, without ECN', { drops: 500, marks: 0, batches: 0 }],
  ['tcp', 'TCP with and without ECN', { drops: 100, marks: 100, batches: 0 }],
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

  test('drops, marks and waits are the kernel’s, in all and of each flow', () => {
    const { trace, tc } = traceOf(name);
    const ours = replay(trace, settingsOf(tc));
    const isOpenLoop = name !== 'tcp';
    // TCP's senders answer to the kernel's drops, not to ours: once a drop has fallen on another packet, what follows is
    // compared as counts. Where senders do not listen, it is compared packet by packet.
    const share = isOpenLoop ? 0.02 : 0.2;
    if (isOpenLoop) expect(ours.sameAnswers / ours.answers).toBeGreaterThan(0.97);
    expectClose(ours.stats.drops, tc.drops, share, 'drops');
    expectClose(ours.stats.ecnMarks, tc.ecn_mark, share, 'marks');
    expectClose(ours.stats.dropsOverLimit, tc.drop_overlimit, share, 'drops over the limit');
    const byFlow = figuresByFlow(trace, ours.fates, leastPackets);
    const kernels = kernelFigures(trace);
    expect(kernels.size).toBeGreaterThanOrEqual(6);
    for (const [flow, kernel] of kernels) {
      const figures = byFlow.get(flow);
      if (figures === undefined) throw new Error(`no flow ${flow}`);
      const to = `to port ${destinationPort(flow)}`;
      expectClose(figures.drops, kernel.drops, share, `drops ${to}`);
      expectClose(figures.marks, kernel.marks, share, `marks ${to}`);
      if (isOpenLoop || destinationPort(flow) >= firstUdpPort) {
        expectClose(figures.waitP95Us, kernel.waitP95Us, share, `95th percentile of the wait ${to}`);
      }
    }
  });
});

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
    const differs = [...kernels].some(([flow, kernel]) => {
      const figures = byFlow.get(flow);
      return (['drops', 'marks', 'waitP95Us'] as const).some(
        (key) => Math.abs((figures?.[key] ?? 0) - kernel[key]) > Math.max(slackPackets, kernel[key] * 0.05),
      );
    });
    expect(differs, JSON.stringify(changes)).toBe(true);
  }
});
