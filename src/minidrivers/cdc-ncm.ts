import { formatCount, formatDuration } from '../base/units.ts';
import { cdcRequests, ncmCapabilityBits } from '../wire/cdc-class.ts';
import type { CdcFunctional } from '../wire/cdc-functional.ts';
import { ethernetHeaderLength } from '../wire/ethernet.ts';
import {
  alignedPosition,
  ndpLengthFor,
  type NtbFormat,
  ntbFormatBits,
  ntbFormatValues,
  ntbLayouts,
  type NtbParameters,
  ntbParametersLength,
  parseNtbParameters,
} from '../wire/ntb.ts';
import { NtbReader, type NtbSink } from '../wire/ntb-reader.ts';
import type { NtbGeometry } from '../wire/ntb-writer.ts';
import { readUint16Le, writeUint16Le, writeUint32Le } from '../wire/byte-order.ts';
import { findDataEndpoints } from '../usbnet/endpoints.ts';
import type {
  BindContext,
  DriverBinding,
  DriverFlags,
  DriverHooks,
  DriverHost,
  Minidriver,
} from '../usbnet/minidriver.ts';
import { type Packet, packetCapacityBytes } from '../usbnet/packet.ts';
import {
  controlIn,
  controlOut,
  DriverError,
  type Procedure,
  setInterface,
  sleep,
} from '../usbnet/procedure.ts';
import type { Transfer } from '../usbnet/transfer.ts';
import { findCdcFunction } from './cdc-function.ts';
import { LinkNotifications } from './link-notifications.ts';
import { NcmTx, type NcmTxOptions } from './ncm-tx.ts';
import { setPacketFilter } from './packet-filter.ts';
import { findStatusEndpoint } from './status-endpoint.ts';
import { readMacAddress, requireCompleted } from './usb-strings.ts';

// Sizes in bytes, as Linux has them (spec 3.2).
const ntbMaxBytes = 65_536;
const ntbDefaultBytes = 16_384;
const ntbMinBytes = 2048;
const minDatagramBytes = 1514;
const maxDatagramBytes = 8192;
const maxDatagramsPerNtb = 40;
const minTxPacketBytes = 512;
/** The NDP's alignment where the device names none that can be used. */
const defaultModulus = 4;
const defaultRemainder = -ethernetHeaderLength & (defaultModulus - 1);
/** Between the parameters and the data altsetting: some devices need a moment. */
const settleUs = 15_000;
const usualMtuBytes = 1500;

const flags: DriverFlags = {
  sendZlp: false,
  multiPacket: true,
  linkInterrupt: true,
};

/** What host and device agree on: sizes of NTBs each way and how they are laid out. */
export interface NcmAgreement {
  readonly format: NtbFormat;
  readonly rxMaxBytes: number;
  readonly txMaxBytes: number;
  readonly maxDatagramBytes: number;
  readonly minTxPacketBytes: number;
  readonly geometry: NtbGeometry;
}

function clamp(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(value, high));
}

/** A modulus that can be used: a power of two from 4 up to the size of an NTB; else 4. */
function usableModulus(value: number, txMaxBytes: number): number {
  const isPowerOfTwo = value > 0 && (value & (value - 1)) === 0;
  return isPowerOfTwo && value >= defaultModulus && value <= txMaxBytes ? value : defaultModulus;
}

/**
 * What Linux makes of a device's NTB parameters (spec 3.2, bind steps 6 and 9).
 * @param maxSegmentBytes `wMaxSegmentSize` of the Ethernet functional descriptor
 * @param maxPacketBytes wMaxPacketSize of the bulk OUT endpoint
 */
