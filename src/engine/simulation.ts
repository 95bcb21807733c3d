import { AppError } from '../base/errors.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import { silentLog } from '../base/log.ts';
import type { Problem } from '../contract/problem.ts';
import { defaultSessionSettings, type SessionSettings } from '../contract/settings.ts';
import { Experiment, type ExperimentPhase, type PhaseRun, planExperiment } from '../probes/experiment.ts';
import type { Scenario } from '../probes/scenario.ts';
import { createSimDevice } from '../sim/create-sim-device.ts';
import { findPersonality } from '../sim/catalogue.ts';
import type { SimPersonality } from '../sim/personality.ts';
import { TraceHash } from '../sim/trace-hash.ts';
import { DataPath } from './data-path.ts';
import { endOfBurst } from './drive.ts';
import type { MeasurementObserver } from './measurement-path.ts';
import { noLag } from './event-loop-lag.ts';
import { matchOf } from './sim-source.ts';
import { PhaseCollector, type PhaseStatistics } from './phase-statistics.ts';

/** A virtual device that needs longer than this from plugging in to measuring has a fault. */
const readyLimitUs = 30_000_000;

export interface SimulatedSegment extends PhaseStatistics {
  readonly name: string;
  readonly bql: 'on' | 'off';
  /** The counted part: from after settling to the end. */
  readonly fromUs: number;
  readonly toUs: number;
}

export interface SimulationResult {
  readonly scenario: string;
  readonly device: string;
  readonly seed: number;
  readonly simulatedSeconds: number;
  /** Same seed and scenario, same hash: it covers every transfer of the run. */
  readonly traceHash: string;
  /** The device and link that were modelled. */
  readonly model: Readonly<Record<string, string | number>>;
  /** Without load; null if the scenario has no idle part. */
  readonly idle: PhaseStatistics | null;
  readonly segments: readonly SimulatedSegment[];
}

/** Collects what a data path reports; nothing else is wanted of it here. */
class Collector implements MeasurementObserver {
  readonly rows = new PhaseCollector();
  measuring = false;
  failure: AppError | undefined;

  handleStage(name: string, status: string): void {
    if (name === 'target' && status === 'done') this.measuring = true;
  }
  handleFacts(): void {}
  handleSettings(): void {}
  handleSample(row: Float64Array): void {
    this.rows.addSample(row);
  }
  handleProbe(row: Float64Array): void {
    this.rows.addProbe(row);
  }
  handleEvent(): void {}
  handleProblem(problem: Problem): void {
    if (problem.severity === 'error') this.failure ??= new AppError('device-failed', problem.message);
  }
  handleCured(): void {}
  handleStalled(): void {}
  handleReopen(): void {}
  handleFailure(error: AppError): void {
    this.failure ??= error;
  }
  handleGone(): void {
    this.failure ??= new AppError('device-gone', 'the virtual device was unplugged');
  }
}

function settingsOf(scenario: Scenario): SessionSettings {
  return {
    ...defaultSessionSettings,
    load: { ...defaultSessionSettings.load, ...scenario.load, enabled: false },
    ping: { ...defaultSessionSettings.ping, ...scenario.ping, enabled: true },
  };
}

/**
 * Runs a scenario on a virtual device in virtual time, as fast as the machine can.
 * @throws AppError `no-such-device` for an unknown virtual device, `device-failed` if it can't be measured
 */
export function simulate(scenario: Scenario): SimulationResult {
  const deviceId = scenario.device ?? 'sim:modem-10mbit';
  const personality = findPersonality(deviceId.replace(/^sim:/, ''));
  if (personality === undefined) {
    throw new AppError('no-such-device', `there is no virtual device ${deviceId}`, { details: { deviceId } });
  }
  const clock = new VirtualClock(0);
  const hash = new TraceHash();
  const device = createSimDevice(personality, { seed: scenario.seed, nowUs: 0, observer: hash });
  const { transport } = device;
  const match = matchOf(transport.device);

  const collector = new Collector();
  const path = new DataPath({
    transport,
    match,
    tuning: endOfBurst,
    settings: settingsOf(scenario),
    seed: scenario.seed,
    lag: noLag,
    log: silentLog,
    observer: collector,
    startUs: 0,
    wake: () => {},
  });
  for (const part of device.polled) clock.add(part);
  clock.add(path);
  path.start(0);
  advanceUntil(clock, readyLimitUs, () => collector.measuring || collector.failure !== undefined);
  if (collector.failure !== undefined) throw collector.failure;
  if (!collector.measuring) throw new AppError('timed-out', `${deviceId} did not get ready`);

  const runs = runPhases(clock, path, planExperiment(scenario));
  // The last probes are still on their way.
  clock.runUntil(clock.nowUs() + defaultSessionSettings.ping.timeoutMs * 1000);
  if (collector.failure !== undefined) throw collector.failure;
  const segments: SimulatedSegment[] = [];
  let idle: PhaseStatistics | null = null;
  for (const { phase, startUs, endUs } of runs) {
    const fromUs = startUs + phase.settleUs;
    const statistics = collector.rows.statistics(fromUs, endUs);
    if (phase.kind === 'idle') idle = statistics;
    else segments.push({ name: phase.name, bql: phase.bql, fromUs, toUs: endUs, ...statistics });
  }
  return {
    scenario: scenario.name,
    device: deviceId,
    seed: scenario.seed,
    simulatedSeconds: clock.nowUs() / 1e6,
    traceHash: hash.value.toString(16).padStart(8, '0'),
    model: describeModel(personality),
    idle,
    segments,
  };
}

function advanceUntil(clock: VirtualClock, limitUs: number, condition: () => boolean): void {
  const stepUs = 1000;
  const endUs = clock.nowUs() + limitUs;
  while (!condition() && clock.nowUs() < endUs) clock.runUntil(clock.nowUs() + stepUs);
}

function runPhases(
  clock: VirtualClock,
  path: DataPath,
  phases: readonly ExperimentPhase[],
): readonly PhaseRun[] {
  const runs: PhaseRun[] = [];
  const experiment = new Experiment(phases, {
    handlePhaseStart: (phase, nowUs) =>
      path.configure(
        { bql: { enabled: phase.bql === 'on' }, load: { enabled: phase.kind === 'load' } },
        nowUs,
      ),
    handlePhaseEnd: (run) => runs.push(run),
    handleExperimentEnd: (nowUs) =>
      path.configure({ load: { enabled: false }, ping: { enabled: false } }, nowUs),
  });
  clock.add(experiment);
  experiment.start(clock.nowUs());
  clock.runUntil(clock.nowUs() + experiment.durationUs);
  clock.remove(experiment);
  return runs;
}

/** The modelled device and link in numbers, units in their names. */
function describeModel(personality: SimPersonality): Readonly<Record<string, string | number>> {
  const { speed, firmware, fifoBytes, hysteresisBytes, link } = personality;
  return {
    usbSpeed: speed,
    firmware,
    fifoBytes,
    hysteresisBytes,
    upBitsPerSecond: link.upBitsPerSecond,
    downBitsPerSecond: link.downBitsPerSecond,
    overheadBytes: link.overheadBytes,
    delayUs: link.delayUs,
  };
}
