import type { TransferStatus } from '../usbnet/transfer.ts';

/** Sees everything that happens on a simulated bus. */
export interface BusObserver {
  /** A transfer has ended (which its driver will be told later). The time is that of the end. */
  handleTransferEnd(
    endpointAddress: number,
    lengthBytes: number,
    status: TransferStatus,
    nowUs: number,
  ): void;
}
