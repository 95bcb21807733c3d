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
import {
  asixCommands,
  asixHeaderLength,
  asixRxControlBits,
  asixStatusLength,
  asixStatusLinkByte,
} from '../wire/asix.ts';
import { ethernetHeaderLength } from '../wire/ethernet.ts';
import { setUpAx88172 } from './asix-ax88172.ts';
import { setUpAx88178 } from './asix-ax88178.ts';
import { setUpAx88772 } from './asix-ax88772.ts';
import type { AsixChip } from './asix-chip.ts';
import { readLinkMode, writeCommand } from './asix-commands.ts';
import { AsixReader, frameToAsix } from './asix-framing.ts';
import { requireDataEndpoints } from './data-endpoints.ts';
import { formatUsbId } from './described-device.ts';
import { frameToTransfer, transferToFrame } from './plain-framing.ts';
import { asixRules } from './rules/asix-rules.ts';
import { requireCompleted } from './usb-strings.ts';

const mtuBytes = 1500;
const vlanTagLength = 4;
/** What the chips with headers put into one transfer. */
const rxUrbSizeBytes = 2048;

/** The AX88172, AX88178 and AX88772 with their successors: Ethernet at USB 2 (spec 3.8). */
export const asix: Minidriver = {
  name: 'asix',

  *bind(context: BindContext): Procedure<DriverBinding> {
    const { dataInterface } = context.match;
    const data = requireDataEndpoints(context.device.configuration, dataInterface);
    requireCompleted(
      'select the altsetting',
      yield* setInterface(dataInterface, data.altSetting.alternateSetting),
    );
    const { vendorId, productId } = context.device.descriptor;
    const chip = yield* setUpChip(formatUsbId(vendorId, productId));
    const maxPacketBytes = data.bulkOut.maxPacketSize;
    const flags: DriverFlags = { sendZlp: false, multiPacket: chip.framed, linkInterrupt: true };
    return {
      name: 'asix',
      networkFunction: context.match.networkFunction,
      flags,
      controlInterface: dataInterface,
      dataInterface,
      bulkIn: data.bulkIn.address,
      bulkOut: data.bulkOut.address,
      statusEndpoint: data.interruptIn?.address,
      macAddress: chip.macAddress,
      hardMtuBytes: mtuBytes + ethernetHeaderLength,
      rxUrbSizeBytes: chip.framed ? rxUrbSizeBytes : undefined,
      mtuBytes,
      // The AX88178 could do more, but packets here hold no jumbo frames.
      maxMtuBytes: mtuBytes,
      maxPacketsPerTransfer: 1,
      // A header before the frame and one behind it, or the byte that keeps a frame off a packet boundary.
      txBufferBytes: packetCapacityBytes + 2 * asixHeaderLength,
      facts: { Chip: chip.words },
      start: (host) =>
        chip.framed ? new FramedAsixHooks(host, chip, maxPacketBytes) : new PlainAsixHooks(host, chip),
    };
  },
};

function* setUpChip(id: string): Procedure<AsixChip> {
  const chip = asixRules.find(({ ids }) => ids?.includes(id) === true)?.chip;
  switch (chip) {
    case 'AX88172':
      return yield* setUpAx88172(id);
    case 'AX88178':
      return yield* setUpAx88178();
    case 'AX88172A':
      throw new DriverError('bind', 'the AX88172A with its own ways of choosing a PHY is not driven here');
    default:
      return yield* setUpAx88772(chip === 'AX88772B');
  }
}

/** What all chips have in common: link, receiver, opening and closing. */
abstract class AsixHooks implements DriverHooks {
  protected readonly host: DriverHost;
  readonly #chip: AsixChip;

  constructor(host: DriverHost, chip: AsixChip) {
    this.host = host;
    this.#chip = chip;
  }

  abstract txFixup(packet: Packet | null, nowUs: number): Transfer | undefined;
  abstract rxFixup(transfer: Transfer, nowUs: number): boolean;

  status(bytes: Uint8Array, length: number, nowUs: number): void {
    if (length < asixStatusLength) return;
    const link = ((bytes[asixStatusLinkByte] ?? 0) & 1) !== 0;
    if (link !== this.host.carrier) this.host.linkChange(link, true, nowUs);
  }

  reset(): Procedure<void> {
    return this.#chip.reset();
  }

  *stop(): Procedure<void> {
    if (this.#chip.stop !== undefined) yield* this.#chip.stop();
  }

  *linkReset(): Procedure<boolean> {
    const { phyAddress, gigabit } = this.#chip;
    const mode = yield* readLinkMode(phyAddress, gigabit);
    if (mode === undefined) return false;
    yield* this.#chip.setMedium(mode);
    this.host.setLinkSpeed(mode.speedMbit * 1e6, mode.speedMbit * 1e6);
    return true;
  }

  *setRxMode(mode: RxMode): Procedure<void> {
    let bits = this.#chip.rxControl;
    if (mode.promiscuous) bits |= asixRxControlBits.promiscuous;
    else if (mode.multicast) bits |= asixRxControlBits.allMulticast;
    yield* writeCommand(asixCommands.writeRxControl, bits);
  }
}

class PlainAsixHooks extends AsixHooks {
  txFixup(packet: Packet | null, nowUs: number): Transfer | undefined {
    return frameToTransfer(this.host, packet, nowUs);
  }

  rxFixup(transfer: Transfer, nowUs: number): boolean {
    return transferToFrame(this.host, transfer, nowUs);
  }
}

class FramedAsixHooks extends AsixHooks {
  readonly #maxPacketBytes: number;
  readonly #reader: AsixReader;

  constructor(host: DriverHost, chip: AsixChip, maxPacketBytes: number) {
    super(host, chip);
    this.#maxPacketBytes = maxPacketBytes;
    this.#reader = new AsixReader(host, mtuBytes + ethernetHeaderLength + vlanTagLength);
  }

  override *reset(): Procedure<void> {
    this.#reader.reset();
    yield* super.reset();
  }

  txFixup(packet: Packet | null, nowUs: number): Transfer | undefined {
    return frameToAsix(this.host, packet, this.#maxPacketBytes, nowUs);
  }

  rxFixup(transfer: Transfer, nowUs: number): boolean {
    return this.#reader.read(transfer.buffer, transfer.actualLength, nowUs);
  }
}
