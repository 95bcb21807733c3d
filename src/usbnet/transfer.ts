import type { Accounting } from '../bql/tx-queue.ts';

/**
 * How a transfer ended. In brackets Linux's number, which spec section 2 reasons in.
 * - `completed` (0), `stall` (−EPIPE), `cancelled` (−ECONNRESET, −ENOENT)
 * - `protocol-error` (−EPROTO, −ETIME, −EILSEQ): the bus or the device broke the rules; often an unplug
 * - `overflow` (−EOVERFLOW): the device sent more than was asked for (babble)
 * - `gone` (−ESHUTDOWN, −ENODEV): no device any more
 * - `timed-out`, `failed`: everything else
 */
export type TransferStatus =
  'completed' | 'stall' | 'cancelled' | 'protocol-error' | 'overflow' | 'gone' | 'timed-out' | 'failed';

/** Where a transfer is in its life (the kernel's `skb_state`). */
export type TransferState = 'idle' | 'submitted' | 'unlinking' | 'done';

/**
 * One USB transfer with a buffer of its own: a bulk or interrupt transfer in either direction (the kernel's URB and
 * the skb it carries). Made once by a transport, used again and again; it is the driver's except between
 * a successful `submit` and the report of its end.
 */
export class Transfer {
  /** With the direction bit (0x80: IN). */
  readonly endpointAddress: number;
  readonly buffer: Uint8Array;
  /** OUT: bytes to send. IN: bytes to ask for. */
  length = 0;
  /** Bytes that really went over the bus. */
  actualLength = 0;
  status: TransferStatus = 'completed';
  /** OUT: a transfer that ends on a packet boundary is closed with a zero-length packet (`URB_ZERO_PACKET`). */
  zeroPacket = false;

  // What the driver notes on it.
  state: TransferState = 'idle';
  submittedAtUs = 0;
  completedAtUs = 0;
  /** OUT: bytes that BQL counts (the kernel's `skb->len`). */
  bqlBytes = 0;
  accounting: Accounting = 'plain';
  /** OUT: bytes for the statistics: frames without framing (`entry.length`). */
  payloadBytes = 0;
  /** OUT: how many packets it carries; their tags and the times they were handed to the driver follow. */
  packetCount = 0;
  readonly packetTags: Int32Array;
  readonly packetStartUs: Float64Array;
  /** The list that holds it, and its neighbours there; kept by {@link TransferList} alone. */
  list: object | undefined;
  previous: Transfer | undefined;
  next: Transfer | undefined;

  constructor(endpointAddress: number, buffer: Uint8Array, maxPackets: number) {
    this.endpointAddress = endpointAddress;
    this.buffer = buffer;
    this.packetTags = new Int32Array(maxPackets);
    this.packetStartUs = new Float64Array(maxPackets);
  }

  get isIn(): boolean {
    return (this.endpointAddress & 0x80) !== 0;
  }

  /** Notes one more packet that this transfer carries. */
  addPacket(tag: number, nowUs: number): void {
    this.packetTags[this.packetCount] = tag;
    this.packetStartUs[this.packetCount] = nowUs;
    this.packetCount++;
  }

  /** Ready to be filled again. */
  clear(): void {
    this.length = 0;
    this.actualLength = 0;
    this.status = 'completed';
    this.zeroPacket = false;
    this.state = 'idle';
    this.bqlBytes = 0;
    this.payloadBytes = 0;
    this.packetCount = 0;
  }
}