export function agreeOnNtbs(
  parameters: NtbParameters,
  maxSegmentBytes: number,
  maxPacketBytes: number,
): NcmAgreement {
  // NTB16 is what every device has, even one that says nothing; Linux prefers it.
  const { ntb16, ntb32 } = ntbFormatBits;
  const format: NtbFormat = (parameters.formats & (ntb16 | ntb32)) === ntb32 ? 'ntb32' : 'ntb16';
  const maxDatagrams =
    parameters.outMaxDatagrams === 0 || parameters.outMaxDatagrams > maxDatagramsPerNtb
      ? maxDatagramsPerNtb
      : parameters.outMaxDatagrams;
  const datagramBytes = clamp(maxSegmentBytes, minDatagramBytes, maxDatagramBytes);

  const rxMaxBytes = clamp(
    Math.min(ntbDefaultBytes, parameters.inMaxSize),
    ntbMinBytes,
    Math.max(ntbMinBytes, Math.min(ntbMaxBytes, parameters.inMaxSize)),
  );
  const outMaxBytes = Math.max(ntbMinBytes, Math.min(ntbMaxBytes, parameters.outMaxSize));
  const lowest = datagramBytes + ndpLengthFor(format, maxDatagrams) + ntbLayouts[format].headerLength;
  let txMaxBytes = clamp(
    Math.min(ntbDefaultBytes, parameters.outMaxSize),
    Math.min(lowest, outMaxBytes),
    outMaxBytes,
  );
  if (txMaxBytes !== parameters.outMaxSize && txMaxBytes % maxPacketBytes === 0) {
    // Not the device's own maximum, so a full NTB has to end with a short packet.
    txMaxBytes++;
  }

  return {
    format,
    rxMaxBytes,
    txMaxBytes,
    maxDatagramBytes: datagramBytes,
    minTxPacketBytes: clamp(txMaxBytes - 3 * maxPacketBytes, minTxPacketBytes, txMaxBytes),
    geometry: agreeOnGeometry(format, parameters, maxDatagrams, txMaxBytes),
  };
}

/** How NTBs are laid out: as the device asks, unless no frame would have room in one then. */
function agreeOnGeometry(
  format: NtbFormat,
  parameters: NtbParameters,
  maxDatagrams: number,
  txMaxBytes: number,
): NtbGeometry {
  const ndpModulus = usableModulus(parameters.outAlignment, txMaxBytes);
  const modulus = usableModulus(parameters.outDivisor, txMaxBytes);
  const asked = parameters.outPayloadRemainder < modulus ? parameters.outPayloadRemainder : 0;
  // What is aligned is the payload behind the Ethernet header.
  const remainder = (asked - ethernetHeaderLength) & (modulus - 1);
  const geometry: NtbGeometry = { format, ndpModulus, modulus, remainder, maxDatagrams, ndpToEnd: false };
  const ndpOffset = alignedPosition(ntbLayouts[format].headerLength, ndpModulus, 0);
  const ndpEnd = ndpOffset + ndpLengthFor(format, maxDatagrams);
  const fits = alignedPosition(ndpEnd, modulus, remainder) + minDatagramBytes <= txMaxBytes;
  const byDefault = { ndpModulus: defaultModulus, modulus: defaultModulus, remainder: defaultRemainder };
  return fits ? geometry : { ...geometry, ...byDefault };
}

