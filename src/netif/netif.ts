import { neverUs, type Polled } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { TxQueue, type TxQueueSettings } from '../bql/tx-queue.ts';
import type { DriverBinding } from '../usbnet/minidriver.ts';
import { type Packet, PacketPool } from '../usbnet/packet.ts';
import type { ProcedureRunner } from '../usbnet/procedure-runner.ts';
import type { UsbnetObserver } from '../usbnet/state.ts';
import type { Transport } from '../usbnet/transport.ts';
import { type Outcome, Usbnet } from '../usbnet/usbnet.ts';
import { defaultFqCodelSettings } from './fq-codel.ts';
import type { Qdisc } from './qdisc.ts';

/**
 * Packets handed to the driver in one run. The kernel's `dev_tx_weight` is 64; fewer here, because what ends meanwhile is seen
 * only between runs (the kernel's other processors see it at once).
 */
const runQuota = 16;
/** A queue that stood still for so long is stuck (`watchdog_timeo`). */
const watchdogUs = 5_000_000;
/** Packets that may exist at once: what the most capacious qdisc may hold, and what the driver may. */
const packetLimit = defaultFqCodelSettings.limitPackets + 1024;

/** Who is told what the interface does: the IP host, the probes, the sampler. */
export interface NetifObserver {
  /** A received Ethernet frame; the bytes are valid during the call only. */
  handleReceive(bytes: Uint8Array, offset: number, length: number, nowUs: number): void;
  handleCarrier(on: boolean, nowUs: number): void;
  /** A packet has left the qdisc for the driver after `waitUs` there. */
  handlePacketDequeued(tag: number, waitUs: number, nowUs: number): void;
  /** The qdisc has dropped a packet that it had taken. */
  handlePacketDropped(tag: number, nowUs: number): void;
  /** A packet's transfer has ended: when the driver got it and when it was done. */
  handlePacketSent(tag: number, handedOverAtUs: number, completedAtUs: number, ok: boolean): void;
}

export interface NetifOptions {
  readonly transport: Transport;
  readonly runner: ProcedureRunner;
  readonly binding: DriverBinding;
  readonly macAddress: Uint8Array;
  readonly settings: TxQueueSettings;
  readonly qdisc: Qdisc;
  readonly observer: NetifObserver;
  readonly log: Log;
  readonly nowUs: number;
  readonly rxQlenLimit?: number;
}

/**
 * A network interface: a qdisc on top of a transmit queue on top of usbnet (the kernel's `net_device` with
 * `dev_queue_xmit`, `__qdisc_run` and the watchdog, spec 4.4).
 */
export class Netif implements UsbnetObserver, Polled {
  readonly txQueue: TxQueue;
  readonly usbnet: Usbnet;
  readonly macAddress: Uint8Array;
  readonly packets = new PacketPool(packetLimit);
  readonly #observer: NetifObserver;
  #runAtUs = neverUs;
  #watchdogAtUs = 0;
  #nowUs: number;
  /** Packets that were given up because there was no carrier. */
  #carrierDrops = 0;
  #qdisc: Qdisc;
  /** Of the qdiscs that were replaced. */
  #pastQdiscDrops = 0;
  #pastQdiscMarks = 0;

  constructor(options: NetifOptions) {
    this.#nowUs = options.nowUs;
    this.#observer = options.observer;
    this.#qdisc = this.#attach(options.qdisc);
    this.macAddress = options.macAddress;
    this.txQueue = new TxQueue(options.settings, options.nowUs, () => this.#scheduleRun());
    this.usbnet = new Usbnet({
      transport: options.transport,
      runner: options.runner,
      binding: options.binding,
      txQueue: this.txQueue,
      observer: this,
      log: options.log,
      ...(options.rxQlenLimit === undefined ? {} : { rxQlenLimit: options.rxQlenLimit }),
    });
  }

  get qdisc(): Qdisc {
    return this.#qdisc;
  }
  /** Packets that this and all former qdiscs have dropped, those that waited when one was replaced among them. */
  get qdiscDrops(): number {
    return this.#pastQdiscDrops + this.#qdisc.stats.drops;
  }
  /** Packets that this and all former qdiscs have marked with "congestion experienced". */
  get qdiscMarks(): number {
    return this.#pastQdiscMarks + this.#qdisc.stats.ecnMarks;
  }
  get carrier(): boolean {
    return this.usbnet.carrier;
  }
  get mtuBytes(): number {
    return this.usbnet.mtuBytes;
  }
  get carrierDrops(): number {
    return this.#carrierDrops;
  }

  #attach(qdisc: Qdisc): Qdisc {
    qdisc.onDrop = (packet) => this.#observer.handlePacketDropped(packet.tag, this.#nowUs);
    return qdisc;
  }

