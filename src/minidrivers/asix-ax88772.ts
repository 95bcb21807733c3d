import { DriverError, type Procedure, sleep } from '../usbnet/procedure.ts';
import {
  asixChipCodes,
  asixCommands,
  asixEmbeddedPhyAddress,
  asixGpioBits,
  asixMediumBits,
  asixPhyAddressMask,
  asixPhySelectBits,
  asixResetBits,
  asixRxControlBits,
} from '../wire/asix.ts';
import { macAddressIsUsable, macAddressLength } from '../wire/mac-address.ts';
import { type LinkMode, miiAbilityBits, miiAllAbilities, miiRegisters } from '../wire/mii.ts';
import { type AsixChip, readNodeId, readPhyAddress } from './asix-chip.ts';
import {
  mustWrite,
  readCommand,
  readMii,
  restartNegotiation,
  softwareReset,
  writeCommand,
  writeData,
  writeGpio,
  writeMii,
} from './asix-commands.ts';

const ms = 1000;
/** The EEPROM's words with the MAC address. */
const macAddressWord = 4;
/** Linux writes the first two of the three gaps into one byte, and every chip has run with that. */
const gaps = { firstTwo: 0x15 | 0x0c, third: 0x12 } as const;
/** The AX88772B: how it collects what it has received. */
const queueControl = { value: 0x8000, index: 0x8001 } as const;
/** Registers of the AX88772A's PHY that must have these values, and may not. */
const phyDefaults = [
  [0x14, 0x442c],
  [0x15, 0x03c8],
  [0x16, 0x4044],
] as const;

const rxControl = asixRxControlBits.start | asixRxControlBits.broadcast;
const { alwaysOne, receive, fullDuplex: mediumFullDuplex, speed100 } = asixMediumBits;
const { rxFlowControl, txFlowControl } = asixMediumBits;
const defaultMedium = mediumFullDuplex | rxFlowControl | txFlowControl | speed100 | alwaysOne | receive;

/**
 * AX88772, 772A, 772B and 772C (`ax88772_bind`): 100 Mbit/s, as a rule with a PHY inside.
 * @param macAddressFromEeprom where the chip's own register does not have it
 */
export function* setUpAx88772(macAddressFromEeprom: boolean): Procedure<AsixChip> {
  const fromEeprom = macAddressFromEeprom ? yield* readEepromAddress() : undefined;
  const macAddress = fromEeprom ?? (yield* readNodeId(asixCommands.readNodeId));
  const phyAddress = yield* readPhyAddress();
  const embedded = (phyAddress & asixPhyAddressMask) === asixEmbeddedPhyAddress;
  const status = yield* readCommand(asixCommands.readStatus, 0, 1);
  if (status === undefined) throw new DriverError('find out which chip it is', 'the device does not tell');
  const code = (status[0] ?? 0) & asixChipCodes.mask;
  yield* code === asixChipCodes.ax88772 ? resetFirst(embedded) : resetLater(embedded, code, phyAddress);
  yield* setUp(macAddress);
  yield* writeMii(
    phyAddress,
    miiRegisters.advertisement,
    miiAllAbilities | miiAbilityBits.csma | miiAbilityBits.pause,
  );
  yield* restartNegotiation(phyAddress);
  return {
    macAddress,
    phyAddress,
    gigabit: false,
    framed: true,
    rxControl,
    words: `${nameOf(code)}, PHY ${embedded ? 'inside' : 'outside'}`,
    reset: () => setUp(macAddress),
    *setMedium({ speedMbit, fullDuplex }: LinkMode): Procedure<void> {
      let bits = defaultMedium;
      if (speedMbit !== 100) bits &= ~speed100;
      if (!fullDuplex) bits &= ~mediumFullDuplex;
      yield* mustWrite('set the medium', asixCommands.writeMedium, bits);
    },
    *stop(): Procedure<void> {
      yield* writeCommand(asixCommands.writeMedium, 0);
    },
  };
}

function nameOf(code: number): string {
  switch (code) {
    case asixChipCodes.ax88772:
      return 'AX88772';
    case asixChipCodes.ax88772a:
      return 'AX88772A';
    case asixChipCodes.ax88772b:
      return 'AX88772B';
    default:
      return 'AX88772C or later';
  }
}

function* readEepromAddress(): Procedure<Uint8Array | undefined> {
  const address = new Uint8Array(macAddressLength);
  for (let i = 0; i < macAddressLength / 2; i++) {
    const word = yield* readCommand(asixCommands.readEeprom, macAddressWord + i, 2);
    if (word === undefined) return undefined;
    address.set(word, 2 * i);
  }
  return macAddressIsUsable(address) ? address : undefined;
}

function* resetFirst(embedded: boolean): Procedure<void> {
  const { reload, output2, high2 } = asixGpioBits;
  const { none, phyReset, internalPhyRun, internalPhyPowerDown } = asixResetBits;
  yield* writeGpio(reload | output2 | high2, 5 * ms);
  yield* mustWrite('select the PHY', asixCommands.selectPhy, embedded ? asixPhySelectBits.internal : 0);
  if (embedded) {
    yield* softwareReset(internalPhyPowerDown, 10 * ms);
    yield* softwareReset(none, 60 * ms);
    yield* softwareReset(internalPhyRun | phyReset, 0);
  } else {
    yield* softwareReset(internalPhyPowerDown | phyReset, 0);
  }
  yield* sleep(150 * ms);
}

function* resetLater(embedded: boolean, code: number, phyAddress: number): Procedure<void> {
  const { none, internalPhyRun, internalPhyPowerDown } = asixResetBits;
  const { internal, byHost } = asixPhySelectBits;
  yield* writeGpio(asixGpioBits.reload, 5 * ms);
  yield* mustWrite('select the PHY', asixCommands.selectPhy, byHost | (embedded ? internal : 0));
  yield* sleep(10 * ms);
  yield* softwareReset(internalPhyPowerDown | internalPhyRun, 10 * ms);
  yield* softwareReset(internalPhyRun, 160 * ms);
  yield* softwareReset(none, 0);
  yield* softwareReset(internalPhyRun, 200 * ms);
  if (code === asixChipCodes.ax88772b) {
    yield* mustWrite(
      'set up receiving',
      asixCommands.writeQueueControl,
      queueControl.value,
      queueControl.index,
    );
  } else if (code === asixChipCodes.ax88772a) {
    for (const [register, value] of phyDefaults) {
      if ((yield* readMii(phyAddress, register)) !== value) yield* writeMii(phyAddress, register, value);
    }
  }
}

function* setUp(macAddress: Uint8Array | undefined): Procedure<void> {
  yield* mustWrite('set the gaps', asixCommands.writeGaps, gaps.firstTwo, gaps.third);
  if (macAddress !== undefined) yield* writeData(asixCommands.writeNodeId, macAddress);
  yield* mustWrite('set up receiving', asixCommands.writeRxControl, rxControl);
  yield* mustWrite('set the medium', asixCommands.writeMedium, defaultMedium);
}
