import { neverUs, type Polled } from '../base/clock.ts';
import { invariant } from '../base/errors.ts';
import type { TransferStatus } from '../usbnet/transfer.ts';
import type {
  DeviceRequest,
  RequestResult,
  SubmitResult,
  Transport,
  TransportHandler,
  UsbDevice,
} from '../usbnet/transport.ts';
import type { ConfigurationDescriptor } from '../wire/usb-descriptor.ts';
import type { BusObserver } from './bus-observer.ts';
import { BusLane } from './bus-lane.ts';
import { BusPipe } from './bus-pipe.ts';
import { BusReports } from './bus-reports.ts';
import { type BusTiming, interruptIntervalUs } from './bus-timing.ts';
import type { InSource, OutSink } from './device-endpoint.ts';
import { configure, enumerate } from './enumerate.ts';
import type { SimDevice } from './sim-device.ts';
import { isSetConfiguration, isSetInterface, setInterfaceSetup, setupOf } from './standard-setup.ts';
import { SimTransfer } from './sim-transfer.ts';

/** The largest packet that a device can send where there is no room for it. */
const maxPacketBytes = 1024;

const usPerMs = 1000;

const empty = new Uint8Array(0);

export interface SimBusOptions {
  readonly device: SimDevice;
  readonly timing: BusTiming;
  readonly observer?: BusObserver;
  readonly nowUs: number;
}

/** How an attempt to serve a pipe went. */
type Service = 'started' | 'ended' | 'waits';

/**
 * A host controller with one device behind it, in simulated time.
 *
 * Transfers of an endpoint are served in order, a few packets at a time, while the device takes or has any; both
 * directions take turns where they share the wires. A transfer OUT is done when the device has accepted its last byte,
 * a transfer IN when it is full or a short packet has come. A transfer OUT that ends on a packet boundary without
 * `zeroPacket` does not end the message for the device: the next transfer goes on with it.
 *
 * The end of a transfer is reported later, as with a real controller: an interrupt comes at once if the last one was at
 * least the moderation time ago, otherwise when that has passed; the softirq delay after it the driver is told of all
 * that has ended by then, in the order of the ends. Nothing is ever reported from inside a call.
 *
 * The device has been enumerated and configured before time starts.
 */
export class SimBus implements Transport, Polled {
  readonly device: UsbDevice;
  readonly #device: SimDevice;
  readonly #timing: BusTiming;
  readonly #observer: BusObserver | undefined;
  readonly #reports: BusReports;
  readonly #pipes = new Map<number, BusPipe>();
  readonly #lanes: readonly BusLane[];
  readonly #scratch = new Uint8Array(maxPacketBytes);
  #handler: TransportHandler | undefined;

  #request: DeviceRequest | undefined;
  #requestDoneAtUs = neverUs;
  #requestTimesOutAtUs = neverUs;
  #result: RequestResult | undefined;

  /** The first {@link BusPipe.wakeAtUs}. */
  #wakeAtUs = neverUs;
  #gone = false;
  #goneReported = false;

  constructor(options: SimBusOptions) {
    const { device, timing, nowUs } = options;
    this.#device = device;
    this.#timing = timing;
    this.#observer = options.observer;
    this.#reports = new BusReports(timing);
    const out = new BusLane();
    const shared = timing.directionsShareBus;
    this.#lanes = shared ? [out] : [out, new BusLane()];
    this.device = enumerate(device, nowUs);
    this.#makePipes(this.device.configuration);
    this.#connectPipes();
  }

