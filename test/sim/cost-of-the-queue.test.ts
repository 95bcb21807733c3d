import { describe, expect, test } from 'vitest';
import { simulate, type SimulationResult } from '../../src/engine/simulation.ts';
import { builtInScenarios } from '../../src/probes/built-in-scenarios.ts';
import type { Scenario } from '../../src/probes/scenario.ts';

/**
 * What the driver's queue costs on each virtual device, against what it must cost by arithmetic: a ping that enters a
 * full queue of N transfers waits for N − 1 of them, and for what the device's FIFO holds, at the link's rate.
 */

function scenario(name: string): Scenario {
  const found = builtInScenarios().find((candidate) => candidate.name === name);
  if (found === undefined) throw new Error(`no scenario ${name}`);
  return found;
}

function onDevice(device: string, pingIntervalMs: number): Scenario {
  return {
    ...scenario('cellular-10mbit'),
    name: `test on ${device}`,
    device,
    idleBeforeSeconds: 3,
    phases: [{ direction: 'up', seconds: 8 }],
    probes: [{ kind: 'icmp', intervalMs: pingIntervalMs, payloadBytes: 56, priority: true }],
  };
}

function segment(result: SimulationResult, bql: 'on' | 'off'): SimulationResult['segments'][number] {
  const found = result.segments.find((candidate) => candidate.bql === bql);
  if (found === undefined) throw new Error(`no segment with BQL ${bql}`);
  return found;
}

function known(value: number | null | undefined): number {
  expect(value).toBeTypeOf('number');
  return value ?? Number.NaN;
}

/** Milliseconds that a loaded ping takes more than an idle one, at the median. */
function costMs(result: SimulationResult, bql: 'on' | 'off'): number {
  return (known(segment(result, bql).rttUs.p50) - known(result.idle?.rttUs.p50)) / 1000;
}

describe('cellular-10mbit: the case the patch was made for', () => {
  const result = simulate(scenario('cellular-10mbit'));

  test("without BQL the kernel's 300 transfers cost 363 to 369 ms", () => {
    expect(costMs(result, 'off')).toBeGreaterThan(363);
    expect(costMs(result, 'off')).toBeLessThan(369);
    expect(segment(result, 'off').inflightBytes.p50).toBe(300 * 1514);
    expect(segment(result, 'off').limitBytes.p50).toBeNull();
  });

  test('BQL takes more than nine tenths of that away', () => {
    expect(costMs(result, 'on')).toBeLessThan(costMs(result, 'off') / 10);
    // Two frames: what DQL settles at when completions come one by one (spec 1.3).
    expect(known(segment(result, 'on').limitBytes.p50)).toBe(2 * 1514);
  });

  test('throughput with BQL is within 1 percent of that without', () => {
    const ratio =
      known(segment(result, 'on').throughputBitsPerSecond) /
      known(segment(result, 'off').throughputBitsPerSecond);
    expect(Math.abs(ratio - 1)).toBeLessThan(0.01);
    expect(known(segment(result, 'on').throughputBitsPerSecond)).toBeGreaterThan(9.9e6);
  });

  test('no probe is lost', () => {
    for (const phase of result.segments) {
      expect(phase.lost).toBe(0);
      expect(phase.rttUs.n).toBeGreaterThan(20);
    }
  });

  test('same seed and scenario: same bytes', () => {
    expect(simulate(scenario('cellular-10mbit'))).toEqual(result);
    const { probes } = scenario('cellular-10mbit');
    const other = simulate({
      ...scenario('cellular-10mbit'),
      probes: probes.map((probe) => ({ ...probe, payloadBytes: probe.payloadBytes + 1 })),
    });
    expect(other.traceHash).not.toBe(result.traceHash);
  });
});

describe('every virtual device', () => {
  /** Transfers and bytes of one, by speed and minidriver (spec 2.2); the link's rate; bounds of the cost in ms. */
  const rows = [
    { device: 'sim:modem-10mbit', transfers: 300, bytes: 1514, off: [360, 369], on: [2, 15] },
    { device: 'sim:modem-usb2-10mbit', transfers: 60, bytes: 1514, off: [71, 78], on: [2, 15] },
    { device: 'sim:adapter-100mbit', transfers: 27, bytes: 16_384, off: [32, 38], on: [0.5, 6] },
    { device: 'sim:tether-usb2', transfers: 5, bytes: 16_384, off: [13, 21], on: [2, 14] },
  ] as const;

  test.each(rows)(
    '$device: $transfers transfers cost what they must',
    ({ device, transfers, bytes, off, on }) => {
      const result = simulate(onDevice(device, 250));
      expect(known(segment(result, 'off').inflightBytes.max)).toBeLessThanOrEqual(transfers * bytes);
      expect(known(segment(result, 'off').inflightBytes.p50)).toBeGreaterThan(0.9 * transfers * bytes);
      expect(costMs(result, 'off')).toBeGreaterThan(off[0]);
      expect(costMs(result, 'off')).toBeLessThan(off[1]);
      expect(costMs(result, 'on')).toBeGreaterThan(on[0]);
      expect(costMs(result, 'on')).toBeLessThan(on[1]);
      const ratio =
        known(segment(result, 'on').throughputBitsPerSecond) /
        known(segment(result, 'off').throughputBitsPerSecond);
      expect(Math.abs(ratio - 1)).toBeLessThan(0.01);
    },
  );
});
