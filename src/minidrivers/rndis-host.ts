import { neverUs } from '../base/clock.ts';
import { formatCount } from '../base/units.ts';
import { readUint32Le, writeUint32Le } from '../wire/byte-order.ts';
import { ethernetHeaderLength } from '../wire/ethernet.ts';
import { macAddressIsUsable } from '../wire/mac-address.ts';
import {
  readRndisPackets,
  rndisFilterBits,
  rndisOids,
  rndisPacketHeaderLength,
  rndisStatuses,
  writeRndisPacketHeader,
} from '../wire/rndis.ts';
import type {
  BindContext,
  DriverBinding,
  DriverFlags,
  DriverHooks,
  DriverHost,
  Minidriver,
} from '../usbnet/minidriver.ts';
import { type Packet, packetCapacityBytes } from '../usbnet/packet.ts';
import { describeStatus, DriverError, type Procedure, setInterface } from '../usbnet/procedure.ts';
import type { Transfer } from '../usbnet/transfer.ts';
import { findCdcFunction } from './cdc-function.ts';
import { requireDataEndpoints } from './data-endpoints.ts';
import { RndisControl } from './rndis-control.ts';
import { findStatusEndpoint } from './status-endpoint.ts';
import { requireCompleted } from './usb-strings.ts';

const usualMtuBytes = 1500;
const overheadBytes = ethernetHeaderLength + rndisPacketHeaderLength;
/** A device that can't take what any IPv4 host must be able to is not driven. */
const leastMtuBytes = 68;
const macAddressLength = 6;
/** Windows asks for the address with as much room; devices have come to count on it (spec 3.4). */
const addressRoomBytes = 48;
const wirelessLan = 1;
/** Everything: the host sorts out what it does not want, and devices are tried with nothing else (spec 3.4). */
const packetFilter =
  rndisFilterBits.directed |
  rndisFilterBits.allMulticast |
  rndisFilterBits.broadcast |
  rndisFilterBits.promiscuous;
/** A device that has not been heard of for so long is asked whether it is still there. */
const keepAliveUs = 5_000_000;
/** So many silences in a row, and the conversation is begun anew. */
const silencesAllowed = 2;

const flags: DriverFlags = {
  sendZlp: false,
  multiPacket: false,
  linkInterrupt: false,
};

/** RNDIS: Microsoft's adapter protocol, as phones, modems and many gadgets speak it (spec 3.4). */
export const rndisHost: Minidriver = {
  name: 'rndis_host',

  *bind(context: BindContext): Procedure<DriverBinding> {
    const { configuration } = context.device;
    const cdc = findCdcFunction(configuration, context.match.controlInterface);
    if (cdc === undefined) throw new DriverError('bind', 'the control interface has no data interface');
    const { controlInterface, dataInterface } = cdc;
    const data = requireDataEndpoints(configuration, dataInterface);
    const { alternateSetting } = data.altSetting;
    if (alternateSetting !== 0) {
      requireCompleted('select the data altsetting', yield* setInterface(dataInterface, alternateSetting));
    }

    const session = new RndisSession(controlInterface, receiveBytes(data.bulkOut.maxPacketSize));
    const maxTransferBytes = yield* session.initialize();
    // A device that names no size is taken to be able to do the usual.
    const hardMtuBytes = Math.min(
      maxTransferBytes === 0 ? Number.POSITIVE_INFINITY : maxTransferBytes,
      usualMtuBytes + overheadBytes,
    );
    if (hardMtuBytes < leastMtuBytes + overheadBytes) {
      yield* session.control.halt();
      throw new DriverError('bind', `the device takes ${maxTransferBytes} bytes at most`);
    }
    let macAddress: Uint8Array;
    let medium: number | undefined;
    try {
      medium = yield* session.physicalMedium();
      macAddress = yield* session.control.query(
        'read the MAC address',
        rndisOids.permanentAddress,
        addressRoomBytes,
        macAddressLength,
      );
      yield* session.setPacketFilter();
    } catch (error) {
      yield* session.control.halt();
      throw error;
    }
    const address = macAddress.slice(0, macAddressLength);
    const mtuBytes = hardMtuBytes - overheadBytes;
    return {
      name: 'rndis_host',
      networkFunction: context.match.networkFunction,
      flags,
      controlInterface,
      dataInterface,
      bulkIn: data.bulkIn.address,
      bulkOut: data.bulkOut.address,
      statusEndpoint: findStatusEndpoint(configuration, controlInterface),
      macAddress: macAddressIsUsable(address) ? address : undefined,
      hardMtuBytes,
      rxUrbSizeBytes: session.receiveBytes,
      mtuBytes,
      maxMtuBytes: mtuBytes,
      maxPacketsPerTransfer: 1,
      // One byte more than a packet, for the byte that keeps a transfer off a packet boundary.
      txBufferBytes: packetCapacityBytes + rndisPacketHeaderLength + 1,
      facts: {
        'Largest transfer': `${formatCount(maxTransferBytes)} bytes`,
        ...(medium === wirelessLan ? { Medium: 'wireless LAN' } : {}),
      },
      start: (host) => new RndisHostHooks(host, session, { mtuBytes, dataInterface, alternateSetting }),
    };
  },
};

