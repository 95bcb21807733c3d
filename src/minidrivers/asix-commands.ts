import { controlIn, controlOut, type Procedure, sleep } from '../usbnet/procedure.ts';
import type { TransferStatus } from '../usbnet/transfer.ts';
import { asixCommands, asixHostHasMii } from '../wire/asix.ts';
import { readUint16Le, writeUint16Le } from '../wire/byte-order.ts';
import { type LinkMode, miiControlBits, miiRegisters, miiStatusBits, negotiatedMode } from '../wire/mii.ts';
import { requireCompleted } from './usb-strings.ts';

/** Commands to the chips of the asix family (spec 3.8), and the PHY's registers behind them. */

/** So often, and so long apart, the chip is asked for the management bus (MII). */
const miiTries = 30;
const miiStepUs = 1000;

/** A command's answer; undefined if not all of it came. */
export function* readCommand(
  command: number,
  value: number,
  length: number,
): Procedure<Uint8Array | undefined> {
  const answer = yield* controlIn('vendor-device', command, value, 0, length);
  return answer.status === 'completed' && answer.data.length === length ? answer.data : undefined;
}

/** An answer of two bytes. */
export function* readWord(command: number, value = 0): Procedure<number | undefined> {
  const bytes = yield* readCommand(command, value, 2);
  return bytes === undefined ? undefined : readUint16Le(bytes, 0);
}

export function* writeCommand(command: number, value: number, index = 0): Procedure<TransferStatus> {
  return yield* controlOut('vendor-device', command, value, index);
}

export function* writeData(command: number, data: Uint8Array): Procedure<TransferStatus> {
  return yield* controlOut('vendor-device', command, 0, 0, data);
}

/** {@link writeCommand} that must succeed. @throws DriverError naming the stage */
export function* mustWrite(stage: string, command: number, value: number, index = 0): Procedure<void> {
  requireCompleted(stage, yield* writeCommand(command, value, index));
}

/** Sets the chip's outputs, and gives what hangs on them time. */
export function* writeGpio(bits: number, settleUs: number): Procedure<void> {
  yield* mustWrite('set the outputs', asixCommands.writeGpio, bits);
  yield* sleep(settleUs);
}

export function* softwareReset(bits: number, settleUs: number): Procedure<void> {
  yield* mustWrite('reset the PHY', asixCommands.softwareReset, bits);
  yield* sleep(settleUs);
}

/** Takes the management bus away from the chip. False: the device does not answer. */
function* takeMii(): Procedure<boolean> {
  for (let i = 0; i <= miiTries; i++) {
    const status = yield* writeCommand(asixCommands.setSoftwareMii, 0);
    if (status === 'gone' || status === 'timed-out') return false;
    yield* sleep(miiStepUs);
    const answer = yield* readCommand(asixCommands.readStatus, 0, 1);
    if (((answer?.[0] ?? 0) & asixHostHasMii) !== 0) break;
  }
  return true;
}

/** A register of the PHY; undefined if it could not be read. */
export function* readMii(phyAddress: number, register: number): Procedure<number | undefined> {
  if (!(yield* takeMii())) return undefined;
  const answer = yield* controlIn('vendor-device', asixCommands.readMii, phyAddress, register, 2);
  yield* writeCommand(asixCommands.setHardwareMii, 0);
  const whole = answer.status === 'completed' && answer.data.length === 2;
  return whole ? readUint16Le(answer.data, 0) : undefined;
}

export function* writeMii(phyAddress: number, register: number, value: number): Procedure<void> {
  if (!(yield* takeMii())) return;
  const bytes = new Uint8Array(2);
  writeUint16Le(bytes, 0, value);
  yield* controlOut('vendor-device', asixCommands.writeMii, phyAddress, register, bytes);
  yield* writeCommand(asixCommands.setHardwareMii, 0);
}

/** Lets the PHY negotiate with its partner anew. */
export function* restartNegotiation(phyAddress: number): Procedure<void> {
  const control = yield* readMii(phyAddress, miiRegisters.control);
  if (control === undefined) return;
  const { autonegotiate, restart } = miiControlBits;
  yield* writeMii(phyAddress, miiRegisters.control, control | autonegotiate | restart);
}

/** The link as the PHY has it, and whether both ends can pause each other; undefined: there is none. */
export function* readLinkMode(phyAddress: number, gigabit: boolean): Procedure<LinkMode | undefined> {
  // It remembers a loss of the link until it is read: what counts is the second answer.
  yield* readMii(phyAddress, miiRegisters.status);
  const status = (yield* readMii(phyAddress, miiRegisters.status)) ?? 0;
  const absent = 0xffff;
  if (status === absent || (status & miiStatusBits.linkUp) === 0) return undefined;
  const control = (yield* readMii(phyAddress, miiRegisters.control)) ?? 0;
  if ((control & miiControlBits.autonegotiate) === 0) return fixedMode(control);
  const advertisement = (yield* readMii(phyAddress, miiRegisters.advertisement)) ?? 0;
  const partner = (yield* readMii(phyAddress, miiRegisters.partnerAbility)) ?? 0;
  if (!gigabit) return negotiatedMode(advertisement, partner);
  return negotiatedMode(advertisement, partner, {
    control: (yield* readMii(phyAddress, miiRegisters.gigabitControl)) ?? 0,
    status: (yield* readMii(phyAddress, miiRegisters.gigabitStatus)) ?? 0,
  });
}

function fixedMode(control: number): LinkMode {
  const fullDuplex = (control & miiControlBits.fullDuplex) !== 0;
  if ((control & miiControlBits.speed1000) !== 0) return { speedMbit: 1000, fullDuplex };
  return { speedMbit: (control & miiControlBits.speed100) !== 0 ? 100 : 10, fullDuplex };
}
