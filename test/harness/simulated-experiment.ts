import { VirtualClock } from '../../src/base/virtual-clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { Random } from '../../src/base/random.ts';
import { defaultSessionSettings } from '../../src/contract/settings.ts';
import { DataPath } from '../../src/engine/data-path.ts';
import { endOfBurst } from '../../src/engine/drive.ts';
import { noLag } from '../../src/engine/event-loop-lag.ts';
import { PhaseCollector } from '../../src/engine/phase-statistics.ts';
import { matchOf } from '../../src/engine/sim-source.ts';
import { findPersonality } from '../../src/sim/catalogue.ts';
import { createSimDevice } from '../../src/sim/create-sim-device.ts';
import type { RateStep } from '../../src/sim/rate-schedule.ts';
import type { MeasuredSegment } from '../../src/statistics/measured-segment.ts';
import { Radio, type RadioModel, type SyntheticPlan } from './synthetic-radio.ts';

/** The driver's queue of each arm, bytes: BQL with its limit held there, so that the true difference is known. */
export interface SimulatedArms {
  readonly first: number;
  readonly second: number;
}

const stepUs = 100_000;

/**
 * An experiment on the virtual modem in virtual time: its bus, its FIFO, its link with the rate of a radio, and our own
 * driver, qdisc, BQL, load and ping.
 */
export function simulatedExperiment(
  radio: RadioModel,
  plan: SyntheticPlan,
  limits: SimulatedArms,
  seed: number,
): MeasuredSegment[] {
  const personality = findPersonality('modem-10mbit');
  if (personality === undefined) throw new Error('there is no such virtual device');
  const random = new Random(seed);
  const link = {
    ...personality.link,
    upBitsPerSecond: radio.meanBitsPerSecond,
    upSchedule: rateSteps(radio, plan, random),
  };
  const clock = new VirtualClock(0);
  const device = createSimDevice({ ...personality, link }, { seed, nowUs: 0 });
  const rows = new PhaseCollector();
  let measuring = false;
  const path = new DataPath({
    transport: device.transport,
    match: matchOf(device.transport.device),
    tuning: endOfBurst,
    settings: {
      ...defaultSessionSettings,
      load: { ...defaultSessionSettings.load, enabled: false },
      ping: { ...defaultSessionSettings.ping, enabled: true, intervalMs: plan.probeIntervalSeconds * 1000 },
    },
    seed,
    lag: noLag,
    log: silentLog,
    observer: {
      handleStage: (name, status) => {
        if (name === 'target' && status === 'done') measuring = true;
      },
      handleFacts: () => {},
      handleSettings: () => {},
      handleSample: (row) => rows.addSample(row),
      handleProbe: (row) => rows.addProbe(row),
      handleEvent: () => {},
      handleProblem: () => {},
      handleCured: () => {},
      handleStalled: () => {},
      handleFailure: (error) => {
        throw error;
      },
      handleReopen: () => {},
      handleGone: () => {},
    },
    startUs: 0,
    wake: () => {},
  });
  for (const part of device.polled) clock.add(part);
  clock.add(path);
  path.start(0);
  while (!measuring && clock.nowUs() < 30e6) clock.runUntil(clock.nowUs() + 10_000);

  const runs: {
    readonly arm: string;
    readonly pair: number;
    readonly fromUs: number;
    readonly toUs: number;
  }[] = [];
  for (let pair = 0; pair < plan.pairs; pair++) {
    const turned = plan.order === 'random' && random.chance(0.5);
    for (const arm of turned ? ['B', 'A'] : ['A', 'B']) {
      const limitBytes = arm === 'A' ? limits.first : limits.second;
      const bql = { enabled: true, limitMinBytes: limitBytes, limitMaxBytes: limitBytes };
      path.configure({ bql, load: { enabled: true } }, clock.nowUs());
      const fromUs = clock.nowUs() + plan.settleSeconds * 1e6;
      clock.runUntil(clock.nowUs() + plan.segmentSeconds * 1e6);
      runs.push({ arm, pair, fromUs, toUs: clock.nowUs() });
    }
  }
  path.configure({ load: { enabled: false } }, clock.nowUs());
  clock.runUntil(clock.nowUs() + defaultSessionSettings.ping.timeoutMs * 1000);

  return runs.map(({ arm, pair, ...stretch }) => {
    const { probes, lost, throughputBitsPerSecond, receivedBitsPerSecond } = rows.statistics(stretch);
    return {
      arm,
      pair,
      direction: 'up',
      rttUs: rows.roundTripsUs(stretch),
      probesSent: probes,
      probesLost: lost,
      upBitsPerSecond: throughputBitsPerSecond,
      downBitsPerSecond: receivedBitsPerSecond,
      loadReachedLimit: rows.wasBusy(stretch),
      seconds: plan.segmentSeconds,
    };
  });
}

/** The radio's rate in steps; while it is interrupted the link stands still. */
function rateSteps(model: RadioModel, plan: SyntheticPlan, random: Random): RateStep[] {
  const radio = new Radio(model, random);
  const steps: RateStep[] = [];
  const endUs = 30e6 + plan.pairs * 2 * plan.segmentSeconds * 1e6;
  for (let fromUs = 0; fromUs < endUs; fromUs += stepUs) {
    steps.push({ fromUs, rateBitsPerSecond: radio.outageSeconds > 0 ? 0 : radio.bitsPerSecond });
    radio.advance(stepUs / 1e6);
  }
  return [...steps, { fromUs: endUs, rateBitsPerSecond: model.meanBitsPerSecond }];
}
