import { readUint32Le } from '../wire/byte-order.ts';
import { crc32 } from '../wire/crc32.ts';
import { ncmCrcSignatures, ncmSignatures } from '../wire/ntb.ts';
import { NtbReader, type NtbSink } from '../wire/ntb-reader.ts';
import type { DriverHooks, DriverHost } from '../usbnet/minidriver.ts';
import type { Packet } from '../usbnet/packet.ts';
import type { Procedure } from '../usbnet/procedure.ts';
import type { Transfer } from '../usbnet/transfer.ts';
import type { NcmAgreement } from './ncm-agreement.ts';
import { NcmTx, type NcmTxOptions } from './ncm-tx.ts';

const crcLength = 4;

export interface NcmHooksOptions {
  readonly agreement: NcmAgreement;
  readonly tx: NcmTxOptions;
  readonly maxMtuBytes: number;
  /** Chooses the data altsetting anew, with all that the device forgets by it. */
  readonly reselect: () => Procedure<void>;
}

/**
 * The data path of all that is framed as NCM. Frames with a CRC are taken too, whatever was agreed on: devices that were
 * told to leave it away may not care.
 */
export abstract class NcmHooks implements DriverHooks, NtbSink {
  protected readonly host: DriverHost;
  protected readonly tx: NcmTx;
  readonly reselect: () => Procedure<void>;
  readonly #reader: NtbReader;
  readonly #crcSignature: number;
  readonly #maxMtuBytes: number;
  /** The aggregation timer of the kernel's driver, where there is to be one. */
  readonly flushAtUs?: () => number;
  readonly flushDue?: (nowUs: number) => boolean;
  /** Of the transfer that is being read. */
  #nowUs = 0;
  #badDatagrams = 0;
  #skippedNdps = 0;

  constructor(host: DriverHost, options: NcmHooksOptions) {
    const { format, rxMaxBytes } = options.agreement;
    const signature = ncmSignatures[format];
    const crcSignature = ncmCrcSignatures[format];
    this.host = host;
    this.reselect = options.reselect;
    this.#maxMtuBytes = options.maxMtuBytes;
    this.#crcSignature = crcSignature;
    this.tx = new NcmTx(host, options.tx);
    if (options.tx.txTimerUs > 0) {
      this.flushAtUs = () => this.tx.flushAtUs;
      this.flushDue = (nowUs) => this.tx.timerDue(nowUs);
    }
    this.#reader = new NtbReader({
      format,
      maxNtbBytes: rxMaxBytes,
      acceptsSignature: (found) => found === signature || found === crcSignature,
      sink: this,
    });
  }

  txFixup(packet: Packet | null, nowUs: number): Transfer | undefined {
    return this.tx.add(packet, nowUs);
  }

  rxFixup(transfer: Transfer, nowUs: number): boolean {
    this.#nowUs = nowUs;
    const reader = this.#reader;
    const result = reader.read(transfer.buffer, 0, transfer.actualLength);
    const { stats } = this.host;
    // What is wrong inside of an NTB is no fault of the transfer (spec 3.2), but is told.
    for (; this.#badDatagrams < reader.badDatagrams; this.#badDatagrams++) stats.countRxFault('bad-datagram');
    for (; this.#skippedNdps < reader.skippedNdps; this.#skippedNdps++) stats.countRxFault('foreign-ndp');
    if (result === 'ok') return true;
    stats.countRxFault(result);
    if (result === 'short') stats.rxLengthErrors++;
    else stats.rxFrameErrors++;
    return false;
  }

  handleDatagram(bytes: Uint8Array, offset: number, length: number, signature: number): void {
    if (signature !== this.#crcSignature) {
      this.host.receive(bytes, offset, length, this.#nowUs);
      return;
    }
    const frameLength = length - crcLength;
    if (crc32(bytes, offset, frameLength) === readUint32Le(bytes, offset + frameLength)) {
      this.host.receive(bytes, offset, frameLength, this.#nowUs);
      return;
    }
    this.host.stats.rxErrors++;
    this.host.stats.rxCrcErrors++;
    this.host.stats.countRxFault('bad-crc');
  }

  abstract status(bytes: Uint8Array, length: number, nowUs: number): void;

  hasPendingTx(): boolean {
    return this.tx.hasPending;
  }

  dropPendingTx(): void {
    this.tx.drop();
  }

  handleBrokenTx(): void {
    this.tx.realign();
  }

  /** NTB sizes do not follow the MTU. */
  changeMtu(mtuBytes: number): boolean {
    return mtuBytes <= this.#maxMtuBytes;
  }
}
