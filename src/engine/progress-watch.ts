import type { Problem } from '../contract/problem.ts';
import type { Netif } from '../netif/netif.ts';
import type { RecoveryLadder, RecoveryStep } from '../usbnet/recovery-ladder.ts';
import { type Stall, StallDetector } from '../usbnet/stall-detector.ts';
import type { MeasurementObserver } from './measurement-path.ts';

/** Bytes in flight and no completion for this long: stalled. */
const stuckUs = 2_000_000;
/** Answers overdue and nothing received for this long: one-way dead. */
const silentUs = 10_000_000;

const limits = { stuckUs, silentUs };

export interface ProgressWatchOptions {
  readonly netif: Netif;
  readonly observer: MeasurementObserver;
  /** Undefined: a stall is told, and nothing is done about it. */
  readonly ladder: RecoveryLadder | undefined;
  /** Somebody who has answered before does not answer any more. */
  readonly answersOverdue: () => boolean;
  readonly nowUs: number;
}

/** Tells stalls of an open interface, and takes the steps of the recovery ladder that need no more than that. */
export class ProgressWatch {
  readonly #options: ProgressWatchOptions;
  readonly #detector: StallDetector;
  #told: Stall | undefined;

  constructor(options: ProgressWatchOptions) {
    this.#options = options;
    this.#detector = new StallDetector(limits, options.nowUs);
  }

  look(nowUs: number): void {
    const { netif, ladder, answersOverdue } = this.#options;
    const { stats } = netif.usbnet;
    this.#detector.observe(
      {
        inflightBytes: netif.txQueue.inflightBytes,
        txTransferBytes: stats.txTransferBytes,
        rxTransferBytes: stats.rxTransferBytes,
        answersOverdue: answersOverdue(),
      },
      nowUs,
    );
    const { stall } = this.#detector;
    if (stall !== this.#told) this.#tell(stall, nowUs);
    const step = ladder?.update(stall, (kind) => this.#detector.hasMoved(kind), nowUs);
    if (step !== undefined) this.#take(step, nowUs);
  }

  #tell(stall: Stall | undefined, nowUs: number): void {
    const { netif, observer } = this.#options;
    this.#told = stall;
    observer.handleStalled(stall !== undefined);
    if (stall === undefined) {
      observer.handleEvent('halt', 'transfers complete again', nowUs);
      observer.handleCured('stalled');
      return;
    }
    const text =
      stall === 'tx-stuck'
        ? `nothing completed for ${stuckUs / 1e6} s`
        : `nothing received for ${silentUs / 1e6} s, though answers are due`;
    observer.handleEvent('halt', text, nowUs);
    observer.handleProblem(stallProblem(stall, netif.txQueue.inflightBytes));
  }

  #take(step: RecoveryStep, nowUs: number): void {
    const { netif, observer, ladder } = this.#options;
    if (step === 'rebind' || step === 'reset') {
      observer.handleReopen(step);
      return;
    }
    netif.usbnet.recover(step, nowUs, (outcome, atUs) => {
      const reason = outcome.ok ? undefined : String((outcome.error as Error).message);
      ladder?.handleStepDone(step, outcome.ok, reason, atUs);
    });
  }
}

function stallProblem(stall: Stall, inflightBytes: number): Problem {
  return {
    id: 'stalled',
    severity: 'error',
    message:
      stall === 'tx-stuck'
        ? `${inflightBytes} bytes are in flight and the device takes none of them.`
        : 'The device takes what is sent, but nothing comes from it.',
    remedy: 'Check the radio and the cable; if it does not recover, unplug the device and plug it in again.',
  };
}
