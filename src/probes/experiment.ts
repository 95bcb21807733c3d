import { neverUs, type Polled } from '../base/clock.ts';
import { Random } from '../base/random.ts';
import type { Direction, Generator, Scenario, ScenarioArm, ScenarioLoad } from './scenario.ts';

/** What a stretch of an experiment is to be set to; what is left out is as the session has it. */
export interface SegmentSettings {
  readonly bql: ScenarioArm['bql'];
  readonly qdisc: ScenarioArm['qdisc'];
  /** Undefined: our own UDP upwards as the session has it set. */
  readonly load: ScenarioLoad | undefined;
}

/** Who loads a segment. `none`: nobody, and then it is idle or was left out. */
export type SegmentLoad = 'none' | Generator;

/** One stretch of an experiment: a segment. */
export interface ExperimentPhase {
  /** For people, and unique in its plan: "BQL off 2". */
  readonly name: string;
  readonly kind: 'idle' | 'load';
  readonly bql: 'on' | 'off';
  /** The settings that it tries, by name. */
  readonly arm: string;
  /** The arms' segments with the same number stand beside each other and are compared; 0: not part of any pair. */
  readonly pair: number;
  readonly direction: Direction;
  readonly settings: SegmentSettings;
  /** Who loads it, here. */
  readonly by: SegmentLoad;
  readonly durationUs: number;
  /** Not counted at its start. */
  readonly settleUs: number;
  /** Not counted at its end: other programs have sent, and tell what they know. */
  readonly tailUs: number;
}

const secondUs = 1e6;
/** What iperf3 and irtt need to end, over a queue of half a second. */
const programTailUs = 2 * secondUs;

/** The arm that idle segments before and after everything count to. */
export const idleArm = 'idle';

/**
 * The segments of a scenario, in order. Within each repeat every phase is run with every arm, one right after the other,
 * so that what changes slowly is the same for both. Idle segments before and after run under the first arm's settings.
 * @param programs whether programs of the host can use the device (a TAP interface), and are there
 */
export function planExperiment(scenario: Scenario, programs = false): readonly ExperimentPhase[] {
  const [first] = scenario.arms;
  if (first === undefined) return [];
  const idle = (name: string, seconds: number, settleSeconds: number): readonly ExperimentPhase[] => {
    if (seconds === 0) return [];
    const phase = segmentOf(
      { name, arm: first, phase: { direction: 'idle', seconds, settleSeconds }, pair: 0, programs },
      scenario,
    );
    return [{ ...phase, arm: idleArm }];
  };
  const random = new Random(scenario.seed);
  const phases: ExperimentPhase[] = [...idle('idle', scenario.idleBeforeSeconds, 0)];
  for (let pair = 1; pair <= scenario.repeats; pair++) {
    const arms = ordered(scenario.arms, scenario.order, pair, random);
    for (const phase of scenario.phases) {
      const suffix = scenario.phases.length > 1 ? `, ${phase.direction}` : '';
      for (const arm of arms) {
        const name = `${arm.name} ${pair}${suffix}`;
        phases.push(segmentOf({ name, arm, phase, pair, programs }, scenario));
      }
    }
  }
  return [...phases, ...idle('idle after', scenario.idleAfterSeconds, scenario.settleSeconds)];
}

function segmentOf(
  what: {
    readonly name: string;
    readonly arm: ScenarioArm;
    readonly phase: Scenario['phases'][number];
    readonly pair: number;
    readonly programs: boolean;
  },
  scenario: Scenario,
): ExperimentPhase {
  const { name, arm, phase, pair, programs } = what;
  const { direction } = phase;
  const load = phase.load ?? scenario.load;
  const kind = direction === 'idle' ? 'idle' : 'load';
  const by = kind === 'idle' ? 'none' : generatorHere(load, programs);
  const byProgram = by === 'iperf3-tcp' || by === 'iperf3-udp';
  const hasPrograms = byProgram || (programs && scenario.probes.some((probe) => probe.kind === 'irtt'));
  // iperf3 knows whole seconds only.
  const seconds = byProgram ? Math.ceil(phase.seconds) : phase.seconds;
  const settleSeconds = phase.settleSeconds ?? scenario.settleSeconds;
  const most = Math.min(settleSeconds, seconds / 2);
  const settle = byProgram ? Math.ceil(most) : most;
  const tailUs = hasPrograms ? programTailUs : 0;
  return {
    name,
    kind,
    bql: arm.bql.enabled ? 'on' : 'off',
    arm: arm.name,
    pair,
    direction,
    settings: { bql: arm.bql, qdisc: arm.qdisc, load },
    by,
    durationUs: seconds * secondUs + tailUs,
    settleUs: settle * secondUs,
    tailUs,
  };
}

