import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import type { ExperimentStatus } from '../../../src/contract/experiment.ts';
import { experimentSchema } from '../../../src/contract/experiment.ts';
import { Engine } from '../../../src/engine/engine.ts';
import { monotonicClock } from '../../../src/engine/monotonic-clock.ts';
import { SimSource } from '../../../src/engine/sim-source.ts';

/** The contract's side of an experiment, on a virtual device in real time. */

const short = {
  version: 1,
  name: 'short',
  idleBeforeSeconds: 0.4,
  settleSeconds: 0.2,
  arms: [
    { name: 'BQL off', bql: { enabled: false } },
    { name: 'BQL on', bql: { enabled: true, limitMaxBytes: 6000 } },
  ],
  phases: [{ direction: 'up', seconds: 0.6 }],
  probes: [{ intervalMs: 20 }],
  pass: [{ metric: 'rttP50Us', arm: 'BQL on', max: 1 }],
};

let engine: Engine | undefined;

afterEach(async () => {
  await engine?.close();
  engine = undefined;
});

function makeEngine(): Engine {
  let sessions = 0;
  engine = new Engine({
    sources: [new SimSource(monotonicClock, silentLog)],
    remote: undefined,
    archive: undefined,
    version: '0',
    host: 'cli',
    platform: 'test',
    wallClock: () => '2026-01-01T00:00:00Z',
    newSessionId: () => `session-${++sessions}`,
    newSeed: () => 1,
    log: silentLog,
  });
  return engine;
}

/** Everything that was sent of an experiment, until it is over. */
async function follow(own: Engine, sessionId: string): Promise<readonly ExperimentStatus[]> {
  const seen: ExperimentStatus[] = [];
  await new Promise<void>((resolve) => {
    own.subscribe('experiment', { sessionId }, (status) => {
      seen.push(experimentSchema.parse(status));
      if (['done', 'stopped', 'failed'].includes(status.state)) resolve();
    });
  });
  return seen;
}

const start = { deviceId: 'sim:modem-10mbit', record: false } as const;

describe('the contract', () => {
  test('offers the scenarios that come along, with what they need', async () => {
    const scenarios = await makeEngine().call('scenarios.list', {});
    expect(scenarios.find(({ name }) => name === 'quick-ab')).toMatchObject({
      seconds: 60,
      arms: ['BQL off', 'BQL on'],
      directions: ['up'],
    });
    expect(scenarios.find(({ name }) => name === 'rrul-like')?.withoutTap).toMatch(/TAP/);
    expect(scenarios.find(({ name }) => name === 'seed-100mbit')?.calibration).toMatch(/fitted/);
  });

  test('takes a device through one, tells how far it is, and ends the session with it', async () => {
    const own = makeEngine();
    const session = await own.call('experiment.start', { ...start, scenario: JSON.stringify(short) });
    const seen = await follow(own, session.id);
    expect(new Set(seen.map(({ state }) => state))).toEqual(
      new Set(['preparing', 'running', 'ending', 'done']),
    );
    expect(Math.max(...seen.map(({ segment }) => segment))).toBe(3);
    const left = seen.filter(({ state }) => state === 'running').map(({ secondsLeft }) => secondsLeft);
    expect(left).toEqual(left.toSorted((a, b) => b - a));
    const last = seen.at(-1);
    expect(last).toMatchObject({ secondsLeft: 0, segments: 3, scenario: 'short', seconds: 1.6 });
    expect(last?.verdict).toMatchObject({
      kind: 'not enough data',
      criteria: [{ passed: false }],
      arms: [{ arm: 'idle' }, { arm: 'BQL off' }, { arm: 'BQL on' }],
    });
    const [, off, on] = last?.verdict?.arms ?? [];
    expect(off?.rttPercentilesUs).toHaveLength(101);
    expect(off?.rttPercentilesUs[50] ?? 0).toBeGreaterThan(3 * (on?.rttPercentilesUs[50] ?? 0));
    await expect.poll(() => own.sessions[0]?.state, { timeout: 10_000 }).toBe('stopped');
    expect(own.sessions[0]?.settings.bql.limitMaxBytes).toBe(6000);
    // Who asks later is told, too.
    expect((await follow(own, session.id))[0]?.state).toBe('done');
  }, 30_000);

  test('stopped before its time: what there is is kept', async () => {
    const own = makeEngine();
    const phases = [{ direction: 'up', seconds: 30 }];
    const session = await own.call('experiment.start', {
      ...start,
      scenario: JSON.stringify({ ...short, phases }),
    });
    const over = follow(own, session.id);
    await expect
      .poll(() => own.sessions[0]?.stages.at(-2)?.status === 'done', { timeout: 10_000 })
      .toBe(true);
    await own.call('experiment.stop', { sessionId: session.id });
    const last = (await over).at(-1);
    expect(last).toMatchObject({ state: 'stopped', notes: ['stopped on request'] });
    expect(last?.verdict?.kind).toBe('not enough data');
    await expect.poll(() => own.sessions[0]?.state, { timeout: 10_000 }).toBe('stopped');
  }, 30_000);

  test('at its cap on data it ends by itself', async () => {
    const own = makeEngine();
    const phases = [{ direction: 'up', seconds: 30 }];
    const session = await own.call('experiment.start', {
      ...start,
      scenario: JSON.stringify({ ...short, phases }),
      maxDataBytes: 500_000,
    });
    const last = (await follow(own, session.id)).at(-1);
    expect(last?.state).toBe('stopped');
    expect(last?.notes.join()).toMatch(/its cap of 500 KB/);
    expect(last?.dataBytes).toBeGreaterThanOrEqual(500_000);
    expect(last?.dataBytes).toBeLessThan(900_000);
  }, 30_000);

  test.each([
    ['a name that is none', 'quick-abc', /no scenario "quick-abc"/],
    ['a text that is none', '{\n"version": 1,\n"nam": "x"}', /line 3: nam: there is no such field/],
  ])('%s is refused', async (_name, scenario, words) => {
    const own = makeEngine();
    await expect(own.call('experiment.start', { ...start, scenario })).rejects.toThrow(words);
    expect(own.sessions).toEqual([]);
  });

  test('one that is not there', async () => {
    const own = makeEngine();
    await expect(own.call('experiment.stop', { sessionId: 'x' })).rejects.toMatchObject({
      kind: 'no-such-session',
    });
  });
});
