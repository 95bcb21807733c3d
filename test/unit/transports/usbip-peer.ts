import type { Clock } from '../../../src/base/clock.ts';
import type { DeviceRequest, UsbDevice } from '../../../src/usbnet/transport.ts';
import { UsbipTransport } from '../../../src/transports/usbip-transport.ts';
import type { UsbipLoss } from '../../../src/transports/usbip-errors.ts';
import { RecordingHandler } from './recording-handler.ts';

const headerBytes = 48;

/** A message of the client, taken apart by hand. */
export interface Asked {
  readonly command: 'submit' | 'unlink';
  readonly seqnum: number;
  readonly deviceId: number;
  readonly isIn: boolean;
  readonly endpoint: number;
  readonly flags: number;
  readonly length: number;
  readonly interval: number;
  readonly unlinkSeqnum: number;
  readonly setup: readonly number[];
  readonly data: Uint8Array;
}

/** A device with a bulk pair and an interrupt endpoint on interface 1. */
export const twoPipes: UsbDevice = {
  speed: 'high',
  descriptor: {
    usbVersion: 0x0200,
    deviceClass: 0,
    deviceSubclass: 0,
    deviceProtocol: 0,
    maxPacketSize0: 64,
    vendorId: 1,
    productId: 2,
    deviceVersion: 0x0100,
    manufacturerIndex: 0,
    productIndex: 0,
    serialIndex: 0,
    configurationCount: 1,
  },
  configuration: {
    value: 1,
    nameIndex: 0,
    attributes: 0,
    maxPowerMa: 0,
    associations: [],
    extra: new Uint8Array(0),
    interfaces: [
      {
        number: 1,
        altSettings: [
          {
            interfaceNumber: 1,
            alternateSetting: 0,
            interfaceClass: 0,
            interfaceSubclass: 0,
            interfaceProtocol: 0,
            nameIndex: 0,
            extra: new Uint8Array(0),
            endpoints: [
              {
                address: 0x81,
                direction: 'in',
                type: 'bulk',
                maxPacketSize: 512,
                interval: 0,
                extra: new Uint8Array(0),
              },
              {
                address: 0x02,
                direction: 'out',
                type: 'bulk',
                maxPacketSize: 512,
                interval: 0,
                extra: new Uint8Array(0),
              },
              {
                address: 0x83,
                direction: 'in',
                type: 'interrupt',
                maxPacketSize: 16,
                interval: 9,
                extra: new Uint8Array(0),
              },
            ],
          },
        ],
      },
    ],
  },
};

/** Time that stands where a test puts it. */
class HandClock implements Clock {
  us = 1000;

  nowUs(): number {
    return this.us;
  }
}

/** The transport with a server played by hand, without a socket. */
export class UsbipPeer {
  readonly clock = new HandClock();
  readonly handler = new RecordingHandler();
  readonly asked: Asked[] = [];
  readonly losses: UsbipLoss[] = [];
  readonly handlerErrors: unknown[] = [];
  readonly transport: UsbipTransport;

  constructor(device = twoPipes) {
    this.transport = new UsbipTransport({
      deviceId: 0x0001_000f,
      clock: this.clock,
      write: (bytes) => this.asked.push(takeApart(bytes)),
      onLost: (loss) => this.losses.push(loss),
      onHandlerError: (error) => this.handlerErrors.push(error),
    });
    this.transport.setDevice(device);
    this.transport.setHandler(this.handler);
  }

  /** The newest message; throws where there is none. */
  get last(): Asked {
    const asked = this.asked.at(-1);
    if (asked === undefined) throw new Error('nothing was asked');
    return asked;
  }

  submitReply(seqnum: number, status: number, actualLength: number, data = new Uint8Array(0)): Uint8Array {
    const bytes = new Uint8Array(headerBytes + data.length);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, 3);
    view.setUint32(4, seqnum);
    view.setInt32(20, status);
    view.setUint32(24, actualLength);
    bytes.set(data, headerBytes);
    return bytes;
  }

  unlinkReply(seqnum: number, status: number): Uint8Array {
    const bytes = new Uint8Array(headerBytes);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, 4);
    view.setUint32(4, seqnum);
    view.setInt32(20, status);
    return bytes;
  }

  /** Has the server say this. */
  say(...parts: readonly Uint8Array[]): void {
    this.transport.handleBytes(Uint8Array.from(parts.flatMap((part) => [...part])));
  }

  request(request: DeviceRequest): void {
    this.transport.request(request, this.clock.nowUs());
  }

  /** Lets time pass, with the transport looking at its deadlines. */
  pass(us: number): void {
    for (let passed = 0; passed < us; passed += 250_000) {
      this.clock.us += Math.min(250_000, us - passed);
      this.transport.tick();
    }
  }
}

function takeApart(bytes: Uint8Array): Asked {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const command = view.getUint32(0);
  if (command !== 1 && command !== 2) throw new Error(`command ${command}`);
  if (bytes.length < headerBytes) throw new Error(`a message of ${bytes.length} bytes`);
  return {
    command: command === 1 ? 'submit' : 'unlink',
    seqnum: view.getUint32(4),
    deviceId: view.getUint32(8),
    isIn: view.getUint32(12) === 1,
    endpoint: view.getUint32(16),
    flags: command === 1 ? view.getUint32(20) : 0,
    length: command === 1 ? view.getUint32(24) : 0,
    interval: command === 1 ? view.getUint32(36) : 0,
    unlinkSeqnum: command === 2 ? view.getUint32(20) : 0,
    setup: [...bytes.subarray(40, 48)],
    data: bytes.slice(headerBytes),
  };
}