/** `rx_urb_size` (spec 2.2): a packet and more, in whole USB packets. */
function receiveBytes(maxPacketBytes: number): number {
  const wanted = usualMtuBytes + overheadBytes + maxPacketBytes + 1;
  return wanted - (wanted % maxPacketBytes);
}

/** What is known of the cable or radio behind the device. */
type Media = 'connected' | 'doubtful' | 'disconnected';

/** What is said on the control endpoint from INITIALIZE to HALT; it begins before there is a usbnet. */
class RndisSession {
  readonly control: RndisControl;
  readonly receiveBytes: number;
  media: Media = 'connected';
  initialized = false;

  constructor(controlInterface: number, bytes: number) {
    this.receiveBytes = bytes;
    this.control = new RndisControl(controlInterface, (status) => this.#handleIndication(status));
  }

  #handleIndication(status: number): void {
    if (status === rndisStatuses.mediaConnect) this.media = 'connected';
    // Devices say so while they are being set up, and do not always take it back: it is asked about.
    else if (status === rndisStatuses.mediaDisconnect) this.media = 'doubtful';
  }

  /** Returns the longest transfer that the device takes, bytes. */
  *initialize(): Procedure<number> {
    const answer = yield* this.control.command('initialise RNDIS', {
      kind: 'initialize',
      maxTransferBytes: this.receiveBytes,
    });
    this.initialized = true;
    return answer.maxTransferBytes;
  }

  *setPacketFilter(): Procedure<void> {
    const information = new Uint8Array(4);
    writeUint32Le(information, 0, packetFilter);
    yield* this.control.command('set the packet filter', {
      kind: 'set',
      oid: rndisOids.currentPacketFilter,
      information,
    });
  }

  /** Undefined if the device does not say. */
  *physicalMedium(): Procedure<number | undefined> {
    return yield* this.#number('read the physical medium', rndisOids.physicalMedium);
  }

  /** Asks whether there is a link where that is doubtful, or was missing when it was last asked. */
  *settleMedia(): Procedure<void> {
    if (this.media === 'connected') return;
    const status = yield* this.#number('read the media status', rndisOids.mediaConnectStatus);
    if (status === 0) this.media = 'connected';
    else if (status !== undefined || this.media === 'doubtful') this.media = 'disconnected';
  }

  *#number(stage: string, oid: number): Procedure<number | undefined> {
    try {
      return readUint32Le(yield* this.control.query(stage, oid, 0, 4), 0);
    } catch (error) {
      if (error instanceof DriverError && error.status !== 'gone') return undefined;
      throw error;
    }
  }
}

interface BoundFacts {
  readonly mtuBytes: number;
  readonly dataInterface: number;
  readonly alternateSetting: number;
}

