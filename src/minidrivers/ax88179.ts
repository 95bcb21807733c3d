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
import { DriverError, type Procedure, setInterface, sleep } from '../usbnet/procedure.ts';
import type { Transfer } from '../usbnet/transfer.ts';
import {
  ax88179AllOffload,
  ax88179ClockBits,
  ax88179MediumBits,
  ax88179MonitorBits,
  ax88179PhyPowerBits,
  ax88179PhyRegisters,
  ax88179PhyStatusBits,
  ax88179Registers,
  ax88179RxControlBits,
  ax88179StatusLength,
  ax88179StatusLinkByte,
  ax88179TxHeaderLength,
  ax88179UsbSpeedBits,
} from '../wire/ax88179.ts';
import { ethernetHeaderLength } from '../wire/ethernet.ts';
import { macAddressIsUsable, macAddressLength } from '../wire/mac-address.ts';
import { miiControlBits, miiRegisters } from '../wire/mii.ts';
import { ax88179ToFrames, frameToAx88179 } from './ax88179-framing.ts';
import {
  advertiseEee,
  memoryIsInUse,
  readEeprom,
  readPhy,
  readRegister,
  readRegisterBytes,
  writePhy,
  writeRegister,
  writeRegisterBytes,
} from './ax88179-registers.ts';
import { requireDataEndpoints } from './data-endpoints.ts';
import { requireCompleted } from './usb-strings.ts';

const flags: DriverFlags = {
  sendZlp: false,
  multiPacket: false,
  // Linux has no flag for it here, but turns the carrier off when it resets the chip.
  linkInterrupt: true,
};

const mtuBytes = 1500;
const phyPowerUpUs = 500_000;
const clockSettleUs = 200_000;
/** The EEPROM's word that may ask for the link's power to be saved, and its bit. */
const autoDetachWord = 0x43;
const autoDetachBit = 0x0100;
const emptyEeprom = 0xffff;
/** While a link comes up: so often, and so long apart, the chip's memory is looked at. */
const drainTries = 20;
const drainStepUs = 5000;
/** Page 3 of the PHY, and in it the register and value that turn Energy Efficient Ethernet off. */
const eeePage = 3;
const eeeRegister = 3;
const eeeOff = 0x3246;

/** How the chip collects received frames: control, timer (two bytes), size in KiB, gap. By link and USB speed. */
const bulkInSettings = {
  gigabitSuper: [0x07, 0x4f, 0x00, 0x12, 0xff],
  gigabitHigh: [0x07, 0x20, 0x03, 0x16, 0xff],
  megabit100: [0x07, 0xae, 0x07, 0x18, 0xff],
  slow: [0x07, 0xcc, 0x4c, 0x18, 0x08],
} as const;
type BulkInSetting = (typeof bulkInSettings)[keyof typeof bulkInSettings];

/** Size of a receive transfer for a setting: two KiB more than what is collected. */
function rxUrbSizeOf(setting: BulkInSetting): number {
  return 1024 * (setting[3] + 2);
}

/**
 * AX88179 and AX88178A: gigabit Ethernet at USB 3 and USB 2 (spec 3.9). Frames come many to a transfer and go one by one.
 * The chip's LEDs stay as its own memory sets them up.
 */
export const ax88179: Minidriver = {
  name: 'ax88179_178a',

  *bind(context: BindContext): Procedure<DriverBinding> {
    const { dataInterface } = context.match;
    const data = requireDataEndpoints(context.device.configuration, dataInterface);
    requireCompleted(
      'select the altsetting',
      yield* setInterface(dataInterface, data.altSetting.alternateSetting),
    );
    const macAddress = yield* resetChip();
    const maxPacketBytes = data.bulkOut.maxPacketSize;
    return {
      name: 'ax88179_178a',
      networkFunction: context.match.networkFunction,
      flags,
      controlInterface: dataInterface,
      dataInterface,
      bulkIn: data.bulkIn.address,
      bulkOut: data.bulkOut.address,
      statusEndpoint: data.interruptIn?.address,
      macAddress,
      hardMtuBytes: mtuBytes + ethernetHeaderLength,
      rxUrbSizeBytes: rxUrbSizeOf(bulkInSettings.gigabitSuper),
      mtuBytes,
      // The chip could do more, but packets here hold no jumbo frames.
      maxMtuBytes: mtuBytes,
      maxPacketsPerTransfer: 1,
      // One byte more, for the one that keeps a transfer off a packet boundary.
      txBufferBytes: ax88179TxHeaderLength + packetCapacityBytes + 1,
      facts: {
        'Frames received': `collected by the device, up to ${formatCount(bulkInSettings.gigabitSuper[3])} KiB a transfer`,
      },
      start: (host) => new Ax88179Hooks(host, maxPacketBytes),
    };
  },
};

