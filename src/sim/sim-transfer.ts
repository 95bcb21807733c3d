import { Transfer } from '../usbnet/transfer.ts';
import type { BusPipe } from './bus-pipe.ts';

/** A transfer with what the simulated bus notes on it. */
export class SimTransfer extends Transfer {
  readonly pipe: BusPipe;
  /** `idle`: the driver's; `queued`: on its pipe; `ended`: waits for its report. */
  phase: 'idle' | 'queued' | 'ended' = 'idle';
  /** Bytes moved so far. */
  movedBytes = 0;
  /** Not before this can it be served. */
  readyAtUs = 0;
  /** Neighbours on its pipe; or the next in the list of those that have ended. */
  previousQueued: SimTransfer | undefined;
  nextQueued: SimTransfer | undefined;

  constructor(pipe: BusPipe, buffer: Uint8Array, maxPackets: number) {
    super(pipe.address, buffer, maxPackets);
    this.pipe = pipe;
  }
}