class RndisHostHooks implements DriverHooks {
  readonly #host: DriverHost;
  readonly #session: RndisSession;
  readonly #bound: BoundFacts;
  /** Of the transfer that is being read. */
  #nowUs = 0;
  readonly #receive = (bytes: Uint8Array, offset: number, length: number): void => {
    this.#host.receive(bytes, offset, length, this.#nowUs);
  };
  #announced = false;
  /** 0: it is to start running. */
  #timerAtUs = neverUs;
  /** When work was asked for last. */
  #askedAtUs = 0;
  /** Transfers received when the timer last ran. */
  #heardTransfers = 0;
  #silences = 0;
  #keepAliveDue = false;
  /** As usbnet was told last. */
  #linkIsUp = true;

  constructor(host: DriverHost, session: RndisSession, bound: BoundFacts) {
    this.#host = host;
    this.#session = session;
    this.#bound = bound;
  }

  /** One packet a transfer behind its header. What usbnet pads it with is not part of the message. */
  txFixup(packet: Packet | null, nowUs: number): Transfer | undefined {
    if (packet === null) return undefined;
    const transfer = this.#host.takeTxTransfer();
    const room = transfer === undefined ? 0 : transfer.buffer.length - rndisPacketHeaderLength;
    if (transfer === undefined || packet.length >= room) {
      if (transfer !== undefined) this.#host.giveTxTransfer(transfer);
      packet.release();
      return undefined;
    }
    const { length } = packet;
    writeRndisPacketHeader(transfer.buffer, 0, length);
    transfer.buffer.set(packet.frame, rndisPacketHeaderLength);
    transfer.length = rndisPacketHeaderLength + length;
    transfer.payloadBytes = length;
    transfer.addPacket(packet.tag, nowUs);
    packet.release();
    return transfer;
  }

  rxFixup(transfer: Transfer, nowUs: number): boolean {
    this.#nowUs = nowUs;
    const result = readRndisPackets(transfer.buffer, transfer.actualLength, this.#receive);
    if (result === 'ok') return true;
    const { stats } = this.#host;
    if (result === 'short') stats.rxLengthErrors++;
    else stats.rxFrameErrors++;
    stats.countRxFault(result);
    return false;
  }

  /** RESPONSE_AVAILABLE, in RNDIS' form or in CDC's: whatever it is, there is something to fetch. */
  status(_bytes: Uint8Array, length: number, nowUs: number): void {
    if (length === 0) return;
    this.#announced = true;
    this.#askedAtUs = nowUs;
    this.#host.scheduleWork(nowUs);
  }

  timerAtUs(): number {
    return this.#timerAtUs;
  }

  timer(nowUs: number): void {
    const starts = this.#timerAtUs === 0;
    this.#timerAtUs = nowUs + keepAliveUs;
    const { rxTransfers } = this.#host.stats;
    const silent = rxTransfers === this.#heardTransfers;
    this.#heardTransfers = rxTransfers;
    if (starts || (!silent && this.#session.media === 'connected')) return;
    this.#keepAliveDue = true;
    this.#askedAtUs = nowUs;
    this.#host.scheduleWork(nowUs);
  }

  *work(): Procedure<void> {
    if (this.#announced) {
      this.#announced = false;
      yield* this.#session.control.fetchUnasked();
    }
    if (this.#keepAliveDue) {
      this.#keepAliveDue = false;
      yield* this.#keepAlive();
    }
    yield* this.#session.settleMedia();
    this.#reportLink();
  }

  *#keepAlive(): Procedure<void> {
    try {
      yield* this.#session.control.command('keep the conversation alive', { kind: 'keep-alive' });
      this.#silences = 0;
    } catch (error) {
      if (!(error instanceof DriverError) || error.status === 'gone') throw error;
      this.#silences++;
      this.#host.log.log('warn', 'RNDIS keep-alive failed', { reason: error.message });
      if (this.#silences < silencesAllowed) return;
      this.#silences = 0;
      yield* this.#beginAnew();
    }
  }

  #reportLink(): void {
    const up = this.#session.media !== 'disconnected';
    if (up === this.#linkIsUp) return;
    this.#linkIsUp = up;
    this.#host.linkChange(up, false, this.#askedAtUs);
  }

  /** Devices lose their filter, or all they knew, between two times of use (spec 3.4): it is set each time. */
  *reset(): Procedure<void> {
    yield* this.#setUp();
    this.#heardTransfers = this.#host.stats.rxTransfers;
    this.#timerAtUs = 0;
  }

  /** Devices lose their filter with SET_INTERFACE, too. */
  *reselect(): Procedure<void> {
    const { dataInterface, alternateSetting } = this.#bound;
    const status = yield* setInterface(dataInterface, alternateSetting);
    if (status !== 'completed' && status !== 'stall') {
      throw new DriverError('select the data altsetting', describeStatus(status), status);
    }
    yield* this.#setUp();
  }

  *#setUp(): Procedure<void> {
    const session = this.#session;
    if (session.initialized) {
      try {
        yield* session.setPacketFilter();
        return;
      } catch (error) {
        if (!(error instanceof DriverError) || error.status === 'gone') throw error;
      }
    }
    yield* this.#beginAnew();
  }

  *#beginAnew(): Procedure<void> {
    yield* this.#session.initialize();
    yield* this.#session.setPacketFilter();
  }

  *stop(): Procedure<void> {
    this.#timerAtUs = neverUs;
    if (!this.#session.initialized) return;
    this.#session.initialized = false;
    yield* this.#session.control.halt();
  }

  /** Sizes do not follow the MTU. */
  changeMtu(mtuBytes: number): boolean {
    return mtuBytes <= this.#bound.mtuBytes;
  }
}
