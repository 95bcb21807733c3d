import { invariant } from '../../../src/base/errors.ts';
import { Transfer, type TransferStatus } from '../../../src/usbnet/transfer.ts';
import type {
  DeviceRequest,
  RequestResult,
  SubmitResult,
  Transport,
  TransportHandler,
  UsbDevice,
} from '../../../src/usbnet/transport.ts';

const emptyDevice: UsbDevice = {
  speed: 'high',
  descriptor: {
    usbVersion: 0x0200,
    deviceClass: 0,
    deviceSubclass: 0,
    deviceProtocol: 0,
    maxPacketSize0: 64,
    vendorId: 1,
    productId: 2,
    deviceVersion: 0,
    manufacturerIndex: 0,
    productIndex: 0,
    serialIndex: 0,
    configurationCount: 1,
  },
  configuration: {
    value: 1,
    nameIndex: 0,
    attributes: 0x80,
    maxPowerMa: 100,
    interfaces: [],
    associations: [],
    extra: new Uint8Array(0),
  },
};

/** A transport whose ends a test brings about by hand. */
export class ManualTransport implements Transport {
  readonly device = emptyDevice;
  readonly out: Transfer[] = [];
  readonly requests: DeviceRequest[] = [];
  submits = 0;
  nextResult: SubmitResult = 'ok';
  handler: TransportHandler | undefined;

  setHandler(handler: TransportHandler): void {
    this.handler = handler;
  }

  makeTransfer(endpointAddress: number, capacity: number, maxPackets: number): Transfer {
    return new Transfer(endpointAddress, new Uint8Array(capacity), maxPackets);
  }

  submit(transfer: Transfer): SubmitResult {
    this.submits++;
    const result = this.nextResult;
    this.nextResult = 'ok';
    if (result !== 'ok') return result;
    invariant(!this.out.includes(transfer), 'submitted twice');
    this.out.push(transfer);
    return 'ok';
  }

  readonly cancelled: Transfer[] = [];

  cancel(transfer: Transfer): void {
    if (this.out.includes(transfer)) this.cancelled.push(transfer);
  }

  /** Ends what was cancelled, as `cancelled`. */
  endCancelled(nowUs: number): void {
    for (const transfer of this.cancelled.splice(0)) this.end(transfer, 'cancelled', 0, nowUs);
  }

  request(request: DeviceRequest): void {
    this.requests.push(request);
  }

  end(transfer: Transfer, status: TransferStatus, actualLength: number, nowUs: number): void {
    const index = this.out.indexOf(transfer);
    if (index >= 0) this.out.splice(index, 1);
    transfer.status = status;
    transfer.actualLength = actualLength;
    this.handler?.handleTransferDone(transfer, nowUs);
  }

  answer(result: RequestResult, nowUs: number): void {
    this.handler?.handleRequestDone(result, nowUs);
  }
}
