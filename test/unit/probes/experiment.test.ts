import { describe, expect, test } from 'vitest';
import { Experiment, type PhaseRun, planExperiment } from '../../../src/probes/experiment.ts';
import { builtInScenarios, parseScenario, type Scenario } from '../../../src/probes/scenario.ts';

const second = 1_000_000;

function scenario(text: object): Scenario {
  const parsed = parseScenario(JSON.stringify({ name: 'a test', ...text }));
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.scenario;
}

describe('a scenario', () => {
  test('what is left out has its usual value', () => {
    expect(scenario({ segments: [{ bql: 'on', seconds: 10 }] })).toEqual({
      name: 'a test',
      description: '',
      seed: 1,
      idleSeconds: 5,
      settleSeconds: 2,
      segments: [{ bql: 'on', seconds: 10 }],
      load: { rateBitsPerSecond: 0, payloadBytes: 1472 },
      ping: { intervalMs: 1000, payloadBytes: 56, tos: 0x10 },
    });
  });

  test.each([
    ['not JSON', '{', 'JSON'],
    ['a list', '[]', 'the document'],
    ['no name', '{"segments":[{"bql":"on","seconds":1}]}', 'name'],
    ['no segments', '{"name":"x","segments":[]}', 'segments'],
    ['a segment of no time', '{"name":"x","segments":[{"bql":"on","seconds":0}]}', 'segments.0.seconds'],
    ['BQL neither on nor off', '{"name":"x","segments":[{"bql":"maybe","seconds":1}]}', 'segments.0.bql'],
    [
      'a property that is misspelt',
      '{"name":"x","segments":[{"bql":"on","seconds":1}],"idelSeconds":1}',
      'idelSeconds',
    ],
    [
      'one that is misspelt further down',
      '{"name":"x","segments":[{"bql":"on","seconds":1}],"ping":{"intervall":5}}',
      'ping',
    ],
    [
      'a payload beyond a packet',
      '{"name":"x","segments":[{"bql":"on","seconds":1}],"load":{"payloadBytes":1473}}',
      'load.payloadBytes',
    ],
  ])('%s: the problem says where', (_name, text, where) => {
    const parsed = parseScenario(text);
    expect(parsed.ok ? 'it was taken' : parsed.problem).toContain(where);
  });

  test('those that come along can be read back', () => {
    for (const built of builtInScenarios) {
      expect(parseScenario(JSON.stringify(built))).toEqual({ ok: true, scenario: built });
    }
  });
});

describe('its plan', () => {
  test('the idle phase first, under the first segment’s setting, then the segments, numbered by setting', () => {
    const plan = planExperiment(
      scenario({
        idleSeconds: 3,
        settleSeconds: 2,
        segments: [
          { bql: 'off', seconds: 10 },
          { bql: 'on', seconds: 3 },
          { bql: 'off', seconds: 8 },
        ],
      }),
    );
    expect(plan).toEqual([
      { name: 'idle', kind: 'idle', bql: 'off', durationUs: 3 * second, settleUs: 0 },
      { name: 'BQL off 1', kind: 'load', bql: 'off', durationUs: 10 * second, settleUs: 2 * second },
      // A short one settles for half of its time at most.
      { name: 'BQL on 1', kind: 'load', bql: 'on', durationUs: 3 * second, settleUs: 1.5 * second },
      { name: 'BQL off 2', kind: 'load', bql: 'off', durationUs: 8 * second, settleUs: 2 * second },
    ]);
  });

  test('without idle time there is no idle phase', () => {
    expect(planExperiment(scenario({ idleSeconds: 0, segments: [{ bql: 'on', seconds: 1 }] }))).toHaveLength(
      1,
    );
  });
});

describe('carrying it out', () => {
  function run(): { readonly experiment: Experiment; readonly log: string[]; readonly runs: PhaseRun[] } {
    const log: string[] = [];
    const runs: PhaseRun[] = [];
    const segments = [
      { bql: 'off', seconds: 2 },
      { bql: 'on', seconds: 3 },
    ];
    const experiment = new Experiment(planExperiment(scenario({ idleSeconds: 1, segments })), {
      handlePhaseStart: (phase, nowUs) => log.push(`start ${phase.name} @${nowUs / second}`),
      handlePhaseEnd: (phaseRun) => {
        runs.push(phaseRun);
        log.push(`end ${phaseRun.phase.name} @${phaseRun.endUs / second}`);
      },
      handleExperimentEnd: (nowUs) => log.push(`over @${nowUs / second}`),
    });
    return { experiment, log, runs };
  }

  test('phase after phase, each for its time, and then it is over', () => {
    const { experiment, log, runs } = run();
    expect([experiment.running, experiment.pollAtUs(), experiment.durationUs]).toEqual([
      false,
      Number.POSITIVE_INFINITY,
      6 * second,
    ]);
    experiment.start(10 * second);
    expect(experiment.running).toBe(true);
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
    expect(runs.map(({ startUs, endUs }) => endUs - startUs)).toEqual([second, 2 * second, 3 * second]);
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
