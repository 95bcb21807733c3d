import { neverUs } from '../base/clock.ts';
import { writeUint32Le } from '../wire/byte-order.ts';
import { crc32 } from '../wire/crc32.ts';
import { ncmCrcSignatures, ncmSignatures } from '../wire/ntb.ts';
import { type NtbGeometry, NtbWriter } from '../wire/ntb-writer.ts';
import type { DriverHost } from '../usbnet/minidriver.ts';
import type { Packet } from '../usbnet/packet.ts';
import type { Transfer } from '../usbnet/transfer.ts';

/** With fewer datagrams than this in the NTB the timer starts over (`CDC_NCM_RESTART_TIMER_DATAGRAM_CNT`), so often: */
const restartBelowDatagrams = 3;
const pendingRounds = 2;
const crcLength = 4;

/** Why an NTB was sent; counted under the names of ethtool's `tx_reason_*`. */
export type FlushReason = 'ntb-full' | 'timeout' | 'max-datagrams' | 'end-of-burst';

export interface NcmTxOptions {
  readonly geometry: NtbGeometry;
  /** `tx_max`: size of an NTB, bytes; `tx_curr_size` is always that here. */
  readonly maxNtbBytes: number;
  /** `min_tx_pkt`: an NTB longer than this is padded to the full size. */
  readonly minTxPacketBytes: number;
  readonly maxPacketBytes: number;
  readonly sendZlp: boolean;
  /** A CRC-32 goes behind each frame. */
  readonly withCrc: boolean;
  /** 0: send when no more packets are at hand. */
  readonly txTimerUs: number;
}

/**
 * Packs packets into NTBs (spec 3.2, "TX aggregation"). What is collected here is invisible to BQL until its NTB is
 * submitted: up to one NTB and one packet that did not fit any more.
 */
export class NcmTx {
  readonly #host: DriverHost;
  readonly #options: NcmTxOptions;
  readonly #writer: NtbWriter;
  readonly #signature: number;
  /** The NTB that is being filled. */
  #open: Transfer | undefined;
  #remembered: Packet | undefined;
  #sequence = 0;
  #realigning = false;
  #pending = 0;
  #flushAtUs = neverUs;
  readonly reasons: Record<FlushReason, number> = {
    'ntb-full': 0,
    timeout: 0,
    'max-datagrams': 0,
    'end-of-burst': 0,
  };
  ntbs = 0;
  overheadBytes = 0;

  constructor(host: DriverHost, options: NcmTxOptions) {
    this.#host = host;
    this.#options = options;
    this.#writer = new NtbWriter(options.geometry);
    this.#signature = (options.withCrc ? ncmCrcSignatures : ncmSignatures)[options.geometry.format];
  }

  get hasPending(): boolean {
    return this.#remembered !== undefined || (this.#open !== undefined && this.#writer.datagrams > 0);
  }

  get flushAtUs(): number {
    return this.#flushAtUs;
  }

