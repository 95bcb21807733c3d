import type { Packet } from './packet.ts';
import type { Kevent, UsbnetState } from './state.ts';
import type { Transfer } from './transfer.ts';

/**
 * From packet to transfer and back: `usbnet_start_xmit` and `tx_complete` (spec 2.4, 2.5).
 *
 * The order in `startXmit` matters: submit, append to txq, count for BQL, maybe stop. A completion is therefore never
 * dealt with before the bytes it completes were counted.
 */
export class TxPath {
  readonly #state: UsbnetState;
  readonly #defer: (kevent: Kevent, nowUs: number) => void;
  readonly #free: Transfer[] = [];
  #made = 0;

  constructor(state: UsbnetState, deferKevent: (kevent: Kevent, nowUs: number) => void) {
    this.#state = state;
    this.#defer = deferKevent;
  }

  /** Transfers that exist for this direction, in use or not. */
  get transfersMade(): number {
    return this.#made;
  }

  /** A transfer to fill. There are as many as TX_QLEN, one being filled, and one to spare. */
  take(): Transfer | undefined {
    const state = this.#state;
    let transfer = this.#free.pop();
    if (transfer === undefined) {
      if (this.#made >= state.txQlen + 2) return undefined;
      const { bulkOut, txBufferBytes, maxPacketsPerTransfer } = state.binding;
      transfer = state.transport.makeTransfer(bulkOut, txBufferBytes, maxPacketsPerTransfer);
      this.#made++;
    }
    transfer.clear();
    return transfer;
  }

  give(transfer: Transfer): void {
    transfer.state = 'idle';
    this.#free.push(transfer);
  }

  /** Sends a packet, or with null what the driver has collected. The packet is released by whoever copied its bytes. */
  startXmit(packet: Packet | null, nowUs: number): void {
    const state = this.#state;
    const { flags } = state.binding;
    const transfer = state.driver.txFixup(packet, nowUs);
    if (transfer === undefined) {
      if (!flags.multiPacket) state.stats.txDropped++;
      return;
    }

    if (transfer.length % state.maxPacketOut === 0) {
      // A transfer that ends on a packet boundary would not end for the device.
      if (flags.sendZlp) {
        transfer.zeroPacket = true;
      } else if (!flags.multiPacket) {
        transfer.buffer[transfer.length] = 0;
        transfer.length++;
      }
    }
    transfer.bqlBytes = transfer.length;

    if (state.txQueue.driverXoff) {
      // Only reached without a packet: the qdisc does not run while the driver has stopped the queue.
      this.#drop(transfer);
      return;
    }
    if (state.asleep) {
      // Not counted: resume submits and counts it.
      state.deferred.push(transfer);
      state.txQueue.stop(nowUs);
      return;
    }
    this.#submit(transfer, nowUs, true);
  }

  /** Submits what was deferred while asleep, in order (`usbnet_resume`). What the bus does not take is dropped. */
  submitDeferred(nowUs: number): void {
    const counted = this.#state.variant !== 'no-resume-accounting';
    for (;;) {
      const transfer = this.#state.deferred.shift();
      if (transfer === undefined) return;
      this.#submit(transfer, nowUs, counted);
    }
  }

  /** Forgets what was deferred while asleep; it was never counted (`usbnet_disconnect`). */
  scuttleDeferred(): void {
    for (;;) {
      const transfer = this.#state.deferred.shift();
      if (transfer === undefined) return;
      this.#drop(transfer);
    }
  }

  #submit(transfer: Transfer, nowUs: number, counted: boolean): void {
    const state = this.#state;
    const { txQueue } = state;
    transfer.submittedAtUs = nowUs;
    const result = state.transport.submit(transfer, nowUs);
    if (result === 'ok') {
      transfer.state = 'submitted';
      txQueue.transStartUs = nowUs;
      state.txq.push(transfer);
      // Without accounting the completion will still be shown to BQL: that is the bug this variant stands for.
      transfer.accounting = counted ? txQueue.sent(transfer.bqlBytes, nowUs) : 'bql';
      if (state.txq.length >= state.txQlen) txQueue.stop(nowUs);
      return;
    }
    if (result === 'stall') this.#halt(nowUs);
    this.#drop(transfer);
  }

  /** Nothing is sent to a halted endpoint: its halt is cleared once all that is queued on it has come back. */
  #halt(nowUs: number): void {
    this.#state.txQueue.stop(nowUs);
    this.#defer('tx-halt', nowUs);
  }

  #drop(transfer: Transfer): void {
    this.#state.stats.txDropped++;
    this.give(transfer);
  }

  /** A transfer has ended, somehow. */
  handleDone(transfer: Transfer, nowUs: number): void {
    const state = this.#state;
    const { stats } = state;
    stats.txTransfers++;
    if (transfer.status === 'completed') {
      stats.txPackets += transfer.packetCount;
      stats.txBytes += transfer.payloadBytes;
      stats.txTransferBytes += transfer.actualLength;
    } else {
      stats.txErrors++;
      stats.txTransferErrors[transfer.status]++;
      switch (transfer.status) {
        case 'stall':
          this.#halt(nowUs);
          break;
        case 'protocol-error':
          // Often an unplug that is not known yet: don't send into it.
          state.throttle(nowUs);
          state.txQueue.stop(nowUs);
          break;
        default:
          break;
      }
    }
    if (transfer.status !== 'completed' || transfer.actualLength < transfer.length) {
      state.driver.handleBrokenTx?.();
    }
    state.deferToBottomHalf(transfer, state.txq, nowUs);
  }
}
