import { AppError } from '../base/errors.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import { silentLog } from '../base/log.ts';
import type { ExperimentVerdict } from '../contract/experiment.ts';
import type { Problem } from '../contract/problem.ts';
import { defaultSessionSettings, type SessionSettings } from '../contract/settings.ts';
import { type DataVolume, dataVolume } from '../probes/data-volume.ts';
import { Experiment, planExperiment, planNotes } from '../probes/experiment.ts';
import type { Scenario, ScenarioModel } from '../probes/scenario.ts';
import { createSimDevice } from '../sim/create-sim-device.ts';
import { findPersonality } from '../sim/catalogue.ts';
import type { SimPersonality } from '../sim/personality.ts';
import { TraceHash } from '../sim/trace-hash.ts';
import { cappedWords, DataMeter } from './data-meter.ts';
import { DataPath } from './data-path.ts';
import { endOfBurst } from './drive.ts';
import { noLag } from './event-loop-lag.ts';
import { type ExperimentOutcome, outcomeOf } from './experiment-outcome.ts';
import { segmentRun, type SegmentRun } from './experiment-segments.ts';
import type { MeasurementObserver } from './measurement-path.ts';
import { verdictOf } from './verdict-words.ts';
import { morePingsOfScenario, pingOfScenario, settingsOfSegment } from './segment-settings.ts';
import { matchOf } from './sim-source.ts';
import { PhaseCollector } from './phase-statistics.ts';

/** Virtual time from one step to the next: some milliseconds of a processor's. */
const stepUs = 100_000;
/** A virtual device that needs longer than this from plugging in to measuring has a fault. */
const readyLimitUs = 30_000_000;

export interface SimulationResult extends ExperimentOutcome {
  readonly scenario: string;
  readonly description: string;
  readonly device: string;
  readonly seed: number;
  readonly simulatedSeconds: number;
  /** Same seed and scenario, same hash: it covers every transfer of the run. */
  readonly traceHash: string;
  /** The device and link that were modelled. */
  readonly model: Readonly<Record<string, string | number>>;
  /** What of it was fitted to what; null: nothing. */
  readonly calibration: string | null;
  /** The same without what was fitted; null if nothing was. */
  readonly uncalibrated: UncalibratedResult | null;
  readonly plannedData: DataVolume;
  /** Sent and received by the frames' bytes. */
  readonly dataBytes: number;
  /** What is to be told of the run: parts that cannot be run in simulation, an end at the cap on data. */
  readonly notes: readonly string[];
  readonly verdict: ExperimentVerdict;
}

export interface UncalibratedResult extends ExperimentOutcome {
  /** What the model is without the fit. */
  readonly description: string;
  readonly model: Readonly<Record<string, string | number>>;
}

/** Collects what a data path reports; nothing else is wanted of it here. */
class Collector implements MeasurementObserver {
  readonly rows = new PhaseCollector();
  readonly data = new DataMeter();
  /** Told the bytes so far, after each sample. */
  handleData: (bytes: number) => void = () => {};
  measuring = false;
  failure: AppError | undefined;

