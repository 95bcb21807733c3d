import { neverUs } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { TxQueue } from '../bql/tx-queue.ts';
import type { EndpointDescriptor } from '../wire/usb-descriptor.ts';
import { findEndpoint } from './endpoints.ts';
import type { DriverBinding, DriverHost, RxMode } from './minidriver.ts';
import type { Packet } from './packet.ts';
import { clearHalt, describeStatus, DriverError, type Procedure, sleep } from './procedure.ts';
import { type ProcedureOutcome, type ProcedureRunner } from './procedure-runner.ts';
import { type InterfaceStep, recoverInterface } from './recovery-procedures.ts';
import { RxPath } from './rx-path.ts';
import { type AccountingVariant, type Kevent, type UsbnetObserver, UsbnetState } from './state.ts';
import type { UsbnetStats } from './stats.ts';
import { StatusEndpoint } from './status-endpoint.ts';
import type { TransferList } from './transfer-list.ts';
import type { Transfer } from './transfer.ts';
import type { RequestResult, Transport, TransportHandler } from './transport.ts';
import { TxPath } from './tx-path.ts';

/** Step of the wait for cancelled transfers (`UNLINK_TIMEOUT_MS`), and how long that may take in all. */
const unlinkStepUs = 3000;
const unlinkLimitUs = 5_000_000;
/** So long a stopped queue's remainder waits for company: the kernel's timer of 400 us, which runs up to three times (spec 2.13.1). */
const heldTxUs = 1200;

export interface UsbnetOptions {
  readonly transport: Transport;
  /** Runs what this device needs on its control endpoint; shared with whoever bound the driver. */
  readonly runner: ProcedureRunner;
  readonly binding: DriverBinding;
  readonly txQueue: TxQueue;
  readonly observer: UsbnetObserver;
  readonly log: Log;
  /** At most so many receive transfers at once; some modems need that. */
  readonly rxQlenLimit?: number;
  readonly variant?: AccountingVariant;
}

export type Outcome = ProcedureOutcome<void>;

/**
 * The core that all minidrivers share: Linux's `usbnet`, with BQL as merged for 6.19 and both of its fixes
 * (spec section 2). It owns the transfers of one device between a network interface above (which calls
 * {@link startXmit} while the queue is not stopped) and a transport below.
 */
export class Usbnet implements TransportHandler {
  readonly #state: UsbnetState;
  readonly #runner: ProcedureRunner;
  readonly #tx: TxPath;
  readonly #rx: RxPath;
  readonly #status: StatusEndpoint;
  #keventsRunning = false;
  #rxMode: RxMode = { promiscuous: false, multicast: false };
  /** When what a driver has collected is sent, though BQL has stopped the queue. */
  #heldTxAtUs = neverUs;
  #rxLinkBitsPerSecond: number | undefined;
  #txLinkBitsPerSecond: number | undefined;

  constructor(options: UsbnetOptions) {
    const { transport, binding } = options;
    const bulkOut = this.#endpoint(transport, binding, binding.bulkOut);
    const bulkIn = this.#endpoint(transport, binding, binding.bulkIn);
    const state = new UsbnetState({
      transport,
      binding,
      txQueue: options.txQueue,
      observer: options.observer,
      log: options.log,
      variant: options.variant ?? 'fixed',
      rxQlenLimit: options.rxQlenLimit ?? 65_535,
      maxPacketOut: bulkOut.maxPacketSize,
      maxPacketIn: bulkIn.maxPacketSize,
    });
    this.#state = state;
    this.#runner = options.runner;
    const defer = (kevent: Kevent, nowUs: number): void => this.#deferKevent(kevent, nowUs);
    this.#tx = new TxPath(state, defer);
    this.#rx = new RxPath(state, defer);
    const status =
      binding.statusEndpoint === undefined
        ? undefined
        : findEndpoint(transport.device, binding.statusEndpoint);
    this.#status = new StatusEndpoint(state, status?.maxPacketSize ?? 0, defer);
    state.driver = binding.start(this.#driverHost());
  }

  #endpoint(transport: Transport, binding: DriverBinding, address: number): EndpointDescriptor {
    const endpoint = findEndpoint(transport.device, address);
    if (endpoint === undefined || endpoint.maxPacketSize === 0) {
      throw new DriverError('use the bulk endpoints', `${binding.name} found none with a packet size`);
    }
    return endpoint;
  }

