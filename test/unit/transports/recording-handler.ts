import type { TransferStatus } from '../../../src/usbnet/transfer.ts';
import type { Transfer } from '../../../src/usbnet/transfer.ts';
import type { RequestResult, TransportHandler } from '../../../src/usbnet/transport.ts';

export interface RecordedEnd {
  readonly transfer: Transfer;
  readonly status: TransferStatus;
  readonly actualLength: number;
  readonly nowUs: number;
}

/** Writes down what a transport reports, and may answer. */
export class RecordingHandler implements TransportHandler {
  readonly ends: RecordedEnd[] = [];
  readonly results: { readonly result: RequestResult; readonly nowUs: number }[] = [];
  readonly goneAtUs: number[] = [];
  onEnd: (transfer: Transfer, nowUs: number) => void = () => {};
  onResult: (result: RequestResult) => void = () => {};

  handleTransferDone(transfer: Transfer, nowUs: number): void {
    this.ends.push({ transfer, status: transfer.status, actualLength: transfer.actualLength, nowUs });
    this.onEnd(transfer, nowUs);
  }

  handleRequestDone(result: RequestResult, nowUs: number): void {
    this.results.push({ result, nowUs });
    this.onResult(result);
  }

  handleGone(nowUs: number): void {
    this.goneAtUs.push(nowUs);
  }
}
