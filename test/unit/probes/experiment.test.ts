import { describe, expect, test } from 'vitest';
import { dataVolume } from '../../../src/probes/data-volume.ts';
import {
  Experiment,
  type ExperimentPhase,
  loadNotes,
  planDurationUs,
  planExperiment,
} from '../../../src/probes/experiment.ts';
import { builtInScenarios } from '../../../src/probes/built-in-scenarios.ts';
import { type Scenario, scenarioSchema, type ScenarioText } from '../../../src/probes/scenario.ts';

const second = 1_000_000;

const off = { name: 'BQL off', bql: { enabled: false } };
const on = { name: 'BQL on', bql: { enabled: true, limitMaxBytes: 9000 } };

function scenario(changes: Partial<ScenarioText> = {}): Scenario {
  return scenarioSchema.parse({
    version: 1,
    name: 'a test',
    idleBeforeSeconds: 0,
    arms: [off, on],
    phases: [{ direction: 'up', seconds: 10 }],
    ...changes,
  });
}

function names(plan: readonly ExperimentPhase[]): string[] {
  return plan.map(({ name }) => name);
}

describe('a plan', () => {
  test('idle, then each repeat with each arm, then idle', () => {
    const plan = planExperiment(scenario({ idleBeforeSeconds: 3, idleAfterSeconds: 4, repeats: 2 }));
    expect(names(plan)).toEqual(['idle', 'BQL off 1', 'BQL on 1', 'BQL off 2', 'BQL on 2', 'idle after']);
    expect(plan.map(({ pair }) => pair)).toEqual([0, 1, 1, 2, 2, 0]);
    expect(plan.map(({ kind }) => kind)).toEqual(['idle', 'load', 'load', 'load', 'load', 'idle']);
    expect(plan.map(({ by }) => by)).toEqual(['none', 'udp', 'udp', 'udp', 'udp', 'none']);
    expect(planDurationUs(plan)).toBe(47 * second);
    expect(plan[2]).toMatchObject({
      arm: 'BQL on',
      bql: 'on',
      direction: 'up',
      settings: { bql: { enabled: true, limitMaxBytes: 9000 } },
      durationUs: 10 * second,
      settleUs: 2 * second,
      tailUs: 0,
    });
  });

  test('a short segment settles for half of its time at most', () => {
    const [first] = planExperiment(scenario({ phases: [{ direction: 'up', seconds: 3 }] }));
    expect(first?.settleUs).toBe(1.5 * second);
  });

  test('several phases: each with every arm, side by side', () => {
    const phases = [
      { direction: 'up', seconds: 1 },
      { direction: 'down', seconds: 1 },
    ] as const;
    expect(names(planExperiment(scenario({ phases: [...phases] })))).toEqual([
      'BQL off 1, up',
      'BQL on 1, up',
      'BQL off 1, down',
      'BQL on 1, down',
    ]);
  });

  test('back and forth', () => {
    const plan = planExperiment(scenario({ order: 'abba', repeats: 3 }));
    expect(plan.map(({ bql }) => bql).join(' ')).toBe('off on on off off on');
  });

  test('at random: each pair whole, both orders, the same for a seed', () => {
    const orders = (seed: number): string[] => {
      const plan = planExperiment(scenario({ order: 'random', repeats: 100, seed }));
      return Array.from({ length: 100 }, (_, i) => `${plan[2 * i]?.bql} ${plan[2 * i + 1]?.bql}`);
    };
    expect(new Set(orders(1))).toEqual(new Set(['off on', 'on off']));
    expect(orders(1).filter((order) => order === 'off on').length).toBeGreaterThan(35);
    expect(orders(1).filter((order) => order === 'off on').length).toBeLessThan(65);
    expect(orders(1)).toEqual(orders(1));
    expect(orders(1)).not.toEqual(orders(2));
  });

  test('without a TAP interface what iperf3 was to load is left out, or loaded by us; and says so', () => {
    const load = (withoutTap: 'skip' | 'udp'): readonly ExperimentPhase[] =>
      planExperiment(scenario({ load: { generator: 'iperf3-tcp', withoutTap } }));
    expect(load('skip').map(({ by }) => by)).toEqual(['none', 'none']);
    expect(load('udp').map(({ by }) => by)).toEqual(['udp', 'udp']);
    expect(load('skip').flatMap((phase) => loadNotes(phase))[0]).toMatch(/^not run: .*TAP/);
    expect(load('udp').flatMap((phase) => loadNotes(phase))[0]).toMatch(/^loaded with our own UDP: .*TAP/);
  });

  test('with one iperf3 does it, for whole seconds, and has time to tell', () => {
    const [first] = planExperiment(
      scenario({ load: { generator: 'iperf3-udp' }, phases: [{ direction: 'up', seconds: 2.5 }] }),
      true,
    );
    expect(first).toMatchObject({ by: 'iperf3-udp', durationUs: 5 * second, tailUs: 2 * second });
  });

  test('the times that are promised', () => {
    const seconds = Object.fromEntries(
      builtInScenarios().map((built) => [built.name, planDurationUs(planExperiment(built)) / second]),
    );
    expect(seconds).toMatchObject({ 'quick-ab': 60, 'field-ab': 300, soak: 4 * 3600 });
  });
});

