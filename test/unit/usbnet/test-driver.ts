import type { DriverBinding, DriverHooks, DriverHost } from '../../../src/usbnet/minidriver.ts';
import type { Packet } from '../../../src/usbnet/packet.ts';
import type { Transfer } from '../../../src/usbnet/transfer.ts';
import { bulkIn, bulkOut, interruptIn } from './hand-made-device.ts';

/** A minidriver of which the test keeps hold: one frame a transfer, or, if it is to, all that come until it is flushed. */
export class TestDriver implements DriverHooks {
  readonly host: DriverHost;
  readonly #multiPacket: boolean;
  #open: Transfer | undefined;
  /** What `rxFixup` answers. */
  rxGood = true;
  readonly statuses: Uint8Array[] = [];
  recovered = 0;
  dropped = 0;

  constructor(host: DriverHost, multiPacket: boolean) {
    this.host = host;
    this.#multiPacket = multiPacket;
  }

  txFixup(packet: Packet | null, nowUs: number): Transfer | undefined {
    if (packet === null) {
      const open = this.#open;
      this.#open = undefined;
      return open;
    }
    const transfer = this.#open ?? this.host.takeTxTransfer();
    if (transfer === undefined) {
      packet.release();
      return undefined;
    }
    transfer.buffer.set(packet.bytes.subarray(0, packet.length), transfer.length);
    transfer.length += packet.length;
    transfer.payloadBytes += packet.length;
    transfer.addPacket(packet.tag, nowUs);
    packet.release();
    if (!this.#multiPacket) return transfer;
    this.#open = transfer;
    return undefined;
  }

  hasPendingTx(): boolean {
    return this.#open !== undefined;
  }

  dropPendingTx(): void {
    this.dropped++;
    if (this.#open !== undefined) this.host.giveTxTransfer(this.#open);
    this.#open = undefined;
  }

  rxFixup(transfer: Transfer, nowUs: number): boolean {
    if (this.rxGood) this.host.receive(transfer.buffer, 0, transfer.actualLength, nowUs);
    return this.rxGood;
  }

  status(bytes: Uint8Array, length: number): void {
    this.statuses.push(bytes.slice(0, length));
  }

  recover(): void {
    this.recovered++;
  }
}

export interface TestBindingOptions {
  readonly sendZlp?: boolean;
  readonly multiPacket?: boolean;
  readonly linkInterrupt?: boolean;
  readonly statusEndpoint?: boolean;
  readonly hardMtuBytes?: number;
  readonly hardHeaderBytes?: number;
  readonly rxUrbSizeBytes?: number;
  /** Hooks of the test's own, which take the place of the driver's. */
  readonly hooks?: Partial<DriverHooks>;
}

/** A binding of {@link TestDriver}, as that of a plain Ethernet function; `driver` is what it started. */
export class TestBinding implements DriverBinding {
  readonly name = 'cdc_ether';
  readonly networkFunction = 'ethernet';
  readonly flags: DriverBinding['flags'];
  readonly controlInterface = 0;
  readonly dataInterface = 1;
  readonly bulkIn = bulkIn;
  readonly bulkOut = bulkOut;
  readonly statusEndpoint: number | undefined;
  readonly macAddress = undefined;
  readonly hardMtuBytes: number;
  readonly hardHeaderBytes: number | undefined;
  readonly rxUrbSizeBytes: number | undefined;
  readonly mtuBytes = 1500;
  readonly maxMtuBytes = 2034;
  readonly maxPacketsPerTransfer = 8;
  readonly txBufferBytes = 16_384;
  readonly facts = {};
  readonly #hooks: Partial<DriverHooks>;
  #driver: TestDriver | undefined;

  constructor(options: TestBindingOptions = {}) {
    this.flags = {
      sendZlp: options.sendZlp ?? false,
      multiPacket: options.multiPacket ?? false,
      linkInterrupt: options.linkInterrupt ?? false,
    };
    this.statusEndpoint = (options.statusEndpoint ?? true) ? interruptIn : undefined;
    this.hardMtuBytes = options.hardMtuBytes ?? 1514;
    this.hardHeaderBytes = options.hardHeaderBytes;
    this.rxUrbSizeBytes = options.rxUrbSizeBytes;
    this.#hooks = options.hooks ?? {};
  }

  get driver(): TestDriver {
    if (this.#driver === undefined) throw new Error('the driver has not been started');
    return this.#driver;
  }

  start(host: DriverHost): DriverHooks {
    this.#driver = new TestDriver(host, this.flags.multiPacket);
    return Object.assign(this.#driver, this.#hooks);
  }
}
