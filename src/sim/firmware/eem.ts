import { cdcProtocols, cdcSubclasses, usbClasses } from '../../wire/cdc-class.ts';
import {
  eemCommands,
  eemCrcLength,
  eemHeaderLength,
  maxEemEchoBytes,
  readEemBundle,
  writeEemCommand,
  writeEemCrc,
  writeEemDataHeader,
} from '../../wire/eem.ts';
import type { DeviceEndpoint } from '../device-endpoint.ts';
import { frameCapacityBytes, type FrameQueue } from '../frame.ts';
import type { SimSpeed } from '../sim-device.ts';
import { bulkEndpoints, bulkInPacketSize, cdcStrings, stringIndices } from './cdc-descriptors.ts';
import { describeDevice, type DeviceIdentity, noExtra } from './device-description.ts';
import { CdcNetwork, type CdcNetworkOptions } from './cdc-network.ts';
import type { DeviceDescriptors, Firmware } from './firmware.ts';
import { CdcMessageSink } from './cdc-message-sink.ts';
import { MessageSource } from './message-source.ts';

const maxSegmentSize = 1514;
/** What a host takes in one transfer, since Linux asks for no more (spec 2.2): one frame of the usual size. */
const usualBundleBytes = maxSegmentSize + eemHeaderLength + eemCrcLength;
/** Longer than any bundle that a host sends: a frame, an answer to an echo, and padding. */
const sinkBytes = frameCapacityBytes + maxEemEchoBytes + 64;

export interface EemOptions {
  /** The longest bundle to the host. */
  readonly bundleBytes?: number;
  /** Frames to the host have a real CRC; else the word that stands for none. */
  readonly withCrc?: boolean;
  /** Asks the host to send back so many bytes, before each so many-th frame that it sends. */
  readonly echo?: { readonly bytes: number; readonly everyFrames: number };
}

/** What came of the link commands. */
export interface EemLinkCounters {
  echoesSent: number;
  /** Responses with the data that were sent. */
  echoesAnswered: number;
  echoesWrong: number;
  otherCommands: number;
}

/** CDC EEM, as Linux's gadget does it (spec 3.10, 6.2), with bundles and echoes where they are asked for. */
export class EemFirmware implements Firmware {
  readonly descriptors: DeviceDescriptors;
  readonly network: CdcNetwork;
  readonly commands: EemLinkCounters = {
    echoesSent: 0,
    echoesAnswered: 0,
    echoesWrong: 0,
    otherCommands: 0,
  };
  readonly #options: EemOptions;
  readonly #out: CdcMessageSink;
  readonly #in: MessageSource;
  #framesSent = 0;
  /** Lengths of echoes that have not come back. */
  readonly #echoesOut: number[] = [];
  /** Lengths of echoes of the host that are to be answered; the data of all of them are the same. */
  readonly #answersDue: Uint8Array[] = [];