describe('the volume of data', () => {
  const link = { upBitsPerSecond: 10e6, downBitsPerSecond: 50e6 };

  test('a load without a rate is reckoned at the link’s', () => {
    const plan = planExperiment(scenario({ phases: [{ direction: 'both', seconds: 10 }] }));
    const { upBytes, downBytes, unknownSeconds } = dataVolume(scenario(), plan, link);
    expect(upBytes).toBeCloseTo((2 * 10 * 10e6) / 8, -4);
    expect(downBytes).toBeCloseTo((2 * 10 * 50e6) / 8, -4);
    expect(unknownSeconds).toBe(0);
  });

  test('one with a rate at that, or at the link’s if that is less', () => {
    const volume = (rateBitsPerSecond: number): number =>
      dataVolume(scenario(), planExperiment(scenario({ load: { rateBitsPerSecond } })), link).upBytes;
    expect(volume(1e6)).toBeCloseTo((20 * 1e6) / 8, -4);
    expect(volume(99e6)).toBeCloseTo((20 * 10e6) / 8, -4);
  });

  test('where nothing is known it says for how long', () => {
    const unknown = { upBitsPerSecond: undefined, downBitsPerSecond: undefined };
    expect(dataVolume(scenario(), planExperiment(scenario()), unknown)).toMatchObject({
      unknownSeconds: 20,
    });
  });
});

describe('carrying it out', () => {
  function run(): { readonly experiment: Experiment; readonly log: string[]; readonly lengths: number[] } {
    const log: string[] = [];
    const lengths: number[] = [];
    const [idle, first, second_] = planExperiment(scenario({ idleBeforeSeconds: 1 }));
    if (idle === undefined || first === undefined || second_ === undefined) throw new Error('no plan');
    const plan = [idle, { ...first, durationUs: 2 * second }, { ...second_, durationUs: 3 * second }];
    const experiment = new Experiment(plan, {
      handlePhaseStart: (phase, nowUs) => log.push(`start ${phase.name} @${nowUs / second}`),
      handlePhaseEnd: ({ phase, startUs, endUs }) => {
        lengths.push(endUs - startUs);
        log.push(`end ${phase.name} @${endUs / second}`);
      },
      handleExperimentEnd: (nowUs) => log.push(`over @${nowUs / second}`),
    });
    return { experiment, log, lengths };
  }

  test('phase after phase, each for its time, and then it is over', () => {
    const { experiment, log, lengths } = run();
    expect([experiment.running, experiment.pollAtUs(), experiment.durationUs]).toEqual([
      false,
      Number.POSITIVE_INFINITY,
      6 * second,
    ]);
    expect(experiment.current).toBeUndefined();
    experiment.start(10 * second);
    expect(experiment.running).toBe(true);
    expect(experiment.current).toEqual({ index: 0, endsAtUs: 11 * second });
    while (experiment.running) experiment.poll(experiment.pollAtUs());
    expect(log).toEqual([
      'start idle @10',
      'end idle @11',
      'start BQL off 1 @11',
      'end BQL off 1 @13',
      'start BQL on 1 @13',
      'end BQL on 1 @16',
      'over @16',
    ]);
    expect(lengths).toEqual([second, 2 * second, 3 * second]);
  });

  test('a poll before its time does nothing; a late one ends the phase as late as it is', () => {
    const { experiment, log } = run();
    experiment.start(0);
    experiment.poll(second - 1);
    expect(log).toHaveLength(1);
    experiment.poll(1.5 * second);
    expect(log.slice(1)).toEqual(['end idle @1.5', 'start BQL off 1 @1.5']);
    expect(experiment.pollAtUs()).toBe(3.5 * second);
  });

  test('stopped early: the phase counts as far as it got, and it ends once', () => {
    const { experiment, log } = run();
    experiment.start(0);
    experiment.poll(second);
    experiment.stop(1.25 * second);
    experiment.stop(2 * second);
    experiment.poll(10 * second);
    expect(log.slice(-2)).toEqual(['end BQL off 1 @1.25', 'over @1.25']);
    expect(experiment.running).toBe(false);
  });

  test('stopped before it began: nothing happens', () => {
    const { experiment, log } = run();
    experiment.stop(0);
    expect(log).toEqual([]);
  });
});
