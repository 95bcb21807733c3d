import { Random } from '../../src/base/random.ts';
import type { MeasuredSegment } from '../../src/statistics/measured-segment.ts';

/** A radio whose rate never stays: slow fading, fast fading and handovers on a logarithmic scale. */
export interface RadioModel {
  readonly meanBitsPerSecond: number;
  /** Slow: an AR(1) process with this deviation, of the logarithm, that forgets within this time. */
  readonly slowDeviation: number;
  readonly slowSeconds: number;
  /** Fast: the same. */
  readonly fastDeviation: number;
  readonly fastSeconds: number;
  /** The rate walks at random too: deviation of the logarithm after one second. */
  readonly walkPerSecond: number;
  /** On average this many seconds apart; each stops the link for 50 to 400 ms and sets another level. */
  readonly handoverSeconds: number;
  readonly handoverDeviation: number;
  /** Deviation of the logarithm of what the scheduler adds, whose median is 8 ms. */
  readonly jitterDeviation: number;
}

/** Walking through a city. */
export const cityRadio: RadioModel = {
  meanBitsPerSecond: 10e6,
  slowDeviation: 0.25,
  slowSeconds: 20,
  fastDeviation: 0.1,
  fastSeconds: 0.5,
  walkPerSecond: 0.02,
  handoverSeconds: 40,
  handoverDeviation: 0.35,
  jitterDeviation: 0.5,
};

/** In a car: all of it faster. */
export const driveRadio: RadioModel = {
  ...cityRadio,
  slowDeviation: 0.4,
  slowSeconds: 8,
  walkPerSecond: 0.05,
  handoverSeconds: 15,
  handoverDeviation: 0.5,
};

/** In sight of the mast, at night. */
export const calmRadio: RadioModel = {
  ...cityRadio,
  slowDeviation: 0.05,
  walkPerSecond: 0.005,
  handoverSeconds: 600,
};

export interface SyntheticPlan {
  readonly pairs: number;
  readonly segmentSeconds: number;
  readonly settleSeconds: number;
  readonly probeIntervalSeconds: number;
  /** Arms one after the other in each pair, or in random order in each. */
  readonly order: 'ABAB' | 'random';
  /** By which share the second arm shortens the round trip, and raises throughput. */
  readonly shorterShare: number;
  readonly fasterShare: number;
  readonly queueBytes: number;
  readonly lossProbability: number;
}

/** As the scenario `quick-ab`, but for its order: the arms of each pair in random order. */
export const quickPlan: SyntheticPlan = {
  pairs: 6,
  segmentSeconds: 4.5,
  settleSeconds: 1.25,
  probeIntervalSeconds: 0.05,
  order: 'random',
  shorterShare: 0,
  fasterShare: 0,
  queueBytes: 60 * 1514,
  lossProbability: 0.002,
};

/** As the scenario `field-ab`. */
export const fieldPlan: SyntheticPlan = { ...quickPlan, pairs: 28, segmentSeconds: 5 };

/** What an experiment with the arms A and B would have measured over such a radio. */
export function syntheticExperiment(model: RadioModel, plan: SyntheticPlan, seed: number): MeasuredSegment[] {
  const random = new Random(seed);
  const radio = new Radio(model, random);
  const segments: MeasuredSegment[] = [];
  for (let pair = 0; pair < plan.pairs; pair++) {
    const turned = plan.order === 'random' && random.chance(0.5);
    const order = turned ? ['B', 'A'] : ['A', 'B'];
    segments.push(...order.map((arm) => segment(radio, random, plan, pair, arm)));
  }
  return segments;
}

function segment(
  radio: Radio,
  random: Random,
  plan: SyntheticPlan,
  pair: number,
  arm: string,
): MeasuredSegment {
  const shorter = arm === 'B' ? 1 - plan.shorterShare : 1;
  const faster = arm === 'B' ? 1 + plan.fasterShare : 1;
  radio.advance(plan.settleSeconds);
  const rttUs: number[] = [];
  let sent = 0;
  let bits = 0;
  const counted = plan.segmentSeconds - plan.settleSeconds;
  for (let at = 0; at + plan.probeIntervalSeconds <= counted + 1e-9; at += plan.probeIntervalSeconds) {
    radio.advance(plan.probeIntervalSeconds);
    bits += radio.bitsPerSecond * plan.probeIntervalSeconds;
    sent++;
    if (random.chance(plan.lossProbability)) continue;
    const seconds =
      0.024 + (plan.queueBytes * 8) / radio.bitsPerSecond + radio.jitterSeconds() + radio.outageSeconds;
    rttUs.push(seconds * shorter * 1e6);
  }
  return {
    arm,
    pair,
    direction: 'up',
    rttUs: Float64Array.from(rttUs),
    probesSent: sent,
    probesLost: sent - rttUs.length,
    upBitsPerSecond: (bits / counted) * faster * Math.exp(0.005 * gaussian(random)),
    downBitsPerSecond: null,
    loadReachedLimit: true,
    seconds: plan.segmentSeconds,
  };
}

/** One run of such a radio. */
export class Radio {
  readonly #model: RadioModel;
  readonly #random: Random;
  #slow: number;
  #fast: number;
  #walk = 0;
  #level = 0;
  /** What is left of the latest interruption. */
  outageSeconds = 0;

  constructor(model: RadioModel, random: Random) {
    this.#model = model;
    this.#random = random;
    this.#slow = model.slowDeviation * gaussian(random);
    this.#fast = model.fastDeviation * gaussian(random);
  }

  get bitsPerSecond(): number {
    const exponent = this.#slow + this.#fast + this.#walk + this.#level;
    return this.#model.meanBitsPerSecond * Math.exp(Math.max(-3, Math.min(2, exponent)));
  }

  jitterSeconds(): number {
    return 0.008 * Math.exp(this.#model.jitterDeviation * gaussian(this.#random));
  }

  advance(seconds: number): void {
    const model = this.#model;
    const random = this.#random;
    const fade = (value: number, deviation: number, memory: number): number => {
      const kept = Math.exp(-seconds / memory);
      return kept * value + deviation * Math.sqrt(1 - kept * kept) * gaussian(random);
    };
    this.#slow = fade(this.#slow, model.slowDeviation, model.slowSeconds);
    this.#fast = fade(this.#fast, model.fastDeviation, model.fastSeconds);
    this.#walk += model.walkPerSecond * Math.sqrt(seconds) * gaussian(random);
    this.outageSeconds = Math.max(0, this.outageSeconds - seconds);
    if (random.chance(1 - Math.exp(-seconds / model.handoverSeconds))) {
      this.#level = model.handoverDeviation * gaussian(random);
      this.outageSeconds = 0.05 + 0.35 * random.unit();
    }
  }
}

/** Standard normal (Box and Muller). */
export function gaussian(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.unit())) * Math.cos(2 * Math.PI * random.unit());
}
