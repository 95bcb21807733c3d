import {
  asixChipCodes,
  asixCommands,
  asixEmbeddedPhyAddress,
  asixEmptyHeader,
  asixHeader,
  asixHeaderLength,
  asixHostHasMii,
  asixMediumBits,
  asixPhyAddressMask,
  asixPhySelectBits,
  asixResetBits,
  asixRxControlBits,
  asixStatusLength,
  asixStatusLinkByte,
} from '../../wire/asix.ts';
import { readUint16Le, readUint32Le, writeUint16Le, writeUint32Le } from '../../wire/byte-order.ts';
import { macAddressLength } from '../../wire/mac-address.ts';
import type { DeviceEndpoint, InSource } from '../device-endpoint.ts';
import { frameCapacityBytes, type FrameQueue } from '../frame.ts';
import type { SimSpeed } from '../sim-device.ts';
import { adapterDescriptors, adapterPacketSizes } from './adapter-descriptors.ts';
import { type AdapterChip, AdapterNetwork } from './adapter-network.ts';
import type { DeviceNetworkOptions } from './device-network.ts';
import { MessageSink } from './message-sink.ts';
import { MessageSource } from './message-source.ts';
import type { DeviceIdentity } from './device-description.ts';
import { minFrameBytes } from './cdc-network.ts';
import type { DeviceDescriptors, Firmware, SetupPacket } from './firmware.ts';
import { MiiPhy } from './mii-phy.ts';
import { passesReceiveFilter } from './receive-filter.ts';

/** The chips of the asix family that are simulated. */
export type AsixChip = 'ax88172' | 'ax88178' | 'ax88772' | 'ax88772a' | 'ax88772b';

interface ChipTraits {
  /** What `readStatus` answers. */
  readonly code: number;
  readonly gigabit: boolean;
  /** Frames have headers, and many of them go into a transfer. */
  readonly framed: boolean;
  /** Addresses of the external and of the internal PHY. */
  readonly phyAddresses: readonly [number, number];
  readonly phyIdentifier: number;
}

/** No PHY there. */
const noPhy = 0xe0;

const chips: Readonly<Record<AsixChip, ChipTraits>> = {
  ax88172: {
    code: 0,
    gigabit: false,
    framed: false,
    phyAddresses: [noPhy, asixEmbeddedPhyAddress],
    phyIdentifier: 0x003b_1810,
  },
  // Its PHY, a Marvell of gigabit speed, is outside, at the address that the others have theirs inside.
  ax88178: {
    code: 0,
    gigabit: true,
    framed: true,
    phyAddresses: [noPhy, 0x18],
    phyIdentifier: 0x0141_0cc2,
  },
  ax88772: {
    code: asixChipCodes.ax88772,
    gigabit: false,
    framed: true,
    phyAddresses: [noPhy, asixEmbeddedPhyAddress],
    phyIdentifier: 0x003b_1841,
  },
  ax88772a: {
    code: asixChipCodes.ax88772a,
    gigabit: false,
    framed: true,
    phyAddresses: [noPhy, asixEmbeddedPhyAddress],
    phyIdentifier: 0x003b_1861,
  },
  ax88772b: {
    code: asixChipCodes.ax88772b,
    gigabit: false,
    framed: true,
    phyAddresses: [noPhy, asixEmbeddedPhyAddress],
    phyIdentifier: 0x003b_1881,
  },
};

const requestTypes = { in: 0xc0, out: 0x40 } as const;
const deviceVersion = 0x0001;
/** Words of the EEPROM: the first of three with the MAC address, and what the PHY of an AX88178 is. */
const eepromWords = { macAddress: 4, phyMode: 0x17 } as const;
const unprogrammed = 0xffff;
/** The chip's memory towards the host; what waits is sent in one go, over the borders of transfers. */
const burstBytes = 16 * 1024;
/** A host may put several frames in a transfer. */
const longestMessageBytes = 16 * 1024;

const noData = new Uint8Array(0);

/**
 * An AX88172, AX88178 or AX88772: commands on the control endpoint, a PHY behind a management bus, and, but for the
 * first of them, a stream of frames with headers (spec 3.8).
 */
export class AsixFirmware implements Firmware, AdapterChip {
  readonly descriptors: DeviceDescriptors;
  readonly network: AdapterNetwork;
  readonly sink: MessageSink;
  readonly source: MessageSource;
  readonly status: InSource;
  readonly phy: MiiPhy;
  readonly #chip: ChipTraits;
  readonly #isFirst: boolean;
  readonly #ownAddress: Uint8Array;
  readonly #nodeId = new Uint8Array(macAddressLength);
  readonly #multicastFilter = new Uint8Array(8);
  #rxControl = 0;
  #medium = 0;
  #gpio = 0;
  #monitor = 0;
  #phySelect = 0;
  #hostHasMii = false;

