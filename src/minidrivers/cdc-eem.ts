import {
  eemCommands,
  eemCrcLength,
  eemHeaderLength,
  type EemBadPacket,
  type EemSink,
  maxEemEchoBytes,
  readEemBundle,
  writeEemCommand,
  writeEemCrc,
  writeEemDataHeader,
  writeEemPadding,
} from '../wire/eem.ts';
import { ethernetHeaderLength } from '../wire/ethernet.ts';
import type {
  BindContext,
  DriverBinding,
  DriverFlags,
  DriverHooks,
  DriverHost,
  Minidriver,
} from '../usbnet/minidriver.ts';
import { type Packet, packetCapacityBytes } from '../usbnet/packet.ts';
import { type Procedure, setInterface } from '../usbnet/procedure.ts';
import type { Transfer } from '../usbnet/transfer.ts';
import { requireDataEndpoints } from './data-endpoints.ts';
import { requireCompleted } from './usb-strings.ts';

const usualMtuBytes = 1500;
const overheadBytes = ethernetHeaderLength + eemHeaderLength + eemCrcLength;
const maxMtuBytes = packetCapacityBytes - ethernetHeaderLength;

const flags: DriverFlags = {
  sendZlp: false,
  multiPacket: false,
  linkInterrupt: false,
};

/** CDC-EEM: one interface, two endpoints, no conversation at all; frames and link commands in bundles (spec 3.10). */
export const cdcEem: Minidriver = {
  name: 'cdc_eem',

  *bind(context: BindContext): Procedure<DriverBinding> {
    const { configuration } = context.device;
    const { controlInterface } = context.match;
    const data = requireDataEndpoints(configuration, controlInterface);
    const { alternateSetting } = data.altSetting;
    if (alternateSetting !== 0) {
      requireCompleted('select the altsetting', yield* setInterface(controlInterface, alternateSetting));
    }
    const maxPacketBytes = data.bulkOut.maxPacketSize;
    return {
      name: 'cdc_eem',
      networkFunction: context.match.networkFunction,
      flags,
      controlInterface,
      dataInterface: controlInterface,
      bulkIn: data.bulkIn.address,
      bulkOut: data.bulkOut.address,
      statusEndpoint: undefined,
      // The protocol has no place for one.
      macAddress: undefined,
      hardMtuBytes: usualMtuBytes + overheadBytes,
      rxUrbSizeBytes: undefined,
      mtuBytes: usualMtuBytes,
      maxMtuBytes,
      maxPacketsPerTransfer: 1,
      // An answer to an echo may go along with a frame; the rest is for padding.
      txBufferBytes:
        packetCapacityBytes + 2 * eemHeaderLength + eemCrcLength + maxEemEchoBytes + eemHeaderLength + 1,
      facts: {},
      start: (host) => new CdcEemHooks(host, maxPacketBytes),
    };
  },
};

/** What the device has said of the link; nothing comes of it. */
export interface EemLinkCommands {
  echoesAnswered: number;
  /** Echoes that came before the one before was answered. */
  echoesDropped: number;
  suspendHints: number;
  responseHints: number;
  /** Commands that a device has no business sending. */
  unexpected: number;
}

class CdcEemHooks implements DriverHooks, EemSink {
  readonly #host: DriverHost;
  readonly #maxPacketBytes: number;
  readonly commands: EemLinkCommands = {
    echoesAnswered: 0,
    echoesDropped: 0,
    suspendHints: 0,
    responseHints: 0,
    unexpected: 0,
  };
  /** The data of an echo that is to be answered. */
  readonly #echo = new Uint8Array(maxEemEchoBytes);
  #echoLength = -1;
  /** Of the transfer that is being read. */
  #nowUs = 0;

  constructor(host: DriverHost, maxPacketBytes: number) {
    this.#host = host;
    this.#maxPacketBytes = maxPacketBytes;
  }

  /** A frame, the answer to an echo, or both in one bundle. */
  txFixup(packet: Packet | null, nowUs: number): Transfer | undefined {
    if (packet === null && this.#echoLength < 0) return undefined;
    const transfer = this.#host.takeTxTransfer();
    if (transfer === undefined) {
      packet?.release();
      return undefined;
    }
    let position = this.#writeEcho(transfer.buffer);
    if (packet !== null) {
      // As Linux does it: with a CRC, that is what devices are tried with.
      const { length } = packet;
      writeEemDataHeader(transfer.buffer, position, length, true);
      position += eemHeaderLength;
      transfer.buffer.set(packet.frame, position);
      writeEemCrc(transfer.buffer, position, length, true);
      position += length + eemCrcLength;
      transfer.payloadBytes = length;
      transfer.addPacket(packet.tag, nowUs);
      packet.release();
    }
    if (position % this.#maxPacketBytes === 0) {
      // A single byte would be half a header: an empty packet keeps the transfer off a packet boundary.
      writeEemPadding(transfer.buffer, position);
      position += eemHeaderLength;
    }
    transfer.length = position;
    return transfer;
  }

  #writeEcho(buffer: Uint8Array): number {
    const length = this.#echoLength;
    if (length < 0) return 0;
    this.#echoLength = -1;
    this.commands.echoesAnswered++;
    writeEemCommand(buffer, 0, eemCommands.echoResponse, length);
    buffer.set(this.#echo.subarray(0, length), eemHeaderLength);
    return eemHeaderLength + length;
  }

  hasPendingTx(): boolean {
    return this.#echoLength >= 0;
  }

  dropPendingTx(): void {
    this.#echoLength = -1;
  }

  rxFixup(transfer: Transfer, nowUs: number): boolean {
    this.#nowUs = nowUs;
    const result = readEemBundle(transfer.buffer, transfer.actualLength, this);
    if (result === 'ok') return true;
    const { stats } = this.#host;
    stats.rxLengthErrors++;
    stats.countRxFault(result);
    return false;
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    this.#host.receive(bytes, offset, length, this.#nowUs);
  }

  handleCommand(command: number, parameter: number, bytes: Uint8Array, offset: number): void {
    switch (command) {
      case eemCommands.echo:
        if (this.#echoLength >= 0) {
          this.commands.echoesDropped++;
          return;
        }
        this.#echo.set(bytes.subarray(offset, offset + parameter));
        this.#echoLength = parameter;
        break;
      case eemCommands.suspendHint:
        this.commands.suspendHints++;
        break;
      case eemCommands.responseHint:
      case eemCommands.responseCompleteHint:
        this.commands.responseHints++;
        break;
      default:
        this.commands.unexpected++;
        this.#host.stats.countRxFault('unexpected-command');
        break;
    }
  }

  handleBadPacket(reason: EemBadPacket): void {
    const { stats } = this.#host;
    stats.countRxFault(reason);
    if (reason === 'reserved-command') return;
    stats.rxErrors++;
    if (reason === 'runt') stats.rxLengthErrors++;
    else stats.rxCrcErrors++;
  }
}
