import type { UsbSpeed } from './transport.ts';

/** What usbnet lets wait at high speed: 60 frames of 1,518 bytes; five times that at SuperSpeed (spec 2.1). */
export const maxQueueMemoryBytes = 60 * 1518;

export interface QueueLengths {
  /** `RX_QLEN`: transfers kept asked for. */
  readonly rxQlen: number;
  /** `TX_QLEN`: transfers that may be in flight before the driver stops its queue. */
  readonly txQlen: number;
}

/**
 * `usbnet_update_max_qlen` (spec 2.2): how many transfers, by speed and by the size of one.
 * @param rxUrbSizeBytes size of a receive transfer, bytes
 * @param hardMtuBytes size of the largest transmit transfer, bytes
 */
export function queueLengths(speed: UsbSpeed, rxUrbSizeBytes: number, hardMtuBytes: number): QueueLengths {
  if (rxUrbSizeBytes === 0 || hardMtuBytes === 0) return { rxQlen: 4, txQlen: 4 };
  let memory: number;
  switch (speed) {
    case 'high':
      memory = maxQueueMemoryBytes;
      break;
    case 'super':
    case 'super-plus':
      memory = 5 * maxQueueMemoryBytes;
      break;
    default:
      return { rxQlen: 4, txQlen: 4 };
  }
  return { rxQlen: Math.floor(memory / rxUrbSizeBytes), txQlen: Math.floor(memory / hardMtuBytes) };
}
