import { silentLog } from '../../../src/base/log.ts';
import { defaultTxQueueSettings, type TxQueueSettings } from '../../../src/bql/tx-queue.ts';
import { Netif, type NetifObserver } from '../../../src/netif/netif.ts';
import { PfifoFast } from '../../../src/netif/pfifo-fast.ts';
import type { DriverBinding } from '../../../src/usbnet/minidriver.ts';
import { ProcedureRunner } from '../../../src/usbnet/procedure-runner.ts';
import type { Transfer, TransferStatus } from '../../../src/usbnet/transfer.ts';
import type { UsbDevice } from '../../../src/usbnet/transport.ts';
import type { Outcome } from '../../../src/usbnet/usbnet.ts';
import { ManualTransport } from '../../harness/manual-transport.ts';
import { type DeviceShape, makeDevice } from '../usbnet/hand-made-device.ts';
import { TestBinding, type TestBindingOptions } from '../usbnet/test-driver.ts';

export interface NetifBenchOptions extends DeviceShape, TestBindingOptions {
  readonly settings?: Partial<TxQueueSettings>;
  readonly txQueueLength?: number;
  /** In place of a device and a binding made for the test. */
  readonly bound?: { readonly device: UsbDevice; readonly binding: DriverBinding };
}

const macAddress = Uint8Array.of(0x02, 0, 0, 0, 0, 1);
/** Rounds of polling that may pass without time moving on. */
const roundLimit = 5000;

/** An interface between a test that sends and a device that the test is; time stands still until it is moved. */
export class NetifBench implements NetifObserver {
  nowUs = 0;
  readonly transport: ManualTransport;
  readonly binding: DriverBinding;
  readonly netif: Netif;
  readonly received: Uint8Array[] = [];
  readonly carriers: boolean[] = [];
  readonly dequeued: { readonly tag: number; readonly waitUs: number }[] = [];
  readonly dropped: number[] = [];
  readonly sent: { readonly tag: number; readonly driverUs: number; readonly ok: boolean }[] = [];

  constructor(options: NetifBenchOptions = {}) {
    const { device, binding } = options.bound ?? {
      device: makeDevice(options),
      binding: new TestBinding(options),
    };
    this.transport = new ManualTransport(device);
    this.binding = binding;
    this.netif = new Netif({
      transport: this.transport,
      runner: new ProcedureRunner(this.transport),
      binding,
      macAddress,
      settings: { ...defaultTxQueueSettings, ...options.settings },
      qdisc: new PfifoFast(options.txQueueLength),
      observer: this,
      log: silentLog,
      nowUs: 0,
    });
    this.transport.setHandler(this.netif.usbnet);
  }

  // ---- observer ----

  handleReceive(bytes: Uint8Array, offset: number, length: number): void {
    this.received.push(bytes.slice(offset, offset + length));
  }
  handleCarrier(on: boolean): void {
    this.carriers.push(on);
  }
  handlePacketDequeued(tag: number, waitUs: number): void {
    this.dequeued.push({ tag, waitUs });
  }
  handlePacketDropped(tag: number): void {
    this.dropped.push(tag);
  }
  handlePacketSent(tag: number, handedOverAtUs: number, completedAtUs: number, ok: boolean): void {
    this.sent.push({ tag, driverUs: completedAtUs - handedOverAtUs, ok });
  }

  // ---- time ----

  poll(): void {
    for (let round = 0; this.netif.pollAtUs() <= this.nowUs; round++) {
      if (round === roundLimit) throw new Error(`the interface keeps itself busy at ${this.nowUs} us`);
      this.netif.poll(this.nowUs);
    }
  }

  advance(us: number): void {
    const endUs = this.nowUs + us;
    this.poll();
    while (this.netif.pollAtUs() <= endUs) {
      this.nowUs = this.netif.pollAtUs();
      this.poll();
    }
    this.nowUs = endUs;
  }

  // ---- what a test does most ----

  startOpen(): () => Outcome | undefined {
    let outcome: Outcome | undefined;
    this.netif.open(this.nowUs, (result) => {
      outcome = result;
    });
    return () => outcome;
  }

  open(): this {
    const outcome = this.startOpen();
    if (outcome()?.ok !== true) throw new Error('the interface did not open');
    this.poll();
    return this;
  }

  stop(): () => Outcome | undefined {
    let outcome: Outcome | undefined;
    this.netif.stop(this.nowUs, (result) => {
      outcome = result;
    });
    return () => outcome;
  }

  /** Queues a frame; nothing is handed to the driver before {@link poll}. */
  transmit(length = 1000, more: { readonly priority?: number; readonly tag?: number } = {}): boolean {
    const packet = this.netif.packets.take();
    if (packet === undefined) throw new Error('no packet');
    packet.length = length;
    packet.bytes.fill(0xa5, 0, length);
    packet.priority = more.priority ?? 0;
    packet.tag = more.tag ?? 0;
    return this.netif.transmit(packet, this.nowUs);
  }

  get tx(): readonly Transfer[] {
    return this.transport.outstandingOn(this.binding.bulkOut);
  }
  get rx(): readonly Transfer[] {
    return this.transport.outstandingOn(this.binding.bulkIn);
  }

  end(transfer: Transfer | undefined, status: TransferStatus = 'completed'): void {
    if (transfer === undefined) throw new Error('there is no such transfer');
    this.transport.end(transfer, status, this.nowUs);
  }

  endAll(transfers: readonly Transfer[], status: TransferStatus = 'completed'): void {
    for (const transfer of transfers) this.end(transfer, status);
    this.poll();
  }
}
