/**
 * What is wrong with the traffic of a device:
 * - `tx-stuck`: bytes are in flight, and none are completed
 * - `rx-silent`: the device takes what is sent, but nothing comes from it although something should answer
 */
export type Stall = 'tx-stuck' | 'rx-silent';

export interface StallLimits {
  /** Bytes in flight and no completion for this long: stuck (BQL's `stall_thrs`, in microseconds). */
  readonly stuckUs: number;
  /** Answers are overdue and nothing at all was received for this long: silent. */
  readonly silentUs: number;
}

/** A look at a device's traffic. */
export interface TrafficView {
  readonly inflightBytes: number;
  /** Bytes that were completed each way since the device was opened; failed and cancelled transfers do not count. */
  readonly txTransferBytes: number;
  readonly rxTransferBytes: number;
  /** Somebody who has answered before was asked several times and does not answer any more. */
  readonly answersOverdue: boolean;
}

/** Tells a stall from a pause. Is told how things are from time to time, and has no clock of its own. */
export class StallDetector {
  readonly #limits: StallLimits;
  #txBytes = 0;
  #rxBytes = 0;
  #txMovedAtUs: number;
  #rxMovedAtUs: number;
  #sentSinceReceived = false;
  #stall: Stall | undefined;
  #txMoved = false;
  #rxMoved = false;

  constructor(limits: StallLimits, nowUs: number) {
    this.#limits = limits;
    this.#txMovedAtUs = nowUs;
    this.#rxMovedAtUs = nowUs;
  }

  get stall(): Stall | undefined {
    return this.#stall;
  }

  /** Whether anything was completed in this direction between the last two looks. */
  hasMoved(stall: Stall): boolean {
    return stall === 'tx-stuck' ? this.#txMoved : this.#rxMoved;
  }

  observe(view: TrafficView, nowUs: number): void {
    this.#txMoved = view.txTransferBytes !== this.#txBytes;
    this.#rxMoved = view.rxTransferBytes !== this.#rxBytes;
    this.#txBytes = view.txTransferBytes;
    this.#rxBytes = view.rxTransferBytes;
    if (this.#txMoved) this.#sentSinceReceived = true;
    if (this.#rxMoved) this.#sentSinceReceived = false;
    if (this.#txMoved || view.inflightBytes === 0) this.#txMovedAtUs = nowUs;
    // What is not sent can't be answered.
    if (this.#rxMoved || !view.answersOverdue || !this.#sentSinceReceived) this.#rxMovedAtUs = nowUs;

    if (nowUs - this.#txMovedAtUs >= this.#limits.stuckUs) this.#stall = 'tx-stuck';
    else if (nowUs - this.#rxMovedAtUs >= this.#limits.silentUs) this.#stall = 'rx-silent';
    else this.#stall = undefined;
  }
}
