import type { Clock } from '../base/clock.ts';
import { invariant } from '../base/errors.ts';
import { findEndpoint } from '../usbnet/endpoints.ts';
import { Transfer, type TransferStatus } from '../usbnet/transfer.ts';
import type {
  DeviceRequest,
  RequestResult,
  SubmitResult,
  Transport,
  TransportHandler,
  UsbDevice,
} from '../usbnet/transport.ts';
import type { EndpointDescriptor } from '../wire/usb-descriptor.ts';
import { IdleWait } from './idle-wait.ts';
import type { CreateTransfer, LibusbError, LibusbHandle, LibusbTransfer } from './libusb-module.ts';
import {
  libusbErrno,
  libusbErrors,
  libusbTransferTypes,
  submitResultOf,
  transferStatusOf,
} from './libusb-status.ts';

const setupLength = 8;
/** How long cancelling may hold up the event loop in one go: Linux waits for each transfer that it is asked to cancel. */
const cancelSliceUs = 20_000;
const noData = new Uint8Array(0);
const emptyBuffer = Buffer.alloc(0);

export interface LibusbTransportOptions {
  /** Open, with the interfaces claimed that the endpoints belong to. */
  readonly handle: LibusbHandle;
  readonly createTransfer: CreateTransfer;
  readonly device: UsbDevice;
  readonly clock: Clock;
  /** Gets what the handler throws: an exception that leaves a callback of the addon is lost without a trace. */
  readonly onHandlerError: (error: unknown) => void;
}

/** Our transfer with the addon's transfers that move it. */
class PooledTransfer extends Transfer {
  readonly endpoint: EndpointDescriptor;
  /** The interface that the endpoint belongs to. */
  readonly interfaceNumber: number | undefined;
  readonly transport: LibusbTransport;
  /** The memory of `buffer`, in the form that the addon wants. */
  readonly memory: Buffer;
  /** The part of `memory` that was submitted last: most lengths come again. */
  view: Buffer;
  native: LibusbTransfer | undefined;
  /** The empty transfer behind this one, while it is out. */
  zeroPacketSent: ZeroPacket | undefined;
  /** Ends of the addon that are still to come: the transfer's own, and that of the empty one behind it. */
  endsMissing = 0;
  endStatus: TransferStatus = 'completed';
  zeroPacketStatus: TransferStatus = 'completed';
  /** It is to be cancelled. */
  cancelWanted = false;
  /** The host was asked for something that ends what is queued: such an end looks like that of an unplug. */
  flushed = false;

  constructor(transport: LibusbTransport, endpoint: EndpointDescriptor, memory: Buffer, maxPackets: number) {
    super(endpoint.address, new Uint8Array(memory.buffer, memory.byteOffset, memory.length), maxPackets);
    this.transport = transport;
    this.endpoint = endpoint;
    this.interfaceNumber = transport.device.configuration.interfaces.find(({ altSettings }) =>
      altSettings.some(({ endpoints }) => endpoints.includes(endpoint)),
    )?.number;
    this.memory = memory;
    this.view = memory;
  }
}

/** An empty transfer that closes another one. */
interface ZeroPacket {
  native: LibusbTransfer | undefined;
  owner: PooledTransfer | undefined;
}

/** A request that is out. `native` is its transfer if it can be cancelled. */
interface ActiveRequest {
  readonly native: LibusbTransfer | undefined;
}

/**
 * A device that libusb has open.
 *
 * - Each transfer has a native one of its own, made once; nothing is allocated for a submit whose length is that of the
 *   submit before. A native transfer whose submit failed is useless afterwards and replaced.
 * - Ends are handed on from inside the addon's callback; the time is taken first thing there.
 * - A transfer with `zeroPacket` that ends on a packet boundary is followed by an empty one. Its end is reported when
 *   both have ended (as the kernel's `URB_ZERO_PACKET` does); it failed if either did.
 * - On macOS, cancelling one transfer ends all that are queued on its endpoint (IOKit can only abort a whole pipe):
 *   the others are reported as `cancelled`, too, and the driver above asks again as after any such end.
 * - Control requests have their own timeout. `set-interface`, `clear-halt` and `reset` run in Node's thread pool with
 *   the timeouts of the operating system (5 s on Linux) and can't be cancelled.
 */