/**
 * Brings the chip from power-on to where it negotiates a link (`ax88179_reset`).
 * @returns its MAC address; undefined: it has none that a station may have
 */
function* resetChip(): Procedure<Uint8Array | undefined> {
  const { phyPower, clock, nodeId, bulkInControl, rxControl, medium } = ax88179Registers;
  requireCompleted('power up the PHY', yield* writeRegister(phyPower, 2, 0));
  requireCompleted('power up the PHY', yield* writeRegister(phyPower, 2, ax88179PhyPowerBits.on));
  yield* sleep(phyPowerUpUs);
  yield* writeRegister(clock, 1, ax88179ClockBits.acs | ax88179ClockBits.bcs);
  yield* sleep(clockSettleUs);
  yield* setUpAutoDetach();

  const address = yield* readRegisterBytes(nodeId, macAddressLength);
  if (address === undefined) throw new DriverError('read the MAC address', 'the device sent none');
  const macAddress = macAddressIsUsable(address) ? address : undefined;
  if (macAddress !== undefined) yield* writeRegisterBytes(nodeId, macAddress);

  const collect = Uint8Array.from(bulkInSettings.gigabitSuper);
  requireCompleted('set up receiving', yield* writeRegisterBytes(bulkInControl, collect));
  yield* writeRegister(ax88179Registers.pauseLow, 1, 0x34);
  yield* writeRegister(ax88179Registers.pauseHigh, 1, 0x52);
  // As Linux has it. What is sent has its checksums already, and they come out the same.
  yield* writeRegister(ax88179Registers.rxOffload, 1, ax88179AllOffload);
  yield* writeRegister(ax88179Registers.txOffload, 1, ax88179AllOffload);
  const { dropBadCrc, alignIp, start, physicalInFilter, allMulticast, broadcast } = ax88179RxControlBits;
  requireCompleted(
    'set up receiving',
    yield* writeRegister(
      rxControl,
      2,
      dropBadCrc | alignIp | start | physicalInFilter | allMulticast | broadcast,
    ),
  );
  const { pmeType, pmePolarity, magicPacket } = ax88179MonitorBits;
  yield* writeRegister(ax88179Registers.monitor, 1, pmeType | pmePolarity | magicPacket);
  const { receive, txFlowControl, rxFlowControl, fullDuplex, gigabit } = ax88179MediumBits;
  requireCompleted(
    'set the medium',
    yield* writeRegister(medium, 2, receive | txFlowControl | rxFlowControl | fullDuplex | gigabit),
  );
  yield* turnEeeOff();
  yield* restartNegotiation();
  return macAddress;
}

function* setUpAutoDetach(): Procedure<void> {
  const { clock, phyPower } = ax88179Registers;
  const word = yield* readEeprom(autoDetachWord);
  if (word === undefined || word === emptyEeprom || (word & autoDetachBit) === 0) return;
  const clocks = (yield* readRegister(clock, 1)) ?? 0;
  yield* writeRegister(clock, 1, clocks | ax88179ClockBits.lowPower);
  const power = yield* readRegister(phyPower, 2);
  if (power !== undefined) yield* writeRegister(phyPower, 2, power | ax88179PhyPowerBits.autoDetach);
}

function* turnEeeOff(): Procedure<void> {
  yield* writePhy(ax88179PhyRegisters.pageSelect, eeePage);
  yield* writePhy(eeeRegister, eeeOff);
  yield* writePhy(ax88179PhyRegisters.pageSelect, 0);
  yield* advertiseEee(0);
}

function* restartNegotiation(): Procedure<void> {
  const control = yield* readPhy(miiRegisters.control);
  if (control === undefined || (control & miiControlBits.autonegotiate) === 0) return;
  yield* writePhy(miiRegisters.control, control | miiControlBits.restart);
}

class Ax88179Hooks implements DriverHooks {
  readonly #host: DriverHost;
  readonly #maxPacketBytes: number;
  #rxControl: number =
    ax88179RxControlBits.start | ax88179RxControlBits.broadcast | ax88179RxControlBits.alignIp;

  constructor(host: DriverHost, maxPacketBytes: number) {
    this.#host = host;
    this.#maxPacketBytes = maxPacketBytes;
  }

