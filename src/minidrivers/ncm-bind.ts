import { cdcRequests, ncmCapabilityBits } from '../wire/cdc-class.ts';
import type { CdcFunctional } from '../wire/cdc-functional.ts';
import { ethernetHeaderLength } from '../wire/ethernet.ts';
import {
  ntbFormatBits,
  ntbFormatValues,
  type NtbParameters,
  ntbParametersLength,
  parseNtbParameters,
} from '../wire/ntb.ts';
import { readUint16Le, writeUint16Le, writeUint32Le } from '../wire/byte-order.ts';
import type {
  BindContext,
  DriverBinding,
  DriverFlags,
  DriverHost,
  MinidriverName,
} from '../usbnet/minidriver.ts';
import { packetCapacityBytes } from '../usbnet/packet.ts';
import {
  controlIn,
  controlOut,
  DriverError,
  type Procedure,
  setInterface,
  sleep,
} from '../usbnet/procedure.ts';
import { findCdcFunction } from './cdc-function.ts';
import { requireDataEndpoints } from './data-endpoints.ts';
import type { Quirk } from './device-rule.ts';
import { functionalOf } from './function-layout.ts';
import { agreeOnNtbs, describeNtbs, type NcmAgreement, type NtbPreferences } from './ncm-agreement.ts';
import type { NcmHooks, NcmHooksOptions } from './ncm-hooks.ts';
import { setPacketFilter } from './packet-filter.ts';
import { findStatusEndpoint } from './status-endpoint.ts';
import { readMacAddress, requireCompleted } from './usb-strings.ts';

/** Between the parameters and the data altsetting: some devices need a moment. */
const settleUs = 15_000;
const usualMtuBytes = 1500;
const crcAppended = 1;

/** A driver of the NCM family: what it does otherwise than cdc_ncm, for all of its devices. */
export interface NcmVariant {
  readonly name: MinidriverName;
  readonly preferences: NtbPreferences;
  /** The carrier starts off and follows the interrupt endpoint. */
  readonly linkInterrupt: boolean;
  makeHooks(host: DriverHost, options: NcmHooksOptions, controlInterface: number): NcmHooks;
}

/** Sets an NCM function up (spec 3.2): all that cdc_ncm and those who build on it have in common. */
export function* bindNcm(variant: NcmVariant, context: BindContext): Procedure<DriverBinding> {
  const { device, match, tuning } = context;
  const { configuration } = device;
  const has = (quirk: Quirk): boolean => match.quirks.includes(quirk);
  const { functional, controlInterface, dataInterface } = layoutOf(context);
  const { ethernet } = functional;
  if (ethernet === undefined) {
    throw new DriverError('bind', 'the control interface has no Ethernet functional descriptor');
  }
  const data = requireDataEndpoints(configuration, dataInterface);
  const dataAltSetting = data.altSetting.alternateSetting;

  if (!has('avoid-altsetting-toggle')) {
    // Some devices only start afresh when the altsetting really changes, so it is set and set back first.
    yield* setInterface(dataInterface, dataAltSetting);
  }
  requireCompleted('select data altsetting 0', yield* setInterface(dataInterface, 0));
  const parameters = yield* readNtbParameters(controlInterface);
  const agreement = agreeOnNtbs(parameters, ethernet.maxSegmentSize, data.bulkOut.maxPacketSize, {
    ndpToEnd: variant.preferences.ndpToEnd || has('ndp-to-end'),
    preferNtb32: variant.preferences.preferNtb32 || has('prefer-ntb32'),
  });
  const withCrc = yield* setFormat(functional, controlInterface, parameters, agreement);
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

  const flags: DriverFlags = {
    sendZlp: has('send-zlp'),
    multiPacket: true,
    linkInterrupt: variant.linkInterrupt && !has('no-link-interrupt'),
  };
  const maxMtuBytes = Math.min(agreement.maxDatagramBytes, packetCapacityBytes) - ethernetHeaderLength;
  const hooksOptions: NcmHooksOptions = {
    agreement,
    maxMtuBytes,
    reselect,
    tx: {
      geometry: agreement.geometry,
      maxNtbBytes: agreement.txMaxBytes,
      minTxPacketBytes: agreement.minTxPacketBytes,
      maxPacketBytes: data.bulkOut.maxPacketSize,
      sendZlp: flags.sendZlp,
      withCrc,
      txTimerUs: tuning.txTimerUs,
    },
  };
  return {
    name: variant.name,
    networkFunction: match.networkFunction,
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
    facts: describeNtbs(parameters, agreement, tuning.txTimerUs),
    start: (host) => variant.makeHooks(host, hooksOptions, controlInterface),
  };
}

/** By the descriptors; a function that is all in one interface is where its match says. */
function layoutOf({ device, match }: BindContext): {
  readonly functional: CdcFunctional;
  readonly controlInterface: number;
  readonly dataInterface: number;
} {
  const { controlInterface, dataInterface } = match;
  const found = findCdcFunction(device.configuration, controlInterface);
  if (found !== undefined) return found;
  const functional = functionalOf(device.configuration, controlInterface);
  if (functional === undefined) {
    throw new DriverError('bind', `there is no interface ${controlInterface}`);
  }
  return { functional, controlInterface, dataInterface };
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

/**
 * CRC mode and format (spec 3.2, bind steps 4 and 5). Devices that refuse go on as they were. True: frames have a CRC,
 * which the device would not do without.
 */
function* setFormat(
  functional: CdcFunctional,
  controlInterface: number,
  parameters: NtbParameters,
  agreement: NcmAgreement,
): Procedure<boolean> {
  let withCrc = false;
  if (((functional.ncm?.capabilities ?? 0) & ncmCapabilityBits.crcMode) !== 0) {
    const noCrc = 0;
    const status = yield* controlOut('class-interface', cdcRequests.setCrcMode, noCrc, controlInterface);
    if (status !== 'completed') {
      const answer = yield* controlIn('class-interface', cdcRequests.getCrcMode, 0, controlInterface, 2);
      withCrc = answer.status === 'completed' && readUint16Le(answer.data, 0) === crcAppended;
    }
  }
  if ((parameters.formats & ntbFormatBits.ntb32) !== 0) {
    const format = ntbFormatValues[agreement.format];
    yield* controlOut('class-interface', cdcRequests.setNtbFormat, format, controlInterface);
  }
  return withCrc;
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
