import type { DriverHost } from '../usbnet/minidriver.ts';
import type { Packet } from '../usbnet/packet.ts';
import type { Transfer } from '../usbnet/transfer.ts';
import {
  ax88179RxAlignment,
  ax88179RxEntryBits,
  ax88179RxEntryLength,
  ax88179RxPrefixLength,
  ax88179RxTrailerLength,
  ax88179TxHeaderBits,
  ax88179TxHeaderLength,
} from '../wire/ax88179.ts';
import { readUint32Le, writeUint32Le } from '../wire/byte-order.ts';
import { ethernetHeaderLength } from '../wire/ethernet.ts';

/**
 * Why a transfer, or a frame in one, was not taken. `short-transfer`: there is no word at the end. `no-entries`: it
 * counts none. `table-out-of-bounds`, `frame-out-of-bounds`: they would lie, in part, where they can't. `bad-crc`,
 * `dropped-by-device`: the chip says so. `runt`: shorter than an Ethernet header.
 */
export type Ax88179Fault =
  | 'short-transfer'
  | 'no-entries'
  | 'table-out-of-bounds'
  | 'frame-out-of-bounds'
  | 'bad-crc'
  | 'dropped-by-device'
  | 'runt';

/**
 * Fills a transfer with a packet behind a header (spec 3.9). One that would end on a packet boundary says in its header
 * that a byte follows it, which usbnet appends. Undefined, with the packet given up: there is no transfer.
 */
export function frameToAx88179(
  host: DriverHost,
  packet: Packet | null,
  maxPacketBytes: number,
  nowUs: number,
): Transfer | undefined {
  if (packet === null) return undefined;
  const transfer = host.takeTxTransfer();
  if (transfer === undefined) {
    packet.release();
    return undefined;
  }
  const { buffer } = transfer;
  const length = ax88179TxHeaderLength + packet.length;
  writeUint32Le(buffer, 0, packet.length);
  writeUint32Le(buffer, 4, length % maxPacketBytes === 0 ? ax88179TxHeaderBits.padded : 0);
  buffer.set(packet.frame, ax88179TxHeaderLength);
  transfer.length = length;
  transfer.payloadBytes = packet.length;
  transfer.addPacket(packet.tag, nowUs);
  packet.release();
  return transfer;
}

/**
 * Hands up the frames of a transfer: they lie one after another from its start, and a table at its end says how long
 * each is. False: the transfer is malformed; what was good before the fault has been handed up.
 */
export function ax88179ToFrames(host: DriverHost, transfer: Transfer, nowUs: number): boolean {
  const { buffer, actualLength } = transfer;
  if (actualLength < ax88179RxTrailerLength) return refuse(host, 'short-transfer');
  const end = actualLength - ax88179RxTrailerLength;
  const trailer = readUint32Le(buffer, end);
  const count = trailer & 0xffff;
  const table = trailer >>> 16;
  if (count === 0) return refuse(host, 'no-entries');
  if (table + count * ax88179RxEntryLength > end) return refuse(host, 'table-out-of-bounds');

  const { lengthShift, lengthMask } = ax88179RxEntryBits;
  let offset = 0;
  for (let i = 0; i < count; i++) {
    const entry = readUint32Le(buffer, table + i * ax88179RxEntryLength);
    const length = (entry >>> lengthShift) & lengthMask;
    // Newer firmware puts such an entry behind each one.
    if (length === 0) continue;
    const next = offset + ((length + ax88179RxAlignment - 1) & ~(ax88179RxAlignment - 1));
    if (next > table) return refuse(host, 'frame-out-of-bounds');
    const fault = faultOf(entry, length);
    if (fault === undefined) {
      host.receive(buffer, offset + ax88179RxPrefixLength, length - ax88179RxPrefixLength, nowUs);
    } else {
      host.stats.rxErrors++;
      host.stats.countRxFault(fault);
    }
    offset = next;
  }
  return true;
}

function faultOf(entry: number, length: number): Ax88179Fault | undefined {
  if ((entry & ax88179RxEntryBits.badCrc) !== 0) return 'bad-crc';
  if ((entry & ax88179RxEntryBits.dropped) !== 0) return 'dropped-by-device';
  return length < ax88179RxPrefixLength + ethernetHeaderLength ? 'runt' : undefined;
}

function refuse(host: DriverHost, fault: Ax88179Fault): false {
  host.stats.countRxFault(fault);
  return false;
}
