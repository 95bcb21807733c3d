import { neverUs, type Clock } from '../base/clock.ts';
import { invariant } from '../base/errors.ts';
import { findEndpoint } from '../usbnet/endpoints.ts';
import { statusOfErrno } from '../usbnet/linux-errno.ts';
import { Transfer, type TransferStatus } from '../usbnet/transfer.ts';
import type {
  DeviceRequest,
  RequestResult,
  SubmitResult,
  Transport,
  TransportHandler,
  UsbDevice,
  UsbSpeed,
} from '../usbnet/transport.ts';
import { urbFlags, urbHeaderLength } from '../wire/usbip-urb.ts';
import type { EndpointDescriptor } from '../wire/usb-descriptor.ts';
import { IdleWait } from './idle-wait.ts';
import { type ClientUrb, UrbClient } from './usbip-client.ts';
import type { UsbipLoss } from './usbip-errors.ts';

const usPerMs = 1000;
/** So long after anything was heard, the server is asked whether it is there. */
const quietUs = 2_000_000;
/** So long it may take to answer that. */
const silenceLimitUs = 5_000_000;

const directionIn = 0x80;
const noData = new Uint8Array(0);

/** Standard requests that a host makes by itself. */
const setConfiguration = { requestType: 0x00, request: 9 } as const;
const setInterface = { requestType: 0x01, request: 11 } as const;
const clearHalt = { requestType: 0x02, request: 1, value: 0 } as const;
/** SET_FEATURE(PORT_RESET) to a hub: what a USB/IP client sends for a reset of its device. */
const resetPort = { requestType: 0x23, request: 3, value: 4 } as const;

/** A transfer whose buffer has room for a header before it, so that both leave in one piece. */
class RemoteTransfer extends Transfer implements ClientUrb {
  readonly transport: UsbipTransport;
  readonly endpoint: EndpointDescriptor;
  readonly interfaceNumber: number | undefined;
  readonly message: Uint8Array;
  readonly interval: number;
  seqnum = 0;
  unlinkSeqnum = 0;
  /** The host was asked for something that ends what is queued: such an end looks like that of an unplug. */
  flushed = false;

  constructor(
    transport: UsbipTransport,
    endpoint: EndpointDescriptor,
    message: Uint8Array,
    maxPackets: number,
  ) {
    super(endpoint.address, message.subarray(urbHeaderLength), maxPackets);
    this.transport = transport;
    this.endpoint = endpoint;
    this.interfaceNumber = transport.device.configuration.interfaces.find(({ altSettings }) =>
      altSettings.some(({ endpoints }) => endpoints.includes(endpoint)),
    )?.number;
    this.message = message;
    this.interval = endpoint.type === 'interrupt' ? pollInterval(transport.device.speed, endpoint) : 0;
  }
}

/** A request that is out. */
class ControlUrb implements ClientUrb {
  readonly endpointAddress: number;
  readonly message: Uint8Array;
  length: number;
  actualLength = 0;
  seqnum = 0;
  unlinkSeqnum = 0;

  constructor(isIn: boolean, length: number, data: Uint8Array) {
    this.endpointAddress = isIn ? directionIn : 0;
    this.message = new Uint8Array(urbHeaderLength + length);
    this.message.set(data, urbHeaderLength);
    this.length = length;
  }

  /** What came, or was sent. */
  get data(): Uint8Array {
    return this.message.subarray(urbHeaderLength, urbHeaderLength + this.actualLength);
  }
}

interface ActiveRequest {
  readonly request: DeviceRequest;
  readonly urb: ControlUrb;
  readonly timesOutAtUs: number;
  readonly done: (result: RequestResult, nowUs: number) => void;
}

export interface UsbipTransportOptions {
  readonly deviceId: number;
  readonly clock: Clock;
  /** Sends bytes, which stay as they are until the server has answered. */
  readonly write: (bytes: Uint8Array) => void;
  /** Nothing goes over this connection any more; the handler is told next. */
  readonly onLost: (loss: UsbipLoss) => void;
  /** Gets what the handler throws. */
  readonly onHandlerError: (error: unknown) => void;
}

