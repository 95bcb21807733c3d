import { type BufferbloatGrade, gradeBufferbloat } from './bufferbloat-grade.ts';
import { type ArmComparison, compareArms } from './compare-arms.ts';
import { LatencyHistogram } from './latency-histogram.ts';
import type { LoadedDirection, MeasuredSegment } from './measured-segment.ts';
import { type Responsiveness, responsiveness } from './rpm.ts';
import { judgeMeasurement, type MeasurementQuality, type ValidityNote } from './validity.ts';
import { judgeComparison, type Verdict } from './verdict.ts';

/** Without load, before and after; null where nothing was measured. */
export interface IdleSummary {
  readonly roundTrips: number;
  readonly rttP50Us: number | null;
  readonly rttP95Us: number | null;
  readonly rttP99Us: number | null;
  readonly rttMeanUs: number | null;
}

/** What one arm is worth on scales that others use too; null where something for it was not measured. */
export interface ArmScores {
  readonly arm: string;
  readonly grade: BufferbloatGrade | null;
  readonly responsiveness: Responsiveness | null;
}

/** All that an experiment comes to, as data: what report, command line and window show. */
export interface ExperimentResult {
  readonly verdict: Verdict;
  readonly idle: IdleSummary;
  /** Each further arm against the first, by direction; the first one is the one that the verdict is about. */
  readonly comparisons: readonly ArmComparison[];
  readonly scores: readonly ArmScores[];
  readonly notes: readonly ValidityNote[];
  /** Says to which published figures the simulated device was fitted; null if it was not. */
  readonly calibration: string | null;
}

export interface ExperimentContext {
  /** The first is what the others are held against; absent: in order of appearance. */
  readonly arms?: readonly string[];
  /** What was sent to measure, such as "priority ping". */
  readonly probe?: string;
  readonly calibration?: string | undefined;
  /** What else is known of the measuring; losses, late sends and the load are counted from the segments. */
  readonly quality?: MeasurementQuality;
}

/** BQL works on what is sent; so that comes first. */
const directions: readonly LoadedDirection[] = ['up', 'both', 'down'];

/** Compares all arms of an experiment with the first, and judges the second against it. */
export function analyseExperiment(
  segments: readonly MeasuredSegment[],
  context: ExperimentContext = {},
): ExperimentResult {
  const arms = context.arms ?? armsInOrder(segments);
  const [first = 'first arm', second = 'second arm'] = arms;
  const loaded = directions.filter((direction) =>
    segments.some((segment) => segment.direction === direction),
  );
  const [deciding = 'up', ...others] = loaded;
  const comparisons = [deciding, ...others].flatMap((direction) =>
    (arms.length > 1 ? arms.slice(1) : [second]).map((arm) => compareArms(segments, direction, first, arm)),
  );
  const idle = summariseIdle(segments.filter(({ direction }) => direction === 'idle'));
  const [decided = compareArms(segments, deciding, first, second)] = comparisons;
  return {
    verdict: judgeComparison(decided, { probe: context.probe ?? 'ping' }),
    idle,
    comparisons,
    scores: arms.map((arm) => scoresOf(arm, segments, idle, loaded)),
    notes: judgeMeasurement({ ...qualityOf(segments, arms), ...context.quality }),
    calibration: context.calibration ?? null,
  };
}

function armsInOrder(segments: readonly MeasuredSegment[]): string[] {
  return [...new Set(segments.filter(({ direction }) => direction !== 'idle').map(({ arm }) => arm))];
}

function summariseIdle(segments: readonly MeasuredSegment[]): IdleSummary {
  const histogram = new LatencyHistogram();
  for (const { rttUs } of segments) histogram.addAll(rttUs);
  const known = (value: number): number | null => (Number.isNaN(value) ? null : value);
  return {
    roundTrips: histogram.count,
    rttP50Us: known(histogram.percentile(0.5)),
    rttP95Us: known(histogram.percentile(0.95)),
    rttP99Us: known(histogram.percentile(0.99)),
    rttMeanUs: known(histogram.meanUs),
  };
}

function scoresOf(
  arm: string,
  segments: readonly MeasuredSegment[],
  idle: IdleSummary,
  loaded: readonly LoadedDirection[],
): ArmScores {
  const own = segments.filter((segment) => segment.arm === arm && segment.direction !== 'idle');
  const means = loaded.map((direction) => {
    const histogram = new LatencyHistogram();
    for (const segment of own) if (segment.direction === direction) histogram.addAll(segment.rttUs);
    return histogram.count === 0 ? null : histogram.meanUs;
  });
  return {
    arm,
    grade: gradeBufferbloat(idle.rttMeanUs, means),
    responsiveness: responsiveness(own.map(({ rttUs }) => rttUs)),
  };
}

function qualityOf(segments: readonly MeasuredSegment[], arms: readonly string[]): MeasurementQuality {
  const sum = (of: (segment: MeasuredSegment) => number): number =>
    segments.reduce((total, segment) => total + of(segment), 0);
  const loadedOf = (arm: string): MeasuredSegment[] =>
    segments.filter((segment) => segment.arm === arm && segment.direction !== 'idle');
  return {
    probesSent: sum(({ probesSent }) => probesSent),
    probesLost: sum(({ probesLost }) => probesLost),
    probesLate: sum(({ probesLate }) => probesLate ?? 0),
    stretches: arms.map((arm) => ({
      name: arm,
      roundTrips: loadedOf(arm).reduce((total, { rttUs }) => total + rttUs.length, 0),
    })),
    belowLimit: arms.map((arm) => {
      const own = loadedOf(arm);
      const below = own.filter(({ loadReachedLimit }) => !loadReachedLimit);
      return { arm, segments: below.length, of: own.length };
    }),
  };
}