  #makePipes(configuration: ConfigurationDescriptor): void {
    const [outLane, inLane = outLane] = this.#lanes;
    for (const { altSettings } of configuration.interfaces) {
      for (const { endpoints } of altSettings) {
        for (const { address, direction, type, interval } of endpoints) {
          if (this.#pipes.has(address)) continue;
          const bulk = type === 'bulk';
          const lane = direction === 'in' ? inLane : outLane;
          const intervalUs = interruptIntervalUs(this.#device.speed, interval);
          const pipe = new BusPipe(address, bulk ? lane : undefined, intervalUs);
          if (bulk) lane?.pipes.push(pipe);
          this.#pipes.set(address, pipe);
          // One closure an endpoint, so that the device need not search for its pipe.
          for (const endpoint of this.#device.firmware.endpoints) {
            if (endpoint.address === address) endpoint.setListener((atUs) => this.#handleReady(pipe, atUs));
          }
        }
      }
    }
  }

  /** Joins the pipes to the endpoints of the altsettings in force. */
  #connectPipes(): void {
    for (const pipe of this.#pipes.values()) {
      pipe.endpoint = undefined;
      pipe.waiting = false;
    }
    for (const { number, altSettings } of this.device.configuration.interfaces) {
      const inForce = this.#device.altSettingOf(number);
      for (const { alternateSetting, endpoints } of altSettings) {
        if (alternateSetting !== inForce) continue;
        for (const { address, maxPacketSize } of endpoints) {
          const pipe = this.#pipes.get(address);
          if (pipe === undefined) continue;
          pipe.endpoint = this.#device.endpoint(address);
          pipe.maxPacketSize = maxPacketSize;
        }
      }
    }
  }

  // ---- the driver's side ----

  setHandler(handler: TransportHandler): void {
    this.#handler = handler;
  }

  makeTransfer(endpointAddress: number, capacity: number, maxPackets: number): SimTransfer {
    const pipe = this.#pipes.get(endpointAddress);
    invariant(pipe !== undefined, `there is no endpoint ${endpointAddress}`);
    return new SimTransfer(pipe, new Uint8Array(capacity), maxPackets);
  }

  submit(transfer: SimTransfer, nowUs: number): SubmitResult {
    invariant(transfer.phase === 'idle', 'a transfer was submitted twice, or is of another bus');
    invariant(transfer.length <= transfer.buffer.length, 'a transfer is longer than its buffer');
    const { pipe } = transfer;
    if (this.#gone) return 'gone';
    if (pipe.endpoint === undefined) return 'failed';
    transfer.phase = 'queued';
    transfer.movedBytes = 0;
    transfer.actualLength = 0;
    transfer.readyAtUs = nowUs;
    pipe.push(transfer);
    if (pipe.length === 1) {
      pipe.lane?.join(pipe);
      this.#serve(pipe, nowUs);
    }
    return 'ok';
  }

  cancel(transfer: SimTransfer, nowUs: number): void {
    if (transfer.phase !== 'queued') return;
    this.#abort(transfer, 'cancelled', nowUs);
    this.#serve(transfer.pipe, nowUs);
  }

  request(request: DeviceRequest, nowUs: number): void {
    invariant(this.#request === undefined, 'a request was made while another one is out');
    this.#request = request;
    if (this.#gone) {
      this.#finishRequest({ status: 'gone', data: empty }, nowUs);
      return;
    }
    this.#requestTimesOutAtUs = request.timeoutMs === 0 ? neverUs : nowUs + request.timeoutMs * usPerMs;
    this.#requestDoneAtUs = nowUs + this.#requestLastsUs(request);
  }

  #requestLastsUs(request: DeviceRequest): number {
    const { requestUs, resetUs, byteUs } = this.#timing;
    switch (request.kind) {
      case 'control-out':
        return requestUs + request.data.length * byteUs;
      case 'reset':
        return resetUs;
      default:
        return requestUs;
    }
  }

  /** Takes the device off the bus: everything that is out ends with `gone`, and then the driver is told so. */
  unplug(nowUs: number): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#abortAll('gone', nowUs);
    this.#wakeAtUs = neverUs;
    if (this.#request !== undefined && this.#result === undefined) {
      this.#finishRequest({ status: 'gone', data: empty }, nowUs);
    }
    this.#reports.raiseAtOnce(nowUs);
  }

  // ---- time ----

  /** The next thing to happen on the bus itself. */
  eventAtUs(): number {
    let atUs = this.#requestDoneAtUs < this.#wakeAtUs ? this.#requestDoneAtUs : this.#wakeAtUs;
    for (const lane of this.#lanes) if (lane.endsAtUs < atUs) atUs = lane.endsAtUs;
    return atUs;
  }

  pollAtUs(): number {
    const atUs = this.eventAtUs();
    return this.#reports.dueAtUs < atUs ? this.#reports.dueAtUs : atUs;
  }

  /** Lets the bus do what is due at exactly this time, but reports nothing. */
  advance(atUs: number): void {
    for (const lane of this.#lanes) {
      if (lane.endsAtUs <= atUs) this.#finishService(lane, atUs);
    }
    if (this.#wakeAtUs <= atUs) this.#wakePipes(atUs);
    if (this.#requestDoneAtUs <= atUs) this.#carryOutRequest(atUs);
  }

  /** Lets everything that is due happen at its own time; then reports. */
  poll(nowUs: number): void {
    for (let atUs = this.eventAtUs(); atUs <= nowUs; atUs = this.eventAtUs()) this.advance(atUs);
    if (this.#reports.dueAtUs <= nowUs) this.#report(nowUs);
  }

  #report(nowUs: number): void {
    let transfer = this.#reports.take();
    while (transfer !== undefined) {
      const next: SimTransfer | undefined = transfer.nextQueued;
      transfer.nextQueued = undefined;
      transfer.phase = 'idle';
      this.#handler?.handleTransferDone(transfer, nowUs);
      transfer = next;
    }
    const result = this.#result;
    if (result !== undefined) {
      this.#result = undefined;
      this.#request = undefined;
      this.#handler?.handleRequestDone(result, nowUs);
    }
    if (this.#gone && !this.#goneReported) {
      this.#goneReported = true;
      this.#handler?.handleGone(nowUs);
    }
  }

  // ---- the ends of transfers ----

  #end(transfer: SimTransfer, status: TransferStatus, atUs: number): void {
    transfer.pipe.remove(transfer);
    transfer.phase = 'ended';
    transfer.status = status;
    transfer.actualLength = transfer.movedBytes;
    this.#reports.push(transfer, atUs);
    this.#observer?.handleTransferEnd(transfer.endpointAddress, transfer.actualLength, status, atUs);
  }

  /** Ends a transfer whose packets may be on the wires: those have not reached the device then. */
  #abort(transfer: SimTransfer, status: TransferStatus, nowUs: number): void {
    const { lane } = transfer.pipe;
    if (lane?.transfer === transfer) lane.clear();
    this.#end(transfer, status, nowUs);
  }

  #abortPipe(pipe: BusPipe, status: TransferStatus, nowUs: number): void {
    for (let transfer = pipe.head; transfer !== undefined; transfer = pipe.head) {
      this.#abort(transfer, status, nowUs);
    }
    pipe.wakeAtUs = neverUs;
  }

  #abortAll(status: TransferStatus, nowUs: number): void {
    for (const pipe of this.#pipes.values()) this.#abortPipe(pipe, status, nowUs);
  }

  // ---- service ----

  #handleReady(pipe: BusPipe, nowUs: number): void {
    pipe.waiting = false;
    if (pipe.head === undefined) return;
    pipe.lane?.join(pipe);
    this.#serve(pipe, nowUs);
  }

