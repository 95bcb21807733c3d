/**
 * `queuescope observe` on a stock kernel's cdc_ncm and cdc_ether, with BQL: what it shows is what another reader finds in
 * the same files; what it changes is put back, also when it is interrupted, and told when it is killed.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { bootGuest, type GuestRun, type Scenario } from './guest.ts';
import { reportOf } from './report-of.ts';
import { type Line, readRun } from './run-output.ts';

/** Exit codes as DESIGN section 4 lists them; scripts depend on them. */
const exitCodes = { ok: 0, accessDenied: 4, interrupted: 130, killed: 137 };
const maxLimit = 1_879_048_192;
/** More than usbnet takes at any USB speed: 300 frames of 1,518 bytes. */
const usbnetQueueBytes = 455_400;
/** What the kernel's gadget lets the driver collect into one transfer. */
const ncmBlockBytes = 16_384;

let guest: GuestRun;

beforeAll(async () => {
  guest = await bootGuest({
    name: 'observe',
    program: true,
    scriptFile: new URL('observe.guest.sh', import.meta.url),
    limitSeconds: 600,
  });
}, 760_000);

const numberIn = (line: Line | undefined, key: string): number => {
  const value = line?.[key];
  return typeof value === 'number' ? value : Number.NaN;
};

const limitsOf = (scenario: Scenario, when: string): readonly number[] =>
  ['limit_min', 'limit_max', 'hold_time'].map((file) => scenario.number(`${when}.${file}`));

interface Reading {
  readonly txBytes: number;
  readonly limitBytes: number;
  readonly inflightBytes: number;
}

/** What the second reader found, in the order of its readings. */
function readingsOf(scenario: Scenario): readonly Reading[] {
  return scenario
    .text('reader.txt')
    .trim()
    .split('\n')
    .map((line) => {
      const [txBytes = Number.NaN, limitBytes = Number.NaN, inflightBytes = Number.NaN] = line
        .split(' ')
        .map(Number);
      return { txBytes, limitBytes, inflightBytes };
    });
}

/** A counter that our rates add up to, after each sample. */
function cumulative(samples: readonly Line[], rate: string, perUnit: number): readonly number[] {
  let sum = 0;
  let beforeUs = 0;
  return samples.map((sample) => {
    const timeUs = numberIn(sample, 'timeUs');
    const value = numberIn(sample, rate);
    if (!Number.isNaN(value)) sum += (value * (timeUs - beforeUs)) / 1e6 / perUnit;
    beforeUs = timeUs;
    return sum;
  });
}

