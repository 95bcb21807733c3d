import { describe, expect, test } from 'vitest';
import {
  RecoveryLadder,
  type RecoveryPlan,
  type RecoveryReport,
  type RecoveryStep,
  recoverySteps,
  usualPlan,
} from '../../../src/usbnet/recovery-ladder.ts';
import type { Stall } from '../../../src/usbnet/stall-detector.ts';

const stepUs = 100_000;

/** A device that stands still until `curedBy` was carried out, or for ever. */
class Patient {
  readonly reports: RecoveryReport[] = [];
  readonly ladder: RecoveryLadder;
  nowUs = 0;
  stall: Stall | undefined;
  moved = false;
  /** Steps that are not carried out, or that fail. */
  readonly hanging = new Set<RecoveryStep>();
  readonly failing = new Set<RecoveryStep>();
  curedBy: RecoveryStep | undefined;

  constructor(plan: RecoveryPlan = usualPlan) {
    this.ladder = new RecoveryLadder((report) => this.reports.push(report), plan);
  }

  pass(seconds: number): this {
    for (let us = 0; us < seconds * 1e6; us += stepUs) {
      this.nowUs += stepUs;
      const step = this.ladder.update(this.stall, () => this.moved, this.nowUs);
      if (step === undefined || this.hanging.has(step)) continue;
      const ok = !this.failing.has(step);
      this.ladder.handleStepDone(step, ok, ok ? undefined : 'it would not', this.nowUs);
      if (!ok || step !== this.curedBy) continue;
      this.stall = undefined;
      this.moved = true;
    }
    return this;
  }

  get steps(): readonly RecoveryStep[] {
    return this.reports.flatMap((report) => (report.kind === 'begun' ? [report.step] : []));
  }
}

function stalled(): Patient {
  const patient = new Patient();
  patient.stall = 'tx-stuck';
  return patient;
}

describe('a stall that ends by itself in time', () => {
  test('is left alone', () => {
    const patient = stalled().pass(2.5);
    patient.stall = undefined;
    expect(patient.pass(60).reports).toEqual([]);
    expect([patient.ladder.retries, patient.ladder.recovering]).toEqual([0, undefined]);
  });
});

describe('a stall that stays', () => {
  test.each(recoverySteps)(
    'and is cured by "%s": all steps up to it, in order, and none after it',
    (step) => {
      const patient = stalled();
      patient.curedBy = step;
      patient.pass(300);
      expect(patient.steps).toEqual(recoverySteps.slice(0, recoverySteps.indexOf(step) + 1));
      expect(patient.reports.at(-1)).toMatchObject({ kind: 'recovered', step });
      expect(patient.ladder.recovering).toBeUndefined();
      expect(patient.ladder.retries).toBe(recoverySteps.indexOf(step) + 1);
      expect(patient.ladder.resets).toBe(step === 'reset' ? 1 : 0);
    },
  );

  test('and is not cured at all: given up once, and nothing more is done', () => {
    const patient = stalled().pass(3600);
    expect(patient.steps).toEqual([...recoverySteps]);
    expect(patient.reports.filter(({ kind }) => kind === 'given-up')).toHaveLength(1);
  });

  test('and ends after all was given up: told, and from the beginning the next time', () => {
    const patient = stalled().pass(600);
    patient.moved = true;
    patient.stall = undefined;
    patient.pass(1);
    expect(patient.reports.at(-1)).toMatchObject({ kind: 'recovered', step: undefined });
    patient.moved = false;
    patient.stall = 'rx-silent';
    patient.curedBy = 'resubmit';
    patient.pass(20);
    expect(patient.steps.slice(recoverySteps.length)).toEqual(['resubmit']);
  });

  test('each step has the time it is planned to have', () => {
    const patient = stalled().pass(300);
    const begun = patient.reports.filter(({ kind }) => kind === 'begun').map(({ nowUs }) => nowUs);
    const [first = 0] = begun;
    expect(first).toBe(usualPlan.patienceUs + stepUs);
    for (const [i, plan] of usualPlan.steps.slice(0, -1).entries()) {
      expect((begun[i + 1] ?? 0) - (begun[i] ?? 0)).toBe(plan.waitUs);
    }
  });
});

describe('a step', () => {
  test('that does not end in time has failed, and its late end is ignored', () => {
    const patient = stalled();
    patient.hanging.add('resubmit');
    patient.curedBy = 'clear-halt';
    patient.pass(9.2);
    expect(patient.steps).toEqual(['resubmit', 'clear-halt']);
    expect(patient.reports).toContainEqual(
      expect.objectContaining({ kind: 'ended', step: 'resubmit', ok: false, reason: 'it took too long' }),
    );
    patient.ladder.handleStepDone('resubmit', true, undefined, patient.nowUs);
    expect(patient.pass(60).reports.at(-1)).toMatchObject({ kind: 'recovered', step: 'clear-halt' });
  });

  test('that fails is followed by the next at once', () => {
    const patient = stalled();
    for (const step of ['resubmit', 'clear-halt', 'reselect'] as const) patient.failing.add(step);
    patient.pass(3.6);
    expect(patient.steps).toEqual(['resubmit', 'clear-halt', 'reselect', 'rebind']);
  });

  test('after which there is nothing to be moved has helped as far as one can tell', () => {
    const patient = stalled().pass(3.2);
    patient.stall = undefined;
    expect(patient.pass(4).reports.at(-1)).toMatchObject({ kind: 'ended', step: 'resubmit' });
    expect(patient.pass(2).reports.at(-1)).toMatchObject({
      kind: 'recovered',
      step: 'resubmit',
      moved: false,
    });
  });
});

test('a device that fails outright while it is recovered gets the next step', () => {
  const patient = stalled().pass(30);
  expect(patient.ladder.recovering).toBe('tx-stuck');
  expect(patient.ladder.handleFailure('could not bind', patient.nowUs)).toBe('reset');
  expect(patient.ladder.handleFailure('could not bind', patient.nowUs)).toBeUndefined();
  expect(patient.reports.at(-1)).toMatchObject({ kind: 'given-up' });
  expect(new Patient().ladder.handleFailure('could not bind', 0)).toBeUndefined();
});
