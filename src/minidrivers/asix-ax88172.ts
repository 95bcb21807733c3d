import type { Procedure } from '../usbnet/procedure.ts';
import { sleep } from '../usbnet/procedure.ts';
import { asixCommands, asixFirstMediumBits, asixRxControlBits } from '../wire/asix.ts';
import { type LinkMode, miiAbilityBits, miiAllAbilities, miiControlBits, miiRegisters } from '../wire/mii.ts';
import { type AsixChip, readNodeId, readPhyAddress } from './asix-chip.ts';
import {
  mustWrite,
  readLinkMode,
  readMii,
  restartNegotiation,
  writeGpio,
  writeMii,
} from './asix-commands.ts';

const gpioSettleUs = 5000;
/** The outputs that power the PHY up, one value after another; adapters that differ, by their id. */
const usualGpio: readonly number[] = [0x13, 0x01, 0x03];
const gpioOf: ReadonlyMap<string, readonly number[]> = new Map([
  ['2001:1a00', [0x9f, 0x9d, 0x9f]],
  ['07b8:420a', [0x1f, 0x1d, 0x1f]],
]);
/** Linux sets this bit besides, whose meaning nobody has told. */
const unknownRxBit = 0x04;
const phyResetTries = 50;
const phyResetStepUs = 10_000;

/**
 * The AX88172, first of its family (`ax88172_bind`): 100 Mbit/s, no framing.
 * @param id of the device, "0b95:1720"
 */
export function* setUpAx88172(id: string): Procedure<AsixChip> {
  for (const bits of gpioOf.get(id) ?? usualGpio) yield* writeGpio(bits, gpioSettleUs);
  yield* mustWrite('set up receiving', asixCommands.writeRxControl, asixRxControlBits.start);
  const macAddress = yield* readNodeId(asixCommands.readNodeIdOfFirst);
  const phyAddress = yield* readPhyAddress();
  yield* resetPhy(phyAddress, miiControlBits.reset);
  yield* writeMii(
    phyAddress,
    miiRegisters.advertisement,
    miiAllAbilities | miiAbilityBits.csma | miiAbilityBits.pause,
  );
  yield* restartNegotiation(phyAddress);
  const { start, broadcast } = asixRxControlBits;
  const rxControl = start | broadcast | unknownRxBit;
  return {
    macAddress,
    phyAddress,
    gigabit: false,
    framed: false,
    rxControl,
    words: 'AX88172',
    *reset(): Procedure<void> {
      const mode = yield* readLinkMode(phyAddress, false);
      if (mode !== undefined) yield* setMedium(mode);
      yield* mustWrite('set up receiving', asixCommands.writeRxControl, rxControl);
    },
    setMedium,
  };
}

function* setMedium({ fullDuplex }: LinkMode): Procedure<void> {
  const { transmit, flowControl, fullDuplex: full } = asixFirstMediumBits;
  const bits = transmit | flowControl | (fullDuplex ? full : 0);
  yield* mustWrite('set the medium', asixCommands.writeMedium, bits);
}

/** Resets a PHY and waits until it has: half a second at most (IEEE 802.3, 22.2.4.1.1). */
export function* resetPhy(phyAddress: number, bits: number): Procedure<void> {
  yield* writeMii(phyAddress, miiRegisters.control, bits);
  for (let i = 0; i < phyResetTries; i++) {
    yield* sleep(i === 0 ? 500 : phyResetStepUs);
    const control = yield* readMii(phyAddress, miiRegisters.control);
    if (control === undefined || (control & miiControlBits.reset) === 0) return;
  }
}
