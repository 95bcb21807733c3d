import { describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { VirtualClock } from '../../src/base/virtual-clock.ts';
import { defaultSessionSettings, type QdiscKind, type SessionSettings } from '../../src/contract/settings.ts';
import { sampleIndex } from '../../src/contract/telemetry.ts';
import { DataPath } from '../../src/engine/data-path.ts';
import { endOfBurst } from '../../src/engine/drive.ts';
import { noLag } from '../../src/engine/event-loop-lag.ts';
import { PhaseCollector, type PhaseStatistics } from '../../src/engine/phase-statistics.ts';
import { matchOf } from '../../src/engine/sim-source.ts';
import { findPersonality } from '../../src/sim/catalogue.ts';
import { createSimDevice } from '../../src/sim/create-sim-device.ts';

/**
 * What the qdisc does and what BQL does, apart: a ping through a modem of 10 Mbit/s that is loaded by one UDP flow, by
 * qdisc, BQL, and whether the ping has priority.
 *
 * By arithmetic: without BQL 300 frames of 1,514 bytes (1.21 ms each) wait in the driver, 363 ms, whatever the qdisc; with
 * it, with what the device holds, fewer than five. In the qdisc the load keeps 64 to 128 frames (78 to 155 ms) that a ping
 * has to wait for, or overtakes.
 */

const priorityTos = 0x10;
const secondUs = 1e6;

interface Measured {
  readonly statistics: PhaseStatistics;
  readonly events: readonly string[];
  readonly samples: readonly Float64Array[];
}

/** @param during what happens at the half */
function measure(settings: SessionSettings, during?: (path: DataPath, nowUs: number) => void): Measured {
  const personality = findPersonality('modem-10mbit');
  if (personality === undefined) throw new Error('no such device');
  const clock = new VirtualClock(0);
  const device = createSimDevice(personality, { seed: 1, nowUs: 0 });
  const rows = new PhaseCollector();
  const events: string[] = [];
  const samples: Float64Array[] = [];
  const path = new DataPath({
    transport: device.transport,
    match: matchOf(device.transport.device),
    tuning: endOfBurst,
    settings,
    seed: 1,
    lag: noLag,
    log: silentLog,
    startUs: 0,
    wake: () => {},
    observer: {
      handleStage() {},
      handleFacts() {},
      handleSettings() {},
      handleSample: (row) => {
        samples.push(row.slice());
        rows.addSample(row);
      },
      handleProbe: (row) => rows.addProbe(row),
      handleEvent: (_kind, text) => events.push(text),
      handleProblem: ({ message }) => {
        throw new Error(message);
      },
      handleCured() {},
      handleStalled() {},
      handleReopen() {},
      handleFailure: (error) => {
        throw error;
      },
      handleGone() {},
    },
  });
  for (const part of device.polled) clock.add(part);
  clock.add(path);
  path.start(0);
  clock.runUntil(10 * secondUs);
  during?.(path, clock.nowUs());
  clock.runUntil(20 * secondUs);
  path.configure({ load: { enabled: false }, ping: { enabled: false } }, clock.nowUs());
  clock.runUntil(25 * secondUs);
  return { statistics: rows.statistics({ fromUs: 12 * secondUs, toUs: 20 * secondUs }), events, samples };
}

function settingsWith(qdisc: QdiscKind, bql: boolean, tos: number): SessionSettings {
  const base = defaultSessionSettings;
  return {
    ...base,
    qdisc: { ...base.qdisc, kind: qdisc },
    bql: { ...base.bql, enabled: bql },
    ping: { ...base.ping, intervalMs: 97, tos },
  };
}

const unloaded = settingsWith('pfifo_fast', true, 0);
const idleMs =
  (measure({ ...unloaded, load: { ...unloaded.load, enabled: false } }).statistics.rttUs.p50 ?? Number.NaN) /
  1000;

describe('the cost of a full queue at the median', () => {
  test.each([
    ['pfifo_fast', false, priorityTos, 361, 367],
    ['pfifo_fast', false, 0, 440, 530],
    ['pfifo_fast', true, priorityTos, 0, 6],
    ['pfifo_fast', true, 0, 75, 160],
    ['fq_codel', false, priorityTos, 361, 367],
    ['fq_codel', false, 0, 361, 367],
    ['fq_codel', true, priorityTos, 0, 6],
    ['fq_codel', true, 0, 0, 6],
    ['pfifo', false, priorityTos, 440, 530],
    ['pfifo', false, 0, 440, 530],
    ['pfifo', true, priorityTos, 75, 160],
    ['pfifo', true, 0, 75, 160],
  ] as const)('%s, BQL %s, TOS %i: from %i to %i ms', (qdisc, bql, tos, leastMs, mostMs) => {
    const { statistics } = measure(settingsWith(qdisc, bql, tos));
    const costMs = (statistics.rttUs.p50 ?? Number.NaN) / 1000 - idleMs;
    expect(costMs).toBeGreaterThanOrEqual(leastMs);
    expect(costMs).toBeLessThanOrEqual(mostMs);
    expect(statistics.throughputBitsPerSecond).toBeGreaterThan(9.9e6);
    expect(statistics.lost).toBe(0);
  });
});

test('a load that is bounded by a socket’s buffer goes on after what fq_codel drops of it', () => {
  const settings = settingsWith('fq_codel', true, priorityTos);
  const { statistics, samples } = measure({ ...settings, load: { ...settings.load, socketPackets: 100 } });
  expect(samples.at(-1)?.[sampleIndex.qdiscDroppedPackets]).toBeGreaterThan(200);
  expect(statistics.throughputBitsPerSecond).toBeGreaterThan(9.9e6);
});

test('switched under load: told with what was dropped, and counted on', () => {
  const { events, samples, statistics } = measure(
    settingsWith('pfifo_fast', true, priorityTos),
    (path, nowUs) => {
      path.configure({ qdisc: { kind: 'fq_codel' } }, nowUs);
      path.configure({ qdisc: { kind: 'fq_codel' } }, nowUs);
    },
  );
  const told = events.filter((text) => text.startsWith('qdisc'));
  expect(told).toEqual([expect.stringMatching(/^qdisc fq_codel, \d+ waiting packets dropped$/)]);
  const dropped = Number(/\d+/.exec(told[0] ?? '')?.[0]);
  expect(dropped).toBeGreaterThan(60);
  const drops = samples.map((row) => row[sampleIndex.qdiscDroppedPackets] ?? Number.NaN);
  expect(drops.find((count) => count > 0)).toBeGreaterThanOrEqual(dropped);
  expect(drops).toEqual(drops.toSorted((a, b) => a - b));
  // One flow that never slows down: CoDel drops more and more of it.
  expect(drops.at(-1)).toBeGreaterThan(dropped + 200);
  const flows = samples.map((row) => row[sampleIndex.qdiscFlows] ?? Number.NaN);
  expect(flows[50]).toBeNaN();
  expect(Math.max(...flows.filter((count) => !Number.isNaN(count)))).toBeLessThanOrEqual(2);
  expect((statistics.rttUs.p50 ?? 0) / 1000 - idleMs).toBeLessThan(6);
});
