import { describe, expect, test } from 'vitest';
import type { DeviceSession } from '../../../src/engine/device-session.ts';
import { SegmentPrograms } from '../../../src/engine/segment-programs.ts';
import type { ProgramListener, StartProgram } from '../../../src/observe/line-program.ts';
import { type ExperimentPhase, planExperiment } from '../../../src/probes/experiment.ts';
import { type Scenario, scenarioSchema, type ScenarioText } from '../../../src/probes/scenario.ts';

interface Started {
  readonly words: string;
  readonly listener: ProgramListener;
  stopped: boolean;
}

/** Programs that say what the test lets them say. */
class Bench {
  readonly started: Started[] = [];
  readonly kept: string[] = [];
  readonly notes: string[] = [];
  readonly programs: SegmentPrograms;
  readonly phase: ExperimentPhase;
  readonly #version: string | undefined;

  constructor(changes: Partial<ScenarioText>, version: string | undefined) {
    this.#version = version;
    const scenario: Scenario = scenarioSchema.parse({
      version: 1,
      name: 'test',
      idleBeforeSeconds: 0,
      arms: [{ name: 'BQL on', bql: { enabled: true } }],
      phases: [{ direction: 'up', seconds: 10 }],
      ...changes,
    });
    this.programs = new SegmentPrograms(this.#start, scenario);
    const [phase] = planExperiment(scenario, true);
    if (phase === undefined) throw new Error('no plan');
    this.phase = phase;
  }

  readonly #start: StartProgram = (name, programArguments, listener) => {
    if (programArguments[0] === '--version' || programArguments[0] === 'version') {
      queueMicrotask(() => {
        if (this.#version !== undefined) listener.handleLine(this.#version);
        listener.handleEnd({ isMissing: this.#version === undefined, exitCode: 0, lastError: '' });
      });
      return { write: () => {}, stop: () => {} };
    }
    const started: Started = { words: [name, ...programArguments].join(' '), listener, stopped: false };
    this.started.push(started);
    return { write: () => {}, stop: () => (started.stopped = true) };
  };

  async begin(): Promise<Started | undefined> {
    const session = {
      snapshot: {
        facts: [{ group: 'network', name: 'Target', value: '10.9.0.1' }],
        settings: { tap: 'qs0' },
      },
      keepLine: (program: string, phase: string, line: string) =>
        this.kept.push(`${program} ${phase}: ${line}`),
    };
    await this.programs.prepare(session as unknown as DeviceSession, (note) => this.notes.push(note));
    this.programs.startSegment(this.phase);
    return this.started[0];
  }
}

const tcp = { load: { generator: 'iperf3-tcp', streams: 2, rateBitsPerSecond: 9 } } as const;

describe('iperf3', () => {
  test.each([
    ['TCP up', tcp, 'up', /--json --bind-dev qs0 -P 2 -b 5$/],
    ['UDP down', { load: { generator: 'iperf3-udp', payloadBytes: 1000 } }, 'down', / -R -u -b 0 -l 1000$/],
    ['both ways', { load: { generator: 'iperf3-tcp' } }, 'both', / --bidir$/],
  ] as const)('%s', async (_name, changes, direction, words) => {
    const bench = new Bench(
      { ...changes, phases: [{ direction, seconds: 10 }] },
      'iperf 3.12 (cJSON 1.7.15)',
    );
    const started = await bench.begin();
    expect(started?.words).toMatch(/^timeout --signal=KILL 15 iperf3 --client=10\.9\.0\.1 --port=5201/);
    expect(started?.words).toContain('--omit=2 --time=8 ');
    expect(started?.words).toMatch(words);
  });

  test('its document is kept whole, and its figures are the segment’s', async () => {
    const bench = new Bench(tcp, 'iperf 3.12');
    const started = await bench.begin();
    started?.listener.handleLine('{"end":');
    started?.listener.handleLine('{"sum_received":{"bits_per_second":7}}}');
    started?.listener.handleEnd({ isMissing: false, exitCode: 0, lastError: '' });
    expect(bench.programs.endSegment(bench.phase)).toMatchObject({
      notes: [],
      loadFailed: false,
      iperf3: { upBitsPerSecond: 7 },
    });
    expect(bench.kept).toEqual(['iperf3 BQL on 1: {"end":\n{"sum_received":{"bits_per_second":7}}}']);
  });

  test('a new one streams, and each line is kept as it comes', async () => {
    const bench = new Bench(tcp, 'iperf 3.17.1');
    const started = await bench.begin();
    expect(started?.words).toContain(' --json-stream ');
    started?.listener.handleLine('{"event":"start","data":{}}');
    expect(bench.kept).toEqual(['iperf3 BQL on 1: {"event":"start","data":{}}']);
  });

  test('one that does not end, its server having vanished, is ended with the segment', async () => {
    const bench = new Bench(tcp, 'iperf 3.12');
    const started = await bench.begin();
    const report = bench.programs.endSegment(bench.phase);
    expect(report).toMatchObject({ loadFailed: true, notes: ['iperf3 had not ended and was ended'] });
    expect(started?.stopped).toBe(true);
  });

  test('what it says of a failure is told, and the segment was not loaded', async () => {
    const bench = new Bench(tcp, 'iperf 3.12');
    const started = await bench.begin();
    started?.listener.handleLine('{"end":{},"error":"unable to connect to server: Connection refused"}');
    started?.listener.handleEnd({ isMissing: false, exitCode: 1, lastError: '' });
    expect(bench.programs.endSegment(bench.phase)).toMatchObject({
      loadFailed: true,
      notes: ['iperf3: unable to connect to server: Connection refused'],
    });
  });

  test('where it is not installed that is told before, and nothing is started', async () => {
    const bench = new Bench(tcp, undefined);
    expect(await bench.begin()).toBeUndefined();
    expect(bench.notes).toEqual(['iperf3 is not installed: what it was to load is left out']);
    expect(bench.programs.endSegment(bench.phase).loadFailed).toBe(true);
  });
});