  /**
   * Gives the interface another qdisc. As with `tc qdisc replace`, what waits in the old one is dropped.
   * @returns how many packets that were
   */
  replaceQdisc(qdisc: Qdisc, nowUs: number): number {
    this.#nowUs = nowUs;
    const old = this.#qdisc;
    const dropped = old.purge();
    this.#pastQdiscDrops += old.stats.drops + dropped;
    this.#pastQdiscMarks += old.stats.ecnMarks;
    old.onDrop = undefined;
    this.#qdisc = this.#attach(qdisc);
    return dropped;
  }

  open(nowUs: number, done: (outcome: Outcome, nowUs: number) => void): void {
    this.#nowUs = nowUs;
    this.usbnet.open(nowUs, done);
  }

  /** Takes the interface down; what waits in the qdisc is dropped. */
  stop(nowUs: number, done: (outcome: Outcome, nowUs: number) => void): void {
    this.#nowUs = nowUs;
    this.#qdisc.purge();
    this.usbnet.stop(nowUs, done);
  }

  /** Queues an Ethernet frame and hands to the driver what it takes (`dev_queue_xmit`). False: dropped. */
  transmit(packet: Packet, nowUs: number): boolean {
    this.#nowUs = nowUs;
    if (!this.usbnet.isOpen || !this.carrier) {
      this.#carrierDrops++;
      packet.release();
      return false;
    }
    packet.enqueuedAtUs = nowUs;
    const queued = this.#qdisc.enqueue(packet, nowUs);
    // Run once the caller has enqueued all it has: frames that come together can share a transfer.
    if (!this.txQueue.stopped) this.#scheduleRun();
    return queued;
  }

  #scheduleRun(): void {
    if (this.#nowUs < this.#runAtUs) this.#runAtUs = this.#nowUs;
  }

  /** Hands packets to the driver until the queue stops, the qdisc is empty, or the quota is used up. */
  #run(nowUs: number): void {
    for (let quota = runQuota; quota > 0; quota--) {
      const packet = this.txQueue.stopped ? undefined : this.#qdisc.dequeue(nowUs);
      if (packet === undefined) {
        this.usbnet.endOfBurst(nowUs);
        return;
      }
      this.#observer.handlePacketDequeued(packet.tag, nowUs - packet.enqueuedAtUs, nowUs);
      this.usbnet.startXmit(packet, nowUs);
    }
    this.#scheduleRun();
  }

  poll(nowUs: number): void {
    this.#nowUs = nowUs;
    if (nowUs >= this.usbnet.pollAtUs()) this.usbnet.poll(nowUs);
    if (nowUs >= this.#runAtUs) {
      this.#runAtUs = neverUs;
      if (this.carrier && this.usbnet.isOpen) this.#run(nowUs);
    }
    if (nowUs >= this.#watchdogDueUs()) {
      this.#watchdogAtUs = nowUs + watchdogUs;
      this.usbnet.handleTxTimeout(nowUs);
    }
  }

  pollAtUs(): number {
    return Math.min(this.usbnet.pollAtUs(), this.#runAtUs, this.#watchdogDueUs());
  }

  #watchdogDueUs(): number {
    if (!this.txQueue.stopped || !this.carrier || !this.usbnet.isOpen) return neverUs;
    return Math.max(this.txQueue.transStartUs + watchdogUs, this.#watchdogAtUs);
  }

  handleReceive(bytes: Uint8Array, offset: number, length: number, nowUs: number): void {
    this.#observer.handleReceive(bytes, offset, length, nowUs);
  }

  handleCarrier(on: boolean, nowUs: number): void {
    this.#nowUs = nowUs;
    if (on) this.#scheduleRun();
    else this.#qdisc.purge();
    this.#observer.handleCarrier(on, nowUs);
  }

  handlePacketSent(tag: number, handedOverAtUs: number, completedAtUs: number, ok: boolean): void {
    this.#observer.handlePacketSent(tag, handedOverAtUs, completedAtUs, ok);
  }
}