describe.each([
  ['ncm', 'cdc_ncm'],
  ['ecm', 'cdc_ether'],
])('what is shown of the %s gadget under load', (name, driver) => {
  const scenario = (): Scenario => guest.scenario(`values-${name}`);

  test('adds up to what the counters went up by', () => {
    const { samples } = readRun(scenario(), 'values.jsonl');
    expect(scenario().fact('driver')).toBe(driver);
    const bytes = scenario().number('txBytesAfter') - scenario().number('txBytesBefore');
    const packets = scenario().number('txPacketsAfter') - scenario().number('txPacketsBefore');
    expect(packets).toBeGreaterThan(1000);
    // Before its first reading and after its last one nothing is sent but a stray packet.
    const shownBytes = cumulative(samples, 'txBitsPerSecond', 8).at(-1) ?? 0;
    const shownPackets = cumulative(samples, 'txPacketsPerSecond', 1).at(-1) ?? 0;
    expect(Math.abs(shownBytes - bytes)).toBeLessThan(3000);
    expect(Math.abs(shownPackets - packets)).toBeLessThan(5);
  });

  test('is what a second reader finds in the files at that time', () => {
    const { samples } = readRun(scenario(), 'values.jsonl');
    const readings = readingsOf(scenario());
    const base = scenario().number('txBytesBefore');
    const totals = cumulative(samples, 'txBitsPerSecond', 8);
    // The two have no clock in common: where they saw the same number of bytes sent, it was the same time.
    let compared = 0;
    let same = 0;
    for (const [i, sample] of samples.entries()) {
      const txBytes = base + (totals[i] ?? 0);
      const at = readings.findIndex((reading) => reading.txBytes >= txBytes);
      if (at < 1 || (totals[i] ?? 0) === (totals[i - 1] ?? 0)) continue;
      // Each reads its three files one after the other, on an emulated machine: some readings around count as well.
      const limits = readings.slice(Math.max(0, at - 3), at + 4).map(({ limitBytes }) => limitBytes);
      const limit = numberIn(sample, 'limitBytes');
      compared++;
      if (limit >= Math.min(...limits) && limit <= Math.max(...limits)) same++;
    }
    // How many samples there are is the machine's to say.
    expect(compared).toBeGreaterThan(25);
    expect(same / compared).toBeGreaterThan(0.95);
    const most = (values: readonly number[]): number => Math.max(...values.filter(Number.isFinite));
    const ours = most(samples.map((sample) => numberIn(sample, 'inflightMaxBytes')));
    const theirs = most(readings.map(({ inflightBytes }) => inflightBytes));
    expect(ours).toBeGreaterThan(0);
    expect(ours / theirs).toBeGreaterThan(0.5);
    expect(ours / theirs).toBeLessThan(2);
    expect(numberIn(samples.at(-1), 'limitBytes')).toBe(scenario().number('limitAfter'));
    expect(samples.every((sample) => sample['bqlEnabled'] === 1)).toBe(true);
  });

  test('says which device and driver it is, and is a recording like any other', async () => {
    const { result } = readRun(scenario(), 'values.jsonl');
    const session = result?.['session'] as {
      device: Line;
      facts: { name: string; value: string }[];
      problems: Line[];
    };
    expect(session.device).toMatchObject({ mode: 'observe', kernelDriver: driver, vendorId: 0x1d6b });
    const facts = new Map(session.facts.map((fact) => [fact.name, fact.value]));
    expect(facts.get('USB device')).toContain(`values-${name}`);
    expect(facts.get('BQL')).toBe('kept by the driver');
    expect(facts.get('Qdisc')).toMatch(/^(?:pfifo_fast|fq_codel)$/);
    expect(session.problems).toEqual([]);
    expect(scenario().number('values')).toBe(exitCodes.ok);
    expect(JSON.parse(await reportOf(scenario(), 'values.qscope', 'json'))).toBeTypeOf('object');
  });
});

test("the system's ping goes out of the interface and is answered", () => {
  const { probes, answered } = readRun(guest.scenario('set'), 'set.jsonl');
  expect(probes.length).toBeGreaterThan(20);
  expect(answered / probes.length).toBeGreaterThan(0.9);
  const sequences = probes.map((probe) => Number(probe['sequence']));
  expect(new Set(sequences).size).toBe(sequences.length);
});

test('limits hold while it is observed, and are then what they were', () => {
  const scenario = guest.scenario('set');
  expect(scenario.number('set')).toBe(exitCodes.ok);
  expect(limitsOf(scenario, 'during')).toEqual([3000, 30_000, 500]);
  expect(limitsOf(scenario, 'after')).toEqual([1500, maxLimit, 1000]);
});

test('BQL off lets the driver take all it can; on again, it is held back', () => {
  const scenario = guest.scenario('switched');
  const limitMax = 20_000;
  expect(scenario.number('switched')).toBe(exitCodes.ok);
  const [limitMinOff = 0, limitMaxOff = 0] = limitsOf(scenario, 'off');
  expect(limitMinOff).toBeGreaterThan(usbnetQueueBytes);
  expect(limitMaxOff).toBe(limitMinOff);
  expect(limitsOf(scenario, 'after')).toEqual([0, maxLimit, 1000]);
  const { samples, events } = readRun(scenario, 'switched.jsonl');
  const switches = events.filter((event) => String(event['kind']).startsWith('bql'));
  expect(switches.map((event) => event['kind'])).toEqual(['bql-off', 'bql-on']);
  const drainedUs = Number(switches[1]?.['timeUs']) + 1e6;
  const most = (enabled: number): number =>
    Math.max(
      ...samples
        .filter((sample) => sample['bqlEnabled'] === enabled)
        .filter((sample) => enabled === 0 || Number(sample['timeUs']) > drainedUs)
        .map((sample) => numberIn(sample, 'inflightMaxBytes')),
    );
  // cdc_ncm tells BQL of whole blocks: one may exceed the limit, and one more was half full when the queue was stopped.
  expect(most(1)).toBeLessThanOrEqual(limitMax + 2 * ncmBlockBytes);
  expect(most(0)).toBeGreaterThan(3 * limitMax);
});