export class LibusbTransport implements Transport {
  readonly device: UsbDevice;
  readonly #createTransfer: CreateTransfer;
  readonly #handle: LibusbHandle;
  readonly #clock: Clock;
  readonly #onHandlerError: (error: unknown) => void;
  #handler: TransportHandler | undefined;
  readonly #transfers: PooledTransfer[] = [];
  /** Empty transfers that are not out, by endpoint number. */
  readonly #zeroPackets: ZeroPacket[][] = [];
  readonly #altSettings = new Map<number, number>();
  readonly #toCancel: PooledTransfer[] = [];
  /** The next slice of cancelling is on its way. */
  #cancelling = false;
  #outstanding = 0;
  #request: ActiveRequest | undefined;
  /** No transfer is taken any more. */
  #closing = false;
  #gone = false;
  #goneReported = false;
  readonly #idle = new IdleWait();

  constructor(options: LibusbTransportOptions) {
    this.device = options.device;
    this.#createTransfer = options.createTransfer;
    this.#handle = options.handle;
    this.#clock = options.clock;
    this.#onHandlerError = options.onHandlerError;
  }

  /** Native transfers and requests whose end has not been told yet. */
  get outstanding(): number {
    return this.#outstanding;
  }

  get gone(): boolean {
    return this.#gone;
  }

  /** Interfaces whose altsetting is not 0, with the altsetting that was chosen. */
  get altSettings(): ReadonlyMap<number, number> {
    return this.#altSettings;
  }

