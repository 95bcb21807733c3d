import { describe, expect, test } from 'vitest';
import { simulate, type SimulationResult } from '../../src/engine/simulation.ts';
import { builtInScenarios } from '../../src/probes/built-in-scenarios.ts';

/**
 * The patch's own cases. What is published for them (priority ping under load, at the median): 35 and 5 ms at 100 Mbit/s,
 * 1.6 and 0.6 ms at 2.5 Gbit/s, 364 ms of queue at 10 Mbit/s. The device's memory is fitted to the first four, so these
 * tests say that the fit holds, not that the model is right.
 */

const results = new Map<string, SimulationResult>();

function resultOf(name: string): SimulationResult {
  const known = results.get(name);
  if (known !== undefined) return known;
  const found = builtInScenarios().find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(`no scenario ${name}`);
  const result = simulate(found);
  results.set(name, result);
  return result;
}

function armOf(result: Pick<SimulationResult, 'arms'>, name: string): SimulationResult['arms'][number] {
  const found = result.arms.find(({ arm }) => arm === name);
  if (found === undefined) throw new Error(`no arm ${name}`);
  return found;
}

function p50Ms(result: Pick<SimulationResult, 'arms'>, arm: string): number {
  return (armOf(result, arm).rttUs.p50 ?? Number.NaN) / 1000;
}

const rows = [
  { name: 'seed-2500mbit', aboveIdle: false, off: [1.4, 1.8], on: [0.4, 0.8] },
  { name: 'seed-100mbit', aboveIdle: false, off: [33, 40], on: [4, 6] },
  { name: 'seed-cellular-10mbit', aboveIdle: true, off: [363, 369], on: [0, 50] },
  { name: 'seed-cellular-10mbit-usb2', aboveIdle: true, off: [72, 78], on: [0, 15] },
] as const;

describe.each(rows)('$name', ({ name, aboveIdle, off, on }) => {
  const result = resultOf(name);
  const baseMs = aboveIdle ? (result.idle?.rttUs.p50 ?? Number.NaN) / 1000 : 0;

  test('without BQL the queue costs what is published', () => {
    expect(p50Ms(result, 'BQL off') - baseMs).toBeGreaterThan(off[0]);
    expect(p50Ms(result, 'BQL off') - baseMs).toBeLessThan(off[1]);
  });

  test('with BQL, too', () => {
    expect(p50Ms(result, 'BQL on') - baseMs).toBeGreaterThan(on[0]);
    expect(p50Ms(result, 'BQL on') - baseMs).toBeLessThan(on[1]);
  });

  test('at the same throughput, in every segment, at the limit of the link', () => {
    const rate = (arm: string): number => armOf(result, arm).throughputBitsPerSecond ?? Number.NaN;
    expect(Math.abs(rate('BQL on') / rate('BQL off') - 1)).toBeLessThan(0.01);
    expect(result.segments.every(({ loadReachedLimit, counts }) => loadReachedLimit && counts)).toBe(true);
  });

  test('the verdict says so, the criteria are met, and it says what was fitted', () => {
    expect(result.verdict.kind).toBe('improved');
    expect(result.verdict.sentence).toMatch(
      /^BQL cut the loaded p95 of a priority ping from .* throughput unchanged/,
    );
    expect(result.criteria.length).toBeGreaterThan(2);
    expect(result.criteria.filter(({ passed }) => !passed)).toEqual([]);
    expect(result.calibration).toMatch(/FIFO/);
    expect(result.verdict.calibration).toBe(result.calibration);
    expect(result.model).toHaveProperty('fifoBytes');
  });

  test('beside it the model without the fit', () => {
    expect(result.uncalibrated?.description).toMatch(/without/i);
    expect(result.uncalibrated?.model['fifoBytes']).toBe(0);
    expect(result.uncalibrated?.arms.map(({ arm }) => arm)).toEqual(['BQL off', 'BQL on']);
  });
});

test('without the fit the model is right without BQL and wrong by far with it: the FIFO makes the difference', () => {
  const { uncalibrated } = resultOf('seed-100mbit');
  if (uncalibrated === null) throw new Error('not run');
  expect(p50Ms(uncalibrated, 'BQL off')).toBeGreaterThan(33);
  expect(p50Ms(uncalibrated, 'BQL off')).toBeLessThan(40);
  expect(p50Ms(uncalibrated, 'BQL on')).toBeLessThan(1);
});
