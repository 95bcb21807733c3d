import { formatCount } from '../base/units.ts';
import type {
  BindContext,
  DriverBinding,
  DriverFlags,
  DriverHooks,
  DriverHost,
  Minidriver,
  RxMode,
} from '../usbnet/minidriver.ts';
import { type Packet, packetCapacityBytes } from '../usbnet/packet.ts';
import { DriverError, type Procedure, setInterface } from '../usbnet/procedure.ts';
import type { Transfer } from '../usbnet/transfer.ts';
import { ethernetHeaderLength } from '../wire/ethernet.ts';
import { findCdcFunction } from './cdc-function.ts';
import { requireDataEndpoints } from './data-endpoints.ts';
import { LinkNotifications } from './link-notifications.ts';
import { setPacketFilter } from './packet-filter.ts';
import { frameToTransfer, transferToFrame } from './plain-framing.ts';
import { findStatusEndpoint } from './status-endpoint.ts';
import { readMacAddress, requireCompleted } from './usb-strings.ts';

const usualFrameBytes = 1514;
const usualMtuBytes = 1500;
/** A device that claims less than any IPv4 host must take (68 bytes and a header) is not believed. */
const leastFrameBytes = 68 + ethernetHeaderLength;

const flags: DriverFlags = {
  sendZlp: false,
  multiPacket: false,
  linkInterrupt: false,
};

/** CDC-ECM: one Ethernet frame a transfer, nothing around it (spec 3.1). */
export const cdcEther: Minidriver = {
  name: 'cdc_ether',

  *bind(context: BindContext): Procedure<DriverBinding> {
    const { configuration } = context.device;
    const cdc = findCdcFunction(configuration, context.match.controlInterface);
    if (cdc?.functional.ethernet === undefined) {
      throw new DriverError('bind', 'the control interface has no Ethernet functional descriptor');
    }
    const { ethernet } = cdc.functional;
    const data = requireDataEndpoints(configuration, cdc.dataInterface);
    requireCompleted(
      'select the data altsetting',
      yield* setInterface(cdc.dataInterface, data.altSetting.alternateSetting),
    );
    yield* setPacketFilter(cdc.controlInterface, { promiscuous: false, multicast: false });
    const macAddress = yield* readMacAddress(ethernet.macAddressIndex);
    const segmentBytes =
      ethernet.maxSegmentSize >= leastFrameBytes ? ethernet.maxSegmentSize : usualFrameBytes;
    const maxMtuBytes = Math.min(segmentBytes, packetCapacityBytes) - ethernetHeaderLength;
    const { controlInterface } = cdc;
    return {
      name: 'cdc_ether',
      networkFunction: context.match.networkFunction,
      flags,
      controlInterface,
      dataInterface: cdc.dataInterface,
      bulkIn: data.bulkIn.address,
      bulkOut: data.bulkOut.address,
      statusEndpoint: findStatusEndpoint(configuration, controlInterface),
      macAddress,
      hardMtuBytes: segmentBytes,
      hardHeaderBytes: ethernetHeaderLength,
      rxUrbSizeBytes: undefined,
      mtuBytes: Math.min(usualMtuBytes, maxMtuBytes),
      maxMtuBytes,
      maxPacketsPerTransfer: 1,
      // One byte more than a packet, for the byte that keeps a transfer off a packet boundary.
      txBufferBytes: packetCapacityBytes + 1,
      facts: { 'Largest frame': `${formatCount(segmentBytes)} bytes` },
      start: (host) => new CdcEtherHooks(host, controlInterface),
    };
  },
};

class CdcEtherHooks implements DriverHooks {
  readonly #host: DriverHost;
  readonly #controlInterface: number;
  readonly #notifications: LinkNotifications;

  constructor(host: DriverHost, controlInterface: number) {
    this.#host = host;
    this.#controlInterface = controlInterface;
    this.#notifications = new LinkNotifications(host, 'uplink-first');
  }

  txFixup(packet: Packet | null, nowUs: number): Transfer | undefined {
    return frameToTransfer(this.#host, packet, nowUs);
  }

  rxFixup(transfer: Transfer, nowUs: number): boolean {
    return transferToFrame(this.#host, transfer, nowUs);
  }

  status(bytes: Uint8Array, length: number, nowUs: number): void {
    this.#notifications.handle(bytes, length, nowUs);
  }

  setRxMode(mode: RxMode): Procedure<void> {
    return setPacketFilter(this.#controlInterface, mode);
  }
}