  /** Adds a packet, or with null asks for what there is. A transfer that is returned is complete. */
  add(packet: Packet | null, nowUs: number): Transfer | undefined {
    let next: Packet | undefined = packet ?? undefined;
    let flush = packet === null;
    let reason: FlushReason = this.#options.txTimerUs > 0 ? 'timeout' : 'end-of-burst';
    if (next !== undefined && this.#remembered !== undefined) {
      // The one that had to wait goes first.
      const older = this.#remembered;
      this.#remembered = next;
      next = older;
    }

    const transfer = this.#open ?? this.#begin();
    if (transfer === undefined) {
      // No transfer to be had: the packet is lost, as the kernel loses it without memory.
      if (next !== undefined) {
        this.#host.stats.txDropped++;
        next.release();
      }
      return undefined;
    }
    const writer = this.#writer;
    while (!writer.isFull) {
      if (next === undefined) {
        next = this.#remembered;
        this.#remembered = undefined;
      }
      if (next === undefined) break;
      // A CRC stands behind the frame, in its memory.
      const datagram = this.#options.withCrc ? next.bytes : next.frame;
      if (!writer.tryAppend(this.#signature, datagram, 0, this.#datagramLength(next))) {
        if (writer.datagrams === 0) {
          this.#drop(next);
        } else {
          if (this.#remembered !== undefined) this.#drop(this.#remembered);
          this.#remembered = next;
          flush = true;
          reason = 'ntb-full';
        }
        break;
      }
      transfer.addPacket(next.tag, nowUs);
      transfer.payloadBytes += next.length;
      next.release();
      next = undefined;
    }

    if (writer.datagrams === 0) return undefined;
    if (!writer.isFull && !flush) {
      this.#wait(writer.datagrams, nowUs);
      return undefined;
    }
    if (writer.isFull) reason = 'max-datagrams';
    this.reasons[reason]++;
    return this.#finish(transfer);
  }

  /** The length of what goes into the NTB; 0 if a CRC finds no room. A CRC is written behind the frame. */
  #datagramLength(packet: Packet): number {
    const { bytes, length } = packet;
    if (!this.#options.withCrc) return length;
    if (length + crcLength > bytes.length) return 0;
    writeUint32Le(bytes, length, crc32(bytes, 0, length));
    return length + crcLength;
  }

  /**
   * The device may have got a part of an NTB and wait for the rest. Full NTBs end by their size alone, so that all that
   * follow would be out of step: the next one is ended by a short packet instead.
   */
  realign(): void {
    this.#realigning = true;
  }

  /** The timer has run out. True: send now; else it was started over, to give a lone packet company. */
  timerDue(nowUs: number): boolean {
    this.#flushAtUs = neverUs;
    if (this.#pending > 0) {
      this.#pending--;
      this.#flushAtUs = nowUs + this.#options.txTimerUs;
      return false;
    }
    return this.hasPending;
  }

  drop(): void {
    if (this.#remembered !== undefined) this.#drop(this.#remembered);
    this.#remembered = undefined;
    this.#flushAtUs = neverUs;
    if (this.#open === undefined) return;
    this.#host.stats.txDropped += this.#open.packetCount;
    this.#host.giveTxTransfer(this.#open);
    this.#open = undefined;
  }

  #begin(): Transfer | undefined {
    const transfer = this.#host.takeTxTransfer();
    if (transfer === undefined) return undefined;
    const { maxNtbBytes } = this.#options;
    // Never full, so that there is always a short packet to end it, or room for the byte that makes one.
    const sizeBytes = this.#realigning ? maxNtbBytes - 1 : maxNtbBytes;
    this.#writer.begin(transfer.buffer, sizeBytes, this.#sequence++ & 0xffff);
    this.#open = transfer;
    return transfer;
  }

  #wait(datagrams: number, nowUs: number): void {
    if (this.#options.txTimerUs === 0) return;
    if (datagrams < restartBelowDatagrams) this.#pending = pendingRounds;
    if (this.#flushAtUs === neverUs) this.#flushAtUs = nowUs + this.#options.txTimerUs;
  }

  #finish(transfer: Transfer): Transfer {
    const { minTxPacketBytes, maxNtbBytes, maxPacketBytes, sendZlp } = this.#options;
    const writer = this.#writer;
    let length = writer.finish();
    if (this.#realigning && length < maxNtbBytes) {
      this.#realigning = false;
      if (length % maxPacketBytes === 0) length = writer.padTo(length + 1);
    } else if (!sendZlp && length > minTxPacketBytes) {
      // A full NTB ends its transfer by its size alone.
      length = writer.padTo(maxNtbBytes);
    } else if (length < maxNtbBytes && length % maxPacketBytes === 0) {
      length = writer.padTo(length + 1);
    }
    transfer.length = length;
    this.ntbs++;
    this.overheadBytes += length - transfer.payloadBytes;
    this.#open = undefined;
    // The timer runs on: a packet that did not fit waits for it.
    return transfer;
  }

  #drop(packet: Packet): void {
    this.#host.stats.txErrors++;
    packet.release();
  }
}
