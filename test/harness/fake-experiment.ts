import type { ExperimentStatus, ExperimentVerdict, ScenarioSummary } from '../../src/contract/experiment.ts';

/** As an engine offers them; the shortest first. */
export const fakeScenarios: readonly ScenarioSummary[] = [
  {
    name: 'quick-ab',
    description: 'One minute: what does the queue cost, and does BQL give it back?',
    seconds: 60,
    segments: 14,
    arms: ['BQL off', 'BQL on'],
    directions: ['up'],
  },
  {
    name: 'field-ab',
    description: 'Five minutes for a radio that changes by the second.',
    seconds: 300,
    segments: 58,
    arms: ['BQL off', 'BQL on'],
    directions: ['up'],
    maxDataBytes: 500e6,
  },
  {
    name: 'seed-100mbit',
    description: 'The patch’s own case: a 100 Mbit/s link behind USB 3.',
    calibration:
      'the device’s FIFO and its batching, to the four figures that were published with the patch.',
    device: 'sim:seed-100mbit',
    seconds: 26,
    segments: 4,
    arms: ['BQL off', 'BQL on'],
    directions: ['up'],
  },
  {
    name: 'rrul-like',
    description: 'Load up and down at once, four streams of TCP each way.',
    seconds: 70,
    segments: 8,
    arms: ['BQL off', 'BQL on', 'fq_codel, BQL on'],
    directions: ['both'],
    withoutTap: 'iperf3-tcp not run: it needs a TAP interface',
  },
];

const tailSeconds = 1;

/** An experiment that goes by itself, and comes to what it always comes to. */
export class FakeExperiment {
  readonly scenario: ScenarioSummary;
  #status: ExperimentStatus;
  #elapsedSeconds = 0;

  constructor(
    sessionId: string,
    deviceId: string,
    scenario: ScenarioSummary,
    maxDataBytes: number | undefined,
  ) {
    this.scenario = scenario;
    const cap = maxDataBytes ?? scenario.maxDataBytes;
    this.#status = {
      sessionId,
      deviceId,
      scenario: scenario.name,
      state: 'preparing',
      segment: 0,
      segments: scenario.segments,
      segmentName: '',
      secondsLeft: scenario.seconds,
      seconds: scenario.seconds,
      dataBytes: 0,
      ...(cap === undefined ? {} : { maxDataBytes: cap }),
      notes: scenario.withoutTap === undefined ? [] : [scenario.withoutTap],
    };
  }

  get status(): ExperimentStatus {
    return this.#status;
  }

  get isOver(): boolean {
    return this.#status.verdict !== undefined;
  }

  /** @param isMeasuring the session has come as far as that */
  advance(elapsedUs: number, isMeasuring: boolean): void {
    if (this.isOver || !isMeasuring) return;
    this.#elapsedSeconds += elapsedUs / 1e6;
    const { seconds, segments, arms } = this.scenario;
    const left = seconds - this.#elapsedSeconds;
    if (left <= -tailSeconds) {
      this.#status = { ...this.#status, state: 'done', secondsLeft: 0, verdict: improved(arms) };
      return;
    }
    const segment = Math.min(segments, Math.floor((this.#elapsedSeconds / seconds) * segments) + 1);
    this.#status = {
      ...this.#status,
      state: left > 0 ? 'running' : 'ending',
      segment,
      segmentName: segment === 1 ? 'idle' : `${arms[segment % arms.length] ?? ''} ${Math.floor(segment / 2)}`,
      secondsLeft: Math.max(0, left),
      dataBytes: Math.round(this.#elapsedSeconds * 1.25e6),
    };
  }

  stop(): void {
    if (this.isOver) return;
    this.#status = {
      ...this.#status,
      state: 'stopped',
      notes: [...this.#status.notes, 'stopped on request'],
      verdict: notEnough(this.scenario.arms),
    };
  }
}

function percentiles(fromUs: number, toUs: number): number[] {
  return Array.from({ length: 101 }, (_, p) => fromUs + (toUs - fromUs) * (p / 100) ** 4);
}

function improved(arms: readonly string[]): ExperimentVerdict {
  const shapes = [percentiles(341_000, 378_000), percentiles(27_000, 52_000), percentiles(25_000, 40_000)];
  return {
    kind: 'improved',
    sentence:
      'BQL cut the loaded p95 of a priority ping from 352 to 21.0 ms (95 percent CI 14.0 to 31.0), throughput unchanged (-0.3 to +0.4 percent).',
    warnings: [
      'In “idle” there are fewer than 100 round trips (at the least 60): p99 is no more than the longest of them.',
    ],
    criteria: [{ text: 'rttP95Us of BQL on: 21.0 ms; at most 50.0 ms', passed: true }],
    scores: arms.map((arm, index) => ({
      arm,
      grade: index === 0 ? 'D' : 'A+',
      gradeMethod: 'below 5 ms A+, below 30 A, below 60 B, below 200 C, below 400 D, else F',
      meanIncreaseUs: index === 0 ? 331_000 : 4200,
      roundTripsPerMinute: index === 0 ? 169 : 2050,
      rating: index === 0 ? 'poor' : 'good',
      confidence: 'high',
      roundTripsPerMinuteMethod: '60,000 / the trimmed mean of the round trip in ms',
    })),
    arms: [
      {
        arm: 'idle',
        direction: 'idle',
        segments: 2,
        probes: 60,
        lost: 0,
        rttPercentilesUs: percentiles(23_800, 29_000),
        upBitsPerSecond: null,
        downBitsPerSecond: null,
      },
      ...arms.map((arm, index) => ({
        arm,
        direction: 'up' as const,
        segments: 6,
        probes: 390,
        lost: index,
        rttPercentilesUs: shapes[index] ?? [],
        upBitsPerSecond: 9.98e6,
        downBitsPerSecond: 41_000,
      })),
    ],
  };
}

function notEnough(arms: readonly string[]): ExperimentVerdict {
  return {
    ...improved(arms),
    kind: 'not enough data',
    sentence:
      'Not enough data: 1 pair of segments with 50 and 50 answered probes; 6 pairs of segments with 20 answered probes each (54 s) would be enough.',
    criteria: [],
    arms: [],
    scores: [],
  };
}
