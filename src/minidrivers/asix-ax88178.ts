import type { Procedure } from '../usbnet/procedure.ts';
import { sleep } from '../usbnet/procedure.ts';
import {
  asixCommands,
  asixGpioBits,
  asixMediumBits,
  asixResetBits,
  asixRxControlBits,
} from '../wire/asix.ts';
import {
  type LinkMode,
  miiAbilityBits,
  miiAllAbilities,
  miiControlBits,
  miiGigabitBits,
  miiRegisters,
} from '../wire/mii.ts';
import { resetPhy } from './asix-ax88172.ts';
import { type AsixChip, readNodeId, readPhyAddress } from './asix-chip.ts';
import {
  mustWrite,
  readMii,
  readWord,
  restartNegotiation,
  softwareReset,
  writeCommand,
  writeData,
  writeGpio,
  writeMii,
} from './asix-commands.ts';

const ms = 1000;
/** The EEPROM's word that says which PHY there is (low seven bits), and about LEDs and power (high byte). */
const phyModeWord = 0x17;
const emptyEeprom = 0xffff;
const phyModeMask = 0x7f;
const phyModes = { marvell: 0x00, realtek: 0x0c } as const;
/** That high byte, where the PHY is powered up otherwise. */
const otherPowerUp = 1;
/** Marvell's PHY: delays both ways on the lines between it and the chip. */
const marvell = { control: 0x14, delays: 0x82 } as const;
/** Realtek's PHY: page 5, in which two registers are changed. */
const realtek = { page: 0x1f, pageWithDelays: 5 } as const;
const identifierTries = 20;
const identifierStepUs = 5 * ms;

const defaultMedium =
  asixMediumBits.fullDuplex |
  asixMediumBits.alwaysOne |
  asixMediumBits.rxFlowControl |
  asixMediumBits.txFlowControl |
  asixMediumBits.jumbo |
  asixMediumBits.receive;
const rxControl = asixRxControlBits.start | asixRxControlBits.broadcast;

/** The AX88178 (`ax88178_bind`, `ax88178_reset`): gigabit, with a PHY outside of the chip. */
export function* setUpAx88178(): Procedure<AsixChip> {
  const macAddress = yield* readNodeId(asixCommands.readNodeId);
  const phyAddress = yield* readPhyAddress();
  yield* softwareReset(asixResetBits.none, 150 * ms);
  yield* softwareReset(asixResetBits.phyReset | asixResetBits.internalPhyPowerDown, 150 * ms);
  return {
    macAddress,
    phyAddress,
    gigabit: true,
    framed: true,
    rxControl,
    words: 'AX88178',
    reset: () => resetChip(phyAddress, macAddress),
    setMedium,
  };
}

function* resetChip(phyAddress: number, macAddress: Uint8Array | undefined): Procedure<void> {
  yield* writeCommand(asixCommands.enableEepromWrite, 0);
  const word = (yield* readWord(asixCommands.readEeprom, phyModeWord)) ?? emptyEeprom;
  yield* writeCommand(asixCommands.disableEepromWrite, 0);
  const phyMode = word === emptyEeprom ? phyModes.marvell : word & phyModeMask;
  yield* powerUpPhy(word >>> 8);
  yield* awaitPhy(phyAddress);

  yield* mustWrite('select the PHY', asixCommands.selectPhy, 0);
  yield* softwareReset(asixResetBits.none, 150 * ms);
  yield* softwareReset(asixResetBits.phyReset | asixResetBits.internalPhyPowerDown, 150 * ms);
  yield* mustWrite('set up receiving', asixCommands.writeRxControl, 0);
  yield* setUpPhy(phyAddress, phyMode);
  yield* resetPhy(phyAddress, miiControlBits.reset | miiControlBits.autonegotiate);
  yield* writeMii(
    phyAddress,
    miiRegisters.advertisement,
    miiAllAbilities | miiAbilityBits.csma | miiAbilityBits.pause,
  );
  yield* writeMii(phyAddress, miiRegisters.gigabitControl, miiGigabitBits.full);
  yield* mustWrite('set the medium', asixCommands.writeMedium, defaultMedium | asixMediumBits.speed100);
  yield* restartNegotiation(phyAddress);
  if (macAddress !== undefined) yield* writeData(asixCommands.writeNodeId, macAddress);
  yield* mustWrite('set up receiving', asixCommands.writeRxControl, rxControl);
}

function* powerUpPhy(how: number): Procedure<void> {
  const { reload, output1, high1, output2, high2 } = asixGpioBits;
  yield* writeGpio(reload | high1 | output1, 40 * ms);
  if (how === otherPowerUp) {
    yield* writeGpio(output1, 30 * ms);
    yield* writeGpio(output1 | high1, 30 * ms);
    return;
  }
  const on = output1 | high1 | output2 | high2;
  yield* writeGpio(on, 30 * ms);
  yield* writeGpio(on & ~high2, 300 * ms);
  yield* writeGpio(on, 30 * ms);
}

/** A PHY that has just got its power does not answer at once. */
function* awaitPhy(phyAddress: number): Procedure<void> {
  for (let i = 0; i < identifierTries; i++) {
    const identifier = yield* readMii(phyAddress, miiRegisters.identifierHigh);
    if (identifier === undefined || (identifier !== 0 && identifier !== 0xffff)) return;
    yield* sleep(identifierStepUs);
  }
}

function* setUpPhy(phyAddress: number, phyMode: number): Procedure<void> {
  switch (phyMode) {
    case phyModes.marvell:
      yield* writeMii(phyAddress, marvell.control, marvell.delays);
      yield* sleep(60 * ms);
      break;
    case phyModes.realtek: {
      yield* writeMii(phyAddress, realtek.page, realtek.pageWithDelays);
      yield* writeMii(phyAddress, 0x0c, 0);
      const value = (yield* readMii(phyAddress, 0x01)) ?? 0;
      yield* writeMii(phyAddress, 0x01, value | 0x80);
      yield* writeMii(phyAddress, realtek.page, 0);
      break;
    }
    default:
      break;
  }
}

function* setMedium({ speedMbit, fullDuplex }: LinkMode): Procedure<void> {
  let bits = defaultMedium | asixMediumBits.clock125MHz;
  if (speedMbit === 1000) bits |= asixMediumBits.gigabit | asixMediumBits.speed100;
  else if (speedMbit === 100) bits |= asixMediumBits.speed100;
  if (!fullDuplex) bits &= ~asixMediumBits.fullDuplex;
  yield* mustWrite('set the medium', asixCommands.writeMedium, bits);
}
