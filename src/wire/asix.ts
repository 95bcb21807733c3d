/** What the chips AX88172, AX88178 and AX88772 of ASIX have in commands and on their bulk endpoints (spec 3.8). */

/** `bRequest` of a vendor request to the device. What is written without data is in `wValue`. */
export const asixCommands = {
  /** The host drives the MII management bus from now on. */
  setSoftwareMii: 0x06,
  /** `wValue`: address of the PHY, `wIndex`: register; two bytes. */
  readMii: 0x07,
  writeMii: 0x08,
  /** One byte: which chip it is ({@link asixChipCodes}), and bit 0: the host has the management bus. */
  readStatus: 0x09,
  setHardwareMii: 0x0a,
  /** `wValue`: word; two bytes. */
  readEeprom: 0x0b,
  enableEepromWrite: 0x0d,
  disableEepromWrite: 0x0e,
  readRxControl: 0x0f,
  writeRxControl: 0x10,
  /** `wValue`: two gaps, `wIndex`: the third. */
  writeGaps: 0x12,
  readNodeId: 0x13,
  writeNodeId: 0x14,
  writeMulticastFilter: 0x16,
  /** The AX88172's own. */
  readNodeIdOfFirst: 0x17,
  /** Two bytes: addresses of the external and of the internal PHY. */
  readPhyAddresses: 0x19,
  readMedium: 0x1a,
  writeMedium: 0x1b,
  readMonitor: 0x1c,
  writeMonitor: 0x1d,
  readGpio: 0x1e,
  writeGpio: 0x1f,
  softwareReset: 0x20,
  readPhySelect: 0x21,
  selectPhy: 0x22,
  /** The AX88772B's: how received frames are collected. */
  writeQueueControl: 0x2a,
} as const;

/** In what `readStatus` answers. */
export const asixChipCodes = { mask: 0x70, ax88772: 0x00, ax88772a: 0x10, ax88772b: 0x20 } as const;
export const asixHostHasMii = 0x01;

/** The address of a built-in PHY. */
export const asixEmbeddedPhyAddress = 0x10;
export const asixPhyAddressMask = 0x1f;

export const asixRxControlBits = {
  promiscuous: 0x0001,
  allMulticast: 0x0002,
  broadcast: 0x0008,
  multicastFilter: 0x0010,
  start: 0x0080,
  /** The most bytes of one transfer: 2,048 with none of these set, then twice as many each. */
  burstMask: 0x0300,
} as const;

export const asixMediumBits = {
  gigabit: 0x0001,
  fullDuplex: 0x0002,
  alwaysOne: 0x0004,
  clock125MHz: 0x0008,
  rxFlowControl: 0x0010,
  txFlowControl: 0x0020,
  jumbo: 0x0040,
  receive: 0x0100,
  speed100: 0x0200,
} as const;

/** The AX88172's own. */
export const asixFirstMediumBits = { fullDuplex: 0x02, transmit: 0x04, flowControl: 0x10 } as const;

export const asixResetBits = {
  none: 0x00,
  phyReset: 0x08,
  /** Ends the reset of the internal PHY. */
  internalPhyRun: 0x20,
  internalPhyPowerDown: 0x40,
} as const;

export const asixGpioBits = {
  output0: 0x01,
  high0: 0x02,
  output1: 0x04,
  high1: 0x08,
  output2: 0x10,
  high2: 0x20,
  /** Reads the EEPROM again. */
  reload: 0x80,
} as const;

export const asixPhySelectBits = { internal: 0x01, byHost: 0x10 } as const;

/** The interrupt endpoint's packet: eight bytes; bit 0 of the third says whether there is a link. */
export const asixStatusLength = 8;
export const asixStatusLinkByte = 2;

/** Before each frame, both ways: its length, and the complement of that in the upper half. */
export const asixHeaderLength = 4;
/** Received frames are at most so long, and so are the numbers that have to be complements of each other. */
export const asixRxLengthMask = 0x7ff;
/** A header of no frame: what keeps a transfer off a packet boundary. */
export const asixEmptyHeader = 0xffff_0000;

/** The header of a frame to the chip, as a little-endian word. */
export function asixHeader(length: number): number {
  return (((length ^ 0xffff) << 16) | length) >>> 0;
}

/** The length in the header of a received frame; -1: it is none, its halves don't match. */
export function asixRxLength(header: number): number {
  const length = header & asixRxLengthMask;
  return length === ((~header >>> 16) & asixRxLengthMask) ? length : -1;
}
