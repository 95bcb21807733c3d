import { formatDuration } from '../base/units.ts';
import type { Problem } from '../contract/problem.ts';
import type { RecoveryReport, RecoveryStep } from '../usbnet/recovery-ladder.ts';
import type { Stall } from '../usbnet/stall-detector.ts';

const stepWords: Readonly<Record<RecoveryStep, string>> = {
  resubmit: 'cancel all transfers and ask anew',
  'clear-halt': 'clear the halts of both bulk endpoints',
  reselect: 'select the data altsetting anew',
  rebind: 'give the device back and take it anew',
  reset: "reset the device's port",
};

const stallWords: Readonly<Record<Stall, string>> = {
  'tx-stuck': 'nothing is completed',
  'rx-silent': 'nothing is received',
};

const recoveringId = 'recovering';
const notRecoveredId = 'not-recovered';

/** Who is told what the recovery does: a session. */
export interface RecoveryAudience {
  handleEvent(kind: 'recovery', text: string, nowUs: number): void;
  handleProblem(problem: Problem): void;
  handleCured(problemId: string): void;
}

/** Puts the step log of a recovery into words: events, and a problem for as long as it lasts. */
export function tellRecovery(report: RecoveryReport, audience: RecoveryAudience): void {
  switch (report.kind) {
    case 'begun': {
      const words = stepWords[report.step];
      audience.handleEvent('recovery', `${words}, because ${stallWords[report.stall]}`, report.nowUs);
      audience.handleCured(notRecoveredId);
      audience.handleCured(recoveringId);
      audience.handleProblem({
        id: recoveringId,
        severity: 'warning',
        message: `The device has stopped (${stallWords[report.stall]}); to get it going again: ${words}.`,
      });
      return;
    }
    case 'ended': {
      const outcome = report.ok ? 'done' : `failed: ${report.reason ?? 'no reason was given'}`;
      audience.handleEvent('recovery', `${stepWords[report.step]}: ${outcome}`, report.nowUs);
      return;
    }
    case 'recovered': {
      const how = report.step === undefined ? 'by itself' : `with: ${stepWords[report.step]}`;
      const after = formatDuration(report.afterUs);
      const what = report.moved ? 'bytes move again' : 'nothing is stuck any more, and nothing waits,';
      audience.handleEvent('recovery', `${what} after ${after}, ${how}`, report.nowUs);
      audience.handleCured(recoveringId);
      audience.handleCured(notRecoveredId);
      return;
    }
    case 'given-up':
      audience.handleEvent(
        'recovery',
        `given up after ${formatDuration(report.afterUs)}: ${stallWords[report.stall]}, and nothing has helped`,
        report.nowUs,
      );
      audience.handleCured(recoveringId);
      audience.handleProblem({
        id: notRecoveredId,
        severity: 'error',
        message: `The device has stopped (${stallWords[report.stall]}), and nothing that was tried has helped.`,
        remedy:
          'Unplug it, wait ten seconds and plug it in again, at another port or with another cable if it happens again.' +
          ' A modem may need its power taken away. It goes on by itself if bytes move again.',
      });
      return;
  }
}
