import { neverUs } from '../base/clock.ts';
import type { Stall } from './stall-detector.ts';

/**
 * What can be done about a device that has stopped moving bytes, the mildest first:
 * - `resubmit`: cancel all transfers and ask for new ones
 * - `clear-halt`: the same, and the halt of both bulk endpoints is cleared in between
 * - `reselect`: the same, and the data interface's altsetting is chosen anew, with what its driver does then
 * - `rebind`: the driver lets the device go and takes it anew
 * - `reset`: the device's port is reset, and the driver takes the device anew
 */
export const recoverySteps = ['resubmit', 'clear-halt', 'reselect', 'rebind', 'reset'] as const;
export type RecoveryStep = (typeof recoverySteps)[number];

export interface StepPlan {
  readonly step: RecoveryStep;
  /** It has failed if it is not done in this time. */
  readonly deadlineUs: number;
  /** So long it is given to show whether it has helped. */
  readonly waitUs: number;
}

export interface RecoveryPlan {
  /** So long nothing is done about a stall: it may end by itself. */
  readonly patienceUs: number;
  readonly steps: readonly StepPlan[];
}

const second = 1_000_000;

/**
 * Together with the detector's limit the first step comes when the kernel's watchdog would act (5 s), and those that cost
 * an address or a registration come late: a modem without radio stops taking bytes too, and gets well by itself.
 */
export const usualPlan: RecoveryPlan = {
  patienceUs: 3 * second,
  steps: [
    { step: 'resubmit', deadlineUs: 6 * second, waitUs: 5 * second },
    { step: 'clear-halt', deadlineUs: 12 * second, waitUs: 5 * second },
    { step: 'reselect', deadlineUs: 12 * second, waitUs: 10 * second },
    { step: 'rebind', deadlineUs: 60 * second, waitUs: 30 * second },
    { step: 'reset', deadlineUs: 90 * second, waitUs: 30 * second },
  ],
};

/** A line of the step log. */
export type RecoveryReport =
  | { readonly kind: 'begun'; readonly step: RecoveryStep; readonly stall: Stall; readonly nowUs: number }
  /** The step was carried out, or failed; whether it has helped is not known yet. */
  | {
      readonly kind: 'ended';
      readonly step: RecoveryStep;
      readonly ok: boolean;
      readonly reason: string | undefined;
      readonly nowUs: number;
    }
  /**
   * Bytes move again; `moved` false: nothing is stuck any more, and there was nothing to move. `step` undefined: by
   * itself, after all had been given up.
   */
  | {
      readonly kind: 'recovered';
      readonly moved: boolean;
      readonly step: RecoveryStep | undefined;
      readonly afterUs: number;
      readonly nowUs: number;
    }
  | { readonly kind: 'given-up'; readonly stall: Stall; readonly afterUs: number; readonly nowUs: number };

type Phase = 'well' | 'patient' | 'acting' | 'waiting' | 'given-up';

/**
 * Climbs from step to step until bytes move again or nothing is left to be tried. It decides; others carry out: who
 * gets a step from {@link update} does it, and tells {@link handleStepDone}. Has no clock of its own.
 */
export class RecoveryLadder {
  readonly #plan: RecoveryPlan;
  readonly #report: (report: RecoveryReport) => void;
  #phase: Phase = 'well';
  #stall: Stall = 'tx-stuck';
  #since = 0;
  #index = 0;
  #dueAtUs = neverUs;
  #retries = 0;
  #resets = 0;

  constructor(report: (report: RecoveryReport) => void, plan: RecoveryPlan = usualPlan) {
    this.#report = report;
    this.#plan = plan;
  }

  /** Steps that were begun, and those of them that were resets of the port. */
  get retries(): number {
    return this.#retries;
  }
  get resets(): number {
    return this.#resets;
  }
  /** The stall that is being dealt with; undefined: none, or all was in vain. */
  get recovering(): Stall | undefined {
    return this.#phase === 'acting' || this.#phase === 'waiting' ? this.#stall : undefined;
  }

  /**
   * How things are.
   * @param hasMoved whether bytes were completed lately in the direction of a stall
   * @returns the step to be taken now, if any
   */
  update(
    stall: Stall | undefined,
    hasMoved: (stall: Stall) => boolean,
    nowUs: number,
  ): RecoveryStep | undefined {
    switch (this.#phase) {
      case 'well':
        if (stall === undefined) return undefined;
        this.#phase = 'patient';
        this.#stall = stall;
        this.#since = nowUs;
        this.#dueAtUs = nowUs + this.#plan.patienceUs;
        return undefined;
      case 'patient':
        if (stall === undefined) {
          this.#phase = 'well';
          return undefined;
        }
        return nowUs < this.#dueAtUs ? undefined : this.#begin(0, nowUs);
      case 'acting':
        if (nowUs < this.#dueAtUs) return undefined;
        this.#end(false, 'it took too long', nowUs);
        return this.#begin(this.#index + 1, nowUs);
      case 'waiting': {
        // Nothing in flight and nothing overdue at the end of the wait is as good as movement: there was nothing to move.
        const moved = hasMoved(this.#stall);
        if (moved || (nowUs >= this.#dueAtUs && stall === undefined)) {
          this.#recovered(this.#plan.steps[this.#index]?.step, moved, nowUs);
          return undefined;
        }
        return nowUs < this.#dueAtUs ? undefined : this.#begin(this.#index + 1, nowUs);
      }
      case 'given-up':
        if (hasMoved(this.#stall)) this.#recovered(undefined, true, nowUs);
        return undefined;
    }
  }

  /** The step that {@link update} gave out was carried out, or failed with a reason; a report that comes late is none. */
  handleStepDone(step: RecoveryStep, ok: boolean, reason: string | undefined, nowUs: number): void {
    const plan = this.#plan.steps[this.#index];
    if (this.#phase !== 'acting' || plan?.step !== step) return;
    this.#end(ok, reason, nowUs);
    this.#phase = 'waiting';
    // What failed can't help.
    this.#dueAtUs = ok ? nowUs + plan.waitUs : nowUs;
  }

  /** The device failed outright while it was being recovered. @returns the step to be taken now, if any is left */
  handleFailure(reason: string, nowUs: number): RecoveryStep | undefined {
    if (this.recovering === undefined) return undefined;
    if (this.#phase === 'acting') this.#end(false, reason, nowUs);
    return this.#begin(this.#index + 1, nowUs);
  }

  #begin(index: number, nowUs: number): RecoveryStep | undefined {
    const plan = this.#plan.steps[index];
    this.#index = index;
    if (plan === undefined) {
      this.#phase = 'given-up';
      this.#dueAtUs = neverUs;
      this.#report({ kind: 'given-up', stall: this.#stall, afterUs: nowUs - this.#since, nowUs });
      return undefined;
    }
    this.#phase = 'acting';
    this.#dueAtUs = nowUs + plan.deadlineUs;
    this.#retries++;
    if (plan.step === 'reset') this.#resets++;
    this.#report({ kind: 'begun', step: plan.step, stall: this.#stall, nowUs });
    return plan.step;
  }

  #end(ok: boolean, reason: string | undefined, nowUs: number): void {
    const step = this.#plan.steps[this.#index]?.step;
    if (step !== undefined) this.#report({ kind: 'ended', step, ok, reason, nowUs });
  }

  #recovered(step: RecoveryStep | undefined, moved: boolean, nowUs: number): void {
    this.#phase = 'well';
    this.#dueAtUs = neverUs;
    this.#report({ kind: 'recovered', step, moved, afterUs: nowUs - this.#since, nowUs });
  }
}
