import {
  eeeAdvertisement,
  type LinkMode,
  miiAbilityBits,
  miiAllAbilities,
  miiControlBits,
  miiExtendedGigabitFull,
  miiGigabitBits,
  miiPartnerGigabitShift,
  miiRegisters,
  miiStatusBits,
  mmdDataAccess,
  negotiatedMode,
} from '../../wire/mii.ts';

export interface MiiPhyOptions {
  /** OUI, model and revision: registers 2 and 3. */
  readonly identifier: number;
  readonly gigabit: boolean;
  /** A register that chooses among pages of registers; page 0 is the standard's. */
  readonly pageRegister?: number;
  /** The cable's other end can be reached. */
  readonly carrier: () => boolean;
}

/** Negotiating a link takes this long, if it is not said otherwise. */
const negotiationUs = 300_000;

const registerCount = 32;
const pageMask = 0x7ff;

/**
 * An Ethernet PHY behind MII: negotiates a link with a partner that can do the same as it, and keeps whatever else is
 * written to it.
 */
export class MiiPhy {
  readonly #options: MiiPhyOptions;
  /** By page and register. */
  readonly #registers = new Map<number, number>();
  /** By device and register of clause 45. */
  readonly #mmd = new Map<number, number>();
  #mmdAddress = 0;
  #powered = true;
  #negotiatedAtUs = 0;

  constructor(options: MiiPhyOptions) {
    this.#options = options;
    this.reset(0);
  }

  reset(nowUs: number): void {
    const { gigabit, identifier } = this.#options;
    this.#registers.clear();
    this.#mmd.clear();
    const { control, advertisement, gigabitControl, identifierHigh, identifierLow } = miiRegisters;
    const speed = gigabit ? miiControlBits.speed1000 : miiControlBits.speed100;
    this.#registers.set(control, miiControlBits.autonegotiate | miiControlBits.fullDuplex | speed);
    this.#registers.set(identifierHigh, identifier >>> 16);
    this.#registers.set(identifierLow, identifier & 0xffff);
    this.#registers.set(advertisement, miiAllAbilities | miiAbilityBits.pause | miiAbilityBits.csma);
    if (gigabit) this.#registers.set(gigabitControl, miiGigabitBits.full);
    this.#negotiatedAtUs = nowUs + negotiationUs;
  }

  /** Without power it answers nothing but zeros, and there is no link. */
  setPower(powered: boolean, nowUs: number): void {
    if (powered && !this.#powered) this.reset(nowUs);
    this.#powered = powered;
  }

  linkUp(nowUs: number): boolean {
    const asleep = (this.#get(miiRegisters.control) & miiControlBits.powerDown) !== 0;
    return this.#powered && !asleep && this.#options.carrier() && nowUs >= this.#negotiatedAtUs;
  }

  /** What was agreed on with the partner. */
  mode(): LinkMode {
    const partner = this.#partner();
    const { advertisement, gigabitControl } = miiRegisters;
    return this.#options.gigabit
      ? negotiatedMode(this.#get(advertisement), partner.ability, {
          control: this.#get(gigabitControl),
          status: partner.gigabitStatus,
        })
      : negotiatedMode(this.#get(advertisement), partner.ability);
  }

  #partner(): { readonly ability: number; readonly gigabitStatus: number } {
    return {
      ability: miiAllAbilities | miiAbilityBits.pause | miiAbilityBits.csma | miiAbilityBits.acknowledged,
      gigabitStatus: this.#options.gigabit ? miiGigabitBits.full << miiPartnerGigabitShift : 0,
    };
  }

  #get(register: number): number {
    return this.#registers.get(register) ?? 0;
  }

  #page(): number {
    const { pageRegister } = this.#options;
    return pageRegister === undefined ? 0 : this.#get(pageRegister) & pageMask;
  }

  read(register: number, nowUs: number): number {
    if (!this.#powered) return 0;
    const page = this.#page();
    if (page !== 0 && register !== this.#options.pageRegister) {
      return this.#get(page * registerCount + register);
    }
    const up = this.linkUp(nowUs);
    const { gigabit } = this.#options;
    switch (register) {
      case miiRegisters.status: {
        const { abilities, extendedStatus, negotiated, canNegotiate, linkUp, extendedCapability } =
          miiStatusBits;
        const able = abilities | canNegotiate | extendedCapability | (gigabit ? extendedStatus : 0);
        return able | (up ? negotiated | linkUp : 0);
      }
      case miiRegisters.partnerAbility:
        return up ? this.#partner().ability : 0;
      case miiRegisters.expansion:
        return up ? 1 : 0;
      case miiRegisters.gigabitStatus:
        return up ? this.#partner().gigabitStatus : 0;
      case miiRegisters.extendedStatus:
        return gigabit ? miiExtendedGigabitFull : 0;
      case miiRegisters.mmdData:
        return this.#mmd.get(this.#mmdKey()) ?? 0;
      default:
        return this.#get(register);
    }
  }

  write(register: number, value: number, nowUs: number): void {
    if (!this.#powered) return;
    const page = this.#page();
    if (page !== 0 && register !== this.#options.pageRegister) {
      this.#registers.set(page * registerCount + register, value);
      return;
    }
    switch (register) {
      case miiRegisters.control:
        this.#writeControl(value, nowUs);
        break;
      case miiRegisters.mmdData: {
        const isData = (this.#get(miiRegisters.mmdControl) & mmdDataAccess) !== 0;
        if (isData) this.#mmd.set(this.#mmdKey(), value);
        else this.#mmdAddress = value;
        break;
      }
      case miiRegisters.status:
      case miiRegisters.identifierHigh:
      case miiRegisters.identifierLow:
        // Read only.
        break;
      default:
        this.#registers.set(register, value);
        break;
    }
  }

  #mmdKey(): number {
    return (this.#get(miiRegisters.mmdControl) & 0x1f) * 0x10000 + this.#mmdAddress;
  }

  #writeControl(value: number, nowUs: number): void {
    const { reset, restart, powerDown } = miiControlBits;
    if ((value & reset) !== 0) {
      this.reset(nowUs);
      return;
    }
    const wasAsleep = (this.#get(miiRegisters.control) & powerDown) !== 0;
    this.#registers.set(miiRegisters.control, value & ~restart);
    if ((value & restart) !== 0 || (wasAsleep && (value & powerDown) === 0)) {
      this.#negotiatedAtUs = nowUs + negotiationUs;
    }
  }

  /** What is advertised of Energy Efficient Ethernet. */
  get eeeAdvertisement(): number {
    return this.#mmd.get(eeeAdvertisement.device * 0x10000 + eeeAdvertisement.register) ?? 0;
  }
}