/** CDC-NCM: many Ethernet frames a transfer, in NTBs (spec 3.2). */
export const cdcNcm: Minidriver = {
  name: 'cdc_ncm',

  *bind(context: BindContext): Procedure<DriverBinding> {
    const { configuration } = context.device;
    const cdc = findCdcFunction(configuration, context.match.controlInterface);
    if (cdc?.functional.ethernet === undefined) {
      throw new DriverError('bind', 'the control interface has no Ethernet functional descriptor');
    }
    const { functional, controlInterface, dataInterface } = cdc;
    const { ethernet } = cdc.functional;
    const data = findDataEndpoints(configuration, dataInterface);
    if (data === undefined) {
      throw new DriverError('bind', `interface ${dataInterface} has no pair of bulk endpoints`);
    }
    const dataAltSetting = data.altSetting.alternateSetting;

    // Some devices only start afresh when the altsetting really changes, so it is set and set back first.
    yield* setInterface(dataInterface, dataAltSetting);
    requireCompleted('select data altsetting 0', yield* setInterface(dataInterface, 0));
    const parameters = yield* readNtbParameters(controlInterface);
    const agreement = agreeOnNtbs(parameters, ethernet.maxSegmentSize, data.bulkOut.maxPacketSize);
    yield* setFormat(functional, controlInterface, parameters, agreement);
    yield* sleep(settleUs);
    requireCompleted('select the data altsetting', yield* setInterface(dataInterface, dataAltSetting));
    const macAddress = yield* readMacAddress(ethernet.macAddressIndex);
    yield* setUpData(functional, controlInterface, parameters, agreement);
    // With data altsetting 0 the device goes back to what it was before all this.
    const reselect = function* (): Procedure<void> {
      requireCompleted('select data altsetting 0', yield* setInterface(dataInterface, 0));
      yield* setFormat(functional, controlInterface, parameters, agreement);
      yield* sleep(settleUs);
      requireCompleted('select the data altsetting', yield* setInterface(dataInterface, dataAltSetting));
      yield* setUpData(functional, controlInterface, parameters, agreement);
    };

    const maxMtuBytes = Math.min(agreement.maxDatagramBytes, packetCapacityBytes) - ethernetHeaderLength;
    const txOptions: NcmTxOptions = {
      geometry: agreement.geometry,
      maxNtbBytes: agreement.txMaxBytes,
      minTxPacketBytes: agreement.minTxPacketBytes,
      maxPacketBytes: data.bulkOut.maxPacketSize,
      sendZlp: flags.sendZlp,
      txTimerUs: context.tuning.txTimerUs,
    };
    return {
      name: 'cdc_ncm',
      networkFunction: context.match.networkFunction,
      flags,
      controlInterface,
      dataInterface,
      bulkIn: data.bulkIn.address,
      bulkOut: data.bulkOut.address,
      statusEndpoint: findStatusEndpoint(configuration, controlInterface),
      macAddress,
      hardMtuBytes: agreement.txMaxBytes,
      rxUrbSizeBytes: agreement.rxMaxBytes,
      mtuBytes: Math.min(usualMtuBytes, maxMtuBytes),
      maxMtuBytes,
      maxPacketsPerTransfer: agreement.geometry.maxDatagrams,
      txBufferBytes: agreement.txMaxBytes,
      facts: describeNtbs(parameters, agreement, context.tuning.txTimerUs),
      start: (host) =>
        txOptions.txTimerUs > 0
          ? new TimedCdcNcmHooks(host, agreement, txOptions, maxMtuBytes, reselect)
          : new CdcNcmHooks(host, agreement, txOptions, maxMtuBytes, reselect),
    };
  },
};

/** What was agreed on, in words. */
function describeNtbs(
  parameters: NtbParameters,
  agreement: NcmAgreement,
  txTimerUs: number,
): Readonly<Record<string, string>> {
  const { format, txMaxBytes, rxMaxBytes, geometry } = agreement;
  const sizes = (used: number, offered: number): string =>
    `${formatCount(used)} bytes, of ${formatCount(offered)} offered`;
  return {
    'NTB format': format === 'ntb16' ? 'NTB16' : 'NTB32',
    'NTB sent': sizes(txMaxBytes, parameters.outMaxSize),
    'NTB received': sizes(rxMaxBytes, parameters.inMaxSize),
    'Datagrams an NTB': `at most ${formatCount(geometry.maxDatagrams)}`,
    'NTB sent after': txTimerUs === 0 ? 'the last packet at hand' : formatDuration(txTimerUs),
  };
}

function* readNtbParameters(controlInterface: number): Procedure<NtbParameters> {
  const answer = yield* controlIn(
    'class-interface',
    cdcRequests.getNtbParameters,
    0,
    controlInterface,
    ntbParametersLength,
  );
  requireCompleted('read the NTB parameters', answer.status);
  const parameters = parseNtbParameters(answer.data);
  if (parameters === undefined) {
    throw new DriverError('read the NTB parameters', `the device sent ${answer.data.length} bytes of 28`);
  }
  return parameters;
}

/** CRC mode and format (spec 3.2, bind steps 4 and 5). Devices that refuse go on as they were. */
function* setFormat(
  functional: CdcFunctional,
  controlInterface: number,
  parameters: NtbParameters,
  agreement: NcmAgreement,
): Procedure<void> {
  const noCrc = 0;
  if (((functional.ncm?.capabilities ?? 0) & ncmCapabilityBits.crcMode) !== 0) {
    yield* controlOut('class-interface', cdcRequests.setCrcMode, noCrc, controlInterface);
  }
  if ((parameters.formats & ntbFormatBits.ntb32) !== 0) {
    const format = ntbFormatValues[agreement.format];
    yield* controlOut('class-interface', cdcRequests.setNtbFormat, format, controlInterface);
  }
}

