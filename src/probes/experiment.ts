import { neverUs, type Polled } from '../base/clock.ts';
import type { Scenario } from './scenario.ts';

/** One stretch of an experiment. */
export interface ExperimentPhase {
  readonly name: string;
  readonly kind: 'idle' | 'load';
  readonly bql: 'on' | 'off';
  readonly durationUs: number;
  /** Not counted at its start. */
  readonly settleUs: number;
}

const secondUs = 1e6;

/** The phases of a scenario, in order. The idle one runs under the first segment's setting. */
export function planExperiment(scenario: Scenario): readonly ExperimentPhase[] {
  const { idleSeconds, settleSeconds, segments } = scenario;
  const phases: ExperimentPhase[] = [];
  if (idleSeconds > 0) {
    phases.push({
      name: 'idle',
      kind: 'idle',
      bql: segments[0]?.bql ?? 'on',
      durationUs: idleSeconds * secondUs,
      settleUs: 0,
    });
  }
  const counts = { on: 0, off: 0 };
  for (const segment of segments) {
    counts[segment.bql]++;
    phases.push({
      name: `BQL ${segment.bql} ${counts[segment.bql]}`,
      kind: 'load',
      bql: segment.bql,
      durationUs: segment.seconds * secondUs,
      settleUs: Math.min(settleSeconds, segment.seconds / 2) * secondUs,
    });
  }
  return phases;
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
    return this.#phases.reduce((sum, phase) => sum + phase.durationUs, 0);
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