  #driverHost(): DriverHost {
    const state = this.#state;
    return {
      stats: state.stats,
      log: state.log,
      get carrier(): boolean {
        return state.carrier;
      },
      takeTxTransfer: () => this.#tx.take(),
      giveTxTransfer: (transfer) => this.#tx.give(transfer),
      receive: (bytes, offset, length, nowUs) => this.#rx.receive(bytes, offset, length, nowUs),
      linkChange: (link, needReset, nowUs) => this.#linkChange(link, needReset, nowUs),
      setLinkSpeed: (rxBitsPerSecond, txBitsPerSecond) => {
        this.#rxLinkBitsPerSecond = rxBitsPerSecond;
        this.#txLinkBitsPerSecond = txBitsPerSecond;
      },
      scheduleWork: (nowUs) => this.#deferKevent('driver-work', nowUs),
      setRxUrbSize: (bytes) => {
        state.rxUrbSizeBytes = bytes;
      },
    };
  }

  get stats(): UsbnetStats {
    return this.#state.stats;
  }
  get carrier(): boolean {
    return this.#state.carrier;
  }
  get isOpen(): boolean {
    return this.#state.open;
  }
  get mtuBytes(): number {
    return this.#state.mtuBytes;
  }
  get hardMtuBytes(): number {
    return this.#state.hardMtuBytes;
  }
  get rxUrbSizeBytes(): number {
    return this.#state.rxUrbSizeBytes;
  }
  get txQlen(): number {
    return this.#state.txQlen;
  }
  get rxQlen(): number {
    return this.#state.rxQlen;
  }
  /** Transfers in flight each way. */
  get txTransfersInflight(): number {
    return this.#state.txq.length;
  }
  get rxTransfersInflight(): number {
    return this.#state.rxq.length;
  }
  /** Transfers that exist; more than are in flight and waiting to be would be a leak. */
  get transfersMade(): number {
    return this.#tx.transfersMade + this.#rx.transfersMade;
  }
  /** What the device said of its link, bits per second; undefined until it did. */
  get rxLinkBitsPerSecond(): number | undefined {
    return this.#rxLinkBitsPerSecond;
  }
  get txLinkBitsPerSecond(): number | undefined {
    return this.#txLinkBitsPerSecond;
  }

  // ---- open and stop (spec 2.9) ----

  /** Brings the interface up. `done` gets the outcome; on failure the interface is as it was. */
  open(nowUs: number, done: (outcome: Outcome, nowUs: number) => void): void {
    this.#runner.start(this.#prepareOpen(this.#state.open), nowUs, (outcome, atUs) => {
      if (outcome.ok) this.#finishOpen(atUs);
      done(outcome, atUs);
    });
  }

  /** @param wasOpen as it was when the opening was asked for, which may be a while ago */
  *#prepareOpen(wasOpen: boolean): Procedure<void> {
    const { driver } = this.#state;
    // Opening resets BQL, and that is right only with nothing outstanding.
    if (wasOpen || this.#state.open || !this.#drained()) {
      throw new DriverError('open the interface', 'it is open, or transfers of the last time are still out');
    }
    if (driver.reset !== undefined) yield* driver.reset();
    this.#state.updateQueueLengths();
    if (driver.checkConnect !== undefined && !(yield* driver.checkConnect())) {
      throw new DriverError('open the interface', 'the device reports no link');
    }
  }

  #finishOpen(nowUs: number): void {
    const state = this.#state;
    this.#status.start(nowUs);
    state.open = true;
    state.txQueue.reset(nowUs);
    state.txQueue.start(nowUs);
    this.#rx.resetErrorRate();
    state.rxKill = false;
    state.scheduleBottomHalf(nowUs);
  }

  /**
   * Takes the interface down: cancels what is in flight, waits for every last completion, and only then resets BQL.
   * If transfers do not come back in five seconds the outcome is a DriverError and BQL is left as it is.
   */
  stop(nowUs: number, done: (outcome: Outcome, nowUs: number) => void): void {
    const state = this.#state;
    state.open = false;
    state.txQueue.stop(nowUs);
    if (state.variant === 'early-reset') state.txQueue.reset(nowUs);
    this.#runner.start(this.#drain(), nowUs, (outcome, atUs) => {
      if (outcome.ok) this.#finishStop(atUs);
      done(outcome, atUs);
    });
  }

  /** Puts the device to rest, once the interface is down and before the device is given back. */
  unbind(nowUs: number, done: (outcome: Outcome, nowUs: number) => void): void {
    const { driver, unplugged } = this.#state;
    if (driver.unbind === undefined || unplugged) done({ ok: true, value: undefined }, nowUs);
    else this.#runner.start(driver.unbind(), nowUs, done);
  }

  *#drain(): Procedure<void> {
    const state = this.#state;
    const { driver } = state;
    // Once more: an opening that was under way may have ended meanwhile.
    state.open = false;
    state.txQueue.stop(this.#runner.nowUs);
    if (driver.stop !== undefined) yield* driver.stop();
    driver.dropPendingTx?.();
    state.unlinkAll(state.txq, this.#runner.nowUs);
    state.unlinkAll(state.rxq, this.#runner.nowUs);
    this.#status.stop(this.#runner.nowUs);
    for (let waitedUs = 0; !this.#drained(); waitedUs += unlinkStepUs) {
      if (waitedUs > unlinkLimitUs) {
        const left = state.txq.length + state.rxq.length + state.done.length;
        throw new DriverError('stop the interface', `${left} transfers were never reported as done`);
      }
      yield* sleep(unlinkStepUs);
    }
  }

  #drained(): boolean {
    const { txq, rxq, done } = this.#state;
    return txq.length === 0 && rxq.length === 0 && done.length === 0 && !this.#status.submitted;
  }

  #finishStop(nowUs: number): void {
    const state = this.#state;
    state.kevents.clear();
    state.txHalt = false;
    state.rxHalt = false;
    state.rxKill = false;
    state.carrierOn = false;
    state.delayAtUs = neverUs;
    state.bottomHalfAtUs = neverUs;
    this.#tx.scuttleDeferred();
    if (state.variant !== 'early-reset') state.txQueue.reset(nowUs);
  }

  // ---- transmit ----

  /** Sends one packet (`ndo_start_xmit`). The caller asks `txQueue.stopped` first. */
  startXmit(packet: Packet, nowUs: number): void {
    this.#tx.startXmit(packet, nowUs);
  }

  /**
   * No packet follows for now: a driver that collects packets sends what it has. While the queue is stopped it keeps
   * them for a moment, since more may come when it goes on.
   */
  endOfBurst(nowUs: number): void {
    const { driver, txQueue } = this.#state;
    if (driver.flushAtUs !== undefined || driver.hasPendingTx?.() !== true) return;
    if (!txQueue.stopped) this.#tx.startXmit(null, nowUs);
    else if (this.#heldTxAtUs === neverUs) this.#heldTxAtUs = nowUs + heldTxUs;
  }

  /** What was kept leaves, though BQL has stopped the queue: the kernel's timer asks for the driver's own stop alone. */
  #sendHeld(nowUs: number): void {
    const { driver, txQueue, open } = this.#state;
    if (open && !txQueue.driverXoff && driver.hasPendingTx?.() === true) this.#tx.startXmit(null, nowUs);
  }

  /** The watchdog found nothing sent for five seconds (`usbnet_tx_timeout`). */
  handleTxTimeout(nowUs: number): void {
    const state = this.#state;
    state.stats.txTimeouts++;
    state.log.log('warn', 'transmit timeout', { transfers: state.txq.length });
    state.unlinkAll(state.txq, nowUs);
    state.scheduleBottomHalf(nowUs);
    if (state.txHalt) this.#deferKevent('tx-halt', nowUs);
    state.driver.recover?.(nowUs);
  }

  /** Takes a step of the recovery ladder on the open interface; `done` gets whether it could be carried out. */
  recover(step: InterfaceStep, nowUs: number, done: (outcome: Outcome, nowUs: number) => void): void {
    const procedure = recoverInterface(this.#state, step, this.#rxMode, () => this.#runner.nowUs);
    this.#runner.start(procedure, nowUs, done);
  }

  // ---- reports of the transport ----

  handleTransferDone(transfer: Transfer, nowUs: number): void {
    if (this.#status.owns(transfer)) this.#status.handleDone(transfer, nowUs);
    else if (transfer.isIn) this.#rx.handleDone(transfer, nowUs);
    else this.#tx.handleDone(transfer, nowUs);
  }

  handleRequestDone(result: RequestResult, nowUs: number): void {
    this.#runner.handleRequestDone(result, nowUs);
  }

  /** The device was unplugged (`usbnet_disconnect`, its first half; then {@link stop}). */
  handleGone(nowUs: number): void {
    const state = this.#state;
    if (state.unplugged) return;
    state.unplugged = true;
    this.#tx.scuttleDeferred();
    this.#runner.handleGone(nowUs);
    this.#setCarrier(false, nowUs);
  }

  // ---- completion half (spec 2.6) ----

  poll(nowUs: number): void {
    const state = this.#state;
    if (nowUs >= state.delayAtUs) {
      state.delayAtUs = neverUs;
      this.#bottomHalf(nowUs);
    }
    if (nowUs >= state.bottomHalfAtUs) {
      state.bottomHalfAtUs = neverUs;
      this.#bottomHalf(nowUs);
    }
    if (nowUs >= this.#heldTxAtUs) {
      this.#heldTxAtUs = neverUs;
      this.#sendHeld(nowUs);
    }
    const { driver } = state;
    if (driver.flushAtUs !== undefined && nowUs >= driver.flushAtUs() && driver.flushDue?.(nowUs) === true) {
      this.#tx.startXmit(null, nowUs);
    }
    if (driver.timerAtUs !== undefined && nowUs >= driver.timerAtUs()) driver.timer?.(nowUs);
    this.#status.poll(nowUs);
    this.#runner.poll(nowUs);
  }

  pollAtUs(): number {
    const { bottomHalfAtUs, delayAtUs, driver } = this.#state;
    return Math.min(
      bottomHalfAtUs,
      delayAtUs,
      this.#heldTxAtUs,
      driver.flushAtUs?.() ?? neverUs,
      driver.timerAtUs?.() ?? neverUs,
      this.#status.pollAtUs(),
      this.#runner.pollAtUs(),
    );
  }

  /** `usbnet_bh`: deals with all that has ended, reports it to BQL in one sum, and keeps the device supplied. */
  #bottomHalf(nowUs: number): void {
    const state = this.#state;
    let bqlBytes = 0;
    let plainBytes = 0;
    let received = false;
    for (;;) {
      const transfer = state.done.shift();
      if (transfer === undefined) break;
      if (transfer.isIn) {
        received = true;
        this.#rx.process(transfer, nowUs);
        continue;
      }
      if (transfer.accounting === 'bql') bqlBytes += transfer.bqlBytes;
      else plainBytes += transfer.bqlBytes;
      this.#reportSent(transfer);
      this.#tx.give(transfer);
    }
    // What has come may have to be answered by the driver itself.
    if (received && state.open) this.endOfBurst(nowUs);
    state.txQueue.completed(bqlBytes, plainBytes, nowUs);
    state.rxKill = false;

    const receiving =
      state.open &&
      !state.asleep &&
      state.carrier &&
      !state.unplugged &&
      !state.delayPending &&
      !state.rxHalt;
    if (!receiving) return;
    if (state.rxq.length < state.rxQlen) {
      const refill = this.#rx.refill(nowUs);
      if (refill === 'closed') return;
      if (refill === 'ok' && state.rxq.length < state.rxQlen) state.scheduleBottomHalf(nowUs);
    }
    if (state.txq.length < state.txQlen && !state.txHalt) state.txQueue.wake(nowUs);
  }

  #reportSent(transfer: Transfer): void {
    const { observer } = this.#state;
    const ok = transfer.status === 'completed';
    for (let i = 0; i < transfer.packetCount; i++) {
      const tag = transfer.packetTags[i] ?? 0;
      observer.handlePacketSent(tag, transfer.packetStartUs[i] ?? 0, transfer.completedAtUs, ok);
    }
  }

  // ---- deferred work (spec 2.8) ----

  #deferKevent(kevent: Kevent, nowUs: number): void {
    const state = this.#state;
    if (state.unplugged) return;
    if (kevent === 'tx-halt') state.txHalt = true;
    if (kevent === 'rx-halt') state.rxHalt = true;
    state.kevents.add(kevent);
    if (this.#keventsRunning) return;
    this.#keventsRunning = true;
    // A halt that could not be cleared is tried again, as the kernel's work does while its bit is set.
    if (state.txHalt) state.kevents.add('tx-halt');
    if (state.rxHalt) state.kevents.add('rx-halt');
    this.#runner.start(this.#keventWork(), nowUs, (outcome) => {
      this.#keventsRunning = false;
      if (!outcome.ok) state.log.log('error', 'deferred work failed', { error: String(outcome.error) });
    });
  }

  *#keventWork(): Procedure<void> {
    const state = this.#state;
    while (state.kevents.size > 0 && !state.unplugged) {
      if (state.kevents.delete('tx-halt')) yield* this.#clearTxHalt();
      if (state.kevents.delete('rx-halt')) yield* this.#clearRxHalt();
      if (state.kevents.delete('rx-memory')) {
        yield* sleep(unlinkStepUs);
        state.scheduleBottomHalf(this.#runner.nowUs);
      }
      if (state.kevents.delete('link-reset')) {
        yield* this.#resetLink();
        this.#handleLinkChange(this.#runner.nowUs);
      }
      if (state.kevents.delete('link-change')) this.#handleLinkChange(this.#runner.nowUs);
      if (state.kevents.delete('set-rx-mode') && state.driver.setRxMode !== undefined) {
        yield* state.driver.setRxMode(this.#rxMode);
      }
      if (state.kevents.delete('driver-work')) yield* this.#runWork();
      if (state.kevents.delete('status-halt')) yield* this.#clearStatusHalt();
    }
  }

  *#clearStatusHalt(): Procedure<void> {
    const { statusEndpoint } = this.#state.binding;
    if (statusEndpoint !== undefined) yield* clearHalt(statusEndpoint);
    this.#status.retry(this.#runner.nowUs);
  }

  /** Nothing was out when the halt was cleared, so what was reported of it meanwhile is dealt with too. */
  *#clearTxHalt(): Procedure<void> {
    const state = this.#state;
    state.stats.txHalts++;
    if (!(yield* this.#clearHalt(state.txq, state.binding.bulkOut))) return;
    state.txHalt = false;
    state.kevents.delete('tx-halt');
    if (!state.unplugged) state.txQueue.wake(this.#runner.nowUs);
  }

  *#clearRxHalt(): Procedure<void> {
    const state = this.#state;
    state.stats.rxHalts++;
    if (!(yield* this.#clearHalt(state.rxq, state.binding.bulkIn))) return;
    state.rxHalt = false;
    state.kevents.delete('rx-halt');
    if (!state.unplugged) state.scheduleBottomHalf(this.#runner.nowUs);
  }

  /** False: the halt stands. It must not be cleared under transfers that are still queued on the endpoint. */
  *#clearHalt(list: TransferList, endpointAddress: number): Procedure<boolean> {
    const { log } = this.#state;
    this.#state.unlinkAll(list, this.#runner.nowUs);
    for (let waitedUs = 0; list.length > 0; waitedUs += unlinkStepUs) {
      if (waitedUs > unlinkLimitUs) {
        log.log('error', 'halted transfers were never reported as done', { transfers: list.length });
        return false;
      }
      yield* sleep(unlinkStepUs);
    }
    const status = yield* clearHalt(endpointAddress);
    if (status === 'completed' || status === 'stall' || status === 'gone') return true;
    log.log('error', 'could not clear a halt', { endpointAddress, reason: describeStatus(status) });
    return false;
  }

  *#resetLink(): Procedure<void> {
    const { driver } = this.#state;
    if (driver.linkReset === undefined) return;
    if (yield* this.#tolerate('link reset failed', driver.linkReset())) this.#state.carrierOn = true;
  }

  /** Only while the interface is open: what the driver has to do before or after is in its other hooks. */
  *#runWork(): Procedure<void> {
    const { driver, open } = this.#state;
    if (open && driver.work !== undefined) yield* this.#tolerate("the driver's work failed", driver.work());
  }

  /** A DriverError is only logged; then there is no value. */
  *#tolerate<T>(words: string, procedure: Procedure<T>): Procedure<T | undefined> {
    try {
      return yield* procedure;
    } catch (error) {
      if (!(error instanceof DriverError)) throw error;
      this.#state.log.log('warn', words, { reason: error.message });
      return undefined;
    }
  }

  // ---- carrier ----

  /** `usbnet_link_change`: a link that comes up without a reset raises the carrier in the deferred part. */
  #linkChange(link: boolean, needReset: boolean, nowUs: number): void {
    const state = this.#state;
    if (link && !needReset) {
      state.carrierOn = true;
    } else {
      state.carrierOn = false;
      this.#setCarrier(false, nowUs);
    }
    this.#deferKevent(needReset && link ? 'link-reset' : 'link-change', nowUs);
  }

  #handleLinkChange(nowUs: number): void {
    const state = this.#state;
    if (!state.open) return;
    if (state.carrierOn) {
      state.carrierOn = false;
      this.#setCarrier(true, nowUs);
    }
    if (state.carrier) state.scheduleBottomHalf(nowUs);
    else state.unlinkAll(state.rxq, nowUs);
    state.updateQueueLengths();
  }

  #setCarrier(on: boolean, nowUs: number): void {
    if (this.#state.carrier === on) return;
    this.#state.carrier = on;
    this.#state.observer.handleCarrier(on, nowUs);
  }

  // ---- MTU (spec 2.10) ----

  /**
   * Sets the MTU. False: refused, either by the driver or because frames of that size would end on a packet boundary
   * (EDOM), which would need zero-length packets on receive.
   */
  changeMtu(mtuBytes: number, nowUs: number): boolean {
    const state = this.#state;
    const { driver } = state;
    if (mtuBytes < 68 || mtuBytes > state.binding.maxMtuBytes) return false;
    if (driver.changeMtu !== undefined) {
      if (!driver.changeMtu(mtuBytes)) return false;
      state.mtuBytes = mtuBytes;
      return true;
    }
    // A device may have named a hard_mtu that has nothing to do with the MTU.
    const headerBytes = state.binding.hardHeaderBytes ?? state.hardMtuBytes - state.mtuBytes;
    const hardMtuBytes = mtuBytes + headerBytes;
    if (hardMtuBytes % state.maxPacketOut === 0) return false;
    const followed = state.rxUrbSizeBytes === state.hardMtuBytes;
    state.mtuBytes = mtuBytes;
    state.hardMtuBytes = hardMtuBytes;
    if (followed) {
      const grew = hardMtuBytes > state.rxUrbSizeBytes;
      state.rxUrbSizeBytes = hardMtuBytes;
      // The smaller buffers go; the completion half asks for larger ones.
      if (grew) state.unlinkAll(state.rxq, nowUs);
    }
    state.updateQueueLengths();
    if (state.txq.length >= state.txQlen) state.txQueue.stop(nowUs);
    state.scheduleBottomHalf(nowUs);
    return true;
  }

  /** Which frames the device is to pass up; carried out as deferred work. */
  setRxMode(mode: RxMode, nowUs: number): void {
    this.#rxMode = mode;
    this.#deferKevent('set-rx-mode', nowUs);
  }

  // ---- suspend and resume (spec 2.11) ----

  /** Puts the device to sleep. An automatic suspend is refused (false) while something is in flight. */
  suspend(automatic: boolean, nowUs: number): boolean {
    const state = this.#state;
    if (automatic && state.txq.length > 0) return false;
    state.asleep = true;
    state.unlinkAll(state.txq, nowUs);
    state.unlinkAll(state.rxq, nowUs);
    this.#status.suspend(nowUs);
    return true;
  }

  /** Wakes the device: sends, and counts, what was deferred; then goes on receiving. */
  resume(nowUs: number): void {
    const state = this.#state;
    this.#status.resume(nowUs);
    this.#tx.submitDeferred(nowUs);
    state.asleep = false;
    if (!state.open) return;
    if (!state.rxHalt && state.carrier) this.#rx.refill(nowUs);
    if (state.txq.length < state.txQlen && !state.txHalt) state.txQueue.wake(nowUs);
    state.scheduleBottomHalf(nowUs);
  }
}
