import { silentLog } from '../../../src/base/log.ts';
import { defaultTxQueueSettings, TxQueue, type TxQueueSettings } from '../../../src/bql/tx-queue.ts';
import { PacketPool } from '../../../src/usbnet/packet.ts';
import { ProcedureRunner } from '../../../src/usbnet/procedure-runner.ts';
import type { AccountingVariant, UsbnetObserver } from '../../../src/usbnet/state.ts';
import type { Transfer, TransferStatus } from '../../../src/usbnet/transfer.ts';
import { type Outcome, Usbnet } from '../../../src/usbnet/usbnet.ts';
import { ManualTransport } from '../../harness/manual-transport.ts';
import { bulkIn, bulkOut, type DeviceShape, interruptIn, makeDevice } from './hand-made-device.ts';
import { TestBinding, type TestBindingOptions } from './test-driver.ts';

/** A queue that keeps what it was told of completions, empty reports left out. */
class RecordingTxQueue extends TxQueue {
  readonly completions: { readonly bqlBytes: number; readonly plainBytes: number }[] = [];

  override completed(bqlBytes: number, plainBytes: number, nowUs: number): void {
    super.completed(bqlBytes, plainBytes, nowUs);
    if (bqlBytes + plainBytes > 0) this.completions.push({ bqlBytes, plainBytes });
  }
}

export interface SentReport {
  readonly tag: number;
  readonly handedOverAtUs: number;
  readonly completedAtUs: number;
  readonly ok: boolean;
}

/** Rounds of polling that may pass without time moving on. */
const roundLimit = 2000;

/** Usbnet between a test that sends and a device that the test is; time stands still until it is moved. */
export class UsbnetBench implements UsbnetObserver {
  nowUs = 0;
  readonly transport: ManualTransport;
  readonly binding: TestBinding;
  readonly txQueue: RecordingTxQueue;
  readonly usbnet: Usbnet;
  readonly packets = new PacketPool(4096);
  /** How often the qdisc was asked to run. */
  runs = 0;
  readonly received: Uint8Array[] = [];
  readonly carriers: boolean[] = [];
  readonly sent: SentReport[] = [];

  constructor(
    options: DeviceShape &
      TestBindingOptions & {
        readonly variant?: AccountingVariant;
        readonly settings?: Partial<TxQueueSettings>;
        readonly rxQlenLimit?: number;
      } = {},
  ) {
    this.transport = new ManualTransport(makeDevice(options));
    this.binding = new TestBinding(options);
    this.txQueue = new RecordingTxQueue({ ...defaultTxQueueSettings, ...options.settings }, 0, () => {
      this.runs++;
    });
    this.usbnet = new Usbnet({
      transport: this.transport,
      runner: new ProcedureRunner(this.transport),
      binding: this.binding,
      txQueue: this.txQueue,
      observer: this,
      log: silentLog,
      ...(options.variant === undefined ? {} : { variant: options.variant }),
      ...(options.rxQlenLimit === undefined ? {} : { rxQlenLimit: options.rxQlenLimit }),
    });
    this.transport.setHandler(this.usbnet);
  }

  // ---- observer ----

  handleReceive(bytes: Uint8Array, offset: number, length: number): void {
    this.received.push(bytes.slice(offset, offset + length));
  }
  handleCarrier(on: boolean): void {
    this.carriers.push(on);
  }
  handlePacketSent(tag: number, handedOverAtUs: number, completedAtUs: number, ok: boolean): void {
    this.sent.push({ tag, handedOverAtUs, completedAtUs, ok });
  }

  // ---- time ----

  /** Does what is due now. */
  poll(): void {
    for (let round = 0; this.usbnet.pollAtUs() <= this.nowUs; round++) {
      if (round === roundLimit) throw new Error(`usbnet keeps itself busy at ${this.nowUs} us`);
      this.usbnet.poll(this.nowUs);
    }
  }

  /** Moves time on, from one thing that is due to the next. */
  advance(us: number): void {
    const endUs = this.nowUs + us;
    this.poll();
    while (this.usbnet.pollAtUs() <= endUs) {
      this.nowUs = this.usbnet.pollAtUs();
      this.poll();
    }
    this.nowUs = endUs;
  }

  // ---- what a test does most ----

  /** Opens the interface and lets it ask for its first transfers. */
  open(): this {
    const outcome = this.startOpen();
    if (outcome()?.ok !== true) throw new Error('the interface did not open');
    this.poll();
    return this;
  }

  startOpen(): () => Outcome | undefined {
    let outcome: Outcome | undefined;
    this.usbnet.open(this.nowUs, (result) => {
      outcome = result;
    });
    return () => outcome;
  }

  /** Takes the interface down; the answer tells how that went, once it has. */
  stop(): () => Outcome | undefined {
    let outcome: Outcome | undefined;
    this.usbnet.stop(this.nowUs, (result) => {
      outcome = result;
    });
    return () => outcome;
  }

  /** Hands a frame of `length` bytes to the driver, whether its queue is stopped or not. */
  send(length = 1000, tag = 0): void {
    const packet = this.packets.take();
    if (packet === undefined) throw new Error('no packet');
    packet.length = length;
    packet.bytes.fill(0xa5, 0, length);
    packet.tag = tag;
    this.usbnet.startXmit(packet, this.nowUs);
  }

  /** Sends frames for as long as the queue is not stopped, `limit` at most; returns how many. */
  sendUntilStopped(length = 1000, limit = 10_000): number {
    let count = 0;
    while (!this.txQueue.stopped && count < limit) {
      this.send(length);
      count++;
    }
    return count;
  }

  /** The transfers out on an endpoint, the oldest first. */
  get tx(): readonly Transfer[] {
    return this.transport.outstandingOn(bulkOut);
  }
  get rx(): readonly Transfer[] {
    return this.transport.outstandingOn(bulkIn);
  }
  get interrupt(): readonly Transfer[] {
    return this.transport.outstandingOn(interruptIn);
  }

  end(transfer: Transfer | undefined, status: TransferStatus = 'completed', actualLength?: number): void {
    if (transfer === undefined) throw new Error('there is no such transfer');
    this.transport.end(transfer, status, this.nowUs, actualLength);
  }

  /** Ends all transfers that are out in one direction, then lets the completion half run. */
  endAll(transfers: readonly Transfer[], status: TransferStatus = 'completed'): void {
    for (const transfer of transfers) this.end(transfer, status);
    this.poll();
  }

  notify(...bytes: readonly number[]): void {
    this.transport.receive(interruptIn, Uint8Array.from(bytes), this.nowUs);
  }

  answer(status: TransferStatus): void {
    this.transport.answer(status, this.nowUs);
    this.poll();
  }
}
