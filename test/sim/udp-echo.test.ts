import { expect, test } from 'vitest';
import { simulate } from '../../src/engine/simulation.ts';
import { scenarioSchema } from '../../src/probes/scenario.ts';

test('datagrams to the echo service meet the same queues as pings, at every step', () => {
  const [icmp, udp] = (['icmp', 'udp-echo'] as const).map((kind) =>
    simulate(
      scenarioSchema.parse({
        version: 1,
        name: `by ${kind}`,
        device: 'sim:modem-10mbit',
        arms: [
          { name: 'off', bql: { enabled: false } },
          { name: 'on', bql: { enabled: true } },
        ],
        phases: [{ direction: 'up', seconds: 5 }],
        repeats: 2,
        probes: [{ kind, intervalMs: 100, payloadBytes: 56 }],
      }),
    ),
  );
  for (const [index, arm] of (icmp?.arms ?? []).entries()) {
    const other = udp?.arms[index];
    expect([arm.arm, other?.lost]).toEqual([other?.arm, 0]);
    expect(arm.probes).toBeGreaterThan(10);
    for (const part of ['rttUs', 'probeQdiscWaitUs', 'probeDriverQueueUs'] as const) {
      const difference = (arm[part].p50 ?? Number.NaN) - (other?.[part].p50 ?? Number.NaN);
      // By a packet of the load more or less.
      expect(Math.abs(difference)).toBeLessThan(1300);
    }
  }
});