/**
 * Sizes (spec 3.2, bind step 9): as Linux does it, once the data altsetting is chosen, since that is what devices are
 * tried with. Devices that refuse go on as they were.
 */
function* setSizes(
  functional: CdcFunctional,
  controlInterface: number,
  parameters: NtbParameters,
  agreement: NcmAgreement,
): Procedure<void> {
  if (agreement.rxMaxBytes !== parameters.inMaxSize) {
    const size = new Uint8Array(4);
    writeUint32Le(size, 0, agreement.rxMaxBytes);
    yield* controlOut('class-interface', cdcRequests.setNtbInputSize, 0, controlInterface, size);
  }
  if (((functional.ncm?.capabilities ?? 0) & ncmCapabilityBits.maxDatagramSize) !== 0) {
    const answer = yield* controlIn(
      'class-interface',
      cdcRequests.getMaxDatagramSize,
      0,
      controlInterface,
      2,
    );
    const known = answer.status === 'completed' && answer.data.length === 2;
    if (known && readUint16Le(answer.data, 0) !== agreement.maxDatagramBytes) {
      const size = new Uint8Array(2);
      writeUint16Le(size, 0, agreement.maxDatagramBytes);
      yield* controlOut('class-interface', cdcRequests.setMaxDatagramSize, 0, controlInterface, size);
    }
  }
}

/** What is set once the data altsetting is chosen. */
function* setUpData(
  functional: CdcFunctional,
  controlInterface: number,
  parameters: NtbParameters,
  agreement: NcmAgreement,
): Procedure<void> {
  yield* setSizes(functional, controlInterface, parameters, agreement);
  if (((functional.ncm?.capabilities ?? 0) & ncmCapabilityBits.ethernetFilter) !== 0) {
    yield* setPacketFilter(controlInterface, { promiscuous: false, multicast: false });
  }
}

class CdcNcmHooks implements DriverHooks, NtbSink {
  protected readonly tx: NcmTx;
  readonly #host: DriverHost;
  readonly #reader: NtbReader;
  readonly #notifications: LinkNotifications;
  readonly #maxMtuBytes: number;
  /** Of the transfer that is being read. */
  #nowUs = 0;

  readonly reselect: () => Procedure<void>;

  constructor(
    host: DriverHost,
    agreement: NcmAgreement,
    txOptions: NcmTxOptions,
    maxMtuBytes: number,
    reselect: () => Procedure<void>,
  ) {
    this.#host = host;
    this.reselect = reselect;
    this.#maxMtuBytes = maxMtuBytes;
    this.tx = new NcmTx(host, txOptions);
    this.#notifications = new LinkNotifications(host, 'downlink-first');
    this.#reader = new NtbReader({ format: agreement.format, maxNtbBytes: agreement.rxMaxBytes, sink: this });
  }

  txFixup(packet: Packet | null, nowUs: number): Transfer | undefined {
    return this.tx.add(packet, nowUs);
  }

  rxFixup(transfer: Transfer, nowUs: number): boolean {
    this.#nowUs = nowUs;
    return this.#reader.read(transfer.buffer, 0, transfer.actualLength) === 'ok';
  }

  handleDatagram(bytes: Uint8Array, offset: number, length: number): void {
    this.#host.receive(bytes, offset, length, this.#nowUs);
  }

  status(bytes: Uint8Array, length: number, nowUs: number): void {
    this.#notifications.handle(bytes, length, nowUs);
  }

  hasPendingTx(): boolean {
    return this.tx.hasPending;
  }

  dropPendingTx(): void {
    this.tx.drop();
  }

  handleBrokenTx(): void {
    this.tx.realign();
  }

  /** NTB sizes do not follow the MTU. */
  changeMtu(mtuBytes: number): boolean {
    return mtuBytes <= this.#maxMtuBytes;
  }
}

/** With the aggregation timer of the kernel's driver. */
class TimedCdcNcmHooks extends CdcNcmHooks {
  flushAtUs(): number {
    return this.tx.flushAtUs;
  }

  flushDue(nowUs: number): boolean {
    return this.tx.timerDue(nowUs);
  }
}