  constructor(speed: SimSpeed, identity: DeviceIdentity, options: CdcNetworkOptions, eem: EemOptions = {}) {
    this.descriptors = describeDevice({
      speed,
      identity,
      deviceClass: { deviceClass: usbClasses.communications, deviceSubclass: 0, deviceProtocol: 0 },
      associations: [],
      interfaces: [
        {
          number: 0,
          altSettings: [
            {
              interfaceNumber: 0,
              alternateSetting: 0,
              interfaceClass: usbClasses.communications,
              interfaceSubclass: cdcSubclasses.eem,
              interfaceProtocol: cdcProtocols.eem,
              nameIndex: stringIndices.control,
              endpoints: bulkEndpoints(speed),
              extra: noExtra,
            },
          ],
        },
      ],
      strings: cdcStrings(identity, ['CDC Ethernet Emulation Model (EEM)']),
    });
    this.#options = eem;
    const network = (): CdcNetwork => this.network;
    this.#out = new CdcMessageSink(network, sinkBytes, (bytes, length, nowUs) =>
      this.#takeBundle(bytes, length, nowUs),
    );
    this.#in = new MessageSource(network, bulkInPacketSize(this.descriptors), 65_536, (buffer, queue, take) =>
      this.#build(buffer, queue, take),
    );
    this.network = new CdcNetwork(options, this.#out, this.#in, null);
  }

  get endpoints(): readonly DeviceEndpoint[] {
    return this.network.endpoints;
  }

  handleRequest(): undefined {
    return undefined;
  }

  handleSetInterface(_interfaceNumber: number, _alternateSetting: number, nowUs: number): void {
    this.#open(nowUs);
  }

  /** Nobody opens an EEM function: it is in use as soon as it is configured. */
  handleReset(nowUs: number): void {
    this.#open(nowUs);
  }

  #open(nowUs: number): void {
    this.#echoesOut.length = 0;
    this.#answersDue.length = 0;
    this.#out.reset(nowUs);
    this.#in.reset();
    this.network.setOpen(true, nowUs);
  }

  #takeBundle(bundle: Uint8Array, bundleLength: number, nowUs: number): boolean {
    let good = true;
    const result = readEemBundle(bundle, bundleLength, {
      handleFrame: (bytes, offset, length) => this.#out.sendUp(bytes, offset, length),
      handleCommand: (command, parameter, bytes, offset) => {
        if (command === eemCommands.echo) {
          this.#answersDue.push(bytes.slice(offset, offset + parameter));
          this.network.notifyBulkIn(nowUs);
        } else if (command === eemCommands.echoResponse) {
          good &&= this.#takeEchoResponse(bytes.subarray(offset, offset + parameter));
        } else {
          this.commands.otherCommands++;
        }
      },
      handleBadPacket: () => {
        good = false;
      },
    });
    return good && result === 'ok';
  }

  #takeEchoResponse(data: Uint8Array): boolean {
    const expected = this.#echoesOut.shift();
    const right = expected === data.length && data.every((byte, i) => byte === echoByte(i));
    if (right) this.commands.echoesAnswered++;
    else this.commands.echoesWrong++;
    return right;
  }

  #build(buffer: Uint8Array, queue: FrameQueue, take: () => void): number {
    const answer = this.#answersDue.shift();
    if (answer !== undefined) {
      writeEemCommand(buffer, 0, eemCommands.echoResponse, answer.length);
      buffer.set(answer, eemHeaderLength);
      return eemHeaderLength + answer.length;
    }
    const { bundleBytes = usualBundleBytes, withCrc = false } = this.#options;
    let frame = queue.peek();
    if (frame === undefined) return 0;
    let length = this.#writeEcho(buffer, bundleBytes, frame.length);
    let frames = 0;
    for (; frame !== undefined; frame = queue.peek()) {
      const size = eemHeaderLength + frame.length + eemCrcLength;
      if (frames > 0 && length + size > bundleBytes) break;
      writeEemDataHeader(buffer, length, frame.length, withCrc);
      buffer.set(frame.bytes.subarray(0, frame.length), length + eemHeaderLength);
      writeEemCrc(buffer, length + eemHeaderLength, frame.length, withCrc);
      length += size;
      frames++;
      take();
    }
    this.#framesSent += frames;
    return length;
  }

  /** An echo in front of the frames, if it is time for one and there is room. */
  #writeEcho(buffer: Uint8Array, bundleBytes: number, frameLength: number): number {
    const { echo } = this.#options;
    if (echo === undefined || this.#framesSent % echo.everyFrames !== 0) return 0;
    const length = eemHeaderLength + echo.bytes;
    if (length + eemHeaderLength + frameLength + eemCrcLength > bundleBytes) return 0;
    writeEemCommand(buffer, 0, eemCommands.echo, echo.bytes);
    for (let i = 0; i < echo.bytes; i++) buffer[eemHeaderLength + i] = echoByte(i);
    this.#echoesOut.push(echo.bytes);
    this.commands.echoesSent++;
    return length;
  }
}

function echoByte(index: number): number {
  return (index * 7 + 3) & 0xff;
}