  #serve(pipe: BusPipe, nowUs: number): void {
    if (pipe.lane === undefined) this.#scheduleInterruptPoll(pipe, nowUs);
    else this.#serveLane(pipe.lane, nowUs);
  }

  /** Starts the next service, unless one is going on. */
  #serveLane(lane: BusLane, nowUs: number): void {
    while (lane.transfer === undefined) {
      const pipe = lane.nextPipe();
      const transfer = pipe?.head;
      if (pipe === undefined || transfer === undefined) return;
      if (this.#startService(lane, pipe, transfer, nowUs) === 'waits') pipe.waiting = true;
    }
  }

  #startService(lane: BusLane, pipe: BusPipe, transfer: SimTransfer, nowUs: number): Service {
    const { endpoint } = pipe;
    if (endpoint === undefined) return 'waits';
    if (endpoint.silentUntilUs > nowUs) {
      this.#wakeAt(pipe, endpoint.silentUntilUs);
      return 'waits';
    }
    if (endpoint.halted) {
      this.#end(transfer, 'stall', nowUs);
      return 'ended';
    }
    const started =
      endpoint.sink === undefined
        ? endpoint.source !== undefined && this.#startIn(lane, pipe, transfer, endpoint.source)
        : this.#startOut(lane, pipe, transfer, endpoint.sink);
    if (!started) return 'waits';

    const { packetUs, byteUs, transferUs } = this.#timing;
    const { bytes } = lane;
    const fullPackets = Math.floor(bytes / pipe.maxPacketSize);
    const packets = lane.endsMessage ? fullPackets + 1 : fullPackets;
    const lastsUs = packets * packetUs + bytes * byteUs + (transfer.movedBytes === 0 ? transferUs : 0);
    lane.start(pipe, transfer, nowUs > transfer.readyAtUs ? nowUs : transfer.readyAtUs, lastsUs);
    return 'started';
  }

  #startOut(lane: BusLane, pipe: BusPipe, transfer: SimTransfer, sink: OutSink): boolean {
    const { maxPacketSize } = pipe;
    const leftBytes = transfer.length - transfer.movedBytes;
    const turnBytes = this.#timing.packetsPerTurn * maxPacketSize;
    const wantedBytes = leftBytes < turnBytes ? leftBytes : turnBytes;
    const bytes = wantedBytes === 0 ? 0 : sink.admit(wantedBytes, maxPacketSize);
    if (bytes === 0 && wantedBytes > 0) return false;
    lane.bytes = bytes;
    lane.endsMessage =
      bytes === leftBytes &&
      (transfer.length % maxPacketSize !== 0 || transfer.zeroPacket || transfer.length === 0);
    return true;
  }

  #startIn(lane: BusLane, pipe: BusPipe, transfer: SimTransfer, source: InSource): boolean {
    const { maxPacketSize } = pipe;
    const pendingBytes = source.pendingBytes();
    if (pendingBytes < 0) return false;
    const roomBytes = transfer.length - transfer.movedBytes;
    const turnBytes = this.#timing.packetsPerTurn * maxPacketSize;
    let bytes = pendingBytes < turnBytes ? pendingBytes : turnBytes;
    if (bytes > roomBytes) {
      // Whole packets, as many as there is room for; and if there is none for the first one, it comes all the same.
      bytes = roomBytes - (roomBytes % maxPacketSize);
      if (bytes === 0) {
        bytes = pendingBytes < maxPacketSize ? pendingBytes : maxPacketSize;
        lane.babble = true;
      }
    }
    lane.bytes = bytes;
    lane.endsMessage = bytes === pendingBytes && (bytes === 0 || bytes % maxPacketSize !== 0);
    return true;
  }

  /** The packets that were on the wires have arrived. */
  #finishService(lane: BusLane, atUs: number): void {
    const { transfer } = lane;
    invariant(transfer !== undefined, 'a lane of the bus has lost its transfer');
    const { endpoint } = transfer.pipe;
    // The lane counts as busy until the end, whatever the device does when it gets the data.
    if (endpoint?.sink !== undefined) this.#finishOut(lane, transfer, endpoint.sink, atUs);
    else if (endpoint?.source !== undefined) this.#finishIn(lane, transfer, endpoint.source, atUs);
    lane.clear();
    this.#serveLane(lane, atUs);
  }

  #finishOut(lane: BusLane, transfer: SimTransfer, sink: OutSink, atUs: number): void {
    const { bytes } = lane;
    const from = transfer.movedBytes;
    transfer.movedBytes += bytes;
    sink.receive(transfer.buffer, from, bytes, lane.endsMessage, atUs);
    if (transfer.movedBytes === transfer.length) this.#end(transfer, 'completed', atUs);
  }

  #finishIn(lane: BusLane, transfer: SimTransfer, source: InSource, atUs: number): void {
    const { bytes } = lane;
    if (lane.babble) {
      const roomBytes = transfer.length - transfer.movedBytes;
      source.transmit(this.#scratch, 0, bytes, atUs);
      transfer.buffer.set(this.#scratch.subarray(0, roomBytes), transfer.movedBytes);
      transfer.movedBytes += roomBytes;
      this.#end(transfer, 'overflow', atUs);
      return;
    }
    source.transmit(transfer.buffer, transfer.movedBytes, bytes, atUs);
    transfer.movedBytes += bytes;
    if (lane.endsMessage || transfer.movedBytes === transfer.length) this.#end(transfer, 'completed', atUs);
  }

  // ---- interrupt endpoints, and the ends of silences ----

  #wakeAt(pipe: BusPipe, atUs: number): void {
    pipe.wakeAtUs = atUs;
    if (atUs < this.#wakeAtUs) this.#wakeAtUs = atUs;
  }

  #wakePipes(atUs: number): void {
    for (const pipe of this.#pipes.values()) {
      if (pipe.wakeAtUs > atUs) continue;
      pipe.wakeAtUs = neverUs;
      pipe.waiting = false;
      if (pipe.lane === undefined) this.#pollInterrupt(pipe, atUs);
      else this.#handleReady(pipe, atUs);
    }
    let next = neverUs;
    for (const pipe of this.#pipes.values()) if (pipe.wakeAtUs < next) next = pipe.wakeAtUs;
    this.#wakeAtUs = next;
  }

  /** An interrupt endpoint is asked at multiples of its interval; only polls that find something cost an event. */
  #scheduleInterruptPoll(pipe: BusPipe, nowUs: number): void {
    const { endpoint, head } = pipe;
    if (endpoint === undefined || head === undefined || pipe.wakeAtUs !== neverUs) return;
    const silent = endpoint.silentUntilUs > nowUs;
    const due = endpoint.halted || (endpoint.source?.pendingBytes() ?? -1) >= 0;
    if (!due && !silent) return;
    const fromUs = Math.max(nowUs, endpoint.silentUntilUs);
    this.#wakeAt(pipe, Math.ceil(fromUs / pipe.intervalUs) * pipe.intervalUs);
  }

  /** One packet, if there is one. It takes no time that others would miss. */
  #pollInterrupt(pipe: BusPipe, atUs: number): void {
    const { endpoint, head } = pipe;
    if (endpoint === undefined || head === undefined) return;
    if (endpoint.silentUntilUs <= atUs) {
      if (endpoint.halted) this.#end(head, 'stall', atUs);
      else if (endpoint.source !== undefined) this.#serveInterrupt(pipe, head, endpoint.source, atUs);
    }
    if (pipe.head !== undefined) this.#scheduleInterruptPoll(pipe, atUs + pipe.intervalUs / 2);
  }

  #serveInterrupt(pipe: BusPipe, transfer: SimTransfer, source: InSource, atUs: number): void {
    const pendingBytes = source.pendingBytes();
    if (pendingBytes < 0) return;
    const roomBytes = transfer.length - transfer.movedBytes;
    const bytes = Math.min(pendingBytes, pipe.maxPacketSize);
    source.transmit(this.#scratch, 0, bytes, atUs);
    transfer.buffer.set(this.#scratch.subarray(0, Math.min(bytes, roomBytes)), transfer.movedBytes);
    transfer.movedBytes += Math.min(bytes, roomBytes);
    if (bytes > roomBytes) this.#end(transfer, 'overflow', atUs);
    else if (bytes < pipe.maxPacketSize || bytes === roomBytes) this.#end(transfer, 'completed', atUs);
  }

  // ---- requests ----

  #carryOutRequest(atUs: number): void {
    const request = this.#request;
    this.#requestDoneAtUs = neverUs;
    if (request === undefined) return;
    if (atUs >= this.#requestTimesOutAtUs) {
      this.#finishRequest({ status: 'timed-out', data: empty }, atUs);
      return;
    }
    const silentUntilUs = this.#device.controlSilentUntilUs;
    if (silentUntilUs > atUs && request.kind !== 'reset') {
      const answersAtUs = silentUntilUs + this.#requestLastsUs(request);
      this.#requestDoneAtUs = Math.min(answersAtUs, this.#requestTimesOutAtUs);
      return;
    }
    const result = this.#resultOf(request, atUs);
    this.#finishRequest(result, atUs + result.data.length * this.#timing.byteUs);
  }

  #finishRequest(result: RequestResult, atUs: number): void {
    this.#requestDoneAtUs = neverUs;
    this.#result = result;
    this.#reports.raise(atUs);
  }

  #resultOf(request: DeviceRequest, atUs: number): RequestResult {
    if (request.kind === 'reset') return this.#reset(atUs);
    const setup = setupOf(request);
    const data = request.kind === 'control-out' ? request.data : empty;
    const answer = this.#device.control(setup, data, atUs);
    if (answer === undefined) return { status: 'stall', data: empty };
    // Requests that change which endpoints there are end what is out on the ones concerned.
    if (isSetConfiguration(setup)) {
      this.#abortAll('cancelled', atUs);
      this.#connectPipes();
    } else if (isSetInterface(setup)) {
      this.#abortInterface(setup.index, atUs);
      this.#connectPipes();
      for (const pipe of this.#pipes.values()) this.#serve(pipe, atUs);
    }
    return { status: 'completed', data: answer.slice() };
  }

  #abortInterface(interfaceNumber: number, atUs: number): void {
    for (const { number, altSettings } of this.device.configuration.interfaces) {
      if (number !== interfaceNumber) continue;
      for (const { endpoints } of altSettings) {
        for (const { address } of endpoints) {
          const pipe = this.#pipes.get(address);
          if (pipe !== undefined) this.#abortPipe(pipe, 'cancelled', atUs);
        }
      }
    }
  }

  /** A port reset, after which the host restores configuration and altsettings. */
  #reset(atUs: number): RequestResult {
    const altSettings = this.device.configuration.interfaces.map(
      ({ number }) => [number, this.#device.altSettingOf(number) ?? 0] as const,
    );
    this.#abortAll('cancelled', atUs);
    this.#device.handleBusReset(atUs);
    configure(this.#device, this.device.configuration.value, atUs);
    for (const [interfaceNumber, alternateSetting] of altSettings) {
      if (alternateSetting === 0) continue;
      this.#device.control(setInterfaceSetup(interfaceNumber, alternateSetting), empty, atUs);
    }
    this.#connectPipes();
    return { status: 'completed', data: empty };
  }
}