/**
 * A device behind a USB/IP server. It is fed with what comes from the server, and asked to look at its deadlines a few
 * times a second; where the bytes come from is not its business.
 *
 * - A transfer is one SUBMIT, sent from its own buffer: nothing is copied. Its data come straight into that buffer.
 * - A request whose time is up is reported so at once and unlinked; its late answer is skipped.
 * - A server that has not been heard for two seconds is asked whether it is there, by a question that the device does not
 *   see; without an answer for five more it counts as gone. TCP alone would take a quarter of an hour.
 */
export class UsbipTransport implements Transport {
  readonly #options: UsbipTransportOptions;
  readonly #clock: Clock;
  readonly #client: UrbClient<RemoteTransfer | ControlUrb>;
  readonly #transfers: RemoteTransfer[] = [];
  #device: UsbDevice | undefined;
  #handler: TransportHandler | undefined;
  #request: ActiveRequest | undefined;
  #closing = false;
  #loss: UsbipLoss | undefined;
  #goneReported = false;
  readonly #idle = new IdleWait();

  constructor(options: UsbipTransportOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#client = new UrbClient(
      {
        deviceId: options.deviceId,
        write: options.write,
        handleUrbDone: (urb, errno, unlinked, nowUs) => {
          if (urb instanceof ControlUrb) this.#handleControlDone(urb, errno, nowUs);
          else this.#handleTransferDone(urb, errno, unlinked, nowUs);
        },
      },
      options.clock.nowUs(),
    );
  }

  /** @throws InvariantError before {@link setDevice} */
  get device(): UsbDevice {
    invariant(this.#device !== undefined, 'a device was used before it was looked at');
    return this.#device;
  }

  /** What the device turned out to be. */
  setDevice(device: UsbDevice): void {
    this.#device = device;
  }

  /** Why nothing goes over this connection any more; undefined: something does. */
  get loss(): UsbipLoss | undefined {
    return this.#loss;
  }

  setHandler(handler: TransportHandler): void {
    invariant(this.#handler === undefined, 'a transport has one handler');
    this.#handler = handler;
    if (this.#loss !== undefined) queueMicrotask(() => this.#reportGone());
  }

  makeTransfer(endpointAddress: number, capacity: number, maxPackets: number): Transfer {
    const endpoint = findEndpoint(this.device, endpointAddress);
    invariant(endpoint !== undefined, `the device has no endpoint ${endpointAddress}`);
    const message = new Uint8Array(urbHeaderLength + capacity);
    const transfer = new RemoteTransfer(this, endpoint, message, maxPackets);
    this.#transfers.push(transfer);
    return transfer;
  }

  submit(transfer: Transfer, _nowUs: number): SubmitResult {
    invariant(
      transfer instanceof RemoteTransfer && transfer.transport === this,
      'a transfer of another transport',
    );
    invariant(this.#handler !== undefined, 'a transfer without a handler to report it to');
    if (this.#loss !== undefined || this.#closing) return 'gone';
    transfer.flushed = false;
    const flags = transfer.zeroPacket && !transfer.isIn ? urbFlags.zeroPacket : 0;
    this.#client.submit(transfer, flags, transfer.interval);
    return 'ok';
  }

  cancel(transfer: Transfer, _nowUs: number): void {
    invariant(
      transfer instanceof RemoteTransfer && transfer.transport === this,
      'a transfer of another transport',
    );
    if (this.#loss === undefined) this.#client.unlink(transfer);
  }

  request(request: DeviceRequest, _nowUs: number): void {
    invariant(this.#handler !== undefined, 'a request without a handler to report it to');
    this.#start(request, (result, nowUs) => {
      try {
        this.#handler?.handleRequestDone(result, nowUs);
      } catch (error) {
        this.#options.onHandlerError(error);
      }
    });
  }

  /** A request by whoever sets the device up, before there is a handler. */
  perform(request: DeviceRequest): Promise<RequestResult> {
    return new Promise((resolve) => {
      this.#start(request, resolve);
    });
  }

  /** SET_CONFIGURATION; for {@link perform}. */
  static configurationRequest(value: number, timeoutMs: number): DeviceRequest {
    return { kind: 'control-out', ...setConfiguration, value, index: 0, data: noData, timeoutMs };
  }

  // ---- what comes from the server, and from the clock ----

  /** Bytes have come. */
  handleBytes(bytes: Uint8Array): void {
    if (this.#loss !== undefined) return;
    const nowUs = this.#clock.nowUs();
    if (!this.#client.handleBytes(bytes, nowUs)) this.lose('nonsense');
  }

  /** Looks at the deadlines; a few times a second. */
  tick(): void {
    if (this.#loss !== undefined) return;
    const nowUs = this.#clock.nowUs();
    const { askedAtUs, heardAtUs } = this.#client;
    const active = this.#request;
    if (active !== undefined && nowUs >= active.timesOutAtUs) {
      this.#client.abandon(active.urb);
      this.#finishRequest('timed-out', noData, nowUs);
    }
    if (askedAtUs !== undefined) {
      if (nowUs - askedAtUs >= silenceLimitUs) this.lose('silent');
    } else if (nowUs - heardAtUs >= quietUs) {
      this.#client.askIfAlive(nowUs);
    }
  }

  /** Nothing goes over this connection any more: everything that is out ends with `gone`. */
  lose(loss: UsbipLoss): void {
    if (this.#loss !== undefined) return;
    this.#loss = loss;
    // Whoever noticed it may be inside of a call of the handler's.
    queueMicrotask(() => {
      this.#options.onLost(loss);
      this.#reportGone();
    });
  }

  // ---- the end ----

  /** Takes nothing more, and asks for the end of what is out. */
  startClosing(): void {
    this.#closing = true;
    if (this.#loss !== undefined) return;
    for (const transfer of this.#transfers) this.#client.unlink(transfer);
    if (this.#request !== undefined) this.#client.unlink(this.#request.urb);
  }

  /** Resolves once nothing is out any more, or after `limitMs`; false: too late. */
  async waitUntilIdle(limitMs: number): Promise<boolean> {
    return this.#client.outstanding === 0 || this.#idle.wait(limitMs);
  }

  /** The last call: what has not come back is reported as `gone`. @returns how many transfers that were */
  dispose(): number {
    this.#closing = true;
    const nowUs = this.#clock.nowUs();
    this.#loss ??= 'closed';
    const lost = this.#endPending(nowUs);
    this.#transfers.length = 0;
    return lost;
  }

  // ---- requests ----

  #start(request: DeviceRequest, done: (result: RequestResult, nowUs: number) => void): void {
    invariant(this.#request === undefined, 'one request at a time');
    const nowUs = this.#clock.nowUs();
    const urb = controlUrbOf(request);
    const { timeoutMs } = request;
    const timesOutAtUs = timeoutMs === 0 ? neverUs : nowUs + timeoutMs * usPerMs;
    this.#request = { request, urb, timesOutAtUs, done };
    if (this.#loss !== undefined || this.#closing) {
      queueMicrotask(() => this.#finishRequest('gone', noData, this.#clock.nowUs()));
      return;
    }
    this.#expectFlush(request);
    this.#submitControl(request, urb);
  }

  #submitControl(request: DeviceRequest, urb: ControlUrb): void {
    switch (request.kind) {
      case 'control-in':
      case 'control-out': {
        const { requestType, value, index } = request;
        const type = request.kind === 'control-in' ? requestType | directionIn : requestType & ~directionIn;
        this.#client.submitControl(urb, type, request.request, value, index);
        return;
      }
      case 'set-interface':
        this.#client.submitControl(
          urb,
          setInterface.requestType,
          setInterface.request,
          request.alternateSetting,
          request.interfaceNumber,
        );
        return;
      case 'clear-halt':
        this.#client.submitControl(
          urb,
          clearHalt.requestType,
          clearHalt.request,
          clearHalt.value,
          request.endpointAddress,
        );
        return;
      case 'reset':
        this.#client.submitControl(urb, resetPort.requestType, resetPort.request, resetPort.value, 0);
        return;
    }
  }

  /** The server's host ends what is queued when endpoints change. */
  #expectFlush(request: DeviceRequest): void {
    const isConfiguration =
      request.kind === 'control-out' &&
      request.requestType === setConfiguration.requestType &&
      request.request === setConfiguration.request;
    for (const transfer of this.#transfers) {
      if (transfer.seqnum === 0) continue;
      const ends =
        isConfiguration ||
        request.kind === 'reset' ||
        (request.kind === 'set-interface' && request.interfaceNumber === transfer.interfaceNumber);
      if (ends) transfer.flushed = true;
    }
  }

  #handleControlDone(urb: ControlUrb, errno: number, nowUs: number): void {
    const active = this.#request;
    if (active?.urb !== urb) return;
    const status = statusOfErrno(errno);
    const data = active.request.kind === 'control-in' && status === 'completed' ? urb.data : noData;
    if (status === 'gone') this.lose('unplugged');
    this.#finishRequest(status, data, nowUs);
  }

  #finishRequest(status: TransferStatus, data: Uint8Array, nowUs: number): void {
    const active = this.#request;
    this.#request = undefined;
    active?.done({ status, data }, nowUs);
    this.#checkIdle();
  }

  // ---- transfers ----

  #handleTransferDone(transfer: RemoteTransfer, errno: number, unlinked: boolean, nowUs: number): void {
    let status: TransferStatus = unlinked ? 'cancelled' : statusOfErrno(errno);
    if (status === 'gone' && (transfer.flushed || this.#closing)) status = 'cancelled';
    if (status === 'gone') this.lose('unplugged');
    this.#report(transfer, status, nowUs);
    this.#checkIdle();
  }

  #report(transfer: RemoteTransfer, status: TransferStatus, nowUs: number): void {
    transfer.status = status;
    try {
      this.#handler?.handleTransferDone(transfer, nowUs);
    } catch (error) {
      this.#options.onHandlerError(error);
    }
  }

  // ---- loss ----

  #reportGone(): void {
    const nowUs = this.#clock.nowUs();
    // The handler first: what ends after that needs no other explanation.
    if (!this.#goneReported && this.#handler !== undefined) {
      this.#goneReported = true;
      try {
        this.#handler.handleGone(nowUs);
      } catch (error) {
        this.#options.onHandlerError(error);
      }
    }
    this.#endPending(nowUs);
  }

  /** @returns how many transfers were still out */
  #endPending(nowUs: number): number {
    let transfers = 0;
    for (const urb of this.#client.takePending()) {
      urb.actualLength = 0;
      if (urb instanceof ControlUrb) continue;
      transfers++;
      this.#report(urb, 'gone', nowUs);
    }
    if (this.#request !== undefined) this.#finishRequest('gone', noData, nowUs);
    this.#checkIdle();
    return transfers;
  }

  #checkIdle(): void {
    if (this.#client.outstanding > 0) return;
    this.#idle.notify();
  }
}

function controlUrbOf(request: DeviceRequest): ControlUrb {
  switch (request.kind) {
    case 'control-in':
      return new ControlUrb(true, request.length, noData);
    case 'control-out':
      return new ControlUrb(false, request.data.length, request.data);
    default:
      return new ControlUrb(false, 0, noData);
  }
}

/** Linux's `urb->interval`: frames at full and low speed, microframes above, where `bInterval` is an exponent. */
function pollInterval(speed: UsbSpeed, endpoint: EndpointDescriptor): number {
  const interval = Math.max(1, endpoint.interval);
  return speed === 'low' || speed === 'full' ? interval : 2 ** (Math.min(interval, 16) - 1);
}
