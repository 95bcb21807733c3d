import { roundUp } from '../base/bytes.ts';
import type { Kevent, UsbnetState } from './state.ts';
import type { Transfer } from './transfer.ts';

/** Transfers asked for in one run of the completion half. */
const batch = 10;
/** More than this many failures in a window of this many transfers stop receiving for a moment (`EVENT_RX_KILL`). */
const errorWindow = 30;
const errorsAllowed = 20;
const ethernetHeaderBytes = 14;

/**
 * How a refill went. `closed`: the interface is not in a state to receive. `failed`: the bus took no more; deferred
 * work or the back-off timer will try again.
 */
export type Refill = 'ok' | 'closed' | 'failed';

/** Receiving: `rx_submit`, `rx_complete` and `rx_process` (spec 2.6). */
export class RxPath {
  readonly #state: UsbnetState;
  readonly #defer: (kevent: Kevent, nowUs: number) => void;
  readonly #free: Transfer[] = [];
  #made = 0;
  #packetCount = 0;
  #packetErrors = 0;

  constructor(state: UsbnetState, deferKevent: (kevent: Kevent, nowUs: number) => void) {
    this.#state = state;
    this.#defer = deferKevent;
  }

  get transfersMade(): number {
    return this.#made;
  }

  resetErrorRate(): void {
    this.#packetCount = 0;
    this.#packetErrors = 0;
  }

  /**
   * A transfer asks for `rx_urb_size` rounded up to whole packets: a device that fills its last packet is no babble
   * then. RX_QLEN is reckoned from the size before rounding, as the kernel does.
   */
  #take(): Transfer {
    const state = this.#state;
    const capacity = roundUp(state.rxUrbSizeBytes, state.maxPacketIn);
    let transfer = this.#free.pop();
    while (transfer !== undefined && transfer.buffer.length !== capacity) {
      // Made for another MTU.
      this.#made--;
      transfer = this.#free.pop();
    }
    if (transfer === undefined) {
      transfer = state.transport.makeTransfer(state.binding.bulkIn, capacity, 0);
      this.#made++;
    }
    transfer.clear();
    transfer.length = capacity;
    return transfer;
  }

  give(transfer: Transfer): void {
    transfer.state = 'idle';
    this.#free.push(transfer);
  }

  /** Asks for up to ten more transfers, while fewer than RX_QLEN are out (`rx_alloc_submit`). */
  refill(nowUs: number): Refill {
    for (let i = 0; i < batch && this.#state.rxq.length < this.#state.rxQlen; i++) {
      const transfer = this.#take();
      const result = this.#submit(transfer, nowUs);
      if (result !== 'ok') return result;
    }
    return 'ok';
  }

  #submit(transfer: Transfer, nowUs: number): Refill {
    const state = this.#state;
    if (state.rxKill || !state.open || state.rxHalt || state.asleep || state.unplugged) {
      this.give(transfer);
      return 'closed';
    }
    transfer.submittedAtUs = nowUs;
    switch (state.transport.submit(transfer, nowUs)) {
      case 'ok':
        transfer.state = 'submitted';
        state.rxq.push(transfer);
        return 'ok';
      case 'stall':
        this.#defer('rx-halt', nowUs);
        break;
      case 'no-memory':
        this.#defer('rx-memory', nowUs);
        break;
      case 'gone':
        this.give(transfer);
        return 'closed';
      case 'failed':
        state.throttle(nowUs);
        break;
    }
    this.give(transfer);
    return 'failed';
  }

  /** A transfer has ended, somehow. Another one is asked for at once where that makes sense. */
  handleDone(transfer: Transfer, nowUs: number): void {
    const state = this.#state;
    const { stats } = state;
    const wasUnlinking = transfer.state === 'unlinking';
    let resubmit = true;
    stats.rxTransfers++;
    if (transfer.status === 'completed') {
      stats.rxTransferBytes += transfer.actualLength;
    } else {
      stats.rxTransferErrors[transfer.status]++;
      switch (transfer.status) {
        case 'stall':
          stats.rxErrors++;
          this.#defer('rx-halt', nowUs);
          resubmit = false;
          break;
        case 'cancelled':
        case 'gone':
          resubmit = false;
          break;
        case 'protocol-error':
          stats.rxErrors++;
          state.throttle(nowUs);
          resubmit = false;
          break;
        case 'overflow':
          stats.rxOverErrors++;
          stats.rxErrors++;
          break;
        default:
          stats.rxErrors++;
          break;
      }
    }

    this.#packetCount++;
    if (this.#packetCount > errorWindow) {
      this.resetErrorRate();
    } else if (transfer.status !== 'completed') {
      this.#packetErrors++;
      if (this.#packetErrors > errorsAllowed && !state.rxKill) {
        state.rxKill = true;
        stats.rxKills++;
      }
    }

    state.deferToBottomHalf(transfer, state.rxq, nowUs);
    if (resubmit && state.open && !state.rxHalt && !wasUnlinking) this.#submit(this.#take(), nowUs);
  }

  /** Hands the frames of an ended transfer up, then takes it back (`rx_process`, `rx_cleanup`). */
  process(transfer: Transfer, nowUs: number): void {
    if (transfer.status === 'completed' && !this.#state.driver.rxFixup(transfer, nowUs)) {
      this.#state.stats.rxErrors++;
    }
    this.give(transfer);
  }

  /** Hands one Ethernet frame up (`usbnet_skb_return`). */
  receive(bytes: Uint8Array, offset: number, length: number, nowUs: number): void {
    const { stats, observer } = this.#state;
    if (length < ethernetHeaderBytes) {
      stats.rxErrors++;
      stats.rxLengthErrors++;
      return;
    }
    stats.rxPackets++;
    stats.rxBytes += length - ethernetHeaderBytes;
    observer.handleReceive(bytes, offset, length, nowUs);
  }
}
