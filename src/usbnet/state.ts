import { neverUs } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { TxQueue } from '../bql/tx-queue.ts';
import { type DriverBinding, type DriverHooks, idleHooks } from './minidriver.ts';
import { queueLengths } from './queue-lengths.ts';
import { UsbnetStats } from './stats.ts';
import { TransferList } from './transfer-list.ts';
import type { Transfer } from './transfer.ts';
import type { Transport } from './transport.ts';

/** Back-off after errors on the bus (`THROTTLE_JIFFIES`, spec 2.1). */
export const throttleUs = 125_000;

/** Work that needs control requests and is therefore deferred (`EVENT_*` that `usbnet_deferred_kevent` serves). */
export type Kevent =
  | 'tx-halt'
  | 'rx-halt'
  | 'rx-memory'
  | 'link-reset'
  | 'link-change'
  | 'set-rx-mode'
  | 'driver-work'
  /** Ours alone: the interrupt endpoint has been halted for a while. */
  | 'status-halt';

/**
 * Which of the accounting orders Linux has had (spec 2.13). Only `fixed` is right; the others crash the kernel (here:
 * a DqlAccountingError) and are kept so that tests can show that they would be noticed.
 */
export type AccountingVariant = 'fixed' | 'early-reset' | 'no-resume-accounting';

/** What usbnet tells its network interface. */
export interface UsbnetObserver {
  /** A received Ethernet frame; the bytes are valid during the call only. */
  handleReceive(bytes: Uint8Array, offset: number, length: number, nowUs: number): void;
  handleCarrier(on: boolean, nowUs: number): void;
  /** A packet's transfer has ended: when it was handed to the driver, and when the transfer was done. */
  handlePacketSent(tag: number, handedOverAtUs: number, completedAtUs: number, ok: boolean): void;
}

/** The state that usbnet's parts share (the kernel's `struct usbnet`). */
export class UsbnetState {
  readonly transport: Transport;
  readonly binding: DriverBinding;
  /** The driver's hooks, once it has been started. */
  driver: DriverHooks = idleHooks;
  readonly txQueue: TxQueue;
  readonly observer: UsbnetObserver;
  readonly log: Log;
  readonly variant: AccountingVariant;
  readonly stats = new UsbnetStats();

  /** In flight, each way, and ended but not yet dealt with. */
  readonly txq = new TransferList();
  readonly rxq = new TransferList();
  readonly done = new TransferList();
  /** Ready to be sent, but the device is asleep. */
  readonly deferred = new TransferList();

  /** wMaxPacketSize of the bulk OUT and bulk IN endpoint. */
  readonly maxPacketOut: number;
  readonly maxPacketIn: number;

  hardMtuBytes: number;
  rxUrbSizeBytes: number;
  mtuBytes: number;
  rxQlen = 4;
  txQlen = 4;
  /** A quirk of some modems: they stop answering when more is asked for at once. */
  readonly rxQlenLimit: number;

  // Event bits (spec 2.1) under their kernel names.
  open = false;
  asleep = false;
  unplugged = false;
  txHalt = false;
  rxHalt = false;
  rxKill = false;
  carrier: boolean;
  /** LINK_CARRIER_ON: the carrier comes up once the deferred link change is handled. */
  carrierOn = false;
  readonly kevents = new Set<Kevent>();

  /** When the completion half is to run; and the back-off timer, which runs it too. */
  bottomHalfAtUs = neverUs;
  delayAtUs = neverUs;

  constructor(options: {
    readonly transport: Transport;
    readonly binding: DriverBinding;
    readonly txQueue: TxQueue;
    readonly observer: UsbnetObserver;
    readonly log: Log;
    readonly variant: AccountingVariant;
    readonly rxQlenLimit: number;
    readonly maxPacketOut: number;
    readonly maxPacketIn: number;
  }) {
    this.transport = options.transport;
    this.binding = options.binding;
    this.txQueue = options.txQueue;
    this.observer = options.observer;
    this.log = options.log;
    this.variant = options.variant;
    this.rxQlenLimit = options.rxQlenLimit;
    this.maxPacketOut = options.maxPacketOut;
    this.maxPacketIn = options.maxPacketIn;
    this.hardMtuBytes = options.binding.hardMtuBytes;
    this.rxUrbSizeBytes = options.binding.rxUrbSizeBytes ?? options.binding.hardMtuBytes;
    this.mtuBytes = options.binding.mtuBytes;
    this.carrier = !options.binding.flags.linkInterrupt;
    this.updateQueueLengths();
  }

  get delayPending(): boolean {
    return this.delayAtUs !== neverUs;
  }

  /** `usbnet_update_max_qlen`. */
  updateQueueLengths(): void {
    const lengths = queueLengths(this.transport.device.speed, this.rxUrbSizeBytes, this.hardMtuBytes);
    this.rxQlen = Math.min(lengths.rxQlen, this.rxQlenLimit);
    this.txQlen = lengths.txQlen;
  }

  /** Runs the completion half as soon as the current call has returned to the loop. */
  scheduleBottomHalf(nowUs: number): void {
    if (nowUs < this.bottomHalfAtUs) this.bottomHalfAtUs = nowUs;
  }

  /** Backs off for 125 ms, unless that is going on already. */
  throttle(nowUs: number): void {
    if (this.delayPending) return;
    this.stats.throttles++;
    this.delayAtUs = nowUs + throttleUs;
  }

  /** An ended transfer waits for the completion half (`defer_bh`). */
  deferToBottomHalf(transfer: Transfer, list: TransferList, nowUs: number): void {
    list.remove(transfer);
    transfer.state = 'done';
    transfer.completedAtUs = nowUs;
    this.done.push(transfer);
    this.scheduleBottomHalf(nowUs);
  }

  /** Asks the bus to end everything in a list (`unlink_urbs`); the ends are reported as usual. */
  unlinkAll(list: TransferList, nowUs: number): void {
    for (let transfer = list.head; transfer !== undefined; transfer = transfer.next) {
      if (transfer.state !== 'submitted') continue;
      transfer.state = 'unlinking';
      this.transport.cancel(transfer, nowUs);
    }
  }
}
