import type { TransferStatus } from '../usbnet/transfer.ts';
import type { SubmitResult } from '../usbnet/transport.ts';

/**
 * What goes wrong with a transfer.
 *
 * - `refuse`: it is not taken, with that result
 * - `end`: it ends with that status, and nothing went over
 * - `delay`: its end is reported so much later; later ends of its endpoint wait behind it
 * - `truncate`: only so many bytes went over, and it is reported as completed
 * - `babble`: the device sends more than was asked for (IN; OUT transfers are left alone)
 * - `hold`: its end is kept until {@link FaultTransport.release}; later ends of its endpoint wait behind it
 * - `halt`: its endpoint halts. This transfer, what is queued behind it, and what is submitted from then on ends with
 *   `stall`, until the halt is cleared
 * - `stick`: its endpoint sticks. This transfer and what is submitted from then on is taken and comes to no end unless it
 *   is cancelled, until what `until` names was done
 * - `duplicate`: its bytes go over twice. OUT: the device gets them again; IN: the next transfer of the endpoint brings
 *   them again, and what it had is lost
 * - `vanish`: the device is unplugged; this transfer ends as `gone`
 */
export type TransportFault =
  | { readonly kind: 'refuse'; readonly result: Exclude<SubmitResult, 'ok'> }
  | { readonly kind: 'end'; readonly status: Exclude<TransferStatus, 'completed'> }
  | { readonly kind: 'delay'; readonly us: number }
  | { readonly kind: 'truncate'; readonly bytes: number }
  | { readonly kind: 'babble' }
  | { readonly kind: 'hold' }
  | { readonly kind: 'halt' }
  | { readonly kind: 'stick'; readonly until: StickEnd }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'vanish' };

/** What gets a stuck endpoint going again; each does what those before it do. */
export const stickEnds = ['cancel', 'clear-halt', 'set-interface', 'reset', 'never'] as const;
export type StickEnd = (typeof stickEnds)[number];

/** A fault and when it strikes. As data, so that a scenario can carry it. */
export interface FaultRule {
  /**
   * An endpoint address; absent: every endpoint, requests left out. 0 stands for requests on the control endpoint,
   * which know `end`, `delay`, `hold` and `vanish`.
   */
  readonly endpoint?: number;
  /** Strikes the n-th of the transfers it applies to, the first being 1; counted for this rule. */
  readonly atTransfer?: number;
  /** Strikes each with this probability (0 … 1). Neither of the two: strikes each. */
  readonly probability?: number;
  /** Strikes no more often than this. */
  readonly times?: number;
  readonly fault: TransportFault;
}