function generatorHere(load: ScenarioLoad, programs: boolean): SegmentLoad {
  if (load.generator === 'udp' || programs) return load.generator;
  return load.withoutTap === 'udp' ? 'udp' : 'none';
}

/** What is to be told of a segment's load: that it is not the one that the scenario has. */
export function loadNotes(phase: ExperimentPhase): readonly string[] {
  const wanted = phase.settings.load?.generator ?? 'udp';
  if (phase.kind === 'idle' || wanted === phase.by) return [];
  const reason = `${wanted} needs a TAP interface, and there is none`;
  return [phase.by === 'udp' ? `loaded with our own UDP: ${reason}` : `not run: ${reason}`];
}

/** What of a scenario is not run as it says, each thing once. @param programs as for {@link planExperiment} */
export function planNotes(
  scenario: Scenario,
  plan: readonly ExperimentPhase[],
  programs = false,
): readonly string[] {
  const notes = new Set(plan.flatMap((phase) => loadNotes(phase)));
  if (!programs && scenario.probes.some(({ kind }) => kind === 'irtt')) {
    notes.add('irtt not run: it needs a TAP interface, and there is none');
  }
  return [...notes];
}

function ordered(
  arms: readonly ScenarioArm[],
  order: Scenario['order'],
  pair: number,
  random: Random,
): readonly ScenarioArm[] {
  switch (order) {
    case 'abab':
      return arms;
    case 'abba':
      return pair % 2 === 1 ? arms : arms.toReversed();
    case 'random': {
      const shuffled = [...arms];
      for (let i = shuffled.length - 1; i > 0; i--) {
        const j = random.integer(0, i);
        const [a, b] = [shuffled[i], shuffled[j]];
        if (a === undefined || b === undefined) continue;
        shuffled[i] = b;
        shuffled[j] = a;
      }
      return shuffled;
    }
  }
}

/** How long a plan takes, microseconds. */
export function planDurationUs(phases: readonly ExperimentPhase[]): number {
  return phases.reduce((sum, phase) => sum + phase.durationUs, 0);
}

/** A phase as it was carried out. */
export interface PhaseRun {
  readonly phase: ExperimentPhase;
  readonly startUs: number;
  readonly endUs: number;
}

export interface ExperimentObserver {
  /** A phase begins: its settings are to be applied now. */
  handlePhaseStart(phase: ExperimentPhase, nowUs: number): void;
  handlePhaseEnd(run: PhaseRun): void;
  handleExperimentEnd(nowUs: number): void;
}

/** Takes a device through the phases of a plan. */
export class Experiment implements Polled {
  readonly #phases: readonly ExperimentPhase[];
  readonly #observer: ExperimentObserver;
  #index = -1;
  #startedAtUs = 0;
  #endsAtUs = neverUs;

  constructor(phases: readonly ExperimentPhase[], observer: ExperimentObserver) {
    this.#phases = phases;
    this.#observer = observer;
  }

  get running(): boolean {
    return this.#endsAtUs !== neverUs;
  }

  /** How long the whole plan takes, microseconds. */
  get durationUs(): number {
    return planDurationUs(this.#phases);
  }
  /** The segment that is running: its place in the plan from 0, and when it ends; undefined if none is. */
  get current(): { readonly index: number; readonly endsAtUs: number } | undefined {
    return this.running ? { index: this.#index, endsAtUs: this.#endsAtUs } : undefined;
  }

  start(nowUs: number): void {
    this.#next(nowUs);
  }

  /** Ends it early; the running phase ends now and counts as far as it got. */
  stop(nowUs: number): void {
    if (!this.running) return;
    this.#finishPhase(nowUs);
    this.#index = this.#phases.length;
    this.#endsAtUs = neverUs;
    this.#observer.handleExperimentEnd(nowUs);
  }

  poll(nowUs: number): void {
    if (nowUs < this.#endsAtUs) return;
    this.#finishPhase(nowUs);
    this.#next(nowUs);
  }

  pollAtUs(): number {
    return this.#endsAtUs;
  }

  #finishPhase(nowUs: number): void {
    const phase = this.#phases[this.#index];
    if (phase !== undefined) {
      this.#observer.handlePhaseEnd({ phase, startUs: this.#startedAtUs, endUs: nowUs });
    }
  }

  #next(nowUs: number): void {
    this.#index++;
    const phase = this.#phases[this.#index];
    if (phase === undefined) {
      this.#endsAtUs = neverUs;
      this.#observer.handleExperimentEnd(nowUs);
      return;
    }
    this.#startedAtUs = nowUs;
    this.#endsAtUs = nowUs + phase.durationUs;
    this.#observer.handlePhaseStart(phase, nowUs);
  }
}