  setHandler(handler: TransportHandler): void {
    invariant(this.#handler === undefined, 'a transport has one handler');
    this.#handler = handler;
    if (this.#gone) queueMicrotask(() => this.#reportGone());
  }

  makeTransfer(endpointAddress: number, capacity: number, maxPackets: number): Transfer {
    const endpoint = findEndpoint(this.device, endpointAddress);
    invariant(endpoint !== undefined, `the device has no endpoint ${endpointAddress}`);
    const memory = Buffer.alloc(capacity);
    const transfer = new PooledTransfer(this, endpoint, memory, maxPackets);
    transfer.native = this.#makeNative(transfer);
    this.#transfers.push(transfer);
    return transfer;
  }

  submit(transfer: Transfer, _nowUs: number): SubmitResult {
    invariant(
      transfer instanceof PooledTransfer && transfer.transport === this,
      'a transfer of another transport',
    );
    invariant(transfer.endsMissing === 0, 'a transfer was submitted twice');
    invariant(this.#handler !== undefined, 'a transfer without a handler to report it to');
    const { native, length, endpoint } = transfer;
    invariant(length <= transfer.memory.length, 'a transfer longer than its buffer');
    if (this.#gone || this.#closing || native === undefined) return 'gone';

    if (transfer.view.length !== length) transfer.view = transfer.memory.subarray(0, length);
    try {
      native.submit(transfer.view);
    } catch (error) {
      transfer.native = this.#makeNative(transfer);
      return this.#refused(error);
    }
    transfer.endsMissing = 1;
    transfer.zeroPacketStatus = 'completed';
    transfer.cancelWanted = false;
    transfer.flushed = false;
    this.#outstanding++;
    if (transfer.zeroPacket && !transfer.isIn && length > 0 && length % endpoint.maxPacketSize === 0) {
      this.#sendZeroPacket(transfer);
    }
    return 'ok';
  }

  cancel(transfer: Transfer, _nowUs: number): void {
    invariant(
      transfer instanceof PooledTransfer && transfer.transport === this,
      'a transfer of another transport',
    );
    if (transfer.endsMissing === 0 || transfer.cancelWanted) return;
    this.#wantCancel(transfer);
    this.#cancelSome();
  }

  request(request: DeviceRequest, _nowUs: number): void {
    invariant(this.#request === undefined, 'one request at a time');
    invariant(this.#handler !== undefined, 'a request without a handler to report it to');
    if (this.#gone || this.#closing) {
      this.#request = { native: undefined };
      this.#outstanding++;
      queueMicrotask(() => this.#finishRequest('gone', noData, this.#clock.nowUs()));
      return;
    }
    this.#outstanding++;
    try {
      switch (request.kind) {
        case 'control-in':
        case 'control-out':
          this.#control(request);
          return;
        case 'set-interface': {
          const { interfaceNumber, alternateSetting } = request;
          this.#expectFlush(interfaceNumber);
          this.#call((done) => this.#handle.__setInterface(interfaceNumber, alternateSetting, done), {
            onSuccess: () => this.#altSettings.set(interfaceNumber, alternateSetting),
          });
          return;
        }
        case 'clear-halt':
          this.#call((done) => this.#handle.__clearHalt(request.endpointAddress, done));
          return;
        case 'reset':
          this.#expectFlush();
          this.#call((done) => this.#handle.reset(done), {
            // The device came back as another one, or without its interfaces.
            goneIfNotFound: true,
            onSuccess: () => this.#altSettings.clear(),
          });
          return;
      }
    } catch (error) {
      this.#request = { native: undefined };
      const status = transferStatusOf(asLibusbError(error));
      if (status === 'gone') this.#noteGone();
      queueMicrotask(() => this.#finishRequest(status, noData, this.#clock.nowUs()));
    }
  }

  /** The bus saw that the device was unplugged. */
  handleDetach(): void {
    this.#noteGone();
  }

  /** Takes nothing more, and ends what is out. */
  startClosing(): void {
    this.#closing = true;
    this.#cancelEverything();
  }

  /** Resolves once nothing is out any more, or after `limitMs`; false: too late. */
  async waitUntilIdle(limitMs: number): Promise<boolean> {
    return this.#outstanding === 0 || this.#idle.wait(limitMs);
  }

  /**
   * The last call: reports whatever has not come back as `gone`, so that nobody waits for it, and lets go of the
   * native transfers, which the addon would keep alive for ever through their callbacks.
   * @returns how many transfers had not come back
   */
  dispose(): number {
    this.#closing = true;
    const nowUs = this.#clock.nowUs();
    let lost = 0;
    for (const transfer of this.#transfers) {
      transfer.native = undefined;
      if (transfer.zeroPacketSent !== undefined) {
        transfer.zeroPacketSent.owner = undefined;
        transfer.zeroPacketSent.native = undefined;
        transfer.zeroPacketSent = undefined;
      }
      if (transfer.endsMissing === 0) continue;
      lost++;
      this.#outstanding -= transfer.endsMissing;
      transfer.endsMissing = 0;
      transfer.actualLength = 0;
      this.#report(transfer, 'gone', nowUs);
    }
    this.#transfers.length = 0;
    for (const pool of this.#zeroPackets) for (const zeroPacket of pool ?? []) zeroPacket.native = undefined;
    this.#zeroPackets.length = 0;
    if (this.#request !== undefined) this.#finishRequest('gone', noData, nowUs);
    return lost;
  }

  // ---- transfers ----

  #makeNative(transfer: PooledTransfer): LibusbTransfer {
    return this.#createTransfer(
      transfer.endpointAddress,
      libusbTransferTypes[transfer.endpoint.type],
      0,
      (error, _buffer, actualLength) => {
        const nowUs = this.#clock.nowUs();
        this.#handleEnd(transfer, error, actualLength, nowUs);
      },
    );
  }

  #sendZeroPacket(transfer: PooledTransfer): void {
    const pool = this.#zeroPacketPool(transfer.endpointAddress);
    const zeroPacket = pool.pop() ?? this.#makeZeroPacket(transfer.endpoint);
    try {
      zeroPacket.native?.submit(emptyBuffer);
    } catch (error) {
      // The transfer itself is out, so it was taken; without its end it failed.
      const result = this.#refused(error);
      transfer.zeroPacketStatus = result === 'gone' || result === 'stall' ? result : 'failed';
      return;
    }
    zeroPacket.owner = transfer;
    transfer.zeroPacketSent = zeroPacket;
    transfer.endsMissing++;
    this.#outstanding++;
  }

  #zeroPacketPool(endpointAddress: number): ZeroPacket[] {
    return (this.#zeroPackets[endpointAddress & 0x0f] ??= []);
  }

  #makeZeroPacket(endpoint: EndpointDescriptor): ZeroPacket {
    const zeroPacket: ZeroPacket = { native: undefined, owner: undefined };
    zeroPacket.native = this.#createTransfer(
      endpoint.address,
      libusbTransferTypes[endpoint.type],
      0,
      (error) => {
        const nowUs = this.#clock.nowUs();
        const transfer = zeroPacket.owner;
        if (transfer === undefined) return;
        zeroPacket.owner = undefined;
        transfer.zeroPacketSent = undefined;
        transfer.zeroPacketStatus = transferStatusOf(error);
        this.#zeroPacketPool(endpoint.address).push(zeroPacket);
        this.#countEnd(transfer, nowUs);
      },
    );
    return zeroPacket;
  }

  #handleEnd(
    transfer: PooledTransfer,
    error: LibusbError | undefined,
    actualLength: number,
    nowUs: number,
  ): void {
    if (transfer.endsMissing === 0) return; // It was given up by dispose().
    transfer.endStatus = transferStatusOf(error);
    transfer.actualLength = actualLength;
    this.#countEnd(transfer, nowUs);
  }

