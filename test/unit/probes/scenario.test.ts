import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { builtInScenarios } from '../../../src/probes/built-in-scenarios.ts';
import { scenarioJsonSchema } from '../../../src/probes/scenario-json-schema.ts';
import { parseScenario } from '../../../src/probes/parse-scenario.ts';

const least = {
  version: 1,
  name: 'a test',
  arms: [{ name: 'BQL on', bql: { enabled: true } }],
  phases: [{ direction: 'up', seconds: 10 }],
};

/** Laid out over lines, so that a problem can name one. */
function text(changes: object): string {
  return JSON.stringify({ ...least, ...changes }, undefined, 1);
}

function problemOf(document: string): string {
  const parsed = parseScenario(document);
  return parsed.ok ? 'it was taken' : parsed.problem;
}

describe('a scenario', () => {
  test('what is left out has its usual value', () => {
    expect(parseScenario(text({}))).toEqual({
      ok: true,
      scenario: {
        ...least,
        description: '',
        model: {},
        seed: 1,
        idleBeforeSeconds: 5,
        idleAfterSeconds: 0,
        settleSeconds: 2,
        repeats: 1,
        order: 'abab',
        load: {
          generator: 'udp',
          rateBitsPerSecond: 0,
          downRateBitsPerSecond: 0,
          payloadBytes: 1472,
          streams: 1,
          socketPackets: 0,
          port: 5201,
          withoutTap: 'skip',
        },
        probes: [{ kind: 'icmp', intervalMs: 1000, payloadBytes: 56, priority: true }],
        pass: [],
      },
    });
  });

  test.each([
    ['no document', '', /line 1: not JSON: the document ends/],
    ['an object that does not end', '{\n "version": 1,\n', /line 3: not JSON: a property in double quotes/],
    [
      'a comma too many',
      '{\n "version": 1,\n "arms": [\n  1,\n ]\n}',
      /line 5: not JSON: a value is due at "\]"/,
    ],
    ['more behind it', '{}\n{}', /line 2: not JSON: something follows/],
    ['a list', '[]', /line 1: the document/],
    ['no version', '{"name":"x"}', /line 1: version: it is missing/],
    ['another version', '{\n"name":"x",\n"version":2}', /line 3: version: it is 2, .* reads version 1/],
    ['no name', text({ name: undefined }), /line 1: name/],
    ['no arms', text({ arms: [] }), /line 4: arms/],
    ['no phases', text({ phases: undefined }), /phases/],
    ['a name that no file could have', text({ name: '../x' }), /line 3: name: it may have/],
    ['a misspelt property', text({ repeat: 2 }), /line 18: repeat: there is no such field/],
    [
      'a misspelt one further down',
      text({ phases: [{ direction: 'up', secnds: 3 }] }),
      /line 15: phases\.0\.secnds: there is no such field/,
    ],
    ['no time', text({ phases: [{ direction: 'up', seconds: 0 }] }), /line 15: phases\.0\.seconds/],
    [
      'a direction that is none',
      text({ phases: [{ direction: 'left', seconds: 1 }] }),
      /phases\.0\.direction/,
    ],
    ['a payload beyond a packet', text({ load: { payloadBytes: 1473 } }), /load\.payloadBytes/],
    [
      'two arms of a name',
      text({ arms: [...least.arms, ...least.arms] }),
      /line 12: arms\.1\.name: there is another arm "BQL on"/,
    ],
    [
      'limits the wrong way round',
      text({ arms: [{ name: 'a', bql: { enabled: true, limitMinBytes: 9, limitMaxBytes: 8 } }] }),
      /arms\.0\.bql\.limitMinBytes: it is larger/,
    ],
    [
      'a criterion without a bound',
      text({ pass: [{ metric: 'rttP50Us', arm: 'BQL on' }] }),
      /pass\.0: it needs/,
    ],
    [
      'a criterion of no arm',
      text({ pass: [{ metric: 'rttP50Us', arm: 'BQL of', max: 1 }] }),
      /pass\.0\.arm: there is no arm "BQL of"/,
    ],
    ['nothing to be about', text({ probes: [{ kind: 'irtt' }] }), /probes: one of them must be/],
    ['a target that is none', text({ probes: [{ target: '10.9.0' }] }), /probes\.0\.target/],
  ])('%s: the problem says where', (_name, document, words) => {
    expect(problemOf(document)).toMatch(words);
  });

  test('all that is wrong is told, up to a number of things', () => {
    const problem = problemOf(text({ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7 }));
    expect(problem.split('\n')).toHaveLength(6);
    expect(problem).toMatch(/and 2 more$/);
  });

  test('whatever is broken off is a problem with a line, never a throw', () => {
    const whole = text({});
    for (let length = 0; length < whole.length; length++) {
      expect(problemOf(whole.slice(0, length))).toMatch(/^line \d+: not JSON/);
    }
  });
});

describe('those that come along', () => {
  test('can be read back', () => {
    for (const scenario of builtInScenarios()) {
      expect(parseScenario(JSON.stringify(scenario))).toEqual({ ok: true, scenario });
    }
  });

  test('are these', () => {
    expect(builtInScenarios().map(({ name }) => name)).toEqual([
      'quick-ab',
      'field-ab',
      'soak',
      'rrul-like',
      'seed-2500mbit',
      'seed-100mbit',
      'seed-cellular-10mbit',
      'seed-cellular-10mbit-usb2',
      'cellular-10mbit',
      'adapter-100mbit',
    ]);
  });
});

test('the published schema is that of the source; else: node build/scenario-schema.mjs', () => {
  const published = readFileSync(new URL('../../../docs/scenario.schema.json', import.meta.url), 'utf8');
  expect(JSON.parse(published)).toEqual(JSON.parse(JSON.stringify(scenarioJsonSchema())));
});
