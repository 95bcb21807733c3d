/** What the gigabit chips AX88179 and AX88178A of ASIX have in registers and on their bulk endpoints (spec 3.9). */

/** `bRequest`: what is accessed. `wValue` names the register and `wIndex` its size; for the PHY its address and register. */
export const ax88179Access = {
  mac: 0x01,
  phy: 0x02,
  eeprom: 0x04,
  efuse: 0x05,
  /** Whether frames are left in the chip's memory: register 0x8c. */
  memory: 0x81,
} as const;

/** The address of the built-in PHY. */
export const ax88179PhyAddress = 0x03;

/** Registers of the MAC. Two bytes each if not said otherwise; little-endian. */
export const ax88179Registers = {
  /** One byte: {@link ax88179UsbSpeedBits}. */
  usbLink: 0x02,
  /** One byte. */
  generalStatus: 0x03,
  /** One byte each: the EEPROM, word by word. */
  sromAddress: 0x07,
  sromData: 0x08,
  sromCommand: 0x0a,
  rxControl: 0x0b,
  /** Six bytes. */
  nodeId: 0x10,
  /** Eight bytes. */
  multicastFilter: 0x16,
  medium: 0x22,
  /** One byte. */
  monitor: 0x24,
  phyPower: 0x26,
  /** Five bytes: how received frames are collected into transfers. */
  bulkInControl: 0x2e,
  /** One byte each. */
  clock: 0x33,
  rxOffload: 0x34,
  txOffload: 0x35,
  pauseHigh: 0x54,
  pauseLow: 0x55,
} as const;

export const ax88179UsbSpeedBits = { full: 0x01, high: 0x02, super: 0x04 } as const;

export const ax88179RxControlBits = {
  promiscuous: 0x0001,
  allMulticast: 0x0002,
  broadcast: 0x0008,
  multicastFilter: 0x0010,
  /** Addresses that are in the multicast filter, whatever they are. */
  physicalInFilter: 0x0020,
  start: 0x0080,
  dropBadCrc: 0x0100,
  /** Two bytes stand before each frame, so that what follows the Ethernet header is aligned. */
  alignIp: 0x0200,
} as const;

export const ax88179MediumBits = {
  gigabit: 0x0001,
  fullDuplex: 0x0002,
  clock125MHz: 0x0008,
  rxFlowControl: 0x0010,
  txFlowControl: 0x0020,
  receive: 0x0100,
  /** 100 Mbit/s, if it is not gigabit. */
  speed100: 0x0200,
} as const;

export const ax88179PhyPowerBits = { on: 0x0020, autoDetach: 0x1000 } as const;
export const ax88179ClockBits = { bcs: 0x01, acs: 0x02, lowPower: 0x08 } as const;
export const ax88179MonitorBits = { magicPacket: 0x04, pmePolarity: 0x20, pmeType: 0x40 } as const;

/** Of `rxOffload` and `txOffload`: which checksums the chip deals with. */
export const ax88179OffloadBits = { ip: 0x01, tcp: 0x02, udp: 0x04, tcp6: 0x20, udp6: 0x40 } as const;
export const ax88179AllOffload: number =
  ax88179OffloadBits.ip |
  ax88179OffloadBits.tcp |
  ax88179OffloadBits.udp |
  ax88179OffloadBits.tcp6 |
  ax88179OffloadBits.udp6;

/** Registers of the PHY that no standard names. */
export const ax88179PhyRegisters = { specificStatus: 0x11, pageSelect: 0x1f } as const;
export const ax88179PhyStatusBits = {
  speedMask: 0xc000,
  gigabit: 0x8000,
  speed100: 0x4000,
  fullDuplex: 0x2000,
  linkUp: 0x0400,
} as const;

/** The interrupt endpoint's packet: eight bytes, of which bit 16 of the first word says whether there is a link. */
export const ax88179StatusLength = 8;
export const ax88179StatusLinkByte = 2;

/** Before each frame to the chip: its length, and a second word. */
export const ax88179TxHeaderLength = 8;
export const ax88179TxHeaderBits = {
  /** Of the second word: cut a TCP segment into pieces with so much payload. */
  segmentMask: 0x7fff,
  /** A byte follows the frame that does not belong to it. */
  padded: 0x8000_8000,
} as const;

/**
 * A transfer from the chip: frames, each on a multiple of eight; a table with a word for each entry; at the end a word with
 * the count of entries (low half) and the table's offset.
 */
export const ax88179RxTrailerLength = 4;
export const ax88179RxEntryLength = 4;
export const ax88179RxAlignment = 8;
/** What stands before each frame where `alignIp` is set. */
export const ax88179RxPrefixLength = 2;

/** An entry: the length of prefix and frame in the upper half, and flags. Length 0: it stands for no frame. */
export const ax88179RxEntryBits = {
  l4ChecksumBad: 0x0000_0001,
  l3ChecksumBad: 0x0000_0002,
  udp: 0x0000_0004,
  tcp: 0x0000_0010,
  lengthMask: 0x1fff,
  lengthShift: 16,
  badCrc: 0x2000_0000,
  dropped: 0x8000_0000,
} as const;