  constructor(chip: AsixChip, speed: SimSpeed, identity: DeviceIdentity, options: DeviceNetworkOptions) {
    this.#chip = chips[chip];
    this.#isFirst = chip === 'ax88172';
    this.#ownAddress = identity.macAddress;
    this.descriptors = adapterDescriptors(speed, identity, deviceVersion);
    this.phy = new MiiPhy({
      identifier: this.#chip.phyIdentifier,
      gigabit: this.#chip.gigabit,
      carrier: () => this.network.carrier,
    });
    const { framed } = this.#chip;
    this.sink = new MessageSink(
      () => this.network,
      longestMessageBytes,
      (bytes, length) => (framed ? this.#handleStream(bytes, length) : this.#handleFrame(bytes, length)),
    );
    this.source = new MessageSource(
      () => this.network,
      adapterPacketSizes[speed],
      burstBytes,
      framed ? buildStream : buildFrame,
    );
    this.status = {
      pendingBytes: () => asixStatusLength,
      transmit: (to, offset, length, nowUs) => {
        to.fill(0, offset, offset + length);
        to[offset + asixStatusLinkByte] = this.phy.linkUp(nowUs) ? 1 : 0;
      },
    };
    this.network = new AdapterNetwork(options, this);
    this.#setDefaults();
  }

  get endpoints(): readonly DeviceEndpoint[] {
    return this.network.endpoints;
  }

  // ---- requests ----

  handleRequest(setup: SetupPacket, data: Uint8Array, nowUs: number): Uint8Array | undefined {
    switch (setup.requestType) {
      case requestTypes.in:
        return this.#read(setup, nowUs);
      case requestTypes.out:
        return this.#write(setup, data, nowUs) ? noData : undefined;
      default:
        return undefined;
    }
  }

  #read({ request, value, index }: SetupPacket, nowUs: number): Uint8Array | undefined {
    switch (request) {
      case asixCommands.readMii:
        return uint16(this.#reachesPhy(value) ? this.phy.read(index, nowUs) : unprogrammed);
      case asixCommands.readStatus:
        return Uint8Array.of(this.#chip.code | (this.#hostHasMii ? asixHostHasMii : 0));
      case asixCommands.readEeprom:
        return uint16(this.#eepromWord(value));
      case asixCommands.readRxControl:
        return uint16(this.#rxControl);
      case asixCommands.readNodeId:
        return this.#isFirst ? undefined : this.#nodeId.slice();
      case asixCommands.readNodeIdOfFirst:
        return this.#isFirst ? this.#nodeId.slice() : undefined;
      case asixCommands.readPhyAddresses:
        return Uint8Array.from(this.#chip.phyAddresses);
      case asixCommands.readMedium:
        return uint16(this.#medium);
      case asixCommands.readMonitor:
        return Uint8Array.of(this.#monitor);
      case asixCommands.readGpio:
        return Uint8Array.of(this.#gpio);
      case asixCommands.readPhySelect:
        return Uint8Array.of(this.#phySelect);
      default:
        return undefined;
    }
  }

  /** A PHY answers only while the host has the management bus, and at its own address. */
  #reachesPhy(address: number): boolean {
    const [, internal] = this.#chip.phyAddresses;
    return this.#hostHasMii && (address & asixPhyAddressMask) === (internal & asixPhyAddressMask);
  }

  #eepromWord(word: number): number {
    const at = word - eepromWords.macAddress;
    return at >= 0 && at < 3 ? readUint16Le(this.#ownAddress, 2 * at) : unprogrammed;
  }

  #write({ request, value, index }: SetupPacket, data: Uint8Array, nowUs: number): boolean {
    switch (request) {
      case asixCommands.setSoftwareMii:
      case asixCommands.setHardwareMii:
        this.#hostHasMii = request === asixCommands.setSoftwareMii;
        return true;
      case asixCommands.writeMii:
        if (data.length !== 2) return false;
        if (this.#reachesPhy(value)) this.phy.write(index, readUint16Le(data, 0), nowUs);
        return true;
      case asixCommands.enableEepromWrite:
      case asixCommands.disableEepromWrite:
      case asixCommands.writeGaps:
        return true;
      case asixCommands.writeRxControl:
        this.#rxControl = value;
        this.#updateReceiver();
        return true;
      case asixCommands.writeNodeId:
        if (this.#isFirst || data.length !== macAddressLength) return false;
        this.#nodeId.set(data);
        return true;
      case asixCommands.writeMulticastFilter:
        if (data.length !== this.#multicastFilter.length) return false;
        this.#multicastFilter.set(data);
        return true;
      case asixCommands.writeMedium:
        this.#medium = value;
        this.#updateReceiver();
        return true;
      case asixCommands.writeMonitor:
        this.#monitor = value;
        return true;
      case asixCommands.writeGpio:
        this.#gpio = value;
        return true;
      case asixCommands.softwareReset:
        return this.#resetPhy(value, nowUs);
      case asixCommands.selectPhy:
        this.#phySelect = value;
        return true;
      case asixCommands.writeQueueControl:
        return this.#chip.code === asixChipCodes.ax88772b;
      default:
        return false;
    }
  }

  /** The internal PHY has power and is out of reset only as the last of these says; the external one always works. */
  #resetPhy(bits: number, nowUs: number): boolean {
    if (this.#isFirst) return false;
    const isInternal = (this.#chip.phyAddresses[1] & asixPhyAddressMask) === asixEmbeddedPhyAddress;
    if (!isInternal) {
      if ((bits & asixResetBits.phyReset) !== 0) this.phy.reset(nowUs);
      return true;
    }
    const asleep = (bits & asixResetBits.internalPhyPowerDown) !== 0;
    const runs = (bits & asixResetBits.internalPhyRun) !== 0;
    const selected = (this.#phySelect & asixPhySelectBits.internal) !== 0;
    this.phy.setPower(runs && !asleep && selected, nowUs);
    return true;
  }

  #updateReceiver(): void {
    const started = (this.#rxControl & asixRxControlBits.start) !== 0;
    const receives = this.#isFirst || (this.#medium & asixMediumBits.receive) !== 0;
    this.network.setReceiving(started && receives);
  }

  handleSetInterface(): void {
    // There is only the one altsetting, and choosing it changes nothing.
  }

  handleReset(nowUs: number): void {
    this.#setDefaults();
    this.phy.reset(nowUs);
    this.sink.reset(nowUs);
    this.source.reset();
    this.#updateReceiver();
  }

  #setDefaults(): void {
    this.#nodeId.set(this.#ownAddress);
    this.#multicastFilter.fill(0);
    this.#rxControl = 0;
    this.#medium = 0;
    this.#gpio = 0;
    this.#monitor = 0;
    this.#phySelect = 0;
    this.#hostHasMii = false;
  }

  // ---- from the host ----

  /** The AX88172: a message is a frame. */
  #handleFrame(bytes: Uint8Array, length: number): boolean {
    if (length < minFrameBytes || length > frameCapacityBytes) return false;
    this.sink.sendUp(bytes, 0, length);
    return true;
  }

  /** The others: each frame has a header, and may be followed by a header of none. */
  #handleStream(bytes: Uint8Array, length: number): boolean {
    for (let offset = 0; offset < length;) {
      if (length - offset < asixHeaderLength) return false;
      const header = readUint32Le(bytes, offset);
      const frameLength = header & 0xffff;
      offset += asixHeaderLength;
      if (header === asixEmptyHeader) continue;
      const good =
        header === asixHeader(frameLength) &&
        frameLength >= minFrameBytes &&
        frameLength <= frameCapacityBytes &&
        frameLength <= length - offset;
      if (!good) return false;
      this.sink.sendUp(bytes, offset, frameLength);
      offset += (frameLength + 1) & ~1;
    }
    return true;
  }

  // ---- to the host ----

  passes(bytes: Uint8Array): boolean {
    return passesReceiveFilter(this.#rxControl, bytes, this.#nodeId, this.#multicastFilter);
  }
}

function buildFrame(block: Uint8Array, queue: FrameQueue, take: () => void): number {
  const frame = queue.peek();
  if (frame === undefined) return 0;
  const { length } = frame;
  block.set(frame.bytes.subarray(0, length));
  take();
  return length;
}

/** Frames with their headers, each on an even offset; what waits, as far as it fits. */
function buildStream(block: Uint8Array, queue: FrameQueue, take: () => void): number {
  let offset = 0;
  for (let frame = queue.peek(); frame !== undefined; frame = queue.peek()) {
    const { bytes, length } = frame;
    const next = offset + asixHeaderLength + ((length + 1) & ~1);
    if (next > block.length) break;
    writeUint32Le(block, offset, asixHeader(length));
    block.set(bytes.subarray(0, length), offset + asixHeaderLength);
    if ((length & 1) !== 0) block[next - 1] = 0;
    offset = next;
    take();
  }
  return offset;
}

function uint16(value: number): Uint8Array {
  const bytes = new Uint8Array(2);
  writeUint16Le(bytes, 0, value);
  return bytes;
}
