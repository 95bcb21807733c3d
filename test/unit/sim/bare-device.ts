import type { BusObserver } from '../../../src/sim/bus-observer.ts';
import { type BusTiming, busTiming } from '../../../src/sim/bus-timing.ts';
import { DeviceEndpoint, type InSource, type OutSink } from '../../../src/sim/device-endpoint.ts';
import type { DeviceDescriptors, Firmware } from '../../../src/sim/firmware/firmware.ts';
import { SimBus } from '../../../src/sim/sim-bus.ts';
import { SimDevice, type SimSpeed } from '../../../src/sim/sim-device.ts';
import { TinyDriver } from './tiny-driver.ts';

export const bulkOut = 0x01;
export const bulkIn = 0x81;
export const interruptIn = 0x82;
/** On an interface of its own. */
export const otherBulkOut = 0x02;
export const packetBytes: Readonly<Record<SimSpeed, number>> = { full: 64, high: 512, super: 1024 };

/** Takes what comes, up to `credit` bytes, and keeps the messages. */
export class RecordingSink implements OutSink {
  readonly messages: Uint8Array[] = [];
  bytes = 0;
  /** Bytes that are taken before a NAK. */
  credit = Number.POSITIVE_INFINITY;
  /** Off where only the number of bytes matters. */
  keep = true;
  #message: number[] = [];

  admit(wantedBytes: number, packet: number): number {
    if (wantedBytes <= this.credit) return wantedBytes;
    return this.credit - (this.credit % packet);
  }

  receive(bytes: Uint8Array, offset: number, length: number, endOfMessage: boolean): void {
    this.bytes += length;
    this.credit -= length;
    if (!this.keep) return;
    for (let i = 0; i < length; i++) this.#message.push(bytes[offset + i] ?? 0);
    if (!endOfMessage) return;
    this.messages.push(Uint8Array.from(this.#message));
    this.#message = [];
  }

  /** What has come of a message that has not ended. */
  get unfinishedBytes(): number {
    return this.#message.length;
  }
}

/** Sends the messages it is given; each ends with a short packet, or an empty one. */
export class ScriptedSource implements InSource {
  readonly messages: Uint8Array[] = [];
  /** Sends so many bytes without end. */
  endless = false;
  #sent = 0;
  readonly #packet: number;

  constructor(packet: number) {
    this.#packet = packet;
  }

  pendingBytes(): number {
    if (this.endless) return 1 << 20;
    const message = this.messages[0];
    return message === undefined ? -1 : message.length - this.#sent;
  }

  transmit(to: Uint8Array, offset: number, length: number): void {
    const message = this.messages[0];
    if (this.endless || message === undefined) return;
    to.set(message.subarray(this.#sent, this.#sent + length), offset);
    this.#sent += length;
    if (this.#sent === message.length && (length === 0 || length % this.#packet !== 0)) {
      this.messages.shift();
      this.#sent = 0;
    }
  }
}

/** A device that is nothing but three endpoints, for tests of the bus alone. */
class BareFirmware implements Firmware {
  readonly descriptors: DeviceDescriptors;
  readonly endpoints: readonly DeviceEndpoint[];

  constructor(
    speed: SimSpeed,
    sink: OutSink,
    otherSink: OutSink,
    source: InSource,
    interruptSource: InSource,
  ) {
    const extra = new Uint8Array(0);
    this.endpoints = [
      new DeviceEndpoint(bulkOut, { sink }),
      new DeviceEndpoint(otherBulkOut, { sink: otherSink }),
      new DeviceEndpoint(bulkIn, { source }),
      new DeviceEndpoint(interruptIn, { source: interruptSource }),
    ];
    this.descriptors = {
      device: {
        usbVersion: 0x0200,
        deviceClass: 0xff,
        deviceSubclass: 0,
        deviceProtocol: 0,
        maxPacketSize0: 64,
        vendorId: 0x1209,
        productId: 0x0010,
        deviceVersion: 0x0100,
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
        associations: [],
        extra,
        interfaces: [
          {
            number: 0,
            altSettings: [
              {
                interfaceNumber: 0,
                alternateSetting: 0,
                interfaceClass: 0xff,
                interfaceSubclass: 0,
                interfaceProtocol: 0,
                nameIndex: 0,
                extra,
                endpoints: [
                  {
                    address: bulkOut,
                    direction: 'out',
                    type: 'bulk',
                    maxPacketSize: packetBytes[speed],
                    interval: 0,
                    extra,
                  },
                  {
                    address: bulkIn,
                    direction: 'in',
                    type: 'bulk',
                    maxPacketSize: packetBytes[speed],
                    interval: 0,
                    extra,
                  },
                  // 4 ms at each speed.
                  {
                    address: interruptIn,
                    direction: 'in',
                    type: 'interrupt',
                    maxPacketSize: 16,
                    interval: speed === 'full' ? 4 : 6,
                    extra,
                  },
                ],
              },
            ],
          },
          {
            number: 1,
            altSettings: [
              {
                interfaceNumber: 1,
                alternateSetting: 0,
                interfaceClass: 0xff,
                interfaceSubclass: 0,
                interfaceProtocol: 0,
                nameIndex: 0,
                extra,
                endpoints: [
                  {
                    address: otherBulkOut,
                    direction: 'out',
                    type: 'bulk',
                    maxPacketSize: packetBytes[speed],
                    interval: 0,
                    extra,
                  },
                ],
              },
            ],
          },
        ],
      },
      strings: [],
    };
  }

  handleRequest(): Uint8Array | undefined {
    return undefined;
  }
  handleSetInterface(): void {}
  handleReset(): void {}
}

/** A bare device on a bus, and a driver for it. */
export class BareSetup {
  readonly sink = new RecordingSink();
  readonly source: ScriptedSource;
  readonly interruptSource = new ScriptedSource(16);
  readonly device: SimDevice;
  readonly bus: SimBus;
  readonly driver: TinyDriver;

  constructor(speed: SimSpeed, timing: Partial<BusTiming> = {}, observer?: BusObserver) {
    this.source = new ScriptedSource(packetBytes[speed]);
    const firmware = new BareFirmware(
      speed,
      this.sink,
      new RecordingSink(),
      this.source,
      this.interruptSource,
    );
    this.device = new SimDevice(firmware, speed);
    this.bus = new SimBus({
      device: this.device,
      timing: busTiming(speed, timing),
      nowUs: 0,
      ...(observer === undefined ? {} : { observer }),
    });
    this.driver = new TinyDriver(this.bus, [this.bus]);
  }

  /** Tells the bus that an endpoint which had nothing, or no room, can go on. */
  ready(endpointAddress: number): void {
    this.device.endpoint(endpointAddress)?.ready(this.driver.nowUs);
  }

  /** Gives the device a message for the host. */
  give(message: Uint8Array): void {
    this.source.messages.push(message);
    this.ready(bulkIn);
  }
}

/** `length` bytes that tell one another apart. */
export function pattern(length: number, start = 1): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (start * 37 + i * 11 + (i >> 8)) & 0xff);
}