  handleStage(name: string, status: string): void {
    if (name === 'target' && status === 'done') this.measuring = true;
  }
  handleFacts(): void {}
  handleSettings(): void {}
  handleSample(row: Float64Array): void {
    this.rows.addSample(row);
    this.data.addSample(row);
    this.handleData(this.data.bytes);
  }
  handleProbe(row: Float64Array): void {
    this.rows.addProbe(row);
  }
  handleMoreProbe(index: number, row: Float64Array): void {
    this.rows.addMoreProbe(index, row);
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
  const base = defaultSessionSettings;
  return {
    ...base,
    load: { ...base.load, enabled: false },
    ping: pingOfScenario(scenario, base.ping),
    morePings: morePingsOfScenario(scenario, base.ping),
  };
}

/** Runs a scenario as {@link simulationSteps} does, without a pause. */
export function simulate(scenario: Scenario): SimulationResult {
  const steps = simulationSteps(scenario, () => false);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Runs a scenario on a virtual device in virtual time, as fast as the machine can; and once more without what was fitted,
 * if it has a calibration. Every {@link stepUs} of virtual time it yields, so that its host can deal with what else there is.
 * @param isStopped asked after each step; once it is true the run ends there, and what was measured is reduced
 * @throws AppError `no-such-device` for an unknown virtual device, `device-failed` if it can't be measured
 */
export function* simulationSteps(
  scenario: Scenario,
  isStopped: () => boolean,
): Generator<undefined, SimulationResult, undefined> {
  const deviceId = scenario.device ?? 'sim:modem-10mbit';
  const personality = findPersonality(deviceId.replace(/^sim:/, ''));
  if (personality === undefined) {
    throw new AppError('no-such-device', `there is no virtual device ${deviceId}`, { details: { deviceId } });
  }
  const modelled = withModel(personality, scenario.model);
  const run = yield* runOnce(scenario, modelled, deviceId, isStopped);
  const plan = planExperiment(scenario);
  return {
    scenario: scenario.name,
    description: scenario.description,
    device: deviceId,
    seed: scenario.seed,
    simulatedSeconds: run.simulatedSeconds,
    traceHash: run.traceHash,
    model: describeModel(modelled),
    calibration: scenario.calibration ?? null,
    ...run.outcome,
    verdict: run.verdict,
    uncalibrated: isStopped() ? null : yield* withoutFit(scenario, modelled, deviceId, isStopped),
    plannedData: dataVolume(scenario, plan, modelled.link),
    dataBytes: Math.round(run.dataBytes),
    notes: [...planNotes(scenario, plan), ...run.notes],
  };
}

function* withoutFit(
  scenario: Scenario,
  personality: SimPersonality,
  deviceId: string,
  isStopped: () => boolean,
): Generator<undefined, UncalibratedResult | null, undefined> {
  const { uncalibrated } = scenario;
  if (uncalibrated === undefined) return null;
  const modelled = withModel(personality, uncalibrated.model);
  const { outcome } = yield* runOnce(
    // Once is enough: it is shown, and compared with nothing.
    { ...scenario, repeats: 1, load: uncalibrated.load ?? scenario.load },
    modelled,
    deviceId,
    isStopped,
  );
  return { description: uncalibrated.description, model: describeModel(modelled), ...outcome };
}

/** A virtual device with what a scenario wants to be different about it. */
function withModel(personality: SimPersonality, model: ScenarioModel): SimPersonality {
  const { fifoBytes, hysteresisBytes, upBitsPerSecond, downBitsPerSecond, delayUs } = model;
  const { link } = personality;
  return {
    ...personality,
    fifoBytes: fifoBytes ?? personality.fifoBytes,
    hysteresisBytes: hysteresisBytes ?? personality.hysteresisBytes,
    link: {
      ...link,
      upBitsPerSecond: upBitsPerSecond ?? link.upBitsPerSecond,
      downBitsPerSecond: downBitsPerSecond ?? link.downBitsPerSecond,
      delayUs: delayUs ?? link.delayUs,
    },
  };
}

interface FinishedRun {
  readonly outcome: ExperimentOutcome;
  readonly verdict: ExperimentVerdict;
  readonly notes: readonly string[];
  readonly dataBytes: number;
  readonly simulatedSeconds: number;
  readonly traceHash: string;
}

function* runOnce(
  scenario: Scenario,
  personality: SimPersonality,
  deviceId: string,
  isStopped: () => boolean,
): Generator<undefined, FinishedRun, undefined> {
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

  const { runs, notes } = yield* runSegments(clock, path, scenario, collector, isStopped);
  // The last probes are still on their way.
  clock.runUntil(clock.nowUs() + defaultSessionSettings.ping.timeoutMs * 1000);
  if (collector.failure !== undefined) throw collector.failure;
  const outcome = outcomeOf(scenario, runs, collector.rows);
  return {
    outcome,
    verdict: verdictOf(outcome, runs, collector.rows),
    notes,
    dataBytes: collector.data.bytes,
    simulatedSeconds: clock.nowUs() / 1e6,
    traceHash: hash.value.toString(16).padStart(8, '0'),
  };
}

function advanceUntil(clock: VirtualClock, limitUs: number, condition: () => boolean): void {
  const waitUs = 1000;
  const endUs = clock.nowUs() + limitUs;
  while (!condition() && clock.nowUs() < endUs) clock.runUntil(clock.nowUs() + waitUs);
}

function* runSegments(
  clock: VirtualClock,
  path: DataPath,
  scenario: Scenario,
  collector: Collector,
  isStopped: () => boolean,
): Generator<
  undefined,
  { readonly runs: readonly SegmentRun[]; readonly notes: readonly string[] },
  undefined
> {
  const runs: SegmentRun[] = [];
  const notes: string[] = [];
  const base = path.settings;
  const experiment = new Experiment(planExperiment(scenario), {
    handlePhaseStart: (phase, nowUs) => path.configure(settingsOfSegment(phase, base, path.settings), nowUs),
    handlePhaseEnd: (run) => runs.push(segmentRun(run, [])),
    handleExperimentEnd: (nowUs) =>
      path.configure(
        { load: { enabled: false }, download: { enabled: false }, ping: { enabled: false } },
        nowUs,
      ),
  });
  const { maxDataBytes = Number.POSITIVE_INFINITY } = scenario;
  collector.handleData = (bytes) => {
    if (bytes < maxDataBytes || !experiment.running) return;
    notes.push(cappedWords(maxDataBytes));
    experiment.stop(clock.nowUs());
  };
  clock.add(experiment);
  experiment.start(clock.nowUs());
  const endUs = clock.nowUs() + experiment.durationUs;
  while (experiment.running && clock.nowUs() < endUs) {
    clock.runUntil(Math.min(clock.nowUs() + stepUs, endUs));
    yield;
    if (!isStopped() || !experiment.running) continue;
    notes.push('it was interrupted');
    experiment.stop(clock.nowUs());
  }
  clock.remove(experiment);
  return { runs, notes };
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
