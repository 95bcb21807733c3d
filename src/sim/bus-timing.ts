import type { SimSpeed } from './sim-device.ts';

/**
 * What a bus, and the host controller on it, do to time. All of it can be set apart for one device, to model another
 * controller.
 */
export interface BusTiming {
  /** A bulk packet costs this, and {@link byteUs} for each of its bytes. */
  readonly packetUs: number;
  readonly byteUs: number;
  /** What a transfer costs beyond its packets: the controller fetches its descriptor and buffer. */
  readonly transferUs: number;
  /** Both directions use one budget, in turns. Not at SuperSpeed, which has a pair of wires each way. */
  readonly directionsShareBus: boolean;
  /** Packets in one turn of an endpoint. */
  readonly packetsPerTurn: number;
  /** A control request without data; its data cost bulk's price on top. */
  readonly requestUs: number;
  /** A reset of the device with all that the host does to set it up again. */
  readonly resetUs: number;
  /** At least this long between two completion interrupts. */
  readonly moderationUs: number;
  /** From the interrupt until the driver is told. */
  readonly softirqUs: number;
}

/** What remains of 500 MB/s when packet headers, acknowledgements and link commands are paid for. */
const superSpeedBytesPerUs = 450;

/**
 * Full and high speed (spec 5.1): as many full packets as fit into a frame or microframe, each with the protocol
 * overhead that USB 2.0 (tables 5-9, 5-10) reckons with.
 */
function timeSliced(
  periodUs: number,
  packetsPerPeriod: number,
  packetBytes: number,
  overheadBytes: number,
): { readonly packetUs: number; readonly byteUs: number } {
  const byteUs = periodUs / packetsPerPeriod / (packetBytes + overheadBytes);
  return { packetUs: byteUs * overheadBytes, byteUs };
}

const softirqUs = 5;
const resetUs = 60_000;

const timings: Readonly<Record<SimSpeed, BusTiming>> = {
  // 19 packets of 64 bytes in a frame of 1 ms: 1,216 bytes.
  full: {
    ...timeSliced(1000, 19, 64, 13),
    transferUs: 0,
    directionsShareBus: true,
    packetsPerTurn: 19,
    requestUs: 1000,
    resetUs,
    moderationUs: 1000,
    softirqUs,
  },
  // 13 packets of 512 bytes in a microframe of 125 us: 53,248 bytes a millisecond.
  high: {
    ...timeSliced(125, 13, 512, 55),
    transferUs: 0,
    directionsShareBus: true,
    packetsPerTurn: 13,
    requestUs: 250,
    resetUs,
    moderationUs: 125,
    softirqUs,
  },
  // Bursts of up to 16 packets of 1,024 bytes.
  super: {
    packetUs: 0,
    byteUs: 1 / superSpeedBytesPerUs,
    transferUs: 0.3,
    directionsShareBus: false,
    packetsPerTurn: 16,
    requestUs: 125,
    resetUs,
    moderationUs: 40,
    softirqUs,
  },
};

/** The timing of a bus at that speed, with what is to differ. */
export function busTiming(speed: SimSpeed, differing: Partial<BusTiming> = {}): BusTiming {
  return { ...timings[speed], ...differing };
}

/** Microseconds between two polls of an interrupt endpoint with that `bInterval` (USB 2.0 table 9-13). */
export function interruptIntervalUs(speed: SimSpeed, interval: number): number {
  return speed === 'full' ? Math.max(1, interval) * 1000 : 2 ** (Math.max(1, interval) - 1) * 125;
}