test('interrupted with BQL off: the limits are put back', () => {
  const scenario = guest.scenario('interrupted');
  expect(scenario.number('off.limit_min')).toBeGreaterThan(usbnetQueueBytes);
  expect(scenario.number('interrupted')).toBe(exitCodes.interrupted);
  expect(limitsOf(scenario, 'after')).toEqual([0, maxLimit, 1000]);
});

test('killed with BQL off: told with the command that helps, and cleaned up by the next', () => {
  const scenario = guest.scenario('killed');
  expect(scenario.number('killed')).toBe(exitCodes.killed);
  expect(scenario.number('left.limit_min')).toBeGreaterThan(usbnetQueueBytes);
  const listed = (file: string): { problems: { id: string; remedy?: string }[] } | undefined =>
    (scenario.json(file) as { mode: string; problems: { id: string; remedy?: string }[] }[]).find(
      ({ mode }) => mode === 'observe',
    );
  expect(listed('list.json')?.problems).toMatchObject([
    {
      id: 'limits-left',
      remedy: expect.stringMatching(
        /^echo 0 \| sudo tee \/sys\/class\/net\/\w+\/queues\/tx-0\/byte_queue_limits\/limit_min$/m,
      ) as string,
    },
  ]);
  expect(limitsOf(scenario, 'after')).toEqual([0, maxLimit, 1000]);
  expect(listed('list-after.json')?.problems).toEqual([]);
});

test('without root: BQL cannot be switched, with the command that would; reading needs no permission', () => {
  const scenario = guest.scenario('not-permitted');
  expect(scenario.number('denied')).toBe(exitCodes.accessDenied);
  expect(scenario.text('denied.err')).toMatch(
    /^echo \d+ \| sudo tee \/sys\/class\/net\/\w+\/queues\/tx-\*\/byte_queue_limits\/limit_min$/m,
  );
  expect(limitsOf(scenario, 'after')).toEqual([0, maxLimit, 1000]);
  expect(scenario.number('read')).toBe(exitCodes.ok);
  expect(readRun(scenario, 'read.jsonl').samples.length).toBeGreaterThan(20);
});

test('unplugged and plugged in again: a gap, then it goes on, with the limits that were asked for', () => {
  const scenario = guest.scenario('vanished');
  expect(scenario.fact('sameName')).toBe('yes');
  expect(scenario.number('vanished')).toBe(exitCodes.ok);
  const { samples, probes, events } = readRun(scenario, 'vanished.jsonl');
  const goneUs = Number(events.find((event) => event['kind'] === 'unplug')?.['timeUs']);
  const backUs = Number(events.find((event) => event['kind'] === 'gap')?.['timeUs']);
  expect(backUs - goneUs).toBeGreaterThan(1_000_000);
  // Rows that mark the gap have nothing but their time.
  const times = samples
    .filter((sample) => typeof sample['rxBitsPerSecond'] === 'number')
    .map((sample) => Number(sample['timeUs']));
  expect(times.filter((timeUs) => timeUs > goneUs && timeUs < backUs)).toEqual([]);
  expect(times.some((timeUs) => timeUs > backUs)).toBe(true);
  const answeredAgain = probes.some(
    (probe) => Number(probe['timeUs']) > backUs && typeof probe['rttUs'] === 'number',
  );
  expect(answeredAgain).toBe(true);
  expect(limitsOf(scenario, 'after')).toEqual([0, maxLimit, 1000]);
});
