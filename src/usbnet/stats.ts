import type { TransferStatus } from './transfer.ts';

/** Failed transfers of one direction, by how they failed. */
export type TransferErrors = Record<Exclude<TransferStatus, 'completed'>, number>;

function noErrors(): TransferErrors {
  return {
    stall: 0,
    cancelled: 0,
    'protocol-error': 0,
    overflow: 0,
    gone: 0,
    'timed-out': 0,
    failed: 0,
  };
}

/** The counters of one device, under the kernel's names (`rtnl_link_stats64`), and a few that are ours. */
export class UsbnetStats {
  rxPackets = 0;
  /** Without the Ethernet header, as usbnet counts received bytes. */
  rxBytes = 0;
  rxErrors = 0;
  rxDropped = 0;
  rxLengthErrors = 0;
  rxOverErrors = 0;
  rxFrameErrors = 0;
  rxCrcErrors = 0;
  /** Received bytes that were no frame, by the driver's word for why; each of them is in {@link rxErrors} too. */
  readonly rxFaults = new Map<string, number>();
  txPackets = 0;
  txBytes = 0;
  txErrors = 0;
  txDropped = 0;

  /** Transfers that came to an end, and bytes that went over the bus in them (framing and padding included). */
  rxTransfers = 0;
  rxTransferBytes = 0;
  txTransfers = 0;
  txTransferBytes = 0;
  readonly rxTransferErrors: TransferErrors = noErrors();
  readonly txTransferErrors: TransferErrors = noErrors();
  txHalts = 0;
  rxHalts = 0;
  /** Times that receiving was paused because most of the last 30 transfers had failed. */
  rxKills = 0;
  /** Times that the watchdog found transmission stuck. */
  txTimeouts = 0;
  /** Times that errors on the bus made transmission or reception back off for 125 ms. */
  throttles = 0;

  /** Notes one malformed frame or transfer. `rxErrors` is counted apart: usbnet does it for a whole transfer. */
  countRxFault(reason: string): void {
    this.rxFaults.set(reason, (this.rxFaults.get(reason) ?? 0) + 1);
  }
}
