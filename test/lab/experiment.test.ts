import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildTargets } from '../../build/build.mjs';
import { Ends, hasEnds, resultOf, scenarioFile } from './experiment-ends.ts';

/** What we measure is held against what stock programs report that measure the same at the same time. */

const root = fileURLToPath(new URL('../..', import.meta.url));

let folder = '';
let ends: Ends;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'qs-experiment-'));
  await buildTargets({ root, names: ['node'], print: () => {} });
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.runIf(hasEnds())('with stock programs at both ends', () => {
  beforeEach(async () => {
    ends = await Ends.open();
  }, 30_000);

  afterEach(() => ends.close());

  // Once more if it fails: two programs that measure the same at the same time disagree where something else takes the processor.
  test(
    'what we measure is what iperf3 and irtt report: TCP and UDP, up, down and both',
    { retry: 1, timeout: 180_000 },
    async () => {
      const udp = { generator: 'iperf3-udp', payloadBytes: 1400 };
      const scenario = scenarioFile(folder, 'both-ends', {
        phases: [
          // TCP takes its time to fill the queue; while it does, a median is that of the moment.
          { direction: 'up', seconds: 14, settleSeconds: 7, load: { generator: 'iperf3-tcp' } },
          { direction: 'up', seconds: 8, load: { ...udp, rateBitsPerSecond: 12e6 } },
          { direction: 'down', seconds: 8, load: { ...udp, downRateBitsPerSecond: 10e6 } },
          { direction: 'both', seconds: 8, load: { generator: 'iperf3-tcp', rateBitsPerSecond: 6e6 } },
        ],
      });
      const { exitCode, result } = await resultOf(ends.start(scenario));
      expect(exitCode).toBe(0);
      expect(result.notes).toEqual([]);
      expect(result.segments.map(({ load, direction }) => `${load} ${direction}`)).toEqual([
        'iperf3-tcp up',
        'iperf3-tcp up',
        'iperf3-udp up',
        'iperf3-udp up',
        'iperf3-udp down',
        'iperf3-udp down',
        'iperf3-tcp both',
        'iperf3-tcp both',
      ]);
      for (const segment of result.segments) {
        const { name, counts, iperf3, irtt, rttUs } = segment;
        expect([name, counts]).toEqual([name, true]);
        for (const [ours, theirs] of [
          [segment.payloadUpBitsPerSecond, iperf3?.upBitsPerSecond],
          [segment.payloadDownBitsPerSecond, iperf3?.downBitsPerSecond],
        ] as const) {
          if (theirs === undefined || theirs === null) continue;
          expect([name, Math.abs(ours / theirs - 1) < 0.05, ours, theirs]).toEqual([
            name,
            true,
            ours,
            theirs,
          ]);
        }
        const irttUs = irtt?.rttP50Us ?? Number.NaN;
        const toleranceUs = Math.max(100, irttUs / 10);
        expect([name, Math.abs(rttUs.p50 - irttUs) < toleranceUs, rttUs.p50, irttUs]).toEqual([
          name,
          true,
          rttUs.p50,
          irttUs,
        ]);
      }
      // And the queue is what makes the difference, for their probes as for ours.
      const [tcpOff, tcpOn, udpOff, udpOn] = result.segments;
      // How long TCP makes the queue in a few seconds is its own affair.
      expect(tcpOff?.irtt?.rttP50Us ?? 0).toBeGreaterThan((tcpOn?.irtt?.rttP50Us ?? 0) + 10_000);
      expect(udpOff?.irtt?.rttP50Us ?? 0).toBeGreaterThan(300_000);
      expect(udpOn?.irtt?.rttP50Us ?? 0).toBeLessThan(60_000);
    },
  );
});
