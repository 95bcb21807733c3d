import { neverUs } from '../base/clock.ts';
import type { BusPipe } from './bus-pipe.ts';
import type { SimTransfer } from './sim-transfer.ts';

/**
 * A share of the bus that moves one thing at a time: both directions of USB 2, or one direction of USB 3. Endpoints that
 * have something to move take turns; the one that had least time goes first, so each gets its half whatever the sizes.
 */
export class BusLane {
  readonly pipes: BusPipe[] = [];
  /** What is being served until {@link endsAtUs}: some bytes of a transfer. */
  transfer: SimTransfer | undefined;
  endsAtUs = neverUs;
  bytes = 0;
  /** The last of these packets is a short one. */
  endsMessage = false;
  /** The device sends a packet for which there is no room. */
  babble = false;
  #servedUs = 0;

  /** The pipe whose turn it is: of those with a transfer that the device may take, the one that had least time. */
  nextPipe(): BusPipe | undefined {
    let chosen: BusPipe | undefined;
    for (const pipe of this.pipes) {
      if (pipe.waiting || pipe.head === undefined) continue;
      if (chosen === undefined || pipe.servedUs < chosen.servedUs) chosen = pipe;
    }
    return chosen;
  }

  /** A pipe that had nothing to move has no claim to the time that it did not use. */
  join(pipe: BusPipe): void {
    if (pipe.servedUs < this.#servedUs) pipe.servedUs = this.#servedUs;
  }

  start(pipe: BusPipe, transfer: SimTransfer, startUs: number, lastsUs: number): void {
    this.#servedUs = pipe.servedUs;
    pipe.servedUs += lastsUs;
    this.transfer = transfer;
    this.endsAtUs = startUs + lastsUs;
  }

  clear(): void {
    this.transfer = undefined;
    this.endsAtUs = neverUs;
    this.endsMessage = false;
    this.babble = false;
  }
}