  txFixup(packet: Packet | null, nowUs: number): Transfer | undefined {
    return frameToAx88179(this.#host, packet, this.#maxPacketBytes, nowUs);
  }

  rxFixup(transfer: Transfer, nowUs: number): boolean {
    return ax88179ToFrames(this.#host, transfer, nowUs);
  }

  status(bytes: Uint8Array, length: number, nowUs: number): void {
    if (length < ax88179StatusLength) return;
    const link = ((bytes[ax88179StatusLinkByte] ?? 0) & 1) !== 0;
    if (link !== this.#host.carrier) this.#host.linkChange(link, true, nowUs);
  }

  /** On opening: a chip that has kept its state only has to receive again (`ax88179_net_reset`). */
  *reset(): Procedure<void> {
    if (((yield* readPhy(ax88179PhyRegisters.specificStatus)) ?? 0) === 0) {
      yield* resetChip();
      return;
    }
    const medium = yield* readRegister(ax88179Registers.medium, 2);
    if (medium === undefined || (medium & ax88179MediumBits.receive) !== 0) return;
    yield* writeRegister(ax88179Registers.medium, 2, medium | ax88179MediumBits.receive);
  }

  *stop(): Procedure<void> {
    const medium = yield* readRegister(ax88179Registers.medium, 2);
    if (medium === undefined) return;
    yield* writeRegister(ax88179Registers.medium, 2, medium & ~ax88179MediumBits.receive);
  }

  /** Receiver, clocks and PHY off. */
  *unbind(): Procedure<void> {
    yield* writeRegister(ax88179Registers.rxControl, 2, 0);
    yield* writeRegister(ax88179Registers.clock, 1, 0);
    yield* writeRegister(ax88179Registers.phyPower, 2, 0);
  }

  *linkReset(): Procedure<boolean> {
    if (!(yield* this.#restartReceiving())) return false;
    const usb = (yield* readRegister(ax88179Registers.usbLink, 1)) ?? 0;
    const phy = (yield* readPhy(ax88179PhyRegisters.specificStatus)) ?? 0;
    if ((phy & ax88179PhyStatusBits.linkUp) === 0) return false;

    const { receive, txFlowControl, rxFlowControl, gigabit, clock125MHz, speed100, fullDuplex } =
      ax88179MediumBits;
    let medium = receive | txFlowControl | rxFlowControl;
    let setting: BulkInSetting = bulkInSettings.slow;
    let speedMbit = 10;
    switch (phy & ax88179PhyStatusBits.speedMask) {
      case ax88179PhyStatusBits.gigabit:
        speedMbit = 1000;
        medium |= gigabit | clock125MHz;
        if ((usb & ax88179UsbSpeedBits.super) !== 0) setting = bulkInSettings.gigabitSuper;
        else if ((usb & ax88179UsbSpeedBits.high) !== 0) setting = bulkInSettings.gigabitHigh;
        break;
      case ax88179PhyStatusBits.speed100:
        speedMbit = 100;
        medium |= speed100;
        if ((usb & (ax88179UsbSpeedBits.super | ax88179UsbSpeedBits.high)) !== 0) {
          setting = bulkInSettings.megabit100;
        }
        break;
      default:
        break;
    }
    if ((phy & ax88179PhyStatusBits.fullDuplex) !== 0) medium |= fullDuplex;
    requireCompleted(
      'set up receiving for the link',
      yield* writeRegisterBytes(ax88179Registers.bulkInControl, Uint8Array.from(setting)),
    );
    this.#host.setRxUrbSize(rxUrbSizeOf(setting));
    requireCompleted('set the medium for the link', yield* writeRegister(ax88179Registers.medium, 2, medium));
    this.#host.setLinkSpeed(speedMbit * 1e6, speedMbit * 1e6);
    return true;
  }

  /** Stops and starts the receiver until nothing is left in the chip's memory. False: something stays there. */
  *#restartReceiving(): Procedure<boolean> {
    for (let i = 0; i < drainTries; i++) {
      yield* writeRegister(ax88179Registers.rxControl, 2, 0);
      requireCompleted(
        'start receiving',
        yield* writeRegister(ax88179Registers.rxControl, 2, this.#rxControl),
      );
      if (!(yield* memoryIsInUse())) return true;
      yield* sleep(drainStepUs);
    }
    return false;
  }

  *setRxMode(mode: RxMode): Procedure<void> {
    const { start, broadcast, alignIp, promiscuous, allMulticast } = ax88179RxControlBits;
    let bits = start | broadcast | alignIp;
    if (mode.promiscuous) bits |= promiscuous;
    else if (mode.multicast) bits |= allMulticast;
    this.#rxControl = bits;
    yield* writeRegister(ax88179Registers.rxControl, 2, bits);
  }
}
