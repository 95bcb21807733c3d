import type { DriverHost } from '../usbnet/minidriver.ts';
import type { Packet } from '../usbnet/packet.ts';
import type { Transfer } from '../usbnet/transfer.ts';

/** One Ethernet frame a transfer, with nothing around it: CDC-ECM and all that is framed like it. */

/** Fills a transfer with a packet. Undefined, with the packet given up, if there is no transfer or it does not fit. */
export function frameToTransfer(
  host: DriverHost,
  packet: Packet | null,
  nowUs: number,
): Transfer | undefined {
  if (packet === null) return undefined;
  const transfer = host.takeTxTransfer();
  if (transfer === undefined || packet.length >= transfer.buffer.length) {
    if (transfer !== undefined) host.giveTxTransfer(transfer);
    packet.release();
    return undefined;
  }
  transfer.buffer.set(packet.frame);
  transfer.length = packet.length;
  transfer.payloadBytes = packet.length;
  transfer.addPacket(packet.tag, nowUs);
  packet.release();
  return transfer;
}

/** Hands up the frame that a transfer is. */
export function transferToFrame(host: DriverHost, transfer: Transfer, nowUs: number): boolean {
  host.receive(transfer.buffer, 0, transfer.actualLength, nowUs);
  return true;
}