  #countEnd(transfer: PooledTransfer, nowUs: number): void {
    this.#outstanding--;
    transfer.endsMissing--;
    if (transfer.endsMissing === 0) {
      transfer.cancelWanted = false;
      let status = transfer.endStatus;
      if (status === 'completed') status = transfer.zeroPacketStatus;
      if ((transfer.flushed || this.#closing) && !this.#gone && looksFlushed(transfer, status)) {
        status = 'cancelled';
      }
      if (status === 'gone') this.#noteGone();
      // What an unplug looks like to a transfer differs from one host controller to the next.
      else if (this.#gone && status !== 'completed' && status !== 'cancelled') status = 'gone';
      this.#report(transfer, status, nowUs);
    }
    this.#checkIdle();
  }

  #report(transfer: PooledTransfer, status: TransferStatus, nowUs: number): void {
    transfer.status = status;
    try {
      this.#handler?.handleTransferDone(transfer, nowUs);
    } catch (error) {
      this.#handlerFailed(error);
    }
  }

  #refused(error: unknown): SubmitResult {
    const result = submitResultOf(error);
    if (result === 'gone') this.#noteGone();
    return result;
  }

  // ---- requests ----

  #control(request: DeviceRequest & { kind: 'control-in' | 'control-out' }): void {
    const isIn = request.kind === 'control-in';
    const length = isIn ? request.length : request.data.length;
    const buffer = Buffer.alloc(setupLength + length);
    buffer[0] = isIn ? request.requestType | 0x80 : request.requestType & 0x7f;
    buffer[1] = request.request;
    buffer.writeUInt16LE(request.value, 2);
    buffer.writeUInt16LE(request.index, 4);
    buffer.writeUInt16LE(length, 6);
    if (!isIn) buffer.set(request.data, setupLength);
    // A transfer of our own, not the package's controlTransfer(): this one can be cancelled.
    const native = this.#createTransfer(
      0,
      libusbTransferTypes.control,
      Math.max(1, Math.round(request.timeoutMs)),
      (error, _buffer, actualLength) => {
        const nowUs = this.#clock.nowUs();
        const data =
          isIn && error === undefined
            ? new Uint8Array(buffer.buffer, buffer.byteOffset + setupLength, actualLength)
            : noData;
        const status = transferStatusOf(error);
        if (status === 'gone') this.#noteGone();
        this.#finishRequest(status, data, nowUs);
      },
    );
    native.submit(buffer);
    this.#request = { native };
  }

  #call(
    start: (done: (error?: LibusbError) => void) => void,
    options: { readonly onSuccess?: () => void; readonly goneIfNotFound?: boolean } = {},
  ): void {
    start((error) => {
      const nowUs = this.#clock.nowUs();
      let status = transferStatusOf(error);
      if (options.goneIfNotFound === true && libusbErrno(error) === libusbErrors.notFound) status = 'gone';
      if (status === 'completed') options.onSuccess?.();
      if (status === 'gone') this.#noteGone();
      this.#finishRequest(status, noData, nowUs);
    });
    this.#request = { native: undefined };
  }

  #finishRequest(status: TransferStatus, data: Uint8Array, nowUs: number): void {
    if (this.#request === undefined) return; // It was given up by dispose().
    this.#request = undefined;
    this.#outstanding--;
    const result: RequestResult = { status, data };
    try {
      this.#handler?.handleRequestDone(result, nowUs);
    } catch (error) {
      this.#handlerFailed(error);
    }
    this.#checkIdle();
  }

  // ---- unplug and close ----

  /** From here on nothing is taken. The handler is told when the current call has returned, whoever made it. */
  #noteGone(): void {
    if (this.#gone) return;
    this.#gone = true;
    queueMicrotask(() => this.#reportGone());
  }

  #reportGone(): void {
    this.#cancelEverything();
    if (this.#goneReported || this.#handler === undefined) return;
    this.#goneReported = true;
    try {
      this.#handler.handleGone(this.#clock.nowUs());
    } catch (error) {
      this.#handlerFailed(error);
    }
  }

  #cancelEverything(): void {
    for (const transfer of this.#transfers) {
      if (transfer.endsMissing > 0 && !transfer.cancelWanted) this.#wantCancel(transfer);
    }
    if (this.#request?.native !== undefined) cancelNative(this.#request.native);
    this.#cancelSome();
  }

  #wantCancel(transfer: PooledTransfer): void {
    transfer.cancelWanted = true;
    this.#toCancel.push(transfer);
  }

  /** Cancels what is to be cancelled, until the time for it is up; the rest in the next turn. */
  #cancelSome(): void {
    if (this.#cancelling) return;
    const endUs = this.#clock.nowUs() + cancelSliceUs;
    for (;;) {
      const transfer = this.#toCancel.shift();
      if (transfer === undefined) return;
      // It may have ended meanwhile, and been submitted anew.
      if (transfer.endsMissing === 0 || !transfer.cancelWanted) continue;
      cancelAll(transfer);
      if (this.#clock.nowUs() >= endUs) break;
    }
    this.#cancelling = true;
    setImmediate(() => {
      this.#cancelling = false;
      this.#cancelSome();
    });
  }

  /**
   * A reset or a new altsetting ends what is queued.
   * @param interfaceNumber undefined: all of them
   */
  #expectFlush(interfaceNumber?: number): void {
    for (const transfer of this.#transfers) {
      const applies = interfaceNumber === undefined || interfaceNumber === transfer.interfaceNumber;
      if (applies && transfer.endsMissing > 0) transfer.flushed = true;
    }
  }

  #checkIdle(): void {
    if (this.#outstanding > 0) return;
    this.#idle.notify();
  }

  #handlerFailed(error: unknown): void {
    try {
      this.#onHandlerError(error);
    } catch (second) {
      // Nobody left to tell but the process.
      queueMicrotask(() => {
        throw second;
      });
    }
  }
}

/**
 * How libusb shows a transfer on Linux that the kernel took off its endpoint: as if the device were gone (ESHUTDOWN), or
 * as completed without everything that was to be sent (ENOENT).
 */
function looksFlushed(transfer: PooledTransfer, status: TransferStatus): boolean {
  if (status !== 'completed') return status === 'gone';
  return transfer.length > 0 && transfer.actualLength < (transfer.isIn ? 1 : transfer.length);
}

function cancelAll(transfer: PooledTransfer): void {
  if (transfer.native !== undefined) cancelNative(transfer.native);
  if (transfer.zeroPacketSent?.native !== undefined) cancelNative(transfer.zeroPacketSent.native);
}

function cancelNative(native: LibusbTransfer): void {
  try {
    native.cancel();
  } catch {
    // No device any more: its end comes without our asking.
  }
}

function asLibusbError(thrown: unknown): LibusbError {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
