/**
 * The registers of an Ethernet PHY behind MII (IEEE 802.3 clause 22, and 45 through registers 13 and 14), as far as
 * drivers of USB adapters use them.
 */
export const miiRegisters = {
  control: 0,
  status: 1,
  identifierHigh: 2,
  identifierLow: 3,
  advertisement: 4,
  partnerAbility: 5,
  expansion: 6,
  gigabitControl: 9,
  gigabitStatus: 10,
  mmdControl: 13,
  mmdData: 14,
  extendedStatus: 15,
} as const;

export const miiControlBits = {
  reset: 0x8000,
  speed100: 0x2000,
  autonegotiate: 0x1000,
  powerDown: 0x0800,
  restart: 0x0200,
  fullDuplex: 0x0100,
  speed1000: 0x0040,
} as const;

export const miiStatusBits = {
  /** 100 and 10 Mbit/s, full and half duplex. */
  abilities: 0x7800,
  extendedStatus: 0x0100,
  negotiated: 0x0020,
  canNegotiate: 0x0008,
  linkUp: 0x0004,
  extendedCapability: 0x0001,
} as const;

/** Of `advertisement` and `partnerAbility`. */
export const miiAbilityBits = {
  csma: 0x0001,
  half10: 0x0020,
  full10: 0x0040,
  half100: 0x0080,
  full100: 0x0100,
  pause: 0x0400,
  asymmetricPause: 0x0800,
  acknowledged: 0x4000,
} as const;

/** What a PHY of 100 Mbit/s advertises if it is asked to advertise all. */
export const miiAllAbilities: number =
  miiAbilityBits.half10 | miiAbilityBits.full10 | miiAbilityBits.half100 | miiAbilityBits.full100;

/** Of `gigabitControl`; the partner's abilities are two bits further up in `gigabitStatus`. */
export const miiGigabitBits = { half: 0x0100, full: 0x0200 } as const;
export const miiPartnerGigabitShift = 2;

/** Of `extendedStatus`: 1000BASE-T, full duplex. */
export const miiExtendedGigabitFull = 0x2000;

/** Of `mmdControl`: the next access is to data, and the address stays. */
export const mmdDataAccess = 0x4000;
/** A device of clause 45 and a register of it: what is advertised of Energy Efficient Ethernet. */
export const eeeAdvertisement = { device: 7, register: 60 } as const;

export interface LinkMode {
  readonly speedMbit: 10 | 100 | 1000;
  readonly fullDuplex: boolean;
}

/**
 * What both ends can do at best.
 * @param gigabit the values of `gigabitControl` and `gigabitStatus`; absent for a PHY without
 */
export function negotiatedMode(
  advertisement: number,
  partnerAbility: number,
  gigabit?: { readonly control: number; readonly status: number },
): LinkMode {
  if (gigabit !== undefined) {
    const common = gigabit.control & (gigabit.status >>> miiPartnerGigabitShift);
    if ((common & miiGigabitBits.full) !== 0) return { speedMbit: 1000, fullDuplex: true };
    if ((common & miiGigabitBits.half) !== 0) return { speedMbit: 1000, fullDuplex: false };
  }
  const common = advertisement & partnerAbility;
  if ((common & miiAbilityBits.full100) !== 0) return { speedMbit: 100, fullDuplex: true };
  if ((common & miiAbilityBits.half100) !== 0) return { speedMbit: 100, fullDuplex: false };
  return { speedMbit: 10, fullDuplex: (common & miiAbilityBits.full10) !== 0 };
}
