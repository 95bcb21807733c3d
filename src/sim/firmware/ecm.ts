import { cdcProtocols, cdcSubclasses } from '../../wire/cdc-class.ts';
import type { DeviceEndpoint, InSource, OutSink } from '../device-endpoint.ts';
import { type Frame, frameCapacityBytes } from '../frame.ts';
import type { SimSpeed } from '../sim-device.ts';
import { bulkInPacketSize, cdcAddresses, cdcDescriptors } from './cdc-descriptors.ts';
import type { DeviceIdentity } from './device-description.ts';
import { CdcNetwork, type CdcNetworkOptions, minFrameBytes } from './cdc-network.ts';
import type { DeviceDescriptors, Firmware, SetupPacket } from './firmware.ts';

const maxSegmentSize = 1514;

/**
 * CDC ECM, as Linux's gadget does it (spec 3.1, 6.2): one frame per transfer each way. A frame that ends on a packet
 * boundary is followed by an empty packet, to the host; from the host either that or a byte of padding, which stays part
 * of the frame.
 */
export class EcmFirmware implements Firmware {
  readonly descriptors: DeviceDescriptors;
  readonly network: CdcNetwork;
  readonly #out: EcmSink;
  readonly #in: EcmSource;

  constructor(speed: SimSpeed, identity: DeviceIdentity, options: CdcNetworkOptions) {
    this.descriptors = cdcDescriptors({
      speed,
      identity,
      subclass: cdcSubclasses.ecm,
      dataProtocol: cdcProtocols.none,
      maxSegmentSize,
      functional: {},
      controlName: 'CDC Ethernet Control Model (ECM)',
      dataName: 'CDC Ethernet Data',
    });
    this.#out = new EcmSink(() => this.network);
    this.#in = new EcmSource(() => this.network, bulkInPacketSize(this.descriptors));
    this.network = new CdcNetwork(options, this.#out, this.#in);
  }

  get endpoints(): readonly DeviceEndpoint[] {
    return this.network.endpoints;
  }

  handleRequest(setup: SetupPacket): Uint8Array | undefined {
    return this.network.handleRequest(setup);
  }

  handleSetInterface(interfaceNumber: number, alternateSetting: number, nowUs: number): void {
    if (interfaceNumber === cdcAddresses.dataInterface) this.#setOpen(alternateSetting === 1, nowUs);
  }

  handleReset(nowUs: number): void {
    this.#setOpen(false, nowUs);
  }

  #setOpen(open: boolean, nowUs: number): void {
    this.#out.reset(nowUs);
    this.#in.reset();
    this.network.setOpen(open, nowUs);
  }
}

/** Puts frames together from packets. */
class EcmSink implements OutSink {
  readonly #network: () => CdcNetwork;
  #frame: Frame | undefined;
  /** Of the message so far, those included that no frame can have. */
  #bytes = 0;

  constructor(network: () => CdcNetwork) {
    this.#network = network;
  }

  admit(wantedBytes: number, packetBytes: number): number {
    return this.#network().fifo.admit(wantedBytes, packetBytes);
  }

  receive(bytes: Uint8Array, offset: number, length: number, endOfMessage: boolean, nowUs: number): void {
    const network = this.#network();
    const frame = (this.#frame ??= network.takeFrame());
    const from = this.#bytes;
    this.#bytes += length;
    network.fifo.add(length);
    if (this.#bytes <= frameCapacityBytes) {
      frame.bytes.set(bytes.subarray(offset, offset + length), from);
      frame.length = this.#bytes;
    }
    if (endOfMessage) this.#finish(network, frame, nowUs);
  }

  #finish(network: CdcNetwork, frame: Frame, nowUs: number): void {
    const bytes = this.#bytes;
    this.#frame = undefined;
    this.#bytes = 0;
    if (bytes === 0) {
      // An empty packet that ends nothing.
      network.giveFrame(frame);
      return;
    }
    network.counters.messagesFromHost++;
    if (bytes === frame.length && bytes >= minFrameBytes) {
      network.sendUp(frame, nowUs);
      return;
    }
    network.counters.malformedFromHost++;
    network.giveFrame(frame);
    network.discard(bytes, nowUs);
  }

  reset(nowUs: number): void {
    if (this.#frame === undefined) return;
    const bytes = this.#bytes;
    this.#bytes = 0;
    this.#network().giveFrame(this.#frame);
    this.#frame = undefined;
    this.#network().discard(bytes, nowUs);
  }
}

/** Sends frames, the oldest first. */
class EcmSource implements InSource {
  readonly #network: () => CdcNetwork;
  readonly #packetBytes: number;
  #frame: Frame | undefined;
  #sentBytes = 0;

  constructor(network: () => CdcNetwork, packetBytes: number) {
    this.#network = network;
    this.#packetBytes = packetBytes;
  }

  pendingBytes(): number {
    if (this.#frame === undefined) {
      this.#frame = this.#network().hostQueue.shift();
      this.#sentBytes = 0;
    }
    return this.#frame === undefined ? -1 : this.#frame.length - this.#sentBytes;
  }

  transmit(to: Uint8Array, offset: number, length: number): void {
    const frame = this.#frame;
    if (frame === undefined) return;
    const from = this.#sentBytes;
    to.set(frame.bytes.subarray(from, from + length), offset);
    this.#sentBytes += length;
    if (this.#sentBytes < frame.length) return;
    if (length > 0 && length % this.#packetBytes === 0) return;
    const { counters } = this.#network();
    counters.messagesToHost++;
    counters.framesToHost++;
    counters.bytesToHost += frame.length;
    this.#release(frame);
  }

  reset(): void {
    if (this.#frame === undefined) return;
    this.#network().counters.closedDrops++;
    this.#release(this.#frame);
  }

  #release(frame: Frame): void {
    this.#frame = undefined;
    this.#network().giveFrame(frame);
  }
}
