import { controlIn, controlOut, type Procedure } from '../usbnet/procedure.ts';
import type { TransferStatus } from '../usbnet/transfer.ts';
import { ax88179Access, ax88179PhyAddress } from '../wire/ax88179.ts';
import { readUint16Le, readUint32Le, writeUint16Le } from '../wire/byte-order.ts';
import { eeeAdvertisement, miiRegisters, mmdDataAccess } from '../wire/mii.ts';

/** Access to the registers of an AX88179 (spec 3.9). Values are little-endian. */

const phyRegisterLength = 2;
/** Where the chip tells whether frames are left in its memory, and the bit that says so. */
const memoryStatusRegister = 0x8c;
const memoryStatusLength = 4;
const memoryInUse = 0x4000_0000;

/** The register's bytes; undefined if not all of them came. */
export function* readRegisterBytes(register: number, length: number): Procedure<Uint8Array | undefined> {
  const answer = yield* controlIn('vendor-device', ax88179Access.mac, register, length, length);
  return answer.status === 'completed' && answer.data.length === length ? answer.data : undefined;
}

/** A register of one or two bytes; undefined if it could not be read. */
export function* readRegister(register: number, length: 1 | 2): Procedure<number | undefined> {
  const bytes = yield* readRegisterBytes(register, length);
  if (bytes === undefined) return undefined;
  return length === 1 ? bytes[0] : readUint16Le(bytes, 0);
}

export function* writeRegisterBytes(register: number, bytes: Uint8Array): Procedure<TransferStatus> {
  return yield* controlOut('vendor-device', ax88179Access.mac, register, bytes.length, bytes);
}

export function* writeRegister(register: number, length: 1 | 2, value: number): Procedure<TransferStatus> {
  const bytes = new Uint8Array(length);
  bytes[0] = value;
  if (length === 2) bytes[1] = value >>> 8;
  return yield* writeRegisterBytes(register, bytes);
}

/** A register of the PHY; undefined if it could not be read. */
export function* readPhy(register: number): Procedure<number | undefined> {
  const answer = yield* controlIn(
    'vendor-device',
    ax88179Access.phy,
    ax88179PhyAddress,
    register,
    phyRegisterLength,
  );
  const whole = answer.status === 'completed' && answer.data.length === phyRegisterLength;
  return whole ? readUint16Le(answer.data, 0) : undefined;
}

export function* writePhy(register: number, value: number): Procedure<TransferStatus> {
  const bytes = new Uint8Array(phyRegisterLength);
  writeUint16Le(bytes, 0, value);
  return yield* controlOut('vendor-device', ax88179Access.phy, ax88179PhyAddress, register, bytes);
}

/** A word of the EEPROM; undefined if it could not be read. */
export function* readEeprom(word: number): Procedure<number | undefined> {
  const answer = yield* controlIn('vendor-device', ax88179Access.eeprom, word, 1, 2);
  const whole = answer.status === 'completed' && answer.data.length === 2;
  return whole ? readUint16Le(answer.data, 0) : undefined;
}

/** Frames are still in the chip's memory; false too if it does not say. */
export function* memoryIsInUse(): Procedure<boolean> {
  const answer = yield* controlIn(
    'vendor-device',
    ax88179Access.memory,
    memoryStatusRegister,
    0,
    memoryStatusLength,
  );
  const whole = answer.status === 'completed' && answer.data.length === memoryStatusLength;
  return whole && (readUint32Le(answer.data, 0) & memoryInUse) !== 0;
}

/** Which modes the PHY says it knows Energy Efficient Ethernet in (clause 45 through clause 22). */
export function* advertiseEee(modes: number): Procedure<void> {
  const { device, register } = eeeAdvertisement;
  yield* writePhy(miiRegisters.mmdControl, device);
  yield* writePhy(miiRegisters.mmdData, register);
  yield* writePhy(miiRegisters.mmdControl, device | mmdDataAccess);
  yield* writePhy(miiRegisters.mmdData, modes);
}
