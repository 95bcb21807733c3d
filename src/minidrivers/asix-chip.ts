import type { Procedure } from '../usbnet/procedure.ts';
import { DriverError } from '../usbnet/procedure.ts';
import { asixCommands } from '../wire/asix.ts';
import { macAddressIsUsable, macAddressLength } from '../wire/mac-address.ts';
import type { LinkMode } from '../wire/mii.ts';
import { readCommand } from './asix-commands.ts';

/** What differs between the chips of the asix family, once one has been set up. */
export interface AsixChip {
  /** Undefined: the device has none that a station may have. */
  readonly macAddress: Uint8Array | undefined;
  readonly phyAddress: number;
  readonly gigabit: boolean;
  /** Frames have headers, and many of them come in a transfer; else a transfer is a frame. */
  readonly framed: boolean;
  /** The receiver's bits for frames to the device and to all. */
  readonly rxControl: number;
  /** What Linux calls it, for people. */
  readonly words: string;
  /** On opening. */
  reset(): Procedure<void>;
  /** The link is up, in this mode. */
  setMedium(mode: LinkMode): Procedure<void>;
  stop?(): Procedure<void>;
}

/** @throws DriverError if the device does not tell */
export function* readNodeId(command: number): Procedure<Uint8Array | undefined> {
  const address = yield* readCommand(command, 0, macAddressLength);
  if (address === undefined) throw new DriverError('read the MAC address', 'the device sent none');
  return macAddressIsUsable(address) ? address : undefined;
}

/** The address of the internal PHY, or of the one that stands in its place. @throws DriverError if the device does not tell */
export function* readPhyAddress(): Procedure<number> {
  const addresses = yield* readCommand(asixCommands.readPhyAddresses, 0, 2);
  const address = addresses?.[1];
  if (address === undefined) throw new DriverError('find the PHY', 'the device names none');
  return address;
}
